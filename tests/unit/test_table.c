/* test_table.c - the table that grows: what is in it is found, while it grows and
 * without memory too. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/hash.h"
#include "base/table.h"
#include "unit.h"

#include <stdio.h>

enum { NODES = 5000 };

static uint32_t hash_of(size_t i)
{
    char text[16];

    snprintf(text, sizeof(text), "name:%zu", i);
    return dibsx_hash_text(text);
}

static bool
is_in(const dibsx_table *table, const dibsx_table_node *node, uint32_t hash)
{
    const dibsx_table_node *at = dibsx_table_find(table, hash);

    while (at && at != node)
        at = at->next;
    return at != NULL;
}

/* The length of the longest chain; *count becomes the number of all nodes. */
static size_t longest(const dibsx_table *table, size_t *count)
{
    const dibsx_table_node *node;
    size_t most = 0;

    *count = 0;
    for (size_t at = 0; (node = dibsx_table_from(table, &at)); at++) {
        size_t len = 0;

        for (; node; node = node->next)
            len++;
        *count += len;
        most = len > most ? len : most;
    }
    return most;
}

static void what_is_in_it_is_found(void **state)
{
    static dibsx_table_node nodes[NODES];
    dibsx_table table = {0};
    size_t count;

    (void)state;
    for (size_t i = 0; i < NODES; i++) {
        dibsx_table_add(&table, &nodes[i], hash_of(i));
        /* Every third goes again, whichever row it is in. */
        if (i % 3 == 2)
            dibsx_table_remove(&table, &nodes[i / 2]);
        assert_true(is_in(&table, &nodes[i], hash_of(i)));
    }
    for (size_t i = 0; i < NODES; i++)
        assert_int_equal(is_in(&table, &nodes[i], hash_of(i)), nodes[i].listed);
    (void)longest(&table, &count);
    assert_int_equal(count, table.count);
    dibsx_table_fini(&table);
}

/* Whatever its size, chains are short, and no addition moves many nodes. */
static void chains_stay_short(void **state)
{
    static dibsx_table_node nodes[NODES];
    dibsx_table table = {0};
    size_t count, moved_was = 0;

    (void)state;
    for (size_t i = 0; i < NODES; i++) {
        dibsx_table_add(&table, &nodes[i], hash_of(i));
        if (table.old.count > 0 && table.moved > moved_was)
            assert_true(table.moved - moved_was <= 2);
        moved_was = table.old.count > 0 ? table.moved : 0;
    }
    assert_true(longest(&table, &count) <= 12);
    assert_int_equal(count, NODES);
    dibsx_table_fini(&table);
}

static void without_memory_it_works_on(void **state)
{
    static dibsx_table_node nodes[200];
    dibsx_table table = {0};

    (void)state;
    for (size_t i = 0; i < 200; i++) {
        dibsx_alloc_fail_at(1);
        dibsx_table_add(&table, &nodes[i], hash_of(i));
        dibsx_alloc_fail_at(0);
        assert_null(table.row.chains);
    }
    for (size_t i = 0; i < 200; i++)
        assert_true(is_in(&table, &nodes[i], hash_of(i)));
    dibsx_table_fini(&table);
}

/* A search that goes on where the last one ended meets all that are left. */
static void removals_hide_nothing(void **state)
{
    static dibsx_table_node nodes[1000];
    dibsx_table table = {0};
    dibsx_table_node *node;
    size_t at = 0, count = 0;

    (void)state;
    for (size_t i = 0; i < 1000; i++)
        dibsx_table_add(&table, &nodes[i], hash_of(i));
    while ((node = dibsx_table_from(&table, &at)) != NULL) {
        dibsx_table_remove(&table, node);
        dibsx_table_remove(&table, node);
        count++;
    }
    assert_int_equal(count, 1000);
    assert_int_equal(table.count, 0);
    dibsx_table_fini(&table);
}

/* In every moment of its growth, whichever row a node is in. */
static void all_are_found_while_it_grows(void **state)
{
    static dibsx_table_node nodes[300];
    dibsx_table table = {0};

    (void)state;
    for (size_t i = 0; i < 300; i++) {
        dibsx_table_add(&table, &nodes[i], hash_of(i));
        for (size_t j = 0; j <= i; j++)
            assert_true(is_in(&table, &nodes[j], hash_of(j)));
    }
    dibsx_table_fini(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_in_it_is_found),
        cmocka_unit_test(all_are_found_while_it_grows),
        cmocka_unit_test(chains_stay_short),
        cmocka_unit_test(without_memory_it_works_on),
        cmocka_unit_test(removals_hide_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
