/* board_batch.c - see board_batch.h. */
/* SPDX-License-Identifier: MIT */
#include "jobs/board_batch.h"

#include "base/fail.h"

#include <stdio.h>

enum { ROUNDS_MAX = 32 };

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

/* ---- completion */

static bool note_any(const dibs_index_entry *entry, void *arg)
{
    (void)entry;
    *(bool *)arg = true;
    return false;
}

/* There is a member at the last place of the index. A batch that nobody has made has none,
 * whatever is left of another of its name. */
dibs_status
dibs__board_batch_full(const dibs__board *board, const dibs__batch *batch,
                       bool *full, int64_t *now_us, dibs_error *err)
{
    char key[DIBS_NAME_MAX + 1];
    dibs_index_look look = {.index = key,
                            .from = dibs__batch_since_us(batch),
                            .up_to = DIBS_INDEX_AT_MAX,
                            .skip = batch->of > 0 ? (uint32_t)batch->of - 1 : 0,
                            .limit = 1};
    bool any = false;
    dibs_status rc = batch_key(board, batch->id, key, err);

    if (rc == DIBS_OK)
        rc = dibs_index_first(board->cl, &look, 1, now_us, note_any, &any, err);
    *full = any && batch->of > 0 && batch->version > 0;
    return rc;
}

/* STALE: another client changed the batch meanwhile. */
static dibs_status try_batch(const dibs__board *board, const char *id,
                             dibs__batch_news *news, dibs_error *err)
{
    bool full = false, doubt = false;
    dibs__batch batch;
    dibs__intent in;
    dibs_status rc = dibs__board_batch(board, id, &batch, err);

    dibs__intent_init(&in);
    if (rc == DIBS_OK)
        rc = dibs__batch_expect(&batch, news->of, err);
    if (rc == DIBS_OK)
        rc = dibs__board_batch_full(board, &batch, &full, &news->now_us, err);
    if (rc == DIBS_OK) {
        if (news->waiter && !full)
            dibs__batch_wait(&batch, news->waiter);
        news->of = batch.of;
        news->complete =
            dibs__batch_look(&batch, full ? batch.of : 0, news->now_us, &in);
        dibs__batch_commit(&batch, news->now_us, &in);
        if (in.change_count > 0)
            rc = dibs__board_commit(board, &in, &doubt, err);
    }
    dibs__intent_fini(&in);
    return rc;
}

dibs_status dibs__board_batch_look(const dibs__board *board, const char *id,
                                   dibs__batch_news *news, dibs_error *err)
{
    uint64_t of = news->of;

    for (int i = 0; i < ROUNDS_MAX; i++) {
        dibs_status rc;

        news->of = of;
        rc = try_batch(board, id, news, err);
        if (rc != DIBS_STALE)
            return rc;
    }
    return dibsx_fail(err, DIBS_STALE,
                      "the batch %s is changed by others all the time; try "
                      "again",
                      id);
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
    h->enough = h->enough ||
                !h->each(entry->member, dibs__batch_well(entry->at), h->arg);
    return !h->enough;
}

dibs_status
dibs__board_batch_ended(const dibs__board *board, const dibs__batch *batch,
                        dibs__member_fn *each, void *arg, dibs_error *err)
{
    char key[DIBS_NAME_MAX + 1];
    hearing h = {.each = each, .arg = arg};
    uint32_t skip = 0;
    dibs_status rc = batch_key(board, batch->id, key, err);

    if (rc == DIBS_OK && batch->version == 0)
        return DIBS_OK;
    do {
        dibs_index_look look = {.index = key,
                                .from = dibs__batch_since_us(batch),
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
