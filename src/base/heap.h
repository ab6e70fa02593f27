/* heap.h - a heap of deadlines. The nodes live inside their owners.
 *
 * Room is reserved before a node is needed (dibsx_heap_reserve), so that adding
 * one can never fail. Not locked: the owner of the heap sees to that. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_BASE_HEAP_H
#define DIBS_BASE_HEAP_H

#include "base/clock.h"

typedef struct dibsx_heap_node {
    dibsx_nsec at; /* when it is due; read-only while in a heap */
    size_t place;  /* 1-based position, 0 when in no heap */
} dibsx_heap_node;

typedef struct dibsx_heap_slot {
    dibsx_nsec at; /* of the node, so that a comparison need not fetch it */
    dibsx_heap_node *node;
} dibsx_heap_slot;

typedef struct dibsx_heap {
    dibsx_heap_slot *slots;
    size_t count;
    size_t room;
} dibsx_heap;

/* Zeroed storage is an empty heap. Fini does not touch the nodes. */
void dibsx_heap_fini(dibsx_heap *heap);

/* Makes room for `count` nodes in all. False when memory is short. */
bool dibsx_heap_reserve(dibsx_heap *heap, size_t count);

/* Adds a node or moves one that is in already. */
void dibsx_heap_set(dibsx_heap *heap, dibsx_heap_node *node, dibsx_nsec at);

/* Takes it out; a no-op when it is in no heap. */
void dibsx_heap_remove(dibsx_heap *heap, dibsx_heap_node *node);

/* The earliest, or NULL. */
dibsx_heap_node *dibsx_heap_first(const dibsx_heap *heap);

/* Nodes that are due by then, `most` of them at most: their number. If there are more,
 * they are not the earliest, but for the first. */
size_t dibsx_heap_until(const dibsx_heap *heap, dibsx_nsec until,
                        dibsx_heap_node **out, size_t most);

#endif
