/* post.h - rounds whose asker sends to the nodes itself, and polls them for answers.
 *
 * No thread is woken for such a vote. It is for requests that the short scripts do, to
 * nodes that have nothing else to do:
 *
 *             answer                    short way did nothing
 *   posted -----------> the vote is in     or it was not sent
 *      |  `--------------------------------------------------> a job of the node
 *      |
 *      `--> late: the round was closed before (node.h)
 *
 * 1. A request is posted only if no job of the node is queued or being done, so that
 *    the requests of an owner reach the node in their order.
 * 2. A request is posted on the connection on which the node was met. So it comes after
 *    all that was posted before, or it is not sent.
 * 3. One round at a time is driven so; others go to the threads of the nodes. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_QUORUM_POST_H
#define DIBS_STORE_QUORUM_POST_H

#include "store/quorum/round.h"

/* The nodes of the set to which the round is posted, and it is driven if that is any.
 * Locks: qm->mutex. */
uint32_t dibs__post_choose(dibs__round *rd, uint32_t nodes);

/* Posts it to them, or queues a job. Locks: none held. */
void dibs__post_send(dibs__round *rd, uint32_t nodes);

/* Waits for answers once, by the deadline, and takes them. When none is left to poll
 * for, the round is driven no longer. Locks: qm->mutex, which it drops. */
void dibs__post_drive(dibs__round *rd);

/* The round is closed: answers that are missing are late. Locks: qm->mutex, which it
 * drops. */
void dibs__post_close(dibs__round *rd);

#endif
