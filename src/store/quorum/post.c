/* post.c - rounds whose asker polls the nodes itself: see post.h.
 *
 * Owns the descriptor that ends the poll. Runs on the thread that asks. */
/* SPDX-License-Identifier: MIT */
#include "store/quorum/post.h"
#include "store/quorum/slot.h"
#include <poll.h>
#include <sys/eventfd.h>

/* So many answers of a node may be late; then its thread is asked. A poll counts no
 * suspend, so none is longer than this. */
enum { LATE_MAX = 16, POLL_MAX_MS = 1000 };

static const dibs__vote_post_ops *post_of(const dibs__round *rd, size_t node)
{
    return rd->qm->nodes[node].st->ops->vote->post;
}

/* Locks: qm->mutex. */
static bool can_post(const dibs__round *rd, size_t node)
{
    dibs__node *nd = &rd->qm->nodes[node];
    dibs__node_queue *nq = &nd->queues[DIBS__REQUEST_STEP];

    if (!post_of(rd, node) || !nd->voter.link || !nq->running)
        return false;
    dibs__node_settle(nq);
    if (rd->owner && nd->long_way_due) {
        nd->long_way_due = false;
        return false;
    }
    return nq->count == 0 && nq->late.count < LATE_MAX;
}

/* Locks: qm->mutex. */
static bool can_drive(dibs__quorum *qm)
{
    if (qm->turn_fd < 0)
        qm->turn_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return qm->turn_fd >= 0 && !qm->driven;
}

uint32_t dibs__post_choose(dibs__round *rd, uint32_t nodes)
{
    uint32_t chosen = 0;

    if (!rd->send || !can_drive(rd->qm))
        return 0;
    for (size_t i = 0; i < rd->qm->count; i++)
        if ((nodes & (1U << i)) != 0 && can_post(rd, i)) {
            rd->slots[i].state = DIBS__SLOT_POSTED;
            rd->refs++;
            chosen |= 1U << i;
        }
    rd->driven = rd->qm->driven = chosen != 0;
    return chosen;
}

/* It was not posted. */
static void queue_instead(dibs__round *rd, size_t node)
{
    pthread_mutex_lock(&rd->qm->mutex);
    dibs__round_unref(rd);
    rd->slots[node].state = DIBS__SLOT_UNUSED;
    if (dibs__slot_queue(rd, node))
        dibs__node_wake(&rd->qm->nodes[node], rd->kind);
    pthread_mutex_unlock(&rd->qm->mutex);
}

void dibs__post_send(dibs__round *rd, uint32_t nodes)
{
    for (size_t i = 0; i < rd->qm->count; i++) {
        dibs__slot *slot = &rd->slots[i];
        dibs__voter voter;

        if ((nodes & (1U << i)) == 0)
            continue;
        dibs__node_voter(rd->qm, i, &voter);
        slot->sent_at = dibsx_now();
        slot->sent = rd->send(rd, i, &voter);
        if (!slot->sent)
            queue_instead(rd, i);
    }
}

/* Locks: qm->mutex. */
static void stop_driving(dibs__round *rd)
{
    eventfd_t count;

    /* Another vote may have told that the round is over. */
    (void)eventfd_read(rd->qm->turn_fd, &count);
    rd->driven = rd->qm->driven = false;
}

/* The nodes whose answers are awaited. Locks: qm->mutex. */
static uint32_t find_posted(const dibs__round *rd)
{
    uint32_t nodes = 0;

    for (size_t i = 0; i < rd->qm->count; i++)
        if (rd->slots[i].state == DIBS__SLOT_POSTED)
            nodes |= 1U << i;
    return nodes;
}

/* Fills in whom to poll: these nodes, and after them the descriptor of the quorum. */
static void watch_all(const dibs__round *rd, uint32_t nodes, struct pollfd *fds)
{
    for (size_t i = 0; i < rd->qm->count; i++) {
        fds[i] = (struct pollfd){.fd = -1};
        if (nodes & (1U << i))
            post_of(rd, i)->watch(rd->qm->nodes[i].st, &fds[i]);
    }
    fds[rd->qm->count] =
        (struct pollfd){.fd = rd->qm->turn_fd, .events = POLLIN};
}

/* Takes what has come from the nodes. */
static void take_all(dibs__round *rd, const struct pollfd *fds)
{
    for (size_t i = 0; i < rd->qm->count; i++) {
        dibs__slot *slot = &rd->slots[i];

        if (fds[i].fd < 0 || fds[i].revents == 0 ||
            !post_of(rd, i)->take(rd->qm->nodes[i].st, slot->sent))
            continue;
        pthread_mutex_lock(&rd->qm->mutex);
        dibs__slot_settle(&slot->job);
        pthread_mutex_unlock(&rd->qm->mutex);
    }
}

void dibs__post_drive(dibs__round *rd)
{
    struct pollfd fds[DIBS__NODES_MAX + 1];
    size_t count = rd->qm->count;
    uint32_t nodes = find_posted(rd);
    eventfd_t told;
    int64_t wait_ms;

    if (nodes == 0) {
        stop_driving(rd);
        return;
    }
    pthread_mutex_unlock(&rd->qm->mutex);
    watch_all(rd, nodes, fds);
    wait_ms = dibsx_wait_ms(rd->deadline, dibsx_now());
    if (poll(fds, (nfds_t)count + 1,
             wait_ms < POLL_MAX_MS ? (int)wait_ms : POLL_MAX_MS) > 0) {
        take_all(rd, fds);
        if (fds[count].revents != 0)
            (void)eventfd_read(rd->qm->turn_fd, &told);
    }
    pthread_mutex_lock(&rd->qm->mutex);
}

void dibs__post_close(dibs__round *rd)
{
    uint32_t late = find_posted(rd);

    for (size_t i = 0; i < rd->qm->count; i++)
        if (late & (1U << i))
            dibs__node_add_late(&rd->qm->nodes[i].queues[DIBS__REQUEST_STEP],
                                &rd->slots[i].job, rd->deadline);
    pthread_mutex_unlock(&rd->qm->mutex);
    for (size_t i = 0; i < rd->qm->count; i++)
        if (late & (1U << i))
            post_of(rd, i)->resign(rd->qm->nodes[i].st);
    pthread_mutex_lock(&rd->qm->mutex);
    stop_driving(rd);
}
