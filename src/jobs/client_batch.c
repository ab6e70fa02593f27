/* client_batch.c - waiting for all members of a batch (dibs/jobs.h). */
/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "base/fail.h"
#include "base/uncancel.h"
#include "jobs/board_batch.h"
#include "jobs/board_name.h"

#include <stdio.h>

enum { LOOK_FIRST_MS = 20, LOOK_MOST_MS = 1000 };

static bool count_member(const char *run, void *arg)
{
    (void)run;
    ++*(uint32_t *)arg;
    return true;
}

typedef struct failures {
    const dibs__board *board;
    uint32_t count;
    dibs_status rc;
    dibs_error *err;
} failures;

static bool count_failure(const char *id, void *arg)
{
    failures *f = arg;
    dibs__run run;
    dibs_status rc = dibs__board_run(f->board, id, &run, f->err);

    if (rc == DIBS_OK)
        f->count += run.state != DIBS__STATE_OK;
    else if (rc != DIBS_NOTFOUND) /* Its history may be gone. */
        f->rc = rc;
    dibs__run_fini(&run);
    return f->rc == DIBS_OK;
}

/* OK: all have ended. TIMEOUT: they have not yet. */
static dibs_status
look_at_batch(const dibs__board *board, const char *id, uint32_t of,
              dibs_batch_sum *sum, dibs_error *err)
{
    failures f = {.board = board, .rc = DIBS_OK, .err = err};
    dibs__batch batch;
    dibs_status rc = dibs__board_batch(board, id, &batch, err);

    if (rc == DIBS_OK)
        rc = dibs__batch_expect(&batch, of, err);
    *sum = (dibs_batch_sum){.of = of};
    if (rc == DIBS_OK)
        rc = dibs__board_batch_ended(board, &batch, count_member, &sum->ended,
                                     err);
    if (rc != DIBS_OK)
        return rc;
    if (sum->ended < of)
        return dibsx_fail(err, DIBS_TIMEOUT,
                          "%u of %u members of the batch %s have ended",
                          (unsigned)sum->ended, (unsigned)of, id);
    rc = dibs__board_batch_ended(board, &batch, count_failure, &f, err);
    sum->failed = f.count;
    return rc == DIBS_OK ? f.rc : rc;
}

/* The record changes when the batch is complete, so that a watch of it wakes the caller; the
 * ends themselves are in an index, which is looked at, at last once a second. */
static dibs_status
await_batch(const dibs__board *board, const char *id, uint32_t of,
            dibsx_nsec until, dibs_batch_sum *sum, dibs_error *err)
{
    char inner[DIBS__JOB_NAME_SIZE + 8], key[DIBS_NAME_MAX + 1];
    dibs_watch *watch = NULL;
    int64_t pause_ms = LOOK_FIRST_MS;
    dibs_status rc;

    (void)snprintf(inner, sizeof(inner), "batch/%s", id);
    rc = dibs__board_key(board, inner, key, err);
    if (rc == DIBS_OK)
        rc = dibs_state_watch(board->cl, key, &watch, err);
    while (rc == DIBS_OK &&
           (rc = look_at_batch(board, id, of, sum, err)) == DIBS_TIMEOUT) {
        dibsx_nsec now = dibsx_now();
        dibsx_nsec next = dibsx_after_ms(now, pause_ms);
        dibs_change change = {.merged = false};

        if (now >= until)
            break;
        pause_ms = 2 * pause_ms < LOOK_MOST_MS ? 2 * pause_ms : LOOK_MOST_MS;
        rc = dibs_watch_next(watch,
                             dibsx_wait_ms(next < until ? next : until, now),
                             &change, err);
        dibs_value_free(&change.value);
        if (rc == DIBS_TIMEOUT || rc == DIBS_UNAVAIL)
            rc = DIBS_OK;
    }
    dibs_watch_free(watch);
    return rc;
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

    if (rc == DIBS_OK && of == 0)
        rc = dibsx_fail(err, DIBS_INVALID,
                        "a wait for a batch needs the number of its members");
    if (rc == DIBS_OK)
        rc = await_batch(&board, id, of, until, &sum, err);
    if (out)
        *out = sum;
    return rc;
}
