/* client_batch.c - waiting for all members of a batch (dibs/jobs.h). */
/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "base/fail.h"
#include "base/uncancel.h"
#include "jobs/board_batch.h"
#include "jobs/board_name.h"

#include <poll.h>
#include <stdio.h>

enum { LOOK_FIRST_MS = 20, LOOK_MOST_MS = 1000 };

static bool count_member(const char *run, bool well, void *arg)
{
    dibs_batch_sum *sum = arg;

    (void)run;
    sum->ended++;
    sum->failed += !well;
    return true;
}

static dibs_status
fail_unended(const dibs_batch_sum *sum, const char *id, dibs_error *err)
{
    if (sum->of == 0)
        return dibsx_fail(err, DIBS_TIMEOUT,
                          "no start has said how many members the batch %s "
                          "has; %u have ended",
                          id, (unsigned)sum->ended);
    return dibsx_fail(err, DIBS_TIMEOUT,
                      "%u of %u members of the batch %s have ended",
                      (unsigned)sum->ended, (unsigned)sum->of, id);
}

/* OK: all have ended. TIMEOUT, without a message: they have not yet. */
static dibs_status
look_at_batch(const dibs__board *board, const char *id, uint32_t of,
              dibs__batch *batch, dibs_error *err)
{
    int64_t now_us = 0;
    bool full = false;
    dibs_status rc = dibs__board_batch(board, id, batch, err);

    if (rc == DIBS_OK && of == 0 && batch->version == 0)
        rc = dibsx_fail(err, DIBS_NOTFOUND,
                        "there is no batch %s on the board %s; say how many "
                        "members it will have to wait for one",
                        id, board->name);
    if (rc == DIBS_OK)
        rc = dibs__batch_expect(batch, of, err);
    if (rc == DIBS_OK)
        rc = dibs__board_batch_full(board, batch, &full, &now_us, err);
    return rc == DIBS_OK && !full ? DIBS_TIMEOUT : rc;
}

/* A batch may have any number of members: they are counted when the wait is over. */
static dibs_status
look_or_count(const dibs__board *board, const char *id, uint32_t of, bool last,
              dibs_batch_sum *sum, dibs_error *err)
{
    dibs__batch batch;
    dibs_status rc = look_at_batch(board, id, of, &batch, err), counted;

    *sum = (dibs_batch_sum){.of = of};
    if (rc != DIBS_OK && !(rc == DIBS_TIMEOUT && last))
        return rc;
    sum->of = (uint32_t)batch.of;
    counted = dibs__board_batch_ended(board, &batch, count_member, sum, err);
    if (counted != DIBS_OK)
        return counted;
    return sum->of == 0 || sum->ended < sum->of ? fail_unended(sum, id, err)
                                                : DIBS_OK;
}

/* Waits for a change of the record until then. A watch of a store that is away may say so
 * at once. */
static dibs_status
await_change(dibs_watch *watch, dibsx_nsec until, bool away, dibs_error *err)
{
    dibs_change change = {.merged = false};
    dibs_status rc =
        dibs_watch_next(watch, dibsx_wait_ms(until, dibsx_now()), &change, err);

    dibs_value_free(&change.value);
    if (away || dibsx_is_away(rc))
        (void)poll(NULL, 0, (int)dibsx_wait_ms(until, dibsx_now()));
    return rc == DIBS_TIMEOUT || dibsx_is_away(rc) ? DIBS_OK : rc;
}

/* The record changes when the batch is complete, so that a watch of it wakes the caller; the
 * ends themselves are in an index, which is looked at, at last once a second. A store that
 * is away may be back before the time is over. */
static dibs_status
await_batch(const dibs__board *board, const char *id, uint32_t of,
            dibsx_nsec until, dibs_batch_sum *sum, dibs_error *err)
{
    char inner[DIBS__JOB_NAME_SIZE + 8], key[DIBS_NAME_MAX + 1];
    dibs_watch *watch = NULL;
    int64_t pause_ms = LOOK_FIRST_MS;
    dibs_status rc, changed = DIBS_OK;

    (void)snprintf(inner, sizeof(inner), "batch/%s", id);
    rc = dibs__board_key(board, inner, key, err);
    if (rc == DIBS_OK)
        rc = dibs_state_watch(board->cl, key, &watch, err);
    while (watch && changed == DIBS_OK) {
        bool last = dibsx_now() >= until;
        dibsx_nsec now, next;

        rc = look_or_count(board, id, of, last, sum, err);
        now = dibsx_now();
        if (last || (rc != DIBS_TIMEOUT && !dibsx_is_away(rc)) ||
            (dibsx_is_away(rc) && now >= until))
            break;
        next = dibsx_after_ms(now, pause_ms);
        pause_ms = 2 * pause_ms < LOOK_MOST_MS ? 2 * pause_ms : LOOK_MOST_MS;
        changed = await_change(watch, next < until ? next : until,
                               dibsx_is_away(rc), err);
    }
    dibs_watch_free(watch);
    return changed == DIBS_OK ? rc : changed;
}

dibs_status
dibs_batch_wait(dibs_client *cl, const char *batch, uint32_t of,
                int64_t wait_ms, dibs_batch_sum *out, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibsx_nsec until = dibsx_after_ms(dibsx_now(), wait_ms);
    dibs_batch_sum sum = {.of = of};
    dibs__board board;
    const char *id = NULL;
    dibs_status rc = dibs__board_split(cl, batch, &board, &id, err);

    if (rc == DIBS_OK)
        rc = await_batch(&board, id, of, until, &sum, err);
    if (out)
        *out = sum;
    return rc;
}
