/* tree.h - names as a tree by their parts: "billing:account:7" hangs under
 * "billing:account:" under "billing:". A part ends with ':' or '/'. Pure. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_TREE_H
#define DIBS_SERVE_TREE_H

#include <dibs/dibs.h>

/* Names that begin alike; one name alone is no branch. */
typedef struct dibs__serve_branch {
    const char *prefix; /* of this length, not terminated */
    size_t prefix_len;
    size_t names;
    size_t held;
    size_t waiters;
    bool open; /* its rows and branches come next */
} dibs__serve_branch;

/* Told of branches and rows, in order. */
typedef struct dibs__serve_tree {
    size_t open_max; /* a branch of so many names is open */
    void (*branch)(void *arg, const dibs__serve_branch *branch);
    void (*row)(void *arg, const dibs_lease_info *row);
    void *arg;
} dibs__serve_tree;

/* Tells of rows in the order of names, all of which begin with the same `skip` bytes.
 * Stops after `limit` branches and rows, not within a branch that is open. Returns how
 * many rows it has used. */
size_t dibs__serve_tree_walk(const dibs__serve_tree *tree,
                             const dibs_lease_info *const *rows, size_t count,
                             size_t skip, size_t limit);

#endif
