/* worker_coord.c - what a worker does with latches and with a limit.
 *
 * Each latch is used for one round, and all workers count at the same one: an id that
 * comes late to a latch cannot count at the next. */
/* SPDX-License-Identifier: MIT */
#include "worker.h"

#include <stdio.h>

#define LATCH_EVERY_NS INT64_C(100000000)

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
        !(rec = worker_begin(wk, counts ? OP_COUNT : OP_WAIT, latch)))
        return;
    snprintf(name, sizeof(name), "chaos-latch-%llx-%u",
             (unsigned long long)wk->run->began_ns, latch);
    rc = counts ? count(wk, name, rec) : look(wk, name, rec);
    worker_end(wk, rec, rc);
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
        !(rec = worker_begin(wk, OP_TAKE, 0)))
        return;
    rec->value = 1 + worker_pick(wk, 3);
    worker_end(wk, rec, dibs_limit_take(wk->limit, (int64_t)rec->value, &err));
}
