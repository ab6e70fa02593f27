/* heap.c - a heap of deadlines, earliest first; each has four below it.
 *
 * Owns the array of slots; the nodes belong to whoever put them in, and each knows its
 * place, so that it can be moved or removed without a search. With very many nodes the
 * time goes into memory that is far away: so the deadlines are in the array, and its
 * levels are few. */
/* SPDX-License-Identifier: MIT */
#include "base/heap.h"
#include "base/alloc.h"
#include <assert.h>

enum { BELOW = 4 };

void dibsx_heap_fini(dibsx_heap *heap)
{
    dibsx_free(heap->slots);
    *heap = (dibsx_heap){0};
}

bool dibsx_heap_reserve(dibsx_heap *heap, size_t count)
{
    dibsx_heap_slot *slots;

    if (count <= heap->room)
        return true;
    if (count < heap->room * 2)
        count = heap->room * 2;
    slots = dibsx_realloc_n(heap->slots, count, sizeof(dibsx_heap_slot));
    if (!slots)
        return false;
    heap->slots = slots;
    heap->room = count;
    return true;
}

/* Places count from 1, as 0 says that a node is in no heap. */
static dibsx_heap_slot *slot_at(const dibsx_heap *heap, size_t place)
{
    return &heap->slots[place - 1];
}

static size_t place_above(size_t place)
{
    return (place + BELOW - 2) / BELOW;
}

static size_t first_below(size_t place)
{
    return BELOW * (place - 1) + 2;
}

static void put_slot(dibsx_heap *heap, size_t place, dibsx_heap_slot slot)
{
    *slot_at(heap, place) = slot;
    slot.node->place = place;
}

static void sift_up(dibsx_heap *heap, size_t place)
{
    dibsx_heap_slot moving = *slot_at(heap, place);
    size_t above;

    while (place > 1 &&
           slot_at(heap, above = place_above(place))->at > moving.at) {
        put_slot(heap, place, *slot_at(heap, above));
        place = above;
    }
    put_slot(heap, place, moving);
}

/* The earliest below a place; 0: there is none. */
static size_t earliest_below(const dibsx_heap *heap, size_t place)
{
    size_t child = first_below(place);
    size_t end = child + BELOW, best = child;

    if (child > heap->count)
        return 0;
    if (end > heap->count + 1)
        end = heap->count + 1;
    while (++child < end)
        if (slot_at(heap, child)->at < slot_at(heap, best)->at)
            best = child;
    return best;
}

static void sift_down(dibsx_heap *heap, size_t place)
{
    dibsx_heap_slot moving = *slot_at(heap, place);
    size_t child;

    while ((child = earliest_below(heap, place)) != 0 &&
           slot_at(heap, child)->at < moving.at) {
        put_slot(heap, place, *slot_at(heap, child));
        place = child;
    }
    put_slot(heap, place, moving);
}

/* Only one of the two moves it. */
static void sift(dibsx_heap *heap, const dibsx_heap_node *node)
{
    sift_up(heap, node->place);
    sift_down(heap, node->place);
}

void dibsx_heap_set(dibsx_heap *heap, dibsx_heap_node *node, dibsx_nsec at)
{
    if (node->place == 0) {
        assert(heap->count < heap->room);
        node->place = ++heap->count;
    } else {
        assert(slot_at(heap, node->place)->node == node);
    }
    node->at = at;
    *slot_at(heap, node->place) = (dibsx_heap_slot){at, node};
    sift(heap, node);
}

void dibsx_heap_remove(dibsx_heap *heap, dibsx_heap_node *node)
{
    size_t place = node->place;
    dibsx_heap_slot last;

    if (place == 0)
        return;
    assert(place <= heap->count && slot_at(heap, place)->node == node);
    last = *slot_at(heap, heap->count--);
    node->place = 0;
    if (last.node == node)
        return;
    put_slot(heap, place, last);
    sift(heap, last.node);
}

dibsx_heap_node *dibsx_heap_first(const dibsx_heap *heap)
{
    return heap->count ? heap->slots[0].node : NULL;
}

/* No node is due before the one above it, so the search ends below each that is not. */
size_t dibsx_heap_until(const dibsx_heap *heap, dibsx_nsec until,
                        dibsx_heap_node **out, size_t most)
{
    size_t count = 0;

    if (heap->count > 0 && heap->slots[0].at <= until && most > 0)
        out[count++] = heap->slots[0].node;
    for (size_t i = 0; i < count; i++) {
        size_t child = first_below(out[i]->place);

        for (size_t j = child; j < child + BELOW && j <= heap->count; j++)
            if (count < most && slot_at(heap, j)->at <= until)
                out[count++] = slot_at(heap, j)->node;
    }
    return count;
}
