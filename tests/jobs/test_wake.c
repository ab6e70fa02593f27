/* test_wake.c - when a node looks at its board, which node ticks first, and the list of
 * nodes. */
/* SPDX-License-Identifier: MIT */
#include "check.h"
#include "jobs/follow.h"
#include "jobs/node_record.h"
#include "jobs/wake.h"

#include <string.h>

enum { LOOK_MS = 10000, LISTEN_MS = 15000, HOUR_S = 3600 };

/* Time goes on to the next thing that the node does by itself, and it does it. */
static dibsx_nsec pass(dibs__wake *w, bool can_hear, int *looks, int *listens)
{
    dibsx_nsec now = dibs__wake_until(w);

    if (now >= w->listen_at) {
        dibs__wake_listened(w, now, can_hear);
        ++*listens;
    }
    if (now >= w->look_at) {
        dibs__wake_looking(w, now);
        ++*looks;
    }
    return now;
}

static int count_looks(bool can_hear, int *listens)
{
    int looks = 0;
    dibs__wake w;

    *listens = 0;
    dibs__wake_init(&w, LOOK_MS, LISTEN_MS);
    while (pass(&w, can_hear, &looks, listens) < HOUR_S * DIBSX_SEC)
        ;
    return looks;
}

/* Idle: no command but these. */
static void an_idle_node_does_not_poll(void **state)
{
    int listens, looks = count_looks(true, &listens);

    (void)state;
    assert_in_range(looks, HOUR_S / 10, HOUR_S / 10 + 2);
    assert_in_range(listens, HOUR_S / 15, HOUR_S / 15 + 2);
    looks = count_looks(false, &listens);
    assert_in_range(looks, HOUR_S, HOUR_S + 2);
}

static void a_ring_wakes_a_node(void **state)
{
    dibsx_nsec now = DIBSX_SEC;
    dibs__wake w;

    (void)state;
    dibs__wake_init(&w, LOOK_MS, LISTEN_MS);
    dibs__wake_listened(&w, now, true);
    dibs__wake_looking(&w, now);
    assert_true(dibs__wake_until(&w) == now + 10 * DIBSX_SEC);
    /* It came after the look had begun, and may be news; many come together. */
    dibs__wake_rang(&w, now + DIBSX_MS, false);
    assert_true(dibs__wake_until(&w) == now + DIBS__WAKE_RINGS_MS * DIBSX_MS);
    dibs__wake_looking(&w, now + 20 * DIBSX_MS);
    dibs__wake_rang(&w, now + DIBSX_SEC, false);
    assert_true(dibs__wake_until(&w) == now + DIBSX_SEC);
    dibs__wake_looking(&w, now + DIBSX_SEC);
    dibs__wake_within(&w, now + DIBSX_SEC, 500);
    dibs__wake_within(&w, now + DIBSX_SEC, 9000);
    assert_true(dibs__wake_until(&w) == now + DIBSX_SEC + 500 * DIBSX_MS);
}

/* Rings that may have been lost: it listens, and looks. */
static void lost_rings_lose_no_work(void **state)
{
    dibsx_nsec now = DIBSX_SEC;
    dibs__wake w;

    (void)state;
    dibs__wake_init(&w, LOOK_MS, LISTEN_MS);
    dibs__wake_listened(&w, now, true);
    dibs__wake_looking(&w, now);
    dibs__wake_rang(&w, now + DIBSX_SEC, true);
    assert_true(w.listen_at <= now + DIBSX_SEC && w.look_at <= now + DIBSX_SEC);
    dibs__wake_listened(&w, now + DIBSX_SEC, false);
    dibs__wake_looking(&w, now + DIBSX_SEC);
    assert_true(w.look_at == now + 2 * DIBSX_SEC);
    /* What came before it could hear again is found by a look. */
    dibs__wake_listened(&w, now + DIBSX_SEC + DIBSX_MS, true);
    assert_true(w.look_at == now + DIBSX_SEC + DIBSX_MS);
}

static void the_first_ticks_and_the_others_stand_by(void **state)
{
    const int64_t due_us = 1000000;

    (void)state;
    assert_int_equal(dibs__wake_turn_us(0, due_us, due_us), 0);
    for (size_t rank = 1; rank < 20; rank++) {
        int64_t wait_us = dibs__wake_turn_us(rank, due_us, due_us);

        assert_in_range(wait_us, 100000, 500000);
        assert_int_equal(dibs__wake_turn_us(rank, due_us, due_us + wait_us), 0);
        assert_true(wait_us >= dibs__wake_turn_us(rank - 1, due_us, due_us));
    }
}

static const dibs__intent_change *
find_change(const dibs__intent *in, dibs__intent_verb verb, const char *key)
{
    for (size_t i = 0; i < in->change_count; i++)
        if (in->changes[i].verb == verb && strcmp(in->changes[i].key, key) == 0)
            return &in->changes[i];
    return NULL;
}

static void a_node_stands_in_one_list(void **state)
{
    dibs__node_record rec = {.id = "0123456789abcdef",
                             .fence = 7,
                             .host = "h",
                             .pid = 8,
                             .labels = "eu,gpu",
                             .slots = 4,
                             .ttl_ms = 1000,
                             .joined_us = 9,
                             .version = "1"};
    dibs__node_record back;
    dibs__intent in;
    const dibs__intent_change *put, *entry;

    (void)state;
    dibs__intent_init(&in);
    dibs__node_record_keep(&rec, false, 100, &in);
    entry = find_change(&in, DIBS__INTENT_ENTER, "nodes");
    put = find_change(&in, DIBS__INTENT_PUT, "node/0123456789abcdef");
    assert_non_null(entry);
    assert_non_null(put);
    assert_true(entry->at == 100 + 3000000 && put->ttl_ms == 3000);
    CHECK(DIBS_OK,
          dibs__node_record_read(&back, rec.id, put->data, put->len, err));
    assert_memory_equal(&back, &rec, sizeof(rec));
    dibs__intent_fini(&in);

    dibs__intent_init(&in);
    dibs__node_record_keep(&rec, true, 100, &in);
    assert_non_null(find_change(&in, DIBS__INTENT_ENTER, "draining"));
    assert_non_null(find_change(&in, DIBS__INTENT_LEAVE, "nodes"));
    dibs__intent_fini(&in);

    dibs__intent_init(&in);
    dibs__node_record_drain(rec.id, 5, &in);
    assert_non_null(find_change(&in, DIBS__INTENT_ENTER, "draining"));
    assert_non_null(find_change(&in, DIBS__INTENT_LEAVE, "nodes"));
    assert_non_null(find_change(&in, DIBS__INTENT_TELL, "draining"));
    dibs__intent_fini(&in);
    CHECK(DIBS_INVALID, dibs__node_record_read(&back, "x", "[", 1, err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_idle_node_does_not_poll),
        cmocka_unit_test(a_ring_wakes_a_node),
        cmocka_unit_test(lost_rings_lose_no_work),
        cmocka_unit_test(the_first_ticks_and_the_others_stand_by),
        cmocka_unit_test(a_node_stands_in_one_list),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
