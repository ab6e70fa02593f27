/* round.c - something asked of all nodes of a quorum at once: see round.h.
 *
 * Runs on the thread that asks and on those of the nodes. */
/* SPDX-License-Identifier: MIT */
#include "store/quorum/round.h"
#include "base/alloc.h"
#include "base/cond.h"
#include "base/fail.h"
#include <string.h>

/* A node has this part of the ttl to answer. A short ttl allows a larger part,
 * which a busy machine needs. */
enum { PART_OF_TTL = 10, PART_OF_SHORT = 2, NEEDED_MS = 50 };

bool dibs__round_init(dibs__round *rd, dibs__quorum *qm, dibs__round_fn *ask,
                      dibsx_nsec deadline)
{
    rd->qm = qm;
    rd->ask = ask;
    rd->refs = 1;
    rd->deadline = deadline;
    rd->ballot.count = qm->count;
    return dibsx_cond_init(&rd->cond);
}

dibsx_nsec
dibs__round_limit(const dibs__quorum *qm, int64_t ttl_ms, dibsx_nsec deadline)
{
    int64_t short_ms = ttl_ms / PART_OF_SHORT;
    int64_t span_ms = ttl_ms / PART_OF_TTL;
    dibsx_nsec limit;

    if (short_ms > NEEDED_MS)
        short_ms = NEEDED_MS;
    if (span_ms < short_ms)
        span_ms = short_ms;
    if (span_ms > qm->node_timeout_ms)
        span_ms = qm->node_timeout_ms;
    limit = dibsx_after_ms(dibsx_now(), span_ms);
    return limit < deadline ? limit : deadline;
}

/* Locks: qm->mutex. */
static void cast_vote(dibs__round *rd, size_t node, dibs_status rc)
{
    rd->ballot.votes[node] = (dibs__vote){.in = true, .rc = rc};
}

/* Frees it with the last reference. Locks: qm->mutex. */
static void unref_round(dibs__round *rd)
{
    if (--rd->refs > 0)
        return;
    pthread_cond_destroy(&rd->cond);
    if (rd->free)
        rd->free(rd);
    dibsx_free(rd);
}

static void begin_job(dibs__job *job)
{
    job->round->slots[job->node].state = DIBS__SLOT_RUNNING;
}

static void run_job(dibs__job *job)
{
    dibs__round *rd = job->round;
    dibsx_nsec from_at = dibsx_now();

    job->vote = (dibs__vote){.in = true};
    if (from_at >= rd->deadline) {
        job->vote.rc = dibsx_fail_at(&job->err, DIBS_UNAVAIL, "ETIMEDOUT",
                                     "the node was slow");
        return;
    }
    job->vote.rc = rd->ask(rd, job->node, &job->vote, &job->err);
    if (job->vote.rc != DIBS_UNAVAIL && job->vote.rc != DIBS_UNKNOWN)
        job->took_us = (dibsx_now() - from_at) / 1000;
}

static bool all_in(const dibs__round *rd)
{
    for (size_t i = 0; i < rd->ballot.count; i++)
        if (!rd->ballot.votes[i].in)
            return false;
    return true;
}

/* Decides which votes count, by what is known now. Locks: qm->mutex. */
static void judge_votes(dibs__round *rd)
{
    dibsx_nsec now = dibsx_now();

    for (size_t i = 0; i < rd->ballot.count; i++) {
        dibs__vote *vote = &rd->ballot.votes[i];

        if (vote->in && rd->slots[i].state == DIBS__SLOT_DONE)
            vote->counts = !rd->judged || dibs__node_counts(rd->qm, i, now);
    }
}

/* The asker has what it waits for. Locks: qm->mutex. */
static bool is_over(dibs__round *rd)
{
    judge_votes(rd);
    return all_in(rd) || rd->enough(rd);
}

static void end_job(dibs__job *job)
{
    dibs__round *rd = job->round;
    dibs__slot *slot = &rd->slots[job->node];

    slot->state = DIBS__SLOT_DONE;
    if (job->vote.rc == DIBS_UNKNOWN)
        rd->qm->nodes[job->node].doubt_until =
            dibsx_after_ms(dibsx_now(), DIBS__TOMB_MS);
    if (!rd->closed) {
        rd->ballot.votes[job->node] = job->vote;
        slot->err = job->err;
        slot->took_us = job->took_us;
        /* A vote that decides nothing wakes nobody. */
        if (rd->enough && is_over(rd))
            pthread_cond_signal(&rd->cond);
    }
    unref_round(rd);
}

static const dibs__job_ops job_ops = {begin_job, run_job, end_job};

void dibs__round_start(dibs__round *rd, uint32_t nodes)
{
    dibs__quorum *qm = rd->qm;
    uint32_t queued = 0;

    if (dibsx_now() >= rd->deadline)
        nodes = 0;
    pthread_mutex_lock(&qm->mutex);
    for (size_t i = 0; i < qm->count; i++) {
        dibs__slot *slot = &rd->slots[i];

        slot->job = (dibs__job){.ops = &job_ops, .round = rd, .node = i};
        if ((nodes & (1U << i)) == 0) {
            cast_vote(rd, i, DIBS_UNAVAIL);
        } else if (dibs__node_enqueue(&qm->nodes[i], rd->kind, &slot->job)) {
            slot->state = DIBS__SLOT_QUEUED;
            rd->refs++;
            queued |= 1U << i;
        } else {
            cast_vote(rd, i,
                      dibsx_fail(&slot->err, DIBS_UNAVAIL,
                                 "the node is overloaded"));
        }
    }
    pthread_mutex_unlock(&qm->mutex);
    /* Without the mutex, for which they would wait at once. */
    for (size_t i = 0; i < qm->count; i++)
        if (queued & (1U << i))
            dibs__node_wake(&qm->nodes[i], rd->kind);
}

void dibs__round_drop(dibs__round *rd)
{
    pthread_mutex_t *mutex = &rd->qm->mutex;

    pthread_mutex_lock(mutex);
    unref_round(rd);
    pthread_mutex_unlock(mutex);
}

/* Cancels jobs that have not begun. Locks: qm->mutex. */
static void take_back(dibs__round *rd)
{
    for (size_t i = 0; i < rd->qm->count; i++) {
        dibs__slot *slot = &rd->slots[i];

        if (slot->state != DIBS__SLOT_QUEUED ||
            !dibs__node_dequeue(&rd->qm->nodes[i], rd->kind, &slot->job))
            continue;
        slot->state = DIBS__SLOT_DONE;
        cast_vote(rd, i,
                  dibsx_fail_at(&slot->err, DIBS_UNAVAIL, "ETIMEDOUT",
                                "the node was slow"));
        unref_round(rd);
    }
}

void dibs__round_cancel(dibs__round *rd)
{
    pthread_mutex_lock(&rd->qm->mutex);
    take_back(rd);
    pthread_mutex_unlock(&rd->qm->mutex);
}

/* Time is up: stops waiting for nodes that have not answered. Locks:
 * qm->mutex. */
static void give_up(dibs__round *rd)
{
    take_back(rd);
    for (size_t i = 0; i < rd->qm->count; i++)
        if (rd->slots[i].state == DIBS__SLOT_RUNNING) {
            cast_vote(rd, i, DIBS_UNKNOWN);
            rd->qm->nodes[i].doubt_until =
                dibsx_after_ms(dibsx_now(), DIBS__TOMB_MS);
        }
}

void dibs__round_wait(dibs__round *rd, dibs__enough_fn *enough)
{
    pthread_mutex_lock(&rd->qm->mutex);
    rd->enough = enough;
    while (!is_over(rd)) {
        if (dibsx_now() >= rd->deadline) {
            give_up(rd);
            break;
        }
        dibsx_cond_wait(&rd->cond, &rd->qm->mutex, rd->deadline);
    }
    rd->closed = true;
    pthread_mutex_unlock(&rd->qm->mutex);
}

bool dibs__round_decided(const dibs__round *rd)
{
    return dibs__ballot_count(&rd->ballot) != DIBS__OPEN;
}
