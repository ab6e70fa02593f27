/* slots.h - the search for a free slot of a name. Pure.
 *
 * Majorities cannot count, but they can grant N slots, each to one owner: the
 * owner of a slot has a permit, and there are never more than N. An owner
 * begins with a slot that depends on the owner alone, so that a second ask
 * meets the first. It goes on to slots that no node has granted, as far as it
 * knows, and then to slots that only few nodes have granted: they may have been
 * given back there.
 *
 * Slots have fences of their own, by the remainder: two slots that are held
 * together never get the same one, whatever is written back. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_QUORUM_SLOTS_H
#define DIBS_STORE_QUORUM_SLOTS_H

#include "base/rand.h"
#include "store/quorum/ballot.h"
#include "store/quorum_steps.h"

typedef struct dibs__slots {
    uint32_t capacity; /* 0: it is not about slots */
    uint32_t slot;     /* that is asked for, from 1; 0 without */
    bool moves;        /* it is another one than before */
    uint64_t
        barred; /* slots that were tried or are taken, the first in bit 0 */
    uint32_t
        doubtful; /* nodes that may yet give one that was asked for before */
    dibsx_prng prng;
} dibs__slots;

/* `capacity` is at most DIBS__NAME_SLOTS. */
void dibs__slots_init(dibs__slots *sl, uint32_t capacity, const char *owner);

/* The slot was not granted: goes on to another, if there may be one.
 * `doubtful`: nodes that have not answered. */
void dibs__slots_move(dibs__slots *sl, const dibs__ballot *bl,
                      uint32_t doubtful);

/* The least fence from one on that the slot may have; any when there are none. */
uint64_t dibs__slots_fence(const dibs__slots *sl, uint64_t least);

#endif
