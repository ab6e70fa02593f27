/* slot.c - the part of a round that is one node's: see slot.h.
 *
 * Runs on the thread that asks and on those of the nodes. */
/* SPDX-License-Identifier: MIT */
#include "store/quorum/slot.h"
#include "base/alloc.h"
#include "base/fail.h"
#include <sys/eventfd.h>

/* So many jobs of a node, and none is asked again. */
enum { AGAIN_MAX = 16 };

void dibs__slot_cast(dibs__round *rd, size_t node, dibs_status rc)
{
    rd->ballot.votes[node] = (dibs__vote){.in = true, .rc = rc};
}

void dibs__round_unref(dibs__round *rd)
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
    if (from_at >= job->deadline) {
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

bool dibs__slots_over(dibs__round *rd)
{
    judge_votes(rd);
    return all_in(rd) || rd->enough(rd);
}

/* Locks: qm->mutex. */
static void wake_asker(dibs__round *rd)
{
    if (rd->driven)
        (void)eventfd_write(rd->qm->turn_fd, 1);
    else
        pthread_cond_signal(&rd->cond);
}

/* A request without an answer may yet arrive. Locks: qm->mutex. */
static void note_doubt(dibs__job *job)
{
    if (job->vote.rc == DIBS_UNKNOWN)
        job->round->qm->nodes[job->node].doubt_until =
            dibsx_after_ms(dibsx_now(), DIBS__TOMB_MS);
}

/* The slot stays done: the round does not wait for this. Nothing new is asked of a
 * quorum that is being closed. */
static void begin_again(dibs__job *job)
{
    const dibs__round *rd = job->round;

    job->deadline = rd->qm->stopping ? 0 : dibsx_now() + rd->span;
}

static void end_again(dibs__job *job)
{
    note_doubt(job);
    dibs__round_unref(job->round);
}

/* The round has its vote, and the node is asked once more: a release that was lost
 * would leave the lease there for the rest of its ttl. The reference to the round goes
 * with the job. A node that is away gets few of them, for they take its thread's time.
 * False: it is not asked. Locks: qm->mutex. */
static bool ask_again(dibs__job *job)
{
    static const dibs__job_ops ops = {.begin = begin_again,
                                      .run = run_job,
                                      .end = end_again};
    dibs__round *rd = job->round;
    dibs__node *nd = &rd->qm->nodes[job->node];

    if (!rd->goes_on || !dibsx_is_away(job->vote.rc) || rd->qm->stopping ||
        nd->queues[rd->kind].count >= AGAIN_MAX)
        return false;
    job->ops = &ops;
    if (!dibs__node_enqueue(nd, rd->kind, job))
        return false;
    dibs__node_wake(nd, rd->kind);
    return true;
}

/* The vote is in. A vote that decides nothing wakes nobody, and the asker not itself.
 * Locks: qm->mutex. */
static void end_slot(dibs__job *job, bool own)
{
    dibs__round *rd = job->round;
    dibs__slot *slot = &rd->slots[job->node];

    slot->state = DIBS__SLOT_DONE;
    note_doubt(job);
    if (!rd->closed) {
        rd->ballot.votes[job->node] = job->vote;
        slot->err = job->err;
        slot->took_us = job->took_us;
        if (!own && rd->enough && dibs__slots_over(rd))
            wake_asker(rd);
    }
    if (!ask_again(job))
        dibs__round_unref(rd);
}

static void end_job(dibs__job *job)
{
    end_slot(job, false);
}

/* Locks: qm->mutex. */
static bool enqueue_job(dibs__round *rd, dibs__job *job)
{
    if (!dibs__node_enqueue(&rd->qm->nodes[job->node], rd->kind, job))
        return false;
    rd->slots[job->node].state = DIBS__SLOT_QUEUED;
    return true;
}

static dibs_status fail_overload(dibs_error *err)
{
    return dibsx_fail(err, DIBS_UNAVAIL, "the node is overloaded");
}

/* The short way did nothing: the node's thread goes the long one. If the asker has gone,
 * a grant could come after its release: then the next one goes the long way. Locks:
 * qm->mutex. */
static bool needs_job(dibs__round *rd, size_t node, dibs_status rc)
{
    if (rc != DIBS_BUSY && rc != DIBS_STALE)
        return false;
    if (rd->closed && !rd->goes_on)
        rd->qm->nodes[node].long_way_due = true;
    return !rd->closed || rd->goes_on;
}

void dibs__slot_settle(dibs__job *job)
{
    dibs__round *rd = job->round;
    dibs__slot *slot = &rd->slots[job->node];
    struct dibs__store *st = rd->qm->nodes[job->node].st;
    dibs__node_word word;
    dibs__answer ans;
    dibs_status rc =
        st->ops->vote->post->end(st, slot->sent, &ans, &word, &job->err);

    slot->sent = NULL;
    dibs__node_note(rd->qm, job->node, &word, slot->sent_at);
    if (needs_job(rd, job->node, rc)) {
        if (enqueue_job(rd, job)) {
            dibs__node_wake(&rd->qm->nodes[job->node], rd->kind);
            return;
        }
        rc = fail_overload(&job->err);
    }
    job->vote = (dibs__vote){.in = true,
                             .rc = rc,
                             .fence = ans.fence,
                             .left_ms = ans.left_ms};
    if (rc != DIBS_UNAVAIL && rc != DIBS_UNKNOWN)
        job->took_us = (dibsx_now() - slot->sent_at) / 1000;
    end_slot(job, true);
}

static bool is_late_over(dibs__job *job)
{
    struct dibs__store *st = job->round->qm->nodes[job->node].st;

    return st->ops->vote->post->is_over(st, job->round->slots[job->node].sent);
}

static void await_late(dibs__job *job)
{
    struct dibs__store *st = job->round->qm->nodes[job->node].st;

    st->ops->vote->post->await(st, job->round->slots[job->node].sent);
}

void dibs__slot_init(dibs__round *rd, size_t node)
{
    static const dibs__job_ops ops = {begin_job,         run_job,
                                      end_job,           is_late_over,
                                      dibs__slot_settle, await_late};

    rd->slots[node].job = (dibs__job){.ops = &ops,
                                      .round = rd,
                                      .node = node,
                                      .owner = rd->owner,
                                      .deadline = rd->deadline};
}

bool dibs__slot_queue(dibs__round *rd, size_t node)
{
    dibs__slot *slot = &rd->slots[node];

    if (!enqueue_job(rd, &slot->job)) {
        dibs__slot_cast(rd, node, fail_overload(&slot->err));
        return false;
    }
    rd->refs++;
    return true;
}
