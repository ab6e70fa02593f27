/* reach.c - the first contact of a client with its store. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "core/reach.h"

#include "core/away.h"
#include <poll.h>

/* Pause between two attempts, doubled up to the cap; and what the last attempt
 * gets at least. */
enum { PAUSE_MS = 10, PAUSE_CAP_MS = 500, CHANCE_MS = 50 };

dibs_status
dibs__reach_store(dibs_client *cl, dibsx_nsec deadline, dibs_error *err)
{
    dibs_status rc;

    if (atomic_load_explicit(&cl->reached, memory_order_acquire))
        return DIBS_OK;
    rc = dibs__store_reach(cl->st, deadline, err);
    if (rc == DIBS_OK)
        atomic_store_explicit(&cl->reached, true, memory_order_release);
    /* The contact takes no lease: nothing that matters can have changed. */
    if (rc == DIBS_UNKNOWN) {
        rc = DIBS_UNAVAIL;
        if (err)
            err->status = rc;
    }
    return rc;
}

/* One attempt, which ends at `until`, though with a fair chance. */
static dibs_status
attempt_once(dibs_client *cl, dibsx_nsec until, dibs_error *err)
{
    dibsx_nsec now = dibsx_now();
    dibsx_nsec deadline = dibs__client_deadline(cl, now);
    dibsx_nsec chance = dibsx_after_ms(now, CHANCE_MS);

    if (until < deadline)
        deadline = until > chance ? until : chance;
    return dibs__reach_store(cl, deadline, err);
}

/* Sleeps, half of the span at least and not beyond `until`; doubles the span. */
static void pause_attempts(dibs_client *cl, dibsx_nsec until, int64_t *span_ms)
{
    uint64_t half_ms = (uint64_t)*span_ms / 2;
    dibsx_nsec now = dibsx_now();
    dibsx_nsec end_at =
        dibsx_after_ms(now, (int64_t)(half_ms + dibsx_prng_below(&cl->jitter,
                                                                 half_ms + 1)));

    (void)poll(NULL, 0,
               (int)dibsx_wait_ms(end_at < until ? end_at : until, now));
    if (*span_ms < PAUSE_CAP_MS)
        *span_ms *= 2;
}

dibs_status
dibs__reach_waiting(dibs_client *cl, int64_t wait_ms, dibs_error *err)
{
    dibsx_nsec began_at = dibsx_now();
    dibsx_nsec until =
        wait_ms == 0 ? DIBSX_NEVER : dibsx_after_ms(began_at, wait_ms);
    int64_t span_ms = PAUSE_MS;
    dibs_error why = {0};
    dibs_status rc;

    while ((rc = attempt_once(cl, until, &why)) == DIBS_UNAVAIL &&
           wait_ms != 0 && dibsx_now() < until) {
        pthread_mutex_lock(&cl->mutex);
        dibs__away_failed(cl, began_at, &why);
        pthread_mutex_unlock(&cl->mutex);
        pause_attempts(cl, until, &span_ms);
    }
    if (rc == DIBS_OK) {
        pthread_mutex_lock(&cl->mutex);
        dibs__away_ended(cl);
        pthread_mutex_unlock(&cl->mutex);
    } else if (err) {
        *err = why;
    }
    return rc;
}

dibs_status dibs__reach_usable(dibs_client *cl, dibs_error *err)
{
    dibs_status rc = dibs__client_usable(cl, err);

    if (rc != DIBS_OK ||
        atomic_load_explicit(&cl->reached, memory_order_acquire))
        return rc;
    return dibs__reach_store(cl, dibs__client_deadline(cl, dibsx_now()), err);
}
