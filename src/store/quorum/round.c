/* round.c - something asked of all nodes of a quorum at once: see round.h.
 *
 * Runs on the thread that asks and on those of the nodes. */
/* SPDX-License-Identifier: MIT */
#include "store/quorum/round.h"
#include "base/cond.h"
#include "base/fail.h"
#include "store/quorum/post.h"
#include "store/quorum/slot.h"

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
    rd->span = deadline - dibsx_now();
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

void dibs__round_start(dibs__round *rd, uint32_t nodes)
{
    dibs__quorum *qm = rd->qm;
    uint32_t queued = 0, posted;

    if (dibsx_now() >= rd->deadline)
        nodes = 0;
    pthread_mutex_lock(&qm->mutex);
    for (size_t i = 0; i < qm->count; i++)
        dibs__slot_init(rd, i);
    posted = dibs__post_choose(rd, nodes);
    for (size_t i = 0; i < qm->count; i++) {
        if ((nodes & (1U << i)) == 0)
            dibs__slot_cast(rd, i, DIBS_UNAVAIL);
        else if ((posted & (1U << i)) == 0 && dibs__slot_queue(rd, i))
            queued |= 1U << i;
    }
    pthread_mutex_unlock(&qm->mutex);
    /* Without the mutex, for which they would wait at once. */
    for (size_t i = 0; i < qm->count; i++)
        if (queued & (1U << i))
            dibs__node_wake(&qm->nodes[i], rd->kind);
    dibs__post_send(rd, posted);
}

void dibs__round_drop(dibs__round *rd)
{
    pthread_mutex_t *mutex = &rd->qm->mutex;

    pthread_mutex_lock(mutex);
    dibs__round_unref(rd);
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
        dibs__slot_cast(rd, i,
                        dibsx_fail_at(&slot->err, DIBS_UNAVAIL, "ETIMEDOUT",
                                      "the node was slow"));
        dibs__round_unref(rd);
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
        if (rd->slots[i].state == DIBS__SLOT_RUNNING ||
            rd->slots[i].state == DIBS__SLOT_POSTED) {
            dibs__slot_cast(rd, i, DIBS_UNKNOWN);
            rd->qm->nodes[i].doubt_until =
                dibsx_after_ms(dibsx_now(), DIBS__TOMB_MS);
        }
}

void dibs__round_wait(dibs__round *rd, dibs__enough_fn *enough)
{
    pthread_mutex_lock(&rd->qm->mutex);
    rd->enough = enough;
    while (!dibs__slots_over(rd)) {
        if (dibsx_now() >= rd->deadline) {
            give_up(rd);
            break;
        }
        if (rd->driven)
            dibs__post_drive(rd);
        else
            dibsx_cond_wait(&rd->cond, &rd->qm->mutex, rd->deadline);
    }
    rd->closed = true;
    if (rd->driven)
        dibs__post_close(rd);
    pthread_mutex_unlock(&rd->qm->mutex);
}

bool dibs__round_decided(const dibs__round *rd)
{
    return dibs__ballot_count(&rd->ballot) != DIBS__OPEN;
}
