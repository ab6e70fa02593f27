/* board_batch.c - see board_batch.h. */
/* SPDX-License-Identifier: MIT */
#include "jobs/board_batch.h"

#include "base/fail.h"

#include <stdio.h>

static dibs_status batch_key(const dibs__board *board, const char *id,
                             char out[DIBS_NAME_MAX + 1], dibs_error *err)
{
    char inner[DIBS__JOB_NAME_SIZE + 8];

    if (!dibs__job_name_ok(id))
        return dibsx_fail(err, DIBS_INVALID,
                          "'%.60s' is no name of a batch: letters, digits, "
                          "'.', '_' and '-', up to %d",
                          id, DIBS__JOB_NAME_MAX);
    (void)snprintf(inner, sizeof(inner), "batch/%s", id);
    return dibs__board_key(board, inner, out, err);
}

dibs_status dibs__board_batch(const dibs__board *board, const char *id,
                              dibs__batch *out, dibs_error *err)
{
    char key[DIBS_NAME_MAX + 1];
    dibs_value value = {.len = 0};
    dibs_status rc = batch_key(board, id, key, err);

    dibs__batch_init(out, rc == DIBS_OK ? id : "");
    if (rc != DIBS_OK)
        return rc;
    rc = dibs_state_get(board->cl, key, &value, err);
    if (rc == DIBS_NOTFOUND)
        return DIBS_OK;
    if (rc == DIBS_OK)
        rc = dibs__batch_read(out, id, value.data, value.len, value.version,
                              err);
    dibs_value_free(&value);
    return rc;
}

typedef struct hearing {
    dibs__member_fn *each;
    void *arg;
    uint32_t count;
    bool enough;
} hearing;

static bool hear_member(const dibs_index_entry *entry, void *arg)
{
    hearing *h = arg;

    h->count++;
    h->enough = h->enough || !h->each(entry->member, h->arg);
    return !h->enough;
}

dibs_status
dibs__board_batch_ended(const dibs__board *board, const char *id,
                        dibs__member_fn *each, void *arg, dibs_error *err)
{
    char key[DIBS_NAME_MAX + 1];
    hearing h = {.each = each, .arg = arg};
    uint32_t skip = 0;
    dibs_status rc = batch_key(board, id, key, err);

    do {
        dibs_index_look look = {.index = key,
                                .up_to = DIBS_INDEX_AT_MAX,
                                .skip = skip,
                                .limit = DIBS_LOOK_MAX};

        h.count = 0;
        if (rc == DIBS_OK)
            rc = dibs_index_first(board->cl, &look, 1, NULL, hear_member, &h,
                                  err);
        skip += h.count;
    } while (rc == DIBS_OK && !h.enough && h.count == DIBS_LOOK_MAX);
    return rc;
}
