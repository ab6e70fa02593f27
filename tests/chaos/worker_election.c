/* worker_election.c - a worker as a candidate of the two elections of a run: of the
 * second a leader leads while more than half of all workers live.
 *
 * A term is written down by the callbacks, which run on a thread of the election; the
 * looks in between are the worker's own. */
/* SPDX-License-Identifier: MIT */
#include "worker.h"

#include <poll.h>
#include <stdio.h>

typedef struct candidate {
    worker *wk;
    uint32_t key;
    _Atomic(record *) term_on; /* NULL: none */
} candidate;

static candidate candidates[ELECTIONS];

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

static record *begin_term(const candidate *cd, uint64_t term)
{
    record *rec = worker_record(cd->wk);

    if (rec) {
        rec->op = OP_LEAD;
        rec->key = cd->key;
        rec->fence = term;
        rec->invoked_ns = now_ns();
    }
    return rec;
}

static void gained(dibs_election *election, uint64_t term, void *arg)
{
    candidate *cd = arg;
    record *rec = begin_term(cd, term);

    if (!rec)
        return;
    rec->value++;
    (void)look_at(election, rec);
    atomic_store(&cd->term_on, rec);
}

/* One that was never gained has a record of its own. Work takes a moment to stop. */
static void
lost(dibs_election *election, uint64_t term, dibs_lost_why why, void *arg)
{
    candidate *cd = arg;
    record *rec = atomic_load(&cd->term_on);

    if (!rec || rec->fence != term)
        rec = begin_term(cd, term);
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

/* False: the store cannot count members. */
static bool stand(worker *wk, uint32_t key)
{
    static const char *const names[] = {"chaos-election", "chaos-majority"};
    candidate *cd = &candidates[key];
    char member[NAME_ROOM];
    dibs_election_opts opts = {.size = sizeof(opts),
                               .ttl_ms = wk->run->ttl_ms,
                               .stop_ms = wk->run->stop_ms,
                               .member = member,
                               .on_gained = gained,
                               .on_lost = lost,
                               .arg = cd};
    dibs_error err = {0};
    dibs_status rc;

    cd->wk = wk;
    cd->key = key;
    name_of(wk->log->worker, member);
    if (key == 1) {
        opts.minimum_nodes = wk->run->workers / 2 + 1;
        opts.heartbeat_ms = wk->run->ttl_ms / 3;
    }
    rc =
        dibs_election_new(wk->cl, names[key], &opts, &wk->elections[key], &err);
    if (key == 1 && rc == DIBS_UNSUPPORTED)
        return false;
    worker_must(rc, &err);
    worker_must(dibs_election_campaign(wk->elections[key], &err), &err);
    return true;
}

void worker_election_begin(worker *wk)
{
    for (uint32_t key = 0; key < ELECTIONS; key++)
        if (!stand(wk, key))
            return;
}

void worker_election_end(worker *wk)
{
    for (uint32_t key = 0; key < ELECTIONS; key++)
        dibs_election_free(wk->elections[key]);
}

void worker_election_look(worker *wk)
{
    for (uint32_t key = 0; key < ELECTIONS; key++) {
        record *rec = atomic_load(&candidates[key].term_on);

        if (rec && rec->told_ns == 0)
            (void)look_at(wk->elections[key], rec);
    }
}

static void hand_on(worker *wk, uint32_t key)
{
    dibs_election *election = wk->elections[key];
    record *rec = worker_begin(wk, OP_HAND, key);
    char heir[NAME_ROOM];
    dibs_error err = {0};
    dibs_status rc;

    if (!rec)
        return;
    rec->fence = dibs_election_term(election);
    rec->value = worker_pick(wk, 2) == 0 ? HAND_RESIGN : HAND_ON;
    if (rec->value == HAND_RESIGN) {
        rc = dibs_election_resign(election, &err);
        worker_must(dibs_election_campaign(election, &err), &err);
    } else {
        name_of((uint32_t)worker_pick(wk, wk->run->workers), heir);
        rc = dibs_election_transfer(election, heir, &err);
    }
    worker_end(wk, rec, rc);
}

void worker_election_turn(worker *wk)
{
    worker_election_look(wk);
    for (uint32_t key = 0; key < ELECTIONS; key++)
        if (wk->elections[key] &&
            dibs_election_check(wk->elections[key]) == DIBS_OK &&
            worker_pick(wk, 3) == 0)
            hand_on(wk, key);
}
