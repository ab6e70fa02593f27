/* heap.c - a binary heap of deadlines, earliest first.
 *
 * Owns the array of pointers; the nodes belong to whoever put them in, and each
 * knows its place, so that it can be moved or removed without a search. */
/* SPDX-License-Identifier: MIT */
#include "base/heap.h"
#include "base/alloc.h"
#include <assert.h>

void dibsx_heap_fini(dibsx_heap *heap)
{
    dibsx_free(heap->nodes);
    *heap = (dibsx_heap){0};
}

bool dibsx_heap_reserve(dibsx_heap *heap, size_t count)
{
    dibsx_heap_node **nodes;

    if (count <= heap->room)
        return true;
    if (count < heap->room * 2)
        count = heap->room * 2;
    nodes = dibsx_realloc_n(heap->nodes, count, sizeof(dibsx_heap_node *));
    if (!nodes)
        return false;
    heap->nodes = nodes;
    heap->room = count;
    return true;
}

static void put_node(dibsx_heap *heap, size_t place, dibsx_heap_node *node)
{
    heap->nodes[place - 1] = node;
    node->place = place;
}

static void sift_up(dibsx_heap *heap, dibsx_heap_node *node)
{
    size_t place = node->place;

    while (place > 1 && heap->nodes[place / 2 - 1]->at > node->at) {
        put_node(heap, place, heap->nodes[place / 2 - 1]);
        place /= 2;
    }
    put_node(heap, place, node);
}

static void sift_down(dibsx_heap *heap, dibsx_heap_node *node)
{
    size_t place = node->place;
    size_t child;

    while ((child = place * 2) <= heap->count) {
        if (child < heap->count &&
            heap->nodes[child]->at < heap->nodes[child - 1]->at)
            child++;
        if (heap->nodes[child - 1]->at >= node->at)
            break;
        put_node(heap, place, heap->nodes[child - 1]);
        place = child;
    }
    put_node(heap, place, node);
}

/* Only one of the two moves it. */
static void sift(dibsx_heap *heap, dibsx_heap_node *node)
{
    sift_up(heap, node);
    sift_down(heap, node);
}

void dibsx_heap_set(dibsx_heap *heap, dibsx_heap_node *node, dibsx_nsec at)
{
    if (node->place == 0) {
        assert(heap->count < heap->room);
        put_node(heap, ++heap->count, node);
    }
    assert(heap->nodes[node->place - 1] == node);
    node->at = at;
    sift(heap, node);
}

void dibsx_heap_remove(dibsx_heap *heap, dibsx_heap_node *node)
{
    size_t place = node->place;
    dibsx_heap_node *last;

    if (place == 0)
        return;
    assert(place <= heap->count && heap->nodes[place - 1] == node);
    last = heap->nodes[--heap->count];
    node->place = 0;
    if (last == node)
        return;
    put_node(heap, place, last);
    sift(heap, last);
}

dibsx_heap_node *dibsx_heap_first(const dibsx_heap *heap)
{
    return heap->count ? heap->nodes[0] : NULL;
}

/* No node is due before the one above it, so the search ends below each that is not. */
size_t dibsx_heap_until(const dibsx_heap *heap, dibsx_nsec until,
                        dibsx_heap_node **out, size_t most)
{
    size_t count = 0;

    if (heap->count > 0 && heap->nodes[0]->at <= until && most > 0)
        out[count++] = heap->nodes[0];
    for (size_t i = 0; i < count; i++)
        for (size_t place = out[i]->place * 2;
             place <= out[i]->place * 2 + 1 && place <= heap->count; place++)
            if (count < most && heap->nodes[place - 1]->at <= until)
                out[count++] = heap->nodes[place - 1];
    return count;
}
