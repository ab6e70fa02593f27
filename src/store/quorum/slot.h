/* slot.h - the part of a round that is one node's: its job, and its vote. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_QUORUM_SLOT_H
#define DIBS_STORE_QUORUM_SLOT_H

#include "store/quorum/round.h"

/* For all of these: Locks: qm->mutex. */

/* The slot of a node, with its job, as a round begins. */
void dibs__slot_init(dibs__round *rd, size_t node);

/* The vote of a node that does not give one. */
void dibs__slot_cast(dibs__round *rd, size_t node, dibs_status rc);

/* Its job is queued at the node, with a reference to the round; the caller wakes the
 * node. False when it cannot be: then that is the vote. */
bool dibs__slot_queue(dibs__round *rd, size_t node);

/* The answer to what was posted is in, or never will be. Either that is the vote, or the
 * node's thread is to ask. */
void dibs__slot_settle(dibs__job *job);

/* The asker has what it waits for. */
bool dibs__slots_over(dibs__round *rd);

/* Lets go of a round; frees it with the last reference. */
void dibs__round_unref(dibs__round *rd);

#endif
