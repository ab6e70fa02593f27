/* test_client_crowd.c - what waits of a client for a queue cost: many, and one. */
/* SPDX-License-Identifier: MIT */
#include "queue_world.h"

#include <dibs/queue_async.h>
#include <pthread.h>
#include <unistd.h>

enum { CROWD = 200, CROWD_ITEMS = 40 };

typedef struct crowd {
    atomic_int served, settled;
} crowd;

static void
free_settled(dibs_item *item, dibs_status rc, const dibs_error *err, void *arg)
{
    (void)err;
    if (pace_explains(rc)) /* Another would be served with it. */
        MISSED("an ack is %s", dibs_status_name(rc));
    dibs_item_free(item);
    atomic_fetch_add(&((crowd *)arg)->settled, 1);
}

static void count_served(dibs_queue *q, dibs_item *item, dibs_status rc,
                         const dibs_error *err, void *arg)
{
    crowd *c = arg;

    (void)q;
    (void)err;
    if (rc != DIBS_OK)
        return;
    rc = dibs_item_ack_async(item, free_settled, c, NULL);
    if (rc != DIBS_OK)
        free_settled(item, rc, NULL, c);
    atomic_fetch_add(&c->served, 1);
}

static void await_count(const atomic_int *number, int count)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), pace_ms(WORLD_BOUND_MS));

    while (atomic_load(number) < count) {
        IN_TIME(dibsx_now() < end);
        usleep(1000);
    }
}

/* A push serves one of all the waits of a client. It asks three times at most, however many
 * wait: for what was handed over, to ack it, and for what comes next. A poll each second
 * comes on top. */
static void one_push_one_wake_of_a_crowd(void **state)
{
    world *w = *state;
    dibs_queue *q = open_queue(w->one, NULL);
    dibs_queue *producer = open_queue(w->other, NULL);
    static crowd c;
    dibsx_nsec begun_at;
    int before, asks;

    push(producer); /* so that there is a queue to look at */
    ack(reserve(q));
    for (int i = 0; i < CROWD; i++)
        CHECK(DIBS_OK, dibs_queue_reserve_async(q, -1, count_served, &c, err));
    while (stats(w).waiting == 0)
        usleep(1000);
    begun_at = dibsx_now();
    before = world_seen(w, DIBS__STEP_RESERVE);
    for (int i = 1; i <= CROWD_ITEMS; i++) {
        push(producer);
        await_count(&c.served, i);
        assert_int_equal(atomic_load(&c.served), i);
    }
    asks = world_seen(w, DIBS__STEP_RESERVE) - before;
    IN_TIME(asks <= 3 * CROWD_ITEMS + 2 +
                        (int)((dibsx_now() - begun_at) / (1000 * DIBSX_MS)));
    /* A call that the free drops would not free its item. */
    await_count(&c.settled, CROWD_ITEMS);
    dibs_queue_free(producer);
    dibs_queue_free(q);
}

typedef struct consumer {
    dibs_queue *q;
    atomic_int served;
} consumer;

static void *consume_items(void *arg)
{
    consumer *c = arg;
    dibs_item *item = reserve(c->q);

    for (int i = 1; i < CROWD_ITEMS; i++) {
        atomic_fetch_add(&c->served, 1);
        CHECK(DIBS_OK, dibs_item_ack_next(&item, WORLD_BOUND_MS, err));
    }
    atomic_fetch_add(&c->served, 1);
    ack(item);
    return NULL;
}

/* A consumer that acks and waits in one call asks twice for an item: for what was handed
 * over, and to ack it and take its place. With the push an item costs three requests. A
 * poll each second comes on top. */
static void one_consumer_asks_twice_for_an_item(void **state)
{
    world *w = *state;
    consumer c = {.q = open_queue(w->one, NULL)};
    dibs_queue *producer = open_queue(w->other, NULL);
    pthread_t thread;
    dibsx_nsec begun_at;
    int before = 0, asks;

    push(producer); /* so that there is a queue to look at */
    assert_int_equal(pthread_create(&thread, NULL, consume_items, &c), 0);
    await_count(&c.served, 1);
    begun_at = dibsx_now();
    for (int i = 2; i <= CROWD_ITEMS; i++) {
        while (stats(w).waiting == 0)
            usleep(1000);
        if (i == 2)
            before = world_seen(w, DIBS__STEP_RESERVE);
        push(producer);
        await_count(&c.served, i);
    }
    pthread_join(thread, NULL);
    asks = world_seen(w, DIBS__STEP_RESERVE) - before;
    IN_TIME(asks <= 2 * (CROWD_ITEMS - 1) +
                        (int)((dibsx_now() - begun_at) / (1000 * DIBSX_MS)));
    assert_int_equal(stats(w).acked, CROWD_ITEMS);
    dibs_queue_free(producer);
    dibs_queue_free(c.q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(one_push_one_wake_of_a_crowd),
        WORLD_TEST(one_consumer_asks_twice_for_an_item),
    };

    return cmocka_run_group_tests_name("client: waits for a queue", tests, NULL,
                                       NULL);
}
