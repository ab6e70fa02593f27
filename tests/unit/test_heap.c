/* test_heap.c - the heap of deadlines against a plain search. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/heap.h"
#include "base/rand.h"
#include "unit.h"

enum { NODES = 64 };

static void check(const dibsx_heap *heap)
{
    assert_true(heap->count <= heap->room);
    for (size_t i = 1; i <= heap->count; i++) {
        assert_int_equal(heap->slots[i - 1].node->place, i);
        assert_int_equal(heap->slots[i - 1].node->at, heap->slots[i - 1].at);
        if (i > 1)
            assert_true(heap->slots[(i + 2) / 4 - 1].at <=
                        heap->slots[i - 1].at);
    }
}

static void empty_has_no_first(void **state)
{
    dibsx_heap heap = {0};
    dibsx_heap_node node = {0};

    (void)state;
    assert_null(dibsx_heap_first(&heap));
    dibsx_heap_remove(&heap, &node);
    assert_null(dibsx_heap_first(&heap));
    dibsx_heap_fini(&heap);
}

static void comes_out_in_order(void **state)
{
    dibsx_heap heap = {0};
    dibsx_heap_node nodes[NODES] = {{0}};
    dibsx_nsec last = INT64_MIN;

    (void)state;
    assert_true(dibsx_heap_reserve(&heap, NODES));
    for (int i = 0; i < NODES; i++)
        dibsx_heap_set(&heap, &nodes[i], (i * 37) % NODES - 10);
    check(&heap);
    for (int i = 0; i < NODES; i++) {
        dibsx_heap_node *first = dibsx_heap_first(&heap);

        assert_int_equal(first->at, i - 10);
        assert_true(first->at > last);
        last = first->at;
        dibsx_heap_remove(&heap, first);
        assert_int_equal(first->place, 0);
        check(&heap);
    }
    assert_null(dibsx_heap_first(&heap));
    dibsx_heap_fini(&heap);
}

static void a_node_moves_both_ways(void **state)
{
    dibsx_heap heap = {0};
    dibsx_heap_node nodes[5] = {{0}};

    (void)state;
    assert_true(dibsx_heap_reserve(&heap, 5));
    for (int i = 0; i < 5; i++)
        dibsx_heap_set(&heap, &nodes[i], 10 * i);
    dibsx_heap_set(&heap, &nodes[4], -1);
    assert_ptr_equal(dibsx_heap_first(&heap), &nodes[4]);
    dibsx_heap_set(&heap, &nodes[4], DIBSX_NEVER);
    assert_ptr_equal(dibsx_heap_first(&heap), &nodes[0]);
    assert_int_equal(heap.count, 5);
    check(&heap);
    dibsx_heap_fini(&heap);
}

static void fini_leaves_the_nodes(void **state)
{
    dibsx_heap heap = {0};
    dibsx_heap_node node = {0};

    (void)state;
    assert_true(dibsx_heap_reserve(&heap, 1));
    dibsx_heap_set(&heap, &node, 7);
    dibsx_heap_fini(&heap);
    assert_int_equal(node.at, 7);
    assert_int_equal(node.place, 1);
    assert_null(heap.slots);
    assert_int_equal(heap.room, 0);
}

static void room_is_made_ahead(void **state)
{
    dibsx_heap heap = {0};
    dibsx_heap_node nodes[100] = {{0}};
    unsigned long made;

    (void)state;
    dibsx_alloc_fail_at(0);
    for (size_t i = 0; i < 100; i++) {
        assert_true(dibsx_heap_reserve(&heap, i + 1));
        made = dibsx_alloc_count();
        dibsx_heap_set(&heap, &nodes[i], -(dibsx_nsec)i);
        assert_int_equal(dibsx_alloc_count(), made);
    }
    /* It grows by doubling, not by one. */
    assert_true(dibsx_alloc_count() < 12);
    check(&heap);
    dibsx_heap_fini(&heap);
}

static void a_failed_reserve_changes_nothing(void **state)
{
    dibsx_heap heap = {0};
    dibsx_heap_node node = {0};

    (void)state;
    assert_true(dibsx_heap_reserve(&heap, 1));
    dibsx_heap_set(&heap, &node, 1);
    dibsx_alloc_fail_at(1);
    assert_false(dibsx_heap_reserve(&heap, 50));
    dibsx_alloc_fail_at(0);
    assert_false(dibsx_heap_reserve(&heap, SIZE_MAX));
    assert_int_equal(heap.room, 1);
    assert_ptr_equal(dibsx_heap_first(&heap), &node);
    dibsx_heap_fini(&heap);
}

static void those_due_by_a_moment(void **state)
{
    dibsx_heap heap = {0};
    dibsx_heap_node nodes[NODES] = {{0}}, *out[NODES];
    bool met[NODES] = {false};

    (void)state;
    assert_int_equal(dibsx_heap_until(&heap, DIBSX_NEVER, out, NODES), 0);
    assert_true(dibsx_heap_reserve(&heap, NODES));
    for (int i = 0; i < NODES; i++)
        dibsx_heap_set(&heap, &nodes[i], (i * 37) % NODES);
    assert_int_equal(dibsx_heap_until(&heap, -1, out, NODES), 0);
    assert_int_equal(dibsx_heap_until(&heap, 19, out, NODES), 20);
    for (int i = 0; i < 20; i++) {
        assert_true(out[i]->at <= 19);
        assert_false(met[out[i]->at]);
        met[out[i]->at] = true;
    }
    assert_int_equal(dibsx_heap_until(&heap, 19, out, 7), 7);
    assert_ptr_equal(out[0], dibsx_heap_first(&heap));
    assert_int_equal(dibsx_heap_until(&heap, 19, out, 0), 0);
    dibsx_heap_fini(&heap);
}

static const dibsx_heap_node *earliest(const dibsx_heap_node *nodes)
{
    const dibsx_heap_node *best = NULL;

    for (int i = 0; i < NODES; i++) {
        if (nodes[i].place && (!best || nodes[i].at < best->at))
            best = &nodes[i];
    }
    return best;
}

static void agrees_with_a_search(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        dibsx_prng prng = {.state = seed};
        dibsx_heap heap = {0};
        dibsx_heap_node nodes[NODES] = {{0}};

        assert_true(dibsx_heap_reserve(&heap, NODES));
        for (int step = 0; step < 400; step++) {
            dibsx_heap_node *node = &nodes[dibsx_prng_below(&prng, NODES)];
            const dibsx_heap_node *best;

            if (dibsx_prng_below(&prng, 3) == 0)
                dibsx_heap_remove(&heap, node);
            else
                dibsx_heap_set(&heap, node,
                               (dibsx_nsec)dibsx_prng_below(&prng, 100));
            check(&heap);
            best = earliest(nodes);
            if (!best)
                assert_null(dibsx_heap_first(&heap));
            else
                assert_int_equal(dibsx_heap_first(&heap)->at, best->at);
        }
        dibsx_heap_fini(&heap);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_has_no_first),
        cmocka_unit_test(comes_out_in_order),
        cmocka_unit_test(a_node_moves_both_ways),
        cmocka_unit_test(fini_leaves_the_nodes),
        cmocka_unit_test(room_is_made_ahead),
        cmocka_unit_test(a_failed_reserve_changes_nothing),
        cmocka_unit_test(those_due_by_a_moment),
        cmocka_unit_test(agrees_with_a_search),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
