/* node_sweep.h - sweeps of a node over the indexes of its board. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_NODE_NODE_SWEEP_H
#define DIBS_NODE_NODE_SWEEP_H

#include "node/node_inside.h"

/* Sweeps over an index. The entries of `live` are those of nodes that may be gone. */
typedef struct dibs__node_entry {
    size_t look; /* the number of its index in a view */
    char member[DIBS__PLACE_SIZE];
    int64_t at;
} dibs__node_entry;
typedef dibs_status
dibs__sweep_fn(dibs__node *node, const dibs__node_entry *entry,
               dibs_error *err);
dibs__sweep_fn dibs__sweep_retry, dibs__sweep_deadline, dibs__sweep_live,
    dibs__sweep_resume, dibs__sweep_trim, dibs__trim_batch;

/* The job whose history is swept in several looks, for it is long; NULL: none. It ends with
 * the node. */
const char *dibs__node_trims(const dibs__node *node);
void dibs__node_free_trim(dibs__node *node);

/* Takes a member out of an index; `id` (may be NULL) is a run that has to be gone. */
DIBS_MUST_CHECK dibs_status dibs__node_drop_entry(dibs__node *node,
                                                  const char *index,
                                                  const char *member,
                                                  const char *id,
                                                  dibs_error *err);

/* Whether the node of an entry of `live` was seen alive, and its lease still lasts; and
 * the look at the end of such a lease. */
bool dibs__node_is_known(dibs__node *node, const dibs__node_entry *entry);
void dibs__node_await_gone(dibs__node *node);

/* Leaves an entry that this node cannot deal with to others for so long; how long it is
 * still left, 0: it is not. */
void dibs__node_leave(dibs__node *node, const dibs__node_entry *entry,
                      int64_t ms);
int64_t
dibs__node_left_ms(const dibs__node *node, const dibs__node_entry *entry);

#endif
