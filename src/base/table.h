/* table.h - a hash table that grows with what is in it. The nodes live inside their
 * owners.
 *
 * Adding cannot fail: without memory the table stays as it is, and its chains get
 * longer. No call moves more than a few nodes: a table that grows has two rows of
 * chains for a while, and each node that is added moves two chains over. Not locked:
 * the owner of the table sees to that. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_BASE_TABLE_H
#define DIBS_BASE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct dibsx_table_node {
    struct dibsx_table_node *next; /* in its chain */
    uint32_t hash;
    bool listed; /* is in a table */
} dibsx_table_node;

enum { DIBSX_TABLE_FEW = 16 };

typedef struct dibsx_table_row {
    dibsx_table_node **chains; /* NULL: the few of the table */
    size_t count;              /* a power of two; 0: there is no such row */
} dibsx_table_row;

typedef struct dibsx_table {
    dibsx_table_row row;
    dibsx_table_row old; /* while it grows, */
    size_t moved;        /* ... and so many of its chains are in `row` */
    size_t count;        /* of nodes */
    dibsx_table_node *few[DIBSX_TABLE_FEW];
} dibsx_table;

/* Zeroed storage is an empty table. Fini does not touch the nodes. */
void dibsx_table_fini(dibsx_table *table);

/* Adds a node that is in no table. */
void dibsx_table_add(dibsx_table *table, dibsx_table_node *node, uint32_t hash);

/* Takes it out; a no-op when it is in none. */
void dibsx_table_remove(dibsx_table *table, dibsx_table_node *node);

/* The chain in which nodes of this hash are, among others; NULL: it is empty. */
dibsx_table_node *dibsx_table_find(const dibsx_table *table, uint32_t hash);

/* The next chain that is not empty, from number *at on, which becomes its number; NULL:
 * there is none. Removals between two calls hide nothing. */
dibsx_table_node *dibsx_table_from(const dibsx_table *table, size_t *at);

#endif
