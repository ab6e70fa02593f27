/* test_client_pool.c - acks without blocking of items that are freed, and the close of a client
 * whose pool works, while the store is away. */
/* SPDX-License-Identifier: MIT */
#include "coord/queue.h"
#include "queue_world.h"

#include <dibs/queue_async.h>
#include <pthread.h>
#include <unistd.h>

enum { PUSHED = 8, PREFETCH = 4 };

/* An ack that ends with a callback. */
typedef struct open_ack {
    atomic_int calls;
    dibs_status rc;
} open_ack;

typedef struct closing {
    world *w;
    dibs_queue *q;
    bool heals; /* the store comes back before the work ends */
    atomic_int works;
    open_ack sent, unsent;
    dibs_status rc;
    pthread_t thread;
} closing;

static void
note_ack(dibs_item *item, dibs_status rc, const dibs_error *err, void *arg)
{
    open_ack *ack = arg;

    (void)item;
    (void)err;
    ack->rc = rc;
    atomic_fetch_add(&ack->calls, 1);
}

/* It ends after every call has. */
static dibs_status work_until_closed(dibs_item *item, void *arg)
{
    closing *c = arg;

    (void)item;
    atomic_fetch_add(&c->works, 1);
    await_at_least(&c->sent.calls, 1);
    await_at_least(&c->unsent.calls, 1);
    if (c->heals)
        world_heal(c->w);
    return DIBS_OK;
}

static void *run_pool(void *arg)
{
    closing *c = arg;

    c->rc = dibs_queue_work(c->q, 1, work_until_closed, c, NULL);
    return NULL;
}

/* One ack has been sent, and nobody knows whether it was done; one waits for its answer, and
 * its item is freed. */
static void close_with_pool(closing *c, dibs__fault_kind fault)
{
    dibs_client *cl = world_client(c->w->url, pace_ms(c->heals ? 2000 : 100));
    dibs_queue *other = open_queue(c->w->other, NULL);
    dibs_item *first, *second;

    c->q =
        open_queue(cl, DIBS_QUEUE_OPTS(.prefetch = PREFETCH, .ttl_ms = 60000));
    for (int i = 0; i < PUSHED; i++)
        push(other);
    first = reserve(c->q);
    second = reserve(c->q);
    assert_int_equal(pthread_create(&c->thread, NULL, run_pool, c), 0);
    await_at_least(&c->works, 1);
    world_fault(c->w, DIBS__STEP_RESERVE, fault, -1);
    CHECK(DIBS_OK, dibs_item_ack_async(first, note_ack, &c->sent, err));
    await_at_least(&c->w->seen[DIBS__STEP_RESERVE],
                   world_seen(c->w, DIBS__STEP_RESERVE) + 2);
    CHECK(DIBS_OK, dibs_item_ack_async(second, note_ack, &c->unsent, err));
    dibs_item_free(second);
    dibs_close(cl);
    pthread_join(c->thread, NULL);
    assert_status(c->rc, DIBS_OK);
    assert_int_equal(atomic_load(&c->works), 1);
    assert_int_equal(atomic_load(&c->sent.calls), 1);
    assert_status(c->sent.rc, DIBS_UNKNOWN);
    assert_int_equal(atomic_load(&c->unsent.calls), 1);
    assert_status(c->unsent.rc, DIBS_UNAVAIL);
    dibs_item_free(first);
    dibs_queue_free(c->q);
    dibs_queue_free(other);
}

static void a_close_of_a_pool_ends_without_the_store(void **state)
{
    closing c = {.w = *state};

    close_with_pool(&c, DIBS__FAULT_DROP_BEFORE);
    assert_int_equal(stats(c.w).acked, 0);
    assert_int_equal(stats(c.w).ready, PUSHED);
}

/* What was sent is sent again with the same contents, and the pool goes on after it. */
static void a_pool_settles_after_the_calls_of_a_close(void **state)
{
    closing c = {.w = *state, .heals = true};
    dibs__queue_stats after;

    close_with_pool(&c, DIBS__FAULT_DROP_AFTER);
    after = stats(c.w);
    IN_TIME(after.acked == 2);
    assert_int_equal(after.ready, PUSHED - 2);
    assert_int_equal(after.lost, 0);
}

/* The store fails, and the item goes back to it then. */
static void an_item_may_be_freed_before_its_callback(void **state)
{
    world *w = *state;
    dibs_queue *q = open_queue(w->one, NULL),
               *other = open_queue(w->other, NULL);
    gate g = {.w = w, .step = DIBS__STEP_RESERVE};
    open_ack a = {.rc = DIBS_OK};
    dibs_item *item;

    push(q);
    item = reserve(q);
    world_fault(w, DIBS__STEP_RESERVE, DIBS__FAULT_FAIL, 1);
    world_during(w, DIBS__STEP_RESERVE, hang_in_gate, &g);
    CHECK(DIBS_OK, dibs_item_ack_async(item, note_ack, &a, err));
    await_at_least(&g.inside, 1);
    dibs_item_free(item);
    world_during(w, DIBS__STEP_RESERVE, NULL, NULL);
    atomic_store(&g.open, true);
    await_at_least(&a.calls, 1);
    assert_status(a.rc, DIBS_UNAVAIL);
    item = reserve(other);
    assert_int_equal(dibs_item_attempt(item), 1);
    ack(item);
    dibs_queue_free(q);
    dibs_queue_free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(an_item_may_be_freed_before_its_callback),
        WORLD_TEST(a_close_of_a_pool_ends_without_the_store),
        WORLD_TEST(a_pool_settles_after_the_calls_of_a_close),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
