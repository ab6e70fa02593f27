/* worker_barrier.c - some workers meet at one barrier, each on a thread of its own.
 *
 * There is one more of them than the barrier has parties, so that another comes in when
 * one dies. Half of them break the generation when they give up; the others wait for
 * longer. */
/* SPDX-License-Identifier: MIT */
#include "worker.h"

#include "coord/barrier.h"
#include "core/client.h"

#include <poll.h>

/* The generation of a call that it broke for; 0: the seat has been lost since. */
static uint64_t broken_generation(dibs_barrier *b)
{
    uint64_t generation;

    pthread_mutex_lock(&b->cl->mutex);
    generation = b->machine.after;
    pthread_mutex_unlock(&b->cl->mutex);
    return generation;
}

static bool meet(worker *wk)
{
    record *rec = worker_record(wk);
    dibs_error err = {0};

    if (!rec)
        return false;
    rec->op = OP_MEET;
    rec->invoked_ns = now_ns();
    rec->status = (int32_t)dibs_barrier_wait(wk->barrier, &rec->fence, &err);
    rec->returned_ns = now_ns();
    if (rec->status == DIBS_BROKEN)
        rec->fence = broken_generation(wk->barrier);
    atomic_fetch_add(&wk->run->operations, 1);
    return true;
}

/* Not too fast: the log is for the other work too. */
static void *meet_in_turn(void *arg)
{
    worker *wk = arg;

    while (atomic_load(&wk->meets) && meet(wk))
        poll(NULL, 0, 10 + (int)wk->log->worker);
    return NULL;
}

void worker_barrier_begin(worker *wk)
{
    dibs_error err = {0};
    dibs_status rc;

    if (wk->log->worker >= MEETERS)
        return;
    rc = dibs_barrier_new(
        wk->cl, "chaos-barrier",
        DIBS_BARRIER_OPTS(.parties = PARTIES, .ttl_ms = wk->run->ttl_ms,
                          .wait_ms = meet_ms(wk->log->worker, wk->run->ttl_ms),
                          .flags = breaks_barrier(wk->log->worker)
                                       ? 0
                                       : DIBS_BARRIER_WITHDRAW),
        &wk->barrier, &err);
    if (rc == DIBS_UNSUPPORTED)
        return;
    worker_must(rc, &err);
    atomic_store(&wk->meets, true);
    if (pthread_create(&wk->meeter, NULL, meet_in_turn, wk) != 0)
        worker_must(DIBS_NOMEM, &err);
}

void worker_barrier_end(worker *wk)
{
    if (!wk->barrier)
        return;
    atomic_store(&wk->meets, false);
    dibs_barrier_cancel(wk->barrier);
    pthread_join(wk->meeter, NULL);
    dibs_barrier_free(wk->barrier);
    wk->barrier = NULL;
}
