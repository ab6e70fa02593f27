/* queue.c - queues through the public interface. */
/* SPDX-License-Identifier: MIT */
#include "core.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 4, EACH = 25, ALL = THREADS * EACH };

static dibs_queue *
open_queue(dibs_client *cl, const char *name, const dibs_queue_opts *opts)
{
    dibs_queue *q = NULL;

    CHECK(DIBS_OK, dibs_queue_new(cl, name, opts, &q, err));
    return q;
}

static uint64_t
push(dibs_queue *q, const char *text, const dibs_push_opts *opts)
{
    dibs_pushed pushed = {0};

    CHECK(DIBS_OK, dibs_queue_push(q, text, strlen(text), opts, &pushed, err));
    assert_true(pushed.id > 0 && !pushed.duplicate);
    return pushed.id;
}

static dibs_item *reserve(dibs_queue *q)
{
    dibs_item *item = NULL;

    CHECK(DIBS_OK, dibs_queue_reserve(q, pace_ms(30000), &item, err));
    return item;
}

static void assert_text(const dibs_item *item, const char *text)
{
    size_t len;
    const char *data = dibs_item_data(item, &len);

    assert_string_equal(data, text);
    assert_int_equal(len, strlen(text));
}

static void assert_empty(dibs_queue *q)
{
    dibs_item *item = NULL;

    CHECK(DIBS_BUSY, dibs_queue_reserve(q, 0, &item, err));
    assert_null(item);
}

static void ack(dibs_item *item)
{
    CHECK(DIBS_OK, dibs_item_ack(item, err));
    dibs_item_free(item);
}

static void an_item_is_pushed_reserved_and_acked(void **state)
{
    static const char *const headers[] = {"kind=mail", "to=a=b", NULL};
    dibs_client *cl = core_open();
    dibs_queue *q = open_queue(cl, core_name(), NULL);
    dibs_item *item;
    uint64_t id;

    (void)state;
    assert_empty(q);
    id = push(q, "one", DIBS_PUSH_OPTS(.headers = headers, .priority = 3));
    item = reserve(q);
    assert_text(item, "one");
    assert_int_equal(dibs_item_id(item), id);
    assert_true(dibs_item_fence(item) > 0);
    assert_int_equal(dibs_item_attempt(item), 1);
    assert_int_equal(dibs_item_losses(item), 0);
    assert_int_equal(dibs_item_priority(item), 3);
    assert_string_equal(dibs_item_header(item, "kind"), "mail");
    assert_string_equal(dibs_item_header(item, "to"), "a=b");
    assert_null(dibs_item_header(item, "kin"));
    assert_string_equal(dibs_item_header_at(item, 1), "to=a=b");
    assert_null(dibs_item_header_at(item, 2));
    assert_status(dibs_item_check(item), DIBS_OK);
    /* It has the ttl, and not only the 3 s of a place in the queue. */
    IN_TIME(dibs_item_valid_ms(item) > 5000);
    assert_empty(q);
    CHECK(DIBS_OK, dibs_item_ack(item, err));
    assert_status(dibs_item_check(item), DIBS_LOST);
    CHECK(DIBS_INVALID, dibs_item_ack(item, err));
    CHECK(DIBS_INVALID, dibs_item_nack(item, 0, NULL, err));
    assert_text(item, "one");
    dibs_item_free(item);
    assert_empty(q);
    dibs_queue_free(q);
    dibs_close(cl);
}

static void the_order_is_priority_then_place(void **state)
{
    dibs_client *cl = core_open();
    dibs_queue *q = open_queue(cl, core_name(), NULL);
    dibs_item *items[4];
    size_t count;

    (void)state;
    push(q, "b", NULL);
    push(q, "c", NULL);
    push(q, "late", DIBS_PUSH_OPTS(.delay_ms = 3600000));
    push(q, "a", DIBS_PUSH_OPTS(.priority = 1));
    CHECK(DIBS_OK, dibs_queue_reserve_many(q, 0, items, 4, &count, err));
    assert_int_equal(count, 3);
    assert_text(items[0], "a");
    assert_text(items[1], "b");
    assert_text(items[2], "c");
    /* It has its old place, before what is younger. */
    push(q, "d", NULL);
    CHECK(DIBS_OK, dibs_item_nack(items[1], 0, "again", err));
    dibs_item_free(items[1]);
    items[1] = reserve(q);
    assert_text(items[1], "b");
    assert_int_equal(dibs_item_attempt(items[1]), 2);
    for (size_t i = 0; i < count; i++)
        ack(items[i]);
    dibs_queue_free(q);
    dibs_close(cl);
}

static void an_item_dies_after_its_last_try(void **state)
{
    dibs_client *cl = core_open();
    dibs_queue *q = open_queue(cl, core_name(), NULL);
    dibs_item *item;

    (void)state;
    push(q, "poor", DIBS_PUSH_OPTS(.tries = 2));
    for (int i = 0; i < 2; i++) {
        item = reserve(q);
        assert_int_equal(dibs_item_attempt(item), i + 1);
        CHECK(DIBS_OK, dibs_item_nack(item, 0, "no luck", err));
        dibs_item_free(item);
    }
    assert_empty(q);
    push(q, "given up", NULL);
    item = reserve(q);
    CHECK(DIBS_OK, dibs_item_dead(item, "never again", err));
    dibs_item_free(item);
    assert_empty(q);
    dibs_queue_free(q);
    dibs_close(cl);
}

/* After 1 s to 2 s. */
static void a_backoff_delays(void **state)
{
    dibs_client *cl = core_open();
    dibs_queue *q = open_queue(cl, core_name(), NULL);
    dibs_item *item, *none = NULL;

    (void)state;
    push(q, "again", NULL);
    item = reserve(q);
    CHECK(DIBS_OK, dibs_item_nack(item, -1, NULL, err));
    dibs_item_free(item);
    IN_TIME(dibs_queue_reserve(q, 0, &none, NULL) == DIBS_BUSY);
    dibs_queue_free(q);
    dibs_close(cl);
}

static void a_duplicate_is_named(void **state)
{
    dibs_client *cl = core_open();
    dibs_queue *q = open_queue(cl, core_name(), NULL);
    dibs_push_opts *opts = DIBS_PUSH_OPTS(.dedup_id = "order 7");
    uint64_t id = push(q, "one", opts);
    dibs_pushed pushed;

    (void)state;
    CHECK(DIBS_OK, dibs_queue_push(q, "two", 3, opts, &pushed, err));
    assert_true(pushed.duplicate);
    assert_int_equal(pushed.id, id);
    ack(reserve(q));
    assert_true(push(q, "three", opts) != id);
    dibs_queue_free(q);
    dibs_close(cl);
}

static void many_go_in_one_call(void **state)
{
    dibs_client *cl = core_open();
    dibs_queue *q = open_queue(cl, core_name(), DIBS_QUEUE_OPTS(.prefetch = 8));
    dibs_push_item items[DIBS_QUEUE_BATCH];
    dibs_pushed pushed[DIBS_QUEUE_BATCH];
    dibs_item *item;

    (void)state;
    for (size_t i = 0; i < DIBS_QUEUE_BATCH; i++)
        items[i] = (dibs_push_item){.data = "x", .len = 1};
    CHECK(DIBS_OK,
          dibs_queue_push_many(q, items, DIBS_QUEUE_BATCH, NULL, pushed, err));
    CHECK(DIBS_INVALID, dibs_queue_push_many(q, items, DIBS_QUEUE_BATCH + 1,
                                             NULL, NULL, err));
    item = reserve(q);
    for (size_t i = 0; i < DIBS_QUEUE_BATCH; i++) {
        assert_int_equal(dibs_item_id(item), pushed[i].id);
        if (i + 1 < DIBS_QUEUE_BATCH)
            CHECK(DIBS_OK, dibs_item_ack_next(&item, 0, err));
        else
            CHECK(DIBS_BUSY, dibs_item_ack_next(&item, 0, err));
    }
    assert_null(item);
    dibs_queue_free(q);
    dibs_close(cl);
}

static void more_than_a_queue_may_have_is_not_waited_for(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    dibs_queue *q = open_queue(cl, name, NULL);
    dibs_push_item items[3];
    dibs_item *item;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(items); i++)
        items[i] = (dibs_push_item){.data = "x", .len = 1};
    CHECK(DIBS_OK,
          dibs_queue_set(cl, name,
                         DIBS_QUEUE_SETTINGS(.fields = DIBS_QUEUE_SET_CAP,
                                             .cap = 2),
                         err));
    CHECK(DIBS_FULL, dibs_queue_push_many(q, items, 3, NULL, NULL, err));
    CHECK(DIBS_INVALID,
          dibs_queue_push_many(q, items, 3, DIBS_PUSH_OPTS(.wait_ms = -1), NULL,
                               err));
    assert_empty(q);
    /* Two of these are one item. */
    items[0].opts = items[2].opts = DIBS_PUSH_OPTS(.dedup_id = "same");
    push(q, "y", NULL);
    CHECK(DIBS_FULL,
          dibs_queue_push_many(q, items, 3, DIBS_PUSH_OPTS(.wait_ms = 1), NULL,
                               err));
    item = reserve(q);
    ack(item);
    CHECK(DIBS_OK,
          dibs_queue_push_many(q, items, 3, DIBS_PUSH_OPTS(.wait_ms = -1), NULL,
                               err));
    dibs_queue_free(q);
    dibs_close(cl);
}

/* Replicas are those of Redis; other stores say so before anything is pushed. */
static void durability_is_what_the_store_has(void **state)
{
    dibs_client *cl = core_open();
    dibs_queue *queue = NULL;
    dibs_error why = {0};
    dibs_status rc;

    (void)state;
    CHECK(DIBS_INVALID,
          dibs_queue_new(cl, core_name(),
                         DIBS_QUEUE_OPTS(.durability = "wait:0"), &queue, err));
    CHECK(DIBS_OK,
          dibs_queue_new(cl, core_name(),
                         DIBS_QUEUE_OPTS(.durability = "async"), &queue, err));
    CHECK(DIBS_OK, dibs_queue_push(queue, "x", 1, NULL, NULL, err));
    dibs_queue_free(queue);
    rc = dibs_queue_new(cl, core_name(),
                        DIBS_QUEUE_OPTS(.durability = "wait:1"), &queue, &why);
    assert_status(rc, strncmp(core_url, "redis", 5) == 0 ? DIBS_OK
                                                         : DIBS_UNSUPPORTED);
    if (rc != DIBS_OK)
        assert_non_null(strstr(why.message, "durability"));
    dibs_queue_free(queue);
    dibs_close(cl);
}

static void malformed_calls_are_refused(void **state)
{
    static const char *const headers[] = {"no sign", NULL};
    dibs_client *cl = core_open();
    dibs_queue *q = open_queue(cl, core_name(), NULL), *none;
    char *big = calloc(1, DIBS_ITEM_MAX + 1);
    char id[66];
    dibs_item *item = NULL;

    (void)state;
    memset(id, 'x', sizeof(id) - 1);
    id[sizeof(id) - 1] = '\0';
    CHECK(DIBS_INVALID,
          dibs_queue_push(q, big, DIBS_ITEM_MAX + 1, NULL, NULL, err));
    CHECK(DIBS_INVALID,
          dibs_queue_push(q, "", 0, DIBS_PUSH_OPTS(.headers = headers), NULL,
                          err));
    CHECK(DIBS_INVALID,
          dibs_queue_push(q, "", 0, DIBS_PUSH_OPTS(.dedup_id = id), NULL, err));
    CHECK(DIBS_INVALID,
          dibs_queue_push(q, "", 0, DIBS_PUSH_OPTS(.delay_ms = -1), NULL, err));
    CHECK(DIBS_INVALID, dibs_queue_adopt(q, "no token", &item, err));
    CHECK(DIBS_INVALID, dibs_queue_new(cl, "", NULL, &none, err));
    CHECK(DIBS_INVALID,
          dibs_queue_new(cl, "x", DIBS_QUEUE_OPTS(.ttl_ms = 10), &none, err));
    assert_null(none);
    CHECK(DIBS_OK, dibs_queue_push(q, big, DIBS_ITEM_MAX, NULL, NULL, err));
    item = reserve(q);
    ack(item);
    free(big);
    dibs_queue_free(q);
    dibs_queue_free(NULL);
    dibs_item_free(NULL);
    dibs_close(cl);
}

/* Nothing is charged for an item that was not begun. */
static void what_is_freed_comes_back_uncounted(void **state)
{
    dibs_client *keep = core_open(); /* a store in memory ends with the last */
    dibs_client *cl = core_open(), *other = core_open();
    const char *name = core_name();
    dibs_queue *q = open_queue(cl, name, NULL);
    dibs_queue *twin = open_queue(other, name, NULL);
    dibs_item *item, *kept;

    (void)state;
    push(q, "one", NULL);
    dibs_item_free(reserve(q));
    item = reserve(twin);
    assert_int_equal(dibs_item_attempt(item), 1);
    kept = item;
    dibs_queue_free(twin);
    assert_status(dibs_item_check(kept), DIBS_LOST);
    CHECK(DIBS_INVALID, dibs_item_ack(kept, err));
    item = reserve(q);
    assert_int_equal(dibs_item_attempt(item), 1);
    assert_text(kept, "one");
    dibs_close(other);
    dibs_item_free(kept);
    /* And what a client has that is closed. */
    dibs_close(cl);
    assert_status(dibs_item_check(item), DIBS_LOST);
    dibs_item_free(item);
    dibs_queue_free(q);
    q = open_queue(keep, name, NULL);
    item = reserve(q);
    assert_int_equal(dibs_item_attempt(item), 1);
    ack(item);
    dibs_queue_free(q);
    dibs_close(keep);
}

typedef struct consumer {
    dibs_queue *q;
    dibs_status rc;
    dibs_item *item;
} consumer;

static void *consume_one(void *arg)
{
    consumer *c = arg;

    c->rc = dibs_queue_reserve(c->q, -1, &c->item, NULL);
    return NULL;
}

static void a_push_wakes_a_waiter(void **state)
{
    dibs_client *cl = core_open(), *other = core_open();
    const char *name = core_name();
    dibs_queue *q = open_queue(cl, name, NULL);
    consumer c = {.q = open_queue(other, name, NULL)};
    pthread_t thread;

    (void)state;
    for (int i = 0; i < 5; i++) {
        assert_int_equal(pthread_create(&thread, NULL, consume_one, &c), 0);
        usleep((useconds_t)i * 10000);
        push(q, "wake", NULL);
        pthread_join(thread, NULL);
        assert_status(c.rc, DIBS_OK);
        assert_text(c.item, "wake");
        ack(c.item);
    }
    dibs_queue_free(c.q);
    dibs_queue_free(q);
    dibs_close(cl);
    dibs_close(other);
}

static void a_cancel_and_a_close_end_waits(void **state)
{
    dibs_client *cl = core_open();
    dibs_queue *q = open_queue(cl, core_name(), NULL);
    dibs_queue *second = open_queue(cl, core_name(), NULL);
    consumer c = {.q = q}, d = {.q = second};
    dibs_item *item = NULL, *held;
    pthread_t thread;

    (void)state;
    push(q, "held", NULL);
    held = reserve(q);
    CHECK(DIBS_TIMEOUT, dibs_queue_reserve(q, 10, &item, err));
    assert_int_equal(pthread_create(&thread, NULL, consume_one, &c), 0);
    usleep(20000);
    dibs_queue_cancel(q);
    pthread_join(thread, NULL);
    assert_status(c.rc, DIBS_CANCELLED);
    CHECK(DIBS_CANCELLED, dibs_queue_reserve(q, 0, &item, err));
    CHECK(DIBS_OK, dibs_item_ack(held, err));
    dibs_item_free(held);
    assert_int_equal(pthread_create(&thread, NULL, consume_one, &d), 0);
    usleep(20000);
    dibs_close(cl);
    pthread_join(thread, NULL);
    if (d.rc != DIBS_INVALID) /* the thread came too late to be cancelled */
        assert_status(d.rc, DIBS_CANCELLED);
    CHECK(DIBS_INVALID, dibs_queue_push(q, "", 0, NULL, NULL, err));
    dibs_queue_free(q);
    dibs_queue_free(second);
}

static void a_token_is_settled_elsewhere(void **state)
{
    dibs_client *cl = core_open(), *other = core_open();
    const char *name = core_name();
    dibs_queue *q = open_queue(cl, name, NULL);
    dibs_queue *there = open_queue(other, name, NULL);
    char token[DIBS_ITEM_TOKEN_SIZE], second[DIBS_ITEM_TOKEN_SIZE];
    dibs_item *item;

    (void)state;
    push(q, "one", NULL);
    push(q, "two", NULL);
    item = reserve(q);
    CHECK(DIBS_OK, dibs_item_detach(item, token, err));
    assert_status(dibs_item_check(item), DIBS_LOST);
    CHECK(DIBS_INVALID, dibs_item_ack(item, err));
    dibs_item_free(item);
    item = reserve(q);
    assert_text(item, "two");
    CHECK(DIBS_OK, dibs_item_detach(item, second, err));
    dibs_item_free(item);
    dibs_queue_free(q);
    dibs_close(cl);
    assert_empty(there);
    CHECK(DIBS_OK, dibs_queue_adopt(there, token, &item, err));
    CHECK(DIBS_OK, dibs_item_extend(item, 60000, err));
    CHECK(DIBS_OK, dibs_item_ack(item, err));
    dibs_item_free(item);
    CHECK(DIBS_OK, dibs_queue_adopt(there, token, &item, err));
    CHECK(DIBS_LOST, dibs_item_ack(item, err));
    dibs_item_free(item);
    CHECK(DIBS_OK, dibs_queue_adopt(there, second, &item, err));
    CHECK(DIBS_OK, dibs_item_nack(item, 0, "not me", err));
    CHECK(DIBS_INVALID, dibs_item_nack(item, 0, "not me", err));
    dibs_item_free(item);
    item = reserve(there);
    assert_text(item, "two");
    assert_int_equal(dibs_item_attempt(item), 2);
    ack(item);
    dibs_queue_free(there);
    dibs_close(other);
}

typedef struct losses {
    atomic_int count;
    uint64_t id;
} losses;

static void note_loss(dibs_item *item, void *arg)
{
    losses *l = arg;

    l->id = dibs_item_id(item);
    assert_status(dibs_item_check(item), DIBS_LOST);
    atomic_fetch_add(&l->count, 1);
}

static bool is_lost(void *arg)
{
    return atomic_load(&((losses *)arg)->count) > 0;
}

static void a_limit_ends_a_delivery(void **state)
{
    dibs_client *cl = core_open();
    losses l = {0};
    dibs_queue *q =
        open_queue(cl, core_name(),
                   DIBS_QUEUE_OPTS(.limit_ms = 60000, .on_lost = note_loss,
                                   .arg = &l));
    dibs_item *item, *again;
    uint64_t id = push(q, "slow", NULL);

    (void)state;
    item = reserve(q);
    CHECK(DIBS_OK, dibs_item_extend(item, 200, err));
    core_until(is_lost, &l);
    assert_int_equal(l.id, id);
    CHECK(DIBS_LOST, dibs_item_ack(item, err));
    again = reserve(q);
    assert_int_equal(dibs_item_id(again), id);
    assert_int_equal(dibs_item_losses(again), 1);
    CHECK(DIBS_OK, dibs_item_extend(again, 0, err));
    CHECK(DIBS_LOST, dibs_item_ack(item, err));
    dibs_item_free(item);
    ack(again);
    assert_int_equal(atomic_load(&l.count), 1);
    dibs_queue_free(q);
    dibs_close(cl);
}

/* The lane lives on while its client does nothing but hold. */
static void a_slow_consumer_keeps_its_item(void **state)
{
    dibs_client *cl = core_open(), *other = core_open();
    const char *name = core_name();
    dibs_queue *q =
        open_queue(cl, name, DIBS_QUEUE_OPTS(.ttl_ms = pace_ms(1000)));
    dibs_queue *twin = open_queue(other, name, NULL);
    dibs_item *item, *none = NULL;
    dibs_status rc;

    (void)state;
    push(q, "slow", NULL);
    item = reserve(q);
    rc = dibs_queue_reserve(twin, pace_ms(1700), &none, NULL);
    IN_TIME(rc != DIBS_OK);
    assert_status(rc, DIBS_TIMEOUT);
    CHECK(DIBS_OK, dibs_item_check(item));
    ack(item);
    dibs_queue_free(q);
    dibs_queue_free(twin);
    dibs_close(cl);
    dibs_close(other);
}

typedef struct pool {
    dibs_queue *q;
    atomic_int seen[ALL], done;
} pool;

static dibs_status count_item(dibs_item *item, void *arg)
{
    pool *po = arg;
    int number = (int)strtol(dibs_item_data(item, NULL), NULL, 10);

    /* A pool that was late for its ttl has lost what it had. */
    IN_TIME(dibs_item_losses(item) == 0);
    /* Some fail at first; one is given up. */
    if (number % 10 == 3 && dibs_item_attempt(item) == 1) {
        CHECK(DIBS_OK, dibs_item_nack(item, 0, "once more", err));
        return DIBS_OK;
    }
    atomic_fetch_add(&po->seen[number], 1);
    if (atomic_fetch_add(&po->done, 1) + 1 == ALL)
        dibs_queue_cancel(po->q);
    return number == 5 ? DIBS_INVALID : DIBS_OK;
}

static void *push_part(void *arg)
{
    pool *po = arg;
    static atomic_int part;
    int from = (atomic_fetch_add(&part, 1) % THREADS) * EACH;

    for (int i = 0; i < EACH; i++) {
        char text[16];

        snprintf(text, sizeof(text), "%d", from + i);
        push(po->q, text, NULL);
    }
    return NULL;
}

static void a_pool_does_each_item_once(void **state)
{
    dibs_client *cl = core_open(), *other = core_open();
    const char *name = core_name();
    pool in = {.q = open_queue(cl, name, NULL)};
    pool po = {.q = open_queue(other, name, DIBS_QUEUE_OPTS(.prefetch = 4))};
    pthread_t threads[THREADS];

    (void)state;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, push_part, &in), 0);
    CHECK(DIBS_OK, dibs_queue_work(po.q, THREADS, count_item, &po, err));
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < ALL; i++)
        assert_int_equal(atomic_load(&po.seen[i]), 1);
    dibs_queue_free(po.q);
    assert_empty(in.q);
    dibs_queue_free(in.q);
    dibs_close(cl);
    dibs_close(other);
}

typedef struct closing {
    dibs_watch *watch;
    dibs_queue *q;
    atomic_bool works, worked;
    dibs_status rc;
    dibs_item *item;
    int64_t valid_ms;
} closing;

static bool does_work(void *arg)
{
    return atomic_load(&((closing *)arg)->works);
}

static bool is_renewed(void *arg)
{
    closing *c = arg;
    int64_t before_ms = c->valid_ms;

    c->valid_ms = dibs_item_valid_ms(c->item);
    IN_TIME(c->valid_ms > 0);
    return c->valid_ms > before_ms;
}

/* The close ends its wait. The item is renewed all the same. */
static dibs_status work_during_close(dibs_item *item, void *arg)
{
    closing *c = arg;
    dibs_change change;

    c->item = item;
    CHECK(DIBS_OK, dibs_watch_next(c->watch, -1, &change, err));
    atomic_store(&c->works, true);
    CHECK(DIBS_CANCELLED, dibs_watch_next(c->watch, -1, &change, err));
    core_until(is_renewed, c);
    atomic_store(&c->worked, true);
    return DIBS_OK;
}

static void *run_work(void *arg)
{
    closing *c = arg;

    c->rc = dibs_queue_work(c->q, 2, work_during_close, c, NULL);
    return NULL;
}

static void a_close_waits_for_a_pool(void **state)
{
    dibs_client *cl = core_open(), *other = core_open();
    const char *name = core_name();
    dibs_queue *q = open_queue(cl, name, NULL);
    closing c = {.valid_ms = INT64_MAX};
    dibs_queue_info info = {.size = sizeof(info)};
    pthread_t thread;

    (void)state;
    CHECK(DIBS_OK, dibs_state_watch(other, name, &c.watch, err));
    c.q = open_queue(other, name, DIBS_QUEUE_OPTS(.ttl_ms = pace_ms(1000)));
    push(q, "slow", NULL);
    assert_int_equal(pthread_create(&thread, NULL, run_work, &c), 0);
    core_until(does_work, &c);
    dibs_close(other);
    assert_true(atomic_load(&c.worked));
    pthread_join(thread, NULL);
    assert_status(c.rc, DIBS_OK);
    dibs_queue_free(c.q);
    dibs_watch_free(c.watch);
    CHECK(DIBS_OK, dibs_queue_stats(cl, name, &info, err));
    IN_TIME(info.acked == 1);
    assert_int_equal(info.delivered, 1);
    assert_empty(q);
    dibs_queue_free(q);
    dibs_close(cl);
}

/* A process of its own reserves and is killed. */
int core_reserve_and_stop(char **words)
{
    dibs_client *cl = NULL;
    dibs_queue *q;
    char byte = 'r';

    CHECK(DIBS_OK, dibs_open(words[0], NULL, &cl, err));
    q = open_queue(cl, words[1], DIBS_QUEUE_OPTS(.ttl_ms = 1000));
    (void)reserve(q);
    if (write((int)strtol(words[2], NULL, 10), &byte, 1) != 1)
        return 1;
    pause();
    return 0;
}

static void a_killed_client_loses_its_items(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    dibs_queue *q = open_queue(cl, name, NULL);
    dibs_item *item;
    char word[16], byte;
    int fds[2];
    pid_t child;

    (void)state;
    if (strncmp(core_url, "memory:", 7) == 0)
        skip();
    push(q, "orphan", NULL);
    assert_int_equal(pipe(fds), 0);
    child =
        child_start("reserves", core_url, name, child_fd(fds[1], word), NULL);
    close(fds[1]);
    if (read(fds[0], &byte, 1) != 1)
        fail_msg("the child has ended: %d", child_code(child));
    close(fds[0]);
    kill(child, SIGKILL);
    assert_int_equal(child_code(child), 1000 + SIGKILL);
    item = reserve(q);
    assert_text(item, "orphan");
    assert_int_equal(dibs_item_losses(item), 1);
    assert_int_equal(dibs_item_attempt(item), 2);
    ack(item);
    dibs_queue_free(q);
    dibs_close(cl);
}

int core_queue_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_item_is_pushed_reserved_and_acked),
        cmocka_unit_test(durability_is_what_the_store_has),
        cmocka_unit_test(the_order_is_priority_then_place),
        cmocka_unit_test(an_item_dies_after_its_last_try),
        cmocka_unit_test(a_backoff_delays),
        cmocka_unit_test(a_duplicate_is_named),
        cmocka_unit_test(many_go_in_one_call),
        cmocka_unit_test(more_than_a_queue_may_have_is_not_waited_for),
        cmocka_unit_test(malformed_calls_are_refused),
        cmocka_unit_test(what_is_freed_comes_back_uncounted),
        cmocka_unit_test(a_push_wakes_a_waiter),
        cmocka_unit_test(a_cancel_and_a_close_end_waits),
        cmocka_unit_test(a_token_is_settled_elsewhere),
        cmocka_unit_test(a_limit_ends_a_delivery),
        cmocka_unit_test(a_slow_consumer_keeps_its_item),
        cmocka_unit_test(a_pool_does_each_item_once),
        cmocka_unit_test(a_close_waits_for_a_pool),
        cmocka_unit_test(a_killed_client_loses_its_items),
    };

    return cmocka_run_group_tests_name("queues", tests, NULL, NULL);
}
