/* node_trim_batch.c - the sweep of a node that takes the members of a batch out of their index
 * when the batch is gone, and forgets a batch of which nothing is heard any more. */
/* SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "jobs/board_batch.h"
#include "node/node_sweep.h"

#include <stdio.h>
#include <string.h>

enum {
    MEMBERS_MAX = 256, /* of one commit */
    PART_MS = 500      /* of one look */
};

#define LATER_US (INT64_C(24) * 3600 * 1000000)

/* ---- members of a batch that is gone */

typedef struct drop {
    dibs__intent in;
    const char *index;
} drop;

static bool note_member(const dibs_index_entry *entry, void *arg)
{
    drop *d = arg;

    dibs__intent_leave(&d->in, d->index, entry->member);
    return true;
}

/* The record is checked: a batch that is made meanwhile has members of its own. */
static dibs_status drop_some(dibs__node *node, const dibs__batch *batch,
                             const char *name, bool *more, dibs_error *err)
{
    char key[DIBS_NAME_MAX + 1];
    drop d = {.index = name};
    dibs_index_look look = {.index = key,
                            .up_to = batch->version == 0
                                         ? DIBS_INDEX_AT_MAX
                                         : dibs__batch_since_us(batch) - 1,
                            .limit = MEMBERS_MAX};
    bool doubt = false;
    dibs_status rc = dibs__board_key(node->board, name, key, err);

    dibs__intent_init(&d.in);
    dibs__intent_check_version(&d.in, name, batch->version);
    if (rc == DIBS_OK)
        rc = dibs_index_first(node->board->cl, &look, 1, NULL, note_member, &d,
                              err);
    *more = d.in.change_count == MEMBERS_MAX;
    if (rc == DIBS_OK && d.in.change_count > 0)
        rc = dibs__board_commit(node->board, &d.in, &doubt, err);
    dibs__intent_fini(&d.in);
    (void)dibs__node_valid_until(node);
    return rc;
}

/* *more: the time was over before the members were. The look that is due stays, and goes on
 * with the rest. */
static dibs_status drop_members(dibs__node *node, const dibs__batch *batch,
                                const char *name, bool *more, dibs_error *err)
{
    dibsx_nsec until = dibsx_after_ms(dibsx_now(), PART_MS);
    dibs_status rc = DIBS_OK;

    *more = batch->version == 0 || dibs__batch_since_us(batch) > 0;
    while (*more && rc == DIBS_OK && dibsx_now() < until)
        rc = drop_some(node, batch, name, more, err);
    return rc;
}

/* ---- batches that nobody completes */

static bool note_one(const dibs_index_entry *entry, void *arg)
{
    (void)entry;
    *(bool *)arg = true;
    return false;
}

/* Whether a member ended at that time or later, but for the `skip` first of these. */
static dibs_status
has_member(dibs__node *node, const char *name, int64_t from_us, uint64_t skip,
           bool *out, dibs_error *err)
{
    char key[DIBS_NAME_MAX + 1];
    dibs_index_look look = {.index = key,
                            .from = from_us,
                            .up_to = DIBS_INDEX_AT_MAX,
                            .skip = (uint32_t)skip,
                            .limit = 1};
    dibs_status rc = dibs__board_key(node->board, name, key, err);

    *out = false;
    if (rc == DIBS_OK && skip <= UINT32_MAX)
        rc = dibs_index_first(node->board->cl, &look, 1, NULL, note_one, out,
                              err);
    return rc;
}

/* Whether a run that waits for the batch may still do so. The record has no room for
 * more than DIBS__BATCH_WAITERS_MAX of them. */
static dibs_status has_waiter(dibs__node *node, const dibs__batch *batch,
                              bool *waits, dibs_error *err)
{
    dibs_status rc = DIBS_OK;

    *waits = batch->waiter_count == DIBS__BATCH_WAITERS_MAX;
    for (size_t i = 0; i < batch->waiter_count && !*waits && rc == DIBS_OK;
         i++) {
        dibs__run run;

        rc = dibs__board_run(node->board, batch->waiters[i], &run, err);
        (void)dibs__node_valid_until(node);
        *waits = rc == DIBS_OK && !dibs__state_final(run.state);
        if (rc == DIBS_NOTFOUND)
            rc = DIBS_OK;
        dibs__run_fini(&run);
    }
    return rc;
}

/* All members that were started have ended, long ago, and no run waits for the others. */
static dibs_status
is_forgotten(dibs__node *node, const dibs__batch *batch, const char *name,
             int64_t now_us, bool *out, dibs_error *err)
{
    int64_t long_ago_us = now_us - DIBS__BATCH_FORGET_US;
    bool waits = true, ended = batch->started == 0, newer = true;
    dibs_status rc = DIBS_OK;

    *out = false;
    if (batch->made_us >= long_ago_us)
        return DIBS_OK;
    rc = has_member(node, name, long_ago_us, 0, &newer, err);
    if (rc == DIBS_OK && !newer && !ended)
        rc = has_member(node, name, 0, batch->started - 1, &ended, err);
    if (rc == DIBS_OK && !newer && ended)
        rc = has_waiter(node, batch, &waits, err);
    *out = rc == DIBS_OK && !newer && ended && !waits;
    return rc;
}

/* ---- the sweep */

/* Another look is due then; 0: the batch is gone, and no look is. */
static dibs_status
plan_batch(dibs__node *node, const dibs__batch *batch, const char *name,
           int64_t at_us, bool forget, dibs_error *err)
{
    bool doubt = false;
    dibs__intent in;
    dibs_status rc;

    dibs__intent_init(&in);
    dibs__intent_check_version(&in, name, batch->version);
    if (forget)
        dibs__intent_delete(&in, name);
    else if (at_us)
        dibs__intent_enter(&in, "trim", name, at_us);
    else
        dibs__intent_leave(&in, "trim", name);
    rc = dibs__board_commit(node->board, &in, &doubt, err);
    dibs__intent_fini(&in);
    return rc;
}

/* *forgot: the record is deleted, and the members are to go. Nothing is planned while there
 * are members that have to go. */
static dibs_status
look_at_batch(dibs__node *node, const char *name, bool *forgot, dibs_error *err)
{
    int64_t now_us = 0, at_us = 0;
    bool more = false;
    dibs__batch batch;
    dibs_status rc =
        dibs__board_batch(node->board, name + strlen(DIBS__BATCH_PART), &batch,
                          err);

    *forgot = false;
    if (rc == DIBS_OK)
        rc = dibs__board_now(node->board, &now_us, err);
    if (rc == DIBS_OK)
        rc = drop_members(node, &batch, name, &more, err);
    if (rc == DIBS_OK && more) {
        node->sweep_soon[DIBS__SWEEP_CLEANUP] = true;
        return DIBS_OK;
    }
    if (rc == DIBS_OK && batch.version > 0 && !batch.complete_us)
        rc = is_forgotten(node, &batch, name, now_us, forgot, err);
    if (batch.version > 0)
        at_us = now_us + LATER_US;
    if (at_us && batch.complete_us && dibs__batch_gone_us(&batch) > now_us)
        at_us = dibs__batch_gone_us(&batch);
    return rc == DIBS_OK ? plan_batch(node, &batch, name, at_us, *forgot, err)
                         : rc;
}

dibs_status dibs__trim_batch(dibs__node *node, const dibs__node_entry *entry,
                             dibs_error *err)
{
    bool forgot = false;
    dibs_status rc = look_at_batch(node, entry->member, &forgot, err);

    if (rc == DIBS_OK && forgot)
        rc = look_at_batch(node, entry->member, &forgot, err);
    return rc == DIBS_STALE ? DIBS_OK : rc;
}
