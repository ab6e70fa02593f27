/* fifo.h - a queue, first in, first out. The nodes live inside their owners.
 *
 * Adding one can never fail. A node that is the first member of its owner is turned
 * into it by a cast. Not locked: the owner of the queue sees to that. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_BASE_FIFO_H
#define DIBS_BASE_FIFO_H

#include <stdbool.h>
#include <stddef.h>

typedef struct dibsx_fifo_node {
    struct dibsx_fifo_node *next; /* NULL in the last of a queue */
} dibsx_fifo_node;

/* Zeroed storage is an empty queue. */
typedef struct dibsx_fifo {
    dibsx_fifo_node *first; /* NULL: it is empty */
    dibsx_fifo_node *last;
    size_t count;
} dibsx_fifo;

static inline void dibsx_fifo_push(dibsx_fifo *fifo, dibsx_fifo_node *node)
{
    node->next = NULL;
    if (fifo->last)
        fifo->last->next = node;
    else
        fifo->first = node;
    fifo->last = node;
    fifo->count++;
}

/* Takes the first out; NULL when there is none. */
static inline dibsx_fifo_node *dibsx_fifo_pop(dibsx_fifo *fifo)
{
    dibsx_fifo_node *node = fifo->first;

    if (!node)
        return NULL;
    fifo->first = node->next;
    if (!fifo->first)
        fifo->last = NULL;
    fifo->count--;
    return node;
}

/* Takes one out, wherever it stands; false when it is not in this queue. */
static inline bool
dibsx_fifo_remove(dibsx_fifo *fifo, const dibsx_fifo_node *node)
{
    dibsx_fifo_node *before = NULL;

    for (dibsx_fifo_node *at = fifo->first; at; before = at, at = at->next) {
        if (at != node)
            continue;
        if (before)
            before->next = node->next;
        else
            fifo->first = node->next;
        if (fifo->last == node)
            fifo->last = before;
        fifo->count--;
        return true;
    }
    return false;
}

/* Puts all of `front` before those of `fifo`; `front` is empty afterwards. */
static inline void dibsx_fifo_prepend(dibsx_fifo *fifo, dibsx_fifo *front)
{
    if (!front->first)
        return;
    front->last->next = fifo->first;
    fifo->first = front->first;
    if (!fifo->last)
        fifo->last = front->last;
    fifo->count += front->count;
    *front = (dibsx_fifo){.count = 0};
}

#endif
