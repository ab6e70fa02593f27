/* table.c - a hash table that grows with what is in it; see table.h.
 *
 * Owns its rows of chains. A chain of the old row is in use until it has moved, so
 * that every hash has one chain at any time. */
/* SPDX-License-Identifier: MIT */
#include "base/table.h"
#include "base/alloc.h"
#include <assert.h>

/* With as many as this in each addition, a row has moved long before the next one is
 * full. */
enum { MOVES = 2 };

void dibsx_table_fini(dibsx_table *table)
{
    dibsx_free(table->row.chains);
    dibsx_free(table->old.chains);
    *table = (dibsx_table){0};
}

static size_t row_count(const dibsx_table *table)
{
    return table->row.chains ? table->row.count : DIBSX_TABLE_FEW;
}

static dibsx_table_node **
chain_at(const dibsx_table *table, const dibsx_table_row *row, size_t i)
{
    /* The table is constant for those who only look. */
    return row->chains ? &row->chains[i] : (dibsx_table_node **)&table->few[i];
}

/* The lower bits of a quick hash are its weaker ones. */
static size_t mix_bits(uint32_t hash)
{
    return (size_t)((hash * UINT64_C(0x9E3779B97F4A7C15)) >> 32);
}

static dibsx_table_node **chain_of(const dibsx_table *table, uint32_t hash)
{
    size_t bits = mix_bits(hash);

    if (table->old.count > 0) {
        size_t i = bits & (table->old.count - 1);

        if (i >= table->moved)
            return chain_at(table, &table->old, i);
    }
    return chain_at(table, &table->row, bits & (row_count(table) - 1));
}

static void push_node(dibsx_table *table, dibsx_table_node *node)
{
    dibsx_table_node **chain = chain_of(table, node->hash);

    node->next = *chain;
    *chain = node;
}

/* Moves one chain of the old row; frees that with the last. */
static void move_chain(dibsx_table *table)
{
    dibsx_table_node **chain = chain_at(table, &table->old, table->moved++);
    dibsx_table_node *node = *chain, *next;

    *chain = NULL;
    for (; node; node = next) {
        next = node->next;
        push_node(table, node);
    }
    if (table->moved < table->old.count)
        return;
    dibsx_free(table->old.chains);
    table->old = (dibsx_table_row){0};
}

static void grow_table(dibsx_table *table)
{
    size_t count = row_count(table);
    dibsx_table_node **chains;

    if (table->old.count > 0 || table->count < count)
        return;
    chains = dibsx_zalloc_n(count * 2, sizeof(dibsx_table_node *));
    if (!chains)
        return;
    table->old = (dibsx_table_row){table->row.chains, count};
    table->row = (dibsx_table_row){chains, count * 2};
    table->moved = 0;
}

void dibsx_table_add(dibsx_table *table, dibsx_table_node *node, uint32_t hash)
{
    assert(!node->listed);
    grow_table(table);
    for (int i = 0; i < MOVES && table->old.count > 0; i++)
        move_chain(table);
    node->hash = hash;
    node->listed = true;
    push_node(table, node);
    table->count++;
}

void dibsx_table_remove(dibsx_table *table, dibsx_table_node *node)
{
    dibsx_table_node **at;

    if (!node->listed)
        return;
    for (at = chain_of(table, node->hash); *at != node;)
        at = &(*at)->next;
    *at = node->next;
    node->listed = false;
    table->count--;
}

dibsx_table_node *dibsx_table_find(const dibsx_table *table, uint32_t hash)
{
    return *chain_of(table, hash);
}

/* Chains of the old row have the first numbers, so that what moves is met later. */
dibsx_table_node *dibsx_table_from(const dibsx_table *table, size_t *at)
{
    size_t old = table->old.count;

    for (; *at < old + row_count(table); ++*at) {
        dibsx_table_node *first =
            *at < old ? *chain_at(table, &table->old, *at)
                      : *chain_at(table, &table->row, *at - old);

        if (first)
            return first;
    }
    return NULL;
}
