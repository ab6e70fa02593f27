/* tree.c - names as a tree by their parts. Pure; any thread. */
/* SPDX-License-Identifier: MIT */
#include "serve/tree.h"
#include <stdint.h>
#include <string.h>

/* The branch that the first row is in, or no names when it is in none. */
static dibs__serve_branch
read_branch(const dibs_lease_info *const *rows, size_t count, size_t skip)
{
    const char *name = rows[0]->name;
    const size_t len = skip + strcspn(name + skip, ":/") + 1;
    dibs__serve_branch branch = {.prefix = name, .prefix_len = len};

    if (strlen(name) < len)
        return branch;
    while (branch.names < count &&
           strncmp(rows[branch.names]->name, name, len) == 0) {
        branch.held += rows[branch.names]->holder_count > 0;
        branch.waiters += rows[branch.names]->waiter_count;
        branch.names++;
    }
    return branch;
}

/* NOLINTBEGIN(misc-no-recursion): each step is a part of a name further, and names are
 * short. */
size_t dibs__serve_tree_walk(const dibs__serve_tree *tree,
                             const dibs_lease_info *const *rows, size_t count,
                             size_t skip, size_t limit)
{
    size_t used = 0;

    for (size_t told = 0; used < count && told < limit; told++) {
        dibs__serve_branch branch =
            read_branch(rows + used, count - used, skip);

        if (branch.names < 2) {
            tree->row(tree->arg, rows[used++]);
            continue;
        }
        branch.open = branch.names <= tree->open_max;
        tree->branch(tree->arg, &branch);
        if (branch.open)
            told += dibs__serve_tree_walk(tree, rows + used, branch.names,
                                          branch.prefix_len, SIZE_MAX);
        used += branch.names;
    }
    return used;
}
/* NOLINTEND(misc-no-recursion) */
