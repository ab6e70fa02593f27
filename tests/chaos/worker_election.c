/* worker_election.c - a worker as a candidate of the one election of a run.
 *
 * A term is written down by the callbacks, which run on a thread of the election; the
 * looks in between are the worker's own. */
/* SPDX-License-Identifier: MIT */
#include "worker.h"

#include <poll.h>
#include <stdio.h>

static _Atomic(record *) term_on; /* NULL: none */

/* Looks at the clock before the election: it leads now means that it led then. Terms
 * rise, so that what is found after the record was is of this term or a later one. */
static bool look_at(const dibs_election *election, record *rec)
{
    int64_t at = now_ns();

    if (dibs_election_check(election) != DIBS_OK ||
        dibs_election_term(election) != rec->fence)
        return false;
    rec->looked_ns = at;
    atomic_signal_fence(memory_order_seq_cst);
    if (rec->from_ns == 0)
        rec->from_ns = at;
    return true;
}

static record *begin_term(worker *wk, uint64_t term)
{
    record *rec = worker_record(wk);

    if (rec) {
        rec->op = OP_LEAD;
        rec->fence = term;
        rec->invoked_ns = now_ns();
    }
    return rec;
}

static void gained(dibs_election *election, uint64_t term, void *arg)
{
    worker *wk = arg;
    record *rec = begin_term(wk, term);

    if (!rec)
        return;
    rec->value++;
    (void)look_at(election, rec);
    atomic_store(&term_on, rec);
}

/* One that was never gained has a record of its own. Work takes a moment to stop. */
static void
lost(dibs_election *election, uint64_t term, dibs_lost_why why, void *arg)
{
    worker *wk = arg;
    record *rec = atomic_load(&term_on);

    if (!rec || rec->fence != term)
        rec = begin_term(wk, term);
    if (!rec)
        return;
    rec->expected++;
    rec->status = (int32_t)why;
    rec->told_ns = now_ns();
    if (dibs_election_check(election) != DIBS_OK)
        rec->missed_ns = now_ns();
    poll(NULL, 0, 2);
    rec->released_ns = now_ns();
}

static void name_of(uint32_t number, char out[NAME_ROOM])
{
    snprintf(out, NAME_ROOM, "worker-%u", number);
}

void worker_election_begin(worker *wk)
{
    char member[NAME_ROOM];
    dibs_error err = {0};

    name_of(wk->log->worker, member);
    worker_must(dibs_election_new(
                    wk->cl, "chaos-election",
                    DIBS_ELECTION_OPTS(.ttl_ms = wk->run->ttl_ms,
                                       .stop_ms = wk->run->stop_ms,
                                       .member = member, .on_gained = gained,
                                       .on_lost = lost, .arg = wk),
                    &wk->election, &err),
                &err);
    worker_must(dibs_election_campaign(wk->election, &err), &err);
}

void worker_election_end(worker *wk)
{
    dibs_election_free(wk->election);
    wk->election = NULL;
}

void worker_election_look(worker *wk)
{
    record *rec = atomic_load(&term_on);

    if (rec && rec->told_ns == 0)
        (void)look_at(wk->election, rec);
}

void worker_election_turn(worker *wk)
{
    char heir[NAME_ROOM];
    dibs_error err = {0};

    worker_election_look(wk);
    if (dibs_election_check(wk->election) != DIBS_OK || worker_pick(wk, 3) != 0)
        return;
    if (worker_pick(wk, 2) == 0) {
        (void)dibs_election_resign(wk->election, &err);
        worker_must(dibs_election_campaign(wk->election, &err), &err);
    } else {
        name_of((uint32_t)worker_pick(wk, wk->run->workers), heir);
        (void)!dibs_election_transfer(wk->election, heir, &err);
    }
}
