/* node.c - one node of a quorum: see node.h.
 *
 * The threads block all signals, and end when the handle is closed and their
 * queues are empty: every job has a deadline. */
/* SPDX-License-Identifier: MIT */
#include "store/quorum/node.h"
#include "base/cond.h"
#include "base/fail.h"
#include "store/quorum/quorum_store.h"
#include <signal.h>
#include <string.h>

/* The thread leaves late answers to the askers for so long: while there are any, one of
 * them takes it for nothing. */
#define LATE (50 * DIBSX_MS)

static dibs__job *first_late(const dibs__node_queue *nq)
{
    return (dibs__job *)nq->late.first;
}

void dibs__node_add_late(dibs__node_queue *nq, dibs__job *job,
                         dibsx_nsec deadline)
{
    dibsx_nsec now = dibsx_now();

    /* A step that has to follow needs time, too. */
    job->look_at = now + LATE;
    if (job->look_at > now + (deadline - now) / 2)
        job->look_at = now + (deadline - now) / 2;
    dibsx_fifo_push(&nq->late, &job->queued);
    if (!nq->watched)
        pthread_cond_signal(&nq->cond);
}

void dibs__node_settle(dibs__node_queue *nq)
{
    dibs__job *job;

    while ((job = first_late(nq)) != NULL && !job->awaited &&
           job->ops->is_over(job)) {
        (void)dibsx_fifo_pop(&nq->late);
        job->ops->settle(job);
    }
}

/* No asker has come to take the answer. Locks: qm->mutex, which it drops. */
static void await_late(dibs__node_queue *nq, dibs__job *job)
{
    job->awaited = true;
    pthread_mutex_unlock(&nq->qm->mutex);
    job->ops->await(job);
    pthread_mutex_lock(&nq->qm->mutex);
    job->awaited = false;
    dibs__node_settle(nq);
}

/* Waits for a job, and looks after what is late. Locks: qm->mutex, which it drops. */
static void wait_for_job(dibs__node_queue *nq)
{
    dibs__job *late;

    dibs__node_settle(nq);
    if (nq->queue.first)
        return;
    late = first_late(nq);
    nq->watched = late != NULL;
    if (!late) {
        if (!nq->qm->stopping)
            pthread_cond_wait(&nq->cond, &nq->qm->mutex);
    } else if (nq->qm->stopping || dibsx_now() >= late->look_at) {
        await_late(nq, late);
    } else {
        dibsx_cond_wait(&nq->cond, &nq->qm->mutex, late->look_at);
    }
}

/* The next job, which stays counted until it is done. Locks: qm->mutex. */
static dibs__job *next_job(dibs__node_queue *nq)
{
    while (!nq->queue.first && !(nq->qm->stopping && !nq->late.first))
        wait_for_job(nq);
    return (dibs__job *)dibsx_fifo_pop(&nq->queue);
}

/* Thread: the queue's. */
static void *queue_main(void *arg)
{
    dibs__node_queue *nq = arg;
    dibs__job *job;

    pthread_mutex_lock(&nq->qm->mutex);
    while ((job = next_job(nq)) != NULL) {
        job->ops->begin(job);
        pthread_mutex_unlock(&nq->qm->mutex);
        job->ops->run(job);
        pthread_mutex_lock(&nq->qm->mutex);
        nq->count--;
        job->ops->end(job);
    }
    pthread_mutex_unlock(&nq->qm->mutex);
    return NULL;
}

bool dibs__node_init(struct dibs__quorum *qm, dibs__node *nd)
{
    for (size_t i = 0; i < DIBS__REQUEST_KINDS; i++) {
        nd->queues[i].qm = qm;
        if (!dibsx_cond_init(&nd->queues[i].cond))
            return false;
    }
    nd->voter.longest_ms = qm->longest_ms;
    return true;
}

void dibs__node_join(dibs__node *nd)
{
    for (size_t i = 0; i < DIBS__REQUEST_KINDS; i++)
        if (nd->queues[i].running)
            pthread_join(nd->queues[i].thread, NULL);
}

void dibs__node_fini(dibs__node *nd)
{
    for (size_t i = 0; i < DIBS__REQUEST_KINDS; i++)
        if (nd->queues[i].qm)
            pthread_cond_destroy(&nd->queues[i].cond);
    dibs__store_close(nd->st);
}

static bool queue_ready(dibs__node_queue *nq)
{
    sigset_t all, before;

    if (nq->running)
        return true;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    nq->running = pthread_create(&nq->thread, NULL, queue_main, nq) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return nq->running;
}

bool dibs__node_enqueue(dibs__node *nd, dibs__request_kind kind, dibs__job *job)
{
    dibs__node_queue *nq = &nd->queues[kind];

    if (nq->count == DIBS__JOBS_MAX || !queue_ready(nq))
        return false;
    dibsx_fifo_push(&nq->queue, &job->queued);
    nq->count++;
    return true;
}

void dibs__node_wake(dibs__node *nd, dibs__request_kind kind)
{
    pthread_cond_signal(&nd->queues[kind].cond);
}

bool dibs__node_dequeue(dibs__node *nd, dibs__request_kind kind, dibs__job *job)
{
    dibs__node_queue *nq = &nd->queues[kind];

    if (!dibsx_fifo_remove(&nq->queue, &job->queued))
        return false;
    nq->count--;
    return true;
}

void dibs__node_voter(struct dibs__quorum *qm, size_t node, dibs__voter *out)
{
    pthread_mutex_lock(&qm->mutex);
    *out = qm->nodes[node].voter;
    pthread_mutex_unlock(&qm->mutex);
}

dibs_status
dibs__node_meet(struct dibs__quorum *qm, size_t node, dibsx_nsec deadline,
                dibs__voter *out, dibs_error *err)
{
    struct dibs__store *st = qm->nodes[node].st;
    dibs__node_word word = {.wall_us = 0};
    dibsx_nsec sent_at = 0;
    dibs_status rc;

    *out = (dibs__voter){.longest_ms = qm->longest_ms};
    rc = st->ops->vote->meet(st, deadline, out, err);
    if (rc != DIBS_OK)
        return rc;
    sent_at = dibsx_now();
    rc = st->ops->now(st, deadline, &word.wall_us, err);
    if (rc == DIBS_UNKNOWN)
        return dibsx_fail(err, DIBS_UNAVAIL, "its clock was not told");
    if (rc != DIBS_OK)
        return rc;
    dibs__node_heard(qm, node, &word, sent_at);
    pthread_mutex_lock(&qm->mutex);
    qm->nodes[node].voter = *out;
    pthread_mutex_unlock(&qm->mutex);
    return DIBS_OK;
}

dibs_status
dibs__node_know(struct dibs__quorum *qm, size_t node, bool anew,
                dibsx_nsec deadline, dibs__voter *out, dibs_error *err)
{
    dibs__node_voter(qm, node, out);
    if (out->run_id[0] && !anew)
        return DIBS_OK;
    return dibs__node_meet(qm, node, deadline, out, err);
}

void dibs__node_note(struct dibs__quorum *qm, size_t node,
                     const dibs__node_word *word, dibsx_nsec sent_at)
{
    dibsx_nsec now = dibsx_now();
    int64_t jump_ms;

    if (word->wall_us == 0)
        return;
    qm->nodes[node].took_us = (now - sent_at) / 1000;
    jump_ms = dibs__skew_seen(&qm->skew, node, word->wall_us, sent_at, now,
                              qm->longest_ms);
    if (jump_ms != 0)
        qm->nodes[node].jump_ms = jump_ms;
}

void dibs__node_heard(struct dibs__quorum *qm, size_t node,
                      const dibs__node_word *word, dibsx_nsec sent_at)
{
    pthread_mutex_lock(&qm->mutex);
    dibs__node_note(qm, node, word, sent_at);
    pthread_mutex_unlock(&qm->mutex);
}

/* The late request of an owner; NULL: it has none. Locks: qm->mutex. */
static dibs__job *find_late(const dibs__node_queue *nq, const char *owner)
{
    for (dibs__job *job = first_late(nq); job && owner;
         job = (dibs__job *)job->queued.next)
        if (job->owner && strcmp(job->owner, owner) == 0)
            return job;
    return NULL;
}

void dibs__node_await_late(struct dibs__quorum *qm, size_t node,
                           const char *owner)
{
    dibs__node_queue *nq = &qm->nodes[node].queues[DIBS__REQUEST_STEP];
    dibs__job *job;

    pthread_mutex_lock(&qm->mutex);
    dibs__node_settle(nq);
    job = find_late(nq, owner);
    if (job)
        await_late(nq, job);
    pthread_mutex_unlock(&qm->mutex);
}

bool dibs__node_doubtful(struct dibs__quorum *qm, size_t node,
                         const char *owner)
{
    dibs__node *nd = &qm->nodes[node];
    bool doubtful;

    pthread_mutex_lock(&qm->mutex);
    dibs__node_settle(&nd->queues[DIBS__REQUEST_STEP]);
    doubtful = nd->queues[DIBS__REQUEST_RENEWAL].count > 0 ||
               dibsx_now() < nd->doubt_until ||
               find_late(&nd->queues[DIBS__REQUEST_STEP], owner) != NULL;
    pthread_mutex_unlock(&qm->mutex);
    return doubtful;
}

bool dibs__node_silent(struct dibs__quorum *qm, size_t node)
{
    return dibs__node_silent_since(qm, node,
                                   dibsx_now() -
                                       (dibsx_nsec)DIBS__TOMB_MS * DIBSX_MS);
}

bool dibs__node_silent_since(struct dibs__quorum *qm, size_t node,
                             dibsx_nsec from_at)
{
    bool silent;

    pthread_mutex_lock(&qm->mutex);
    silent =
        qm->nodes[node].doubt_until >= dibsx_after_ms(from_at, DIBS__TOMB_MS);
    pthread_mutex_unlock(&qm->mutex);
    return silent;
}

static bool is_same(const dibs__node *nd, const dibs__node *other)
{
    return nd->voter.run_id[0] &&
           strcmp(nd->voter.run_id, other->voter.run_id) == 0;
}

bool dibs__node_counts(const struct dibs__quorum *qm, size_t node,
                       dibsx_nsec now)
{
    for (size_t i = 0; i < node; i++)
        if (is_same(&qm->nodes[node], &qm->nodes[i]))
            return false;
    return dibs__skew_trusts(&qm->skew, node, now);
}
