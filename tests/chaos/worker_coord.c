/* worker_coord.c - what a worker does with latches, with a limit and a breaker.
 *
 * Each latch is used for one round, and all workers count at the same one: an id that
 * comes late to a latch cannot count at the next. */
/* SPDX-License-Identifier: MIT */
#include "worker.h"

#include "coord/breaker.h"
#include "core/client.h"

#include <poll.h>
#include <stdio.h>

#define LATCH_EVERY_NS INT64_C(100000000)

static record *begin(worker *wk, operation op, uint32_t key)
{
    record *rec = worker_record(wk);

    if (rec) {
        rec->op = (uint8_t)op;
        rec->key = key;
        rec->invoked_ns = now_ns();
    }
    return rec;
}

static void end(worker *wk, record *rec, dibs_status rc)
{
    rec->status = (int32_t)rc;
    rec->returned_ns = now_ns();
    atomic_fetch_add(&wk->run->operations, 1);
}

/* An id counts once, so that it is the same for all lives of a worker; and now and
 * then another of its own. */
static dibs_status count(worker *wk, const char *name, record *rec)
{
    char id[NAME_ROOM];
    dibs_error err = {0};
    uint32_t left = 0;
    dibs_status rc;

    rec->value = wk->log->worker;
    if (worker_pick(wk, 4) == 0)
        rec->value += (uint64_t)WORKERS_MAX * (1 + worker_pick(wk, 4));
    snprintf(id, sizeof(id), "id-%llu", (unsigned long long)rec->value);
    rc = dibs_latch_count_down(wk->cl, name, LATCH_COUNT, id, &left, &err);
    rec->expected = left;
    return rc;
}

static dibs_status look(worker *wk, const char *name, record *rec)
{
    dibs_latch_state state = {0};
    dibs_error err = {0};
    dibs_status rc;

    if (worker_pick(wk, 2) == 0)
        return dibs_latch_wait(wk->cl, name, LATCH_COUNT,
                               (int64_t)worker_pick(wk, 20), &err);
    rc = dibs_latch_show(wk->cl, name, &state, &err);
    rec->expected = state.left;
    return rc;
}

/* One that is seen open is left for the next. */
void worker_latch(worker *wk)
{
    unsigned latch = atomic_load(&wk->run->latch);
    char name[NAME_ROOM];
    bool counts = worker_pick(wk, 3) != 0;
    record *rec;
    dibs_status rc;

    if (wk->no_latches || now_ns() < wk->next_latch_ns ||
        !(rec = begin(wk, counts ? OP_COUNT : OP_WAIT, latch)))
        return;
    snprintf(name, sizeof(name), "chaos-latch-%llx-%u",
             (unsigned long long)wk->run->began_ns, latch);
    rc = counts ? count(wk, name, rec) : look(wk, name, rec);
    end(wk, rec, rc);
    wk->no_latches = rc == DIBS_UNSUPPORTED;
    wk->next_latch_ns = now_ns() + LATCH_EVERY_NS;
    if (rc == DIBS_OK && rec->expected == 0)
        atomic_compare_exchange_strong(&wk->run->latch, &latch, latch + 1);
}

static bool open_limit(worker *wk)
{
    dibs_error err = {0};
    dibs_status rc;

    if (wk->limit)
        return true;
    rc = dibs_limit_new(wk->cl, "chaos-limit",
                        DIBS_LIMIT_OPTS(.count = LIMIT_RATE,
                                        .burst = LIMIT_BURST),
                        &wk->limit, &err);
    if (rc != DIBS_UNSUPPORTED)
        worker_must(rc, &err);
    return rc == DIBS_OK;
}

void worker_limit(worker *wk)
{
    dibs_error err = {0};
    record *rec;

    if (worker_pick(wk, 4) != 0 || !open_limit(wk) ||
        !(rec = begin(wk, OP_TAKE, 0)))
        return;
    rec->value = 1 + worker_pick(wk, 3);
    end(wk, rec, dibs_limit_take(wk->limit, (int64_t)rec->value, &err));
}

enum { SPELL_MS = 500, RECOVERY_MS = 100, SAMPLING_MS = 2000 };

/* After the last fault the service is well. */
static bool is_well(const worker *wk)
{
    return atomic_load(&wk->run->calm_ns) != 0 ||
           (now_ns() - wk->run->began_ns) / 1000000 / SPELL_MS % 3 != 0;
}

static void open_breaker(worker *wk)
{
    dibs_error err = {0};

    if (wk->breaker)
        return;
    worker_must(dibs_breaker_new(wk->cl, "chaos-breaker",
                                 DIBS_BREAKER_OPTS(.threshold = THRESHOLD,
                                                   .sampling_ms = SAMPLING_MS,
                                                   .recovery_ms = RECOVERY_MS,
                                                   .probes = PROBES,
                                                   .probe_ttl_ms =
                                                       wk->run->ttl_ms),
                                 &wk->breaker, &err),
                &err);
}

/* Whether the client let the call pass by itself, without a permit of the store. Without a
 * fault too: a machine may be too slow for the store to answer in time. */
static bool passed_alone(dibs_breaker *br, uint64_t permit)
{
    const dibs__breaker_permit *pm;
    bool alone;

    pthread_mutex_lock(&br->cl->mutex);
    pm = dibs__breaker_permit_of(&br->machine, permit);
    alone = pm && pm->own;
    pthread_mutex_unlock(&br->cl->mutex);
    return alone;
}

/* A probe takes a moment. */
void worker_call(worker *wk)
{
    dibs_error err = {0};
    dibs_pass pass = {0};
    record *rec;

    if (worker_pick(wk, 4) != 0)
        return;
    open_breaker(wk);
    rec = begin(wk, OP_CALL, 0);
    if (!rec)
        return;
    end(wk, rec, dibs_breaker_enter(wk->breaker, &pass, &err));
    if (rec->status != DIBS_OK)
        return;
    rec->permits = pass.permit != 0 && !passed_alone(wk->breaker, pass.permit);
    if (pass.permit != 0)
        poll(NULL, 0, 5);
    rec->value = is_well(wk);
    rec->released_ns = now_ns();
    dibs_breaker_leave(wk->breaker, &pass, rec->value != 0);
}
