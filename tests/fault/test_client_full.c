/* test_client_full.c - pushes that wait while their queue is full. */
/* SPDX-License-Identifier: MIT */
#include "queue_world.h"

#include <pthread.h>
#include <unistd.h>

enum { CAP = 4, PART = 3 };

static void *ack_later(void *arg)
{
    call *c = arg;

    usleep(50000);
    c->rc = dibs_item_ack(c->item, NULL);
    return NULL;
}

static void a_full_queue_refuses_or_waits(void **state)
{
    world *w = *state;
    call c = {.q = open_queue(w->one, NULL)};

    set_cap(w, 1);
    push(c.q);
    CHECK(DIBS_FULL, dibs_queue_push(c.q, "x", 1, NULL, NULL, err));
    CHECK(DIBS_FULL, dibs_queue_push(c.q, "x", 1, DIBS_PUSH_OPTS(.wait_ms = 20),
                                     NULL, err));
    c.item = reserve(c.q);
    assert_int_equal(pthread_create(&c.thread, NULL, ack_later, &c), 0);
    CHECK(DIBS_OK, dibs_queue_push(c.q, "x", 1, DIBS_PUSH_OPTS(.wait_ms = -1),
                                   NULL, err));
    pthread_join(c.thread, NULL);
    assert_status(c.rc, DIBS_OK);
    dibs_item_free(c.item);
    dibs_queue_free(c.q);
}

static void *push_part(void *arg)
{
    call *c = arg;
    dibs_push_item items[PART];

    for (int i = 0; i < PART; i++)
        items[i] = (dibs_push_item){.data = "x", .len = 1};
    c->rc = dibs_queue_push_many(c->q, items, PART,
                                 DIBS_PUSH_OPTS(.wait_ms = pace_ms(20000)),
                                 NULL, NULL);
    return NULL;
}

/* It fitted when the wait began. */
static void a_wait_for_room_ends_with_a_lower_cap(void **state)
{
    world *w = *state;
    call c = {.q = open_queue(w->one, NULL)};
    int seen;

    set_cap(w, CAP);
    for (int i = 0; i < CAP; i++)
        push(c.q);
    seen = world_seen(w, DIBS__STEP_PUSH);
    assert_int_equal(pthread_create(&c.thread, NULL, push_part, &c), 0);
    await_at_least(&w->seen[DIBS__STEP_PUSH], seen + 2);
    set_cap(w, PART - 1);
    pthread_join(c.thread, NULL);
    assert_status(c.rc, DIBS_INVALID);
    assert_int_equal(stats(w).ready, CAP);
    dibs_queue_free(c.q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(a_full_queue_refuses_or_waits),
        WORLD_TEST(a_wait_for_room_ends_with_a_lower_cap),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
