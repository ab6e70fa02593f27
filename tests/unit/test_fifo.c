/* test_fifo.c - the queue whose nodes live inside their owners. */
/* SPDX-License-Identifier: MIT */
#include "base/fifo.h"
#include "base/rand.h"
#include "unit.h"
#include <string.h>

enum { NODES = 8 };

typedef struct owner {
    dibsx_fifo_node node;
    int number;
} owner;

static void check(const dibsx_fifo *fifo, const int *numbers, size_t count)
{
    const dibsx_fifo_node *last = NULL;
    size_t i = 0;

    assert_int_equal(fifo->count, count);
    for (const dibsx_fifo_node *at = fifo->first; at; at = at->next) {
        assert_true(i < count);
        assert_int_equal(((const owner *)at)->number, numbers[i++]);
        last = at;
    }
    assert_int_equal(i, count);
    assert_ptr_equal(fifo->last, last);
}

static void make(owner *owners)
{
    for (int i = 0; i < NODES; i++)
        owners[i] = (owner){.number = i};
}

static void comes_out_in_order(void **state)
{
    dibsx_fifo fifo = {0};
    owner owners[NODES];

    (void)state;
    make(owners);
    assert_null(dibsx_fifo_pop(&fifo));
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < NODES; i++)
            dibsx_fifo_push(&fifo, &owners[i].node);
        for (int i = 0; i < NODES; i++) {
            const owner *first = (const owner *)dibsx_fifo_pop(&fifo);

            assert_int_equal(first->number, i);
        }
        assert_null(dibsx_fifo_pop(&fifo));
        check(&fifo, NULL, 0);
    }
}

static void is_taken_out_anywhere(void **state)
{
    dibsx_fifo fifo = {0}, other = {0};
    owner owners[NODES];

    (void)state;
    make(owners);
    for (int i = 0; i < 4; i++)
        dibsx_fifo_push(&fifo, &owners[i].node);
    dibsx_fifo_push(&other, &owners[4].node);
    assert_false(dibsx_fifo_remove(&fifo, &owners[4].node));
    assert_true(dibsx_fifo_remove(&fifo, &owners[1].node));
    check(&fifo, (int[]){0, 2, 3}, 3);
    assert_true(dibsx_fifo_remove(&fifo, &owners[3].node));
    check(&fifo, (int[]){0, 2}, 2);
    assert_true(dibsx_fifo_remove(&fifo, &owners[0].node));
    check(&fifo, (int[]){2}, 1);
    assert_true(dibsx_fifo_remove(&fifo, &owners[2].node));
    check(&fifo, NULL, 0);
    assert_false(dibsx_fifo_remove(&fifo, &owners[2].node));
    dibsx_fifo_push(&fifo, &owners[5].node);
    check(&fifo, (int[]){5}, 1);
}

static void goes_before_another(void **state)
{
    dibsx_fifo fifo = {0}, front = {0};
    owner owners[NODES];

    (void)state;
    make(owners);
    dibsx_fifo_prepend(&fifo, &front);
    check(&fifo, NULL, 0);
    dibsx_fifo_push(&front, &owners[2].node);
    dibsx_fifo_prepend(&fifo, &front);
    check(&fifo, (int[]){2}, 1);
    check(&front, NULL, 0);
    dibsx_fifo_push(&front, &owners[0].node);
    dibsx_fifo_push(&front, &owners[1].node);
    dibsx_fifo_prepend(&fifo, &front);
    check(&fifo, (int[]){0, 1, 2}, 3);
    dibsx_fifo_prepend(&fifo, &front);
    check(&fifo, (int[]){0, 1, 2}, 3);
    dibsx_fifo_push(&fifo, &owners[3].node);
    check(&fifo, (int[]){0, 1, 2, 3}, 4);
}

/* Against an array, by chance. */
static void is_an_array(void **state)
{
    dibsx_prng prng = {.state = 7};
    dibsx_fifo fifo = {0};
    owner owners[NODES];
    int numbers[NODES];
    size_t count = 0;

    (void)state;
    make(owners);
    for (int step = 0; step < 2000; step++) {
        int number = (int)dibsx_prng_below(&prng, NODES);
        size_t at = 0;

        while (at < count && numbers[at] != number)
            at++;
        assert_int_equal(dibsx_fifo_remove(&fifo, &owners[number].node),
                         at < count);
        if (at < count) {
            memmove(&numbers[at], &numbers[at + 1],
                    (--count - at) * sizeof(numbers[0]));
        } else {
            dibsx_fifo_push(&fifo, &owners[number].node);
            numbers[count++] = number;
        }
        check(&fifo, numbers, count);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comes_out_in_order),
        cmocka_unit_test(is_taken_out_anywhere),
        cmocka_unit_test(goes_before_another),
        cmocka_unit_test(is_an_array),
    };

    return cmocka_run_group_tests_name("fifo", tests, NULL, NULL);
}
