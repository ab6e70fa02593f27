/* test_client_queue.c - queues on a store that fails: lost answers, lost rings, outages. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/rand.h"
#include "coord/queue.h"
#include "coord/queue_lane.h"
#include "core/client.h"
#include "queue_world.h"

#include <dibs/queue_async.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 8, PLACE_MS = 3000 };

static void a_push_without_an_answer_makes_one_item(void **state)
{
    world *w = *state;
    dibs_queue *q = open_queue(w->one, NULL);

    world_fault(w, DIBS__STEP_PUSH, DIBS__FAULT_DROP_AFTER, 3);
    push(q);
    world_fault(w, DIBS__STEP_PUSH, DIBS__FAULT_DROP_BEFORE, 2);
    push(q);
    assert_int_equal(stats(w).ready, 2);
    world_fault(w, DIBS__STEP_PUSH, DIBS__FAULT_FAIL, 1);
    CHECK(DIBS_UNAVAIL, dibs_queue_push(q, "x", 1, NULL, NULL, err));
    assert_int_equal(stats(w).ready, 2);
    push(q);
    assert_int_equal(stats(w).pushed, 3);
    dibs_queue_free(q);
}

static void an_ack_without_an_answer_is_sent_again(void **state)
{
    world *w = *state;
    dibs_queue *q = open_queue(w->one, NULL);
    dibs_item *item;

    push(q);
    world_fault(w, DIBS__STEP_RESERVE, DIBS__FAULT_DROP_AFTER, 3);
    item = reserve(q);
    assert_int_equal(dibs_item_attempt(item), 1);
    assert_int_equal(stats(w).delivered, 1);
    world_fault(w, DIBS__STEP_RESERVE, DIBS__FAULT_DROP_AFTER, 2);
    ack(item);
    assert_int_equal(stats(w).acked, 1);
    push(q);
    item = reserve(q);
    /* Nothing was done: the program may ack again. */
    world_fault(w, DIBS__STEP_RESERVE, DIBS__FAULT_FAIL, 1);
    CHECK(DIBS_UNAVAIL, dibs_item_ack(item, err));
    CHECK(DIBS_OK, dibs_item_check(item));
    push(q);
    world_fault(w, DIBS__STEP_RESERVE, DIBS__FAULT_DROP_AFTER, 1);
    CHECK(DIBS_OK, dibs_item_ack_next(&item, WORLD_BOUND_MS, err));
    ack(item);
    assert_int_equal(stats(w).acked, 3);
    assert_empty(q);
    dibs_queue_free(q);
}

/* The wait goes on over an outage, and ends in time. */
static void a_reserve_goes_on_while_the_store_is_away(void **state)
{
    world *w = *state;
    dibs_queue *q = open_queue(w->one, NULL);
    dibs_item *item = NULL;

    push(q);
    world_fault(w, DIBS__STEP_RESERVE, DIBS__FAULT_FAIL, -1);
    CHECK(DIBS_UNAVAIL, dibs_queue_reserve(q, 0, &item, err));
    CHECK(DIBS_UNAVAIL, dibs_queue_reserve(q, 50, &item, err));
    world_fault(w, DIBS__STEP_RESERVE, DIBS__FAULT_FAIL, 3);
    ack(reserve(q));
    dibs_queue_free(q);
}

/* The store is away when a delayed item is due: the wait finds it afterwards. */
static void due_after_reconnect(void **state)
{
    world *w = *state;
    dibs_queue *q = open_queue(w->one, NULL);
    dibs_item *item = NULL;
    int64_t delay_ms = pace_ms(50);
    dibsx_nsec pushed_at = dibsx_now();
    dibs_status rc;

    CHECK(DIBS_OK,
          dibs_queue_push(q, "x", 1, DIBS_PUSH_OPTS(.delay_ms = delay_ms), NULL,
                          err));
    rc = dibs_queue_reserve(q, 0, &item, NULL);
    IN_TIME(rc != DIBS_OK || world_ms_since(pushed_at) < delay_ms);
    assert_status(rc, DIBS_BUSY);
    world_fault(w, DIBS__STEP_RESERVE, DIBS__FAULT_FAIL, -1);
    CHECK(DIBS_UNAVAIL, dibs_queue_reserve(q, 2 * delay_ms, &item, err));
    assert_int_equal(stats(w).ready, 1);
    world_fault(w, DIBS__STEP_RESERVE, DIBS__FAULT_DROP_BEFORE, 2);
    item = reserve(q);
    assert_int_equal(dibs_item_attempt(item), 1);
    ack(item);
    dibs_queue_free(q);
}

typedef struct losses {
    atomic_int count;
} losses;

static void note_item(dibs_item *item, void *arg)
{
    losses *l = arg;

    if (dibs_item_check(item) == DIBS_LOST)
        atomic_fetch_add(&l->count, 1);
}

static void await_item_loss(losses *l)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), pace_ms(WORLD_BOUND_MS));

    while (atomic_load(&l->count) == 0) {
        IN_TIME(dibsx_now() < end);
        usleep(1000);
    }
}

/* It is cut off, learns of it by its own clock, and cannot ack any more. */
static void a_client_cut_off_learns_of_its_loss(void **state)
{
    world *w = *state;
    losses l = {0};
    dibs_queue *q =
        open_queue(w->one, DIBS_QUEUE_OPTS(.ttl_ms = 1000, .on_lost = note_item,
                                           .arg = &l));
    dibs_queue *other = open_queue(w->other, NULL);
    dibs_item *item, *again;

    push(q);
    item = reserve(q);
    world_fault(w, DIBS__STEP_TEND, DIBS__FAULT_DROP_BEFORE, -1);
    await_item_loss(&l);
    again = reserve(other);
    assert_int_equal(dibs_item_losses(again), 1);
    assert_true(dibs_item_fence(again) > dibs_item_fence(item));
    CHECK(DIBS_LOST, dibs_item_ack(item, err));
    dibs_item_free(item);
    ack(again);
    assert_int_equal(atomic_load(&l.count), 1);
    assert_int_equal(stats(w).acked, 1);
    world_heal(w);
    push(q);
    ack(reserve(q));
    dibs_queue_free(q);
    dibs_queue_free(other);
}

/* The first thread of callbacks cannot be made when the limit is over. */
static void a_loss_is_told_when_there_is_a_thread(void **state)
{
    world *w = *state;
    losses l = {0};
    dibs_queue *q =
        open_queue(w->one, DIBS_QUEUE_OPTS(.ttl_ms = 60000, .limit_ms = 100,
                                           .on_lost = note_item, .arg = &l));
    dibs_item *item;

    push(q);
    item = reserve(q);
    dibsx_alloc_fail_at(1);
    IN_TIME(dibs_item_check(item) == DIBS_OK);
    await_item_loss(&l);
    assert_true(dibsx_alloc_count() > 1);
    dibsx_alloc_fail_at(0);
    dibs_item_free(item);
    dibs_queue_free(q);
}

static void note_reserved(dibs_queue *q, dibs_item *item, dibs_status rc,
                          const dibs_error *err, void *arg)
{
    (void)q;
    (void)rc;
    (void)err;
    (void)arg;
    dibs_item_free(item);
}

/* As many requests as there are threads for them. */
static void requests_that_hang_delay_no_loss(void **state)
{
    enum { HANGING = 4 };
    world *w = *state;
    losses l = {0};
    gate g = {.w = w, .step = DIBS__STEP_RESERVE};
    dibs_queue *q =
        open_queue(w->one, DIBS_QUEUE_OPTS(.ttl_ms = pace_ms(1000),
                                           .on_lost = note_item, .arg = &l));
    dibs_queue *hung[HANGING];
    dibs_item *item;

    push(q);
    item = reserve(q);
    world_during(w, DIBS__STEP_RESERVE, hang_in_gate, &g);
    for (int i = 0; i < HANGING; i++) {
        hung[i] = open_queue(w->one, NULL);
        CHECK(DIBS_OK,
              dibs_queue_reserve_async(hung[i], -1, note_reserved, NULL, err));
        await_at_least(&g.inside, i + 1);
    }
    await_at_least(&w->seen[DIBS__STEP_TEND],
                   world_seen(w, DIBS__STEP_TEND) + 2);
    world_fault(w, DIBS__STEP_TEND, DIBS__FAULT_DROP_BEFORE, -1);
    await_item_loss(&l);
    world_during(w, DIBS__STEP_RESERVE, NULL, NULL);
    atomic_store(&g.open, true);
    world_heal(w);
    dibs_item_free(item);
    for (int i = 0; i < HANGING; i++)
        dibs_queue_free(hung[i]);
    dibs_queue_free(q);
}

static void note_and_await_both(dibs_item *item, void *arg)
{
    losses *l = arg;

    (void)item;
    atomic_fetch_add(&l->count, 1);
    await_at_least(&l->count, 2);
}

/* The first one returns after the second has begun. */
static void a_callback_delays_those_of_its_queue_alone(void **state)
{
    world *w = *state;
    losses l = {0};
    const dibs_queue_opts *opts =
        DIBS_QUEUE_OPTS(.ttl_ms = 1000, .on_lost = note_and_await_both,
                        .arg = &l);
    dibs_queue *one = open_queue(w->one, opts), *two = open_queue(w->one, opts);
    dibs_item *first, *second;

    push(one);
    push(one);
    first = reserve(one);
    second = reserve(two);
    world_fault(w, DIBS__STEP_TEND, DIBS__FAULT_DROP_BEFORE, -1);
    await_at_least(&l.count, 2);
    dibs_item_free(first);
    dibs_item_free(second);
    dibs_queue_free(one);
    dibs_queue_free(two);
}

/* The lane ends while its request has no answer: so does every call. */
static void a_request_ends_with_its_lane(void **state)
{
    world *w = *state;
    dibs_queue *q = open_queue(w->one, DIBS_QUEUE_OPTS(.ttl_ms = 1000));
    dibs_item *item, *second;

    push(q);
    push(q);
    item = reserve(q);
    second = reserve(q);
    world_fault(w, DIBS__STEP_TEND, DIBS__FAULT_DROP_BEFORE, -1);
    world_fault(w, DIBS__STEP_RESERVE, DIBS__FAULT_DROP_BEFORE, -1);
    CHECK(DIBS_UNKNOWN, dibs_item_extend(item, 60000, err));
    CHECK(DIBS_LOST, dibs_item_ack(item, err));
    CHECK(DIBS_LOST, dibs_item_ack(second, err));
    dibs_item_free(item);
    dibs_item_free(second);
    world_heal(w);
    ack(reserve(q));
    ack(reserve(q));
    dibs_queue_free(q);
}

/* The store extends it, and no answer comes as long as it is not healed. */
static void extend_unanswered(world *w, dibs_item *item, int64_t limit_ms)
{
    dibs_status rc;

    world_fault(w, DIBS__STEP_RESERVE, DIBS__FAULT_DROP_AFTER, -1);
    do { /* UNAVAIL: it was not sent in time. */
        rc = dibs_item_extend(item, limit_ms, NULL);
    } while (rc == DIBS_UNAVAIL);
    assert_status(rc, DIBS_UNKNOWN);
}

/* Its extension is answered after that. It has to come back, and its memory is its own
 * until then. */
static void an_item_may_be_freed_while_it_is_extended(void **state)
{
    world *w = *state;
    dibs_client *cl = world_client(w->url, pace_ms(100));
    dibs_queue *q = open_queue(cl, NULL), *other = open_queue(w->other, NULL);
    dibs_item *item;

    push(other);
    item = reserve(q);
    extend_unanswered(w, item, 60000);
    dibs_item_free(item);
    world_heal(w);
    item = reserve(other);
    assert_int_equal(dibs_item_losses(item), 0);
    ack(item);
    dibs_queue_free(other);
    dibs_queue_free(q);
    dibs_close(cl);
}

/* The store ends the delivery at the new limit, and its consumer has to know. */
static void a_shorter_limit_holds_without_its_answer(void **state)
{
    world *w = *state;
    dibs_client *cl = world_client(w->url, pace_ms(100));
    dibs_queue *q = open_queue(cl, NULL), *other = open_queue(w->other, NULL);
    dibs_item *item, *again;

    push(other);
    item = reserve(q);
    extend_unanswered(w, item, 50);
    world_heal(w);
    again = reserve(other);
    CHECK(DIBS_LOST, dibs_item_check(item));
    CHECK(DIBS_OK, dibs_item_check(again));
    ack(again);
    dibs_item_free(item);
    dibs_queue_free(other);
    dibs_queue_free(q);
    dibs_close(cl);
}

/* Less than the drift of clocks: nothing is left of it to believe in. */
static void a_limit_below_the_drift_is_over_at_once(void **state)
{
    world *w = *state;
    dibs_queue *other = open_queue(w->other, NULL);

    for (int64_t limit_ms = 1; limit_ms <= 3; limit_ms++) {
        dibs_queue *q = open_queue(w->one, NULL);
        dibs_queue *brief =
            open_queue(w->one, DIBS_QUEUE_OPTS(.limit_ms = limit_ms));
        dibs_item *item, *again;

        push(other);
        item = reserve(q);
        CHECK(DIBS_OK, dibs_item_extend(item, limit_ms, err));
        again = reserve(other);
        CHECK(DIBS_LOST, dibs_item_check(item));
        ack(again);
        dibs_item_free(item);
        push(other);
        item = reserve(brief);
        again = reserve(other);
        CHECK(DIBS_LOST, dibs_item_check(item));
        ack(again);
        dibs_item_free(item);
        dibs_queue_free(brief);
        dibs_queue_free(q);
    }
    dibs_queue_free(other);
}

/* The thread that asked for the extension has gone, so that the ack sends it. */
static void an_ack_sends_the_extension_before_it(void **state)
{
    world *w = *state;
    dibs_client *cl = world_client(w->url, pace_ms(100));
    dibs_queue *q = open_queue(cl, NULL);
    dibs_item *item;
    dibs_status rc;

    push(q);
    item = reserve(q);
    extend_unanswered(w, item, 60000);
    assert_status(dibs_item_ack(item, NULL), DIBS_UNAVAIL);
    world_heal(w);
    do { /* UNAVAIL: it was not sent in time. */
        rc = dibs_item_ack(item, NULL);
    } while (rc == DIBS_UNAVAIL);
    assert_status(rc, DIBS_OK);
    assert_int_equal(stats(w).acked, 1);
    dibs_item_free(item);
    dibs_queue_free(q);
    dibs_close(cl);
}

/* It gave its call up, and is told of the loss as if it had not called. */
static void a_loss_is_told_after_an_extension_without_an_answer(void **state)
{
    world *w = *state;
    losses l = {0};
    dibs_client *cl = world_client(w->url, pace_ms(100));
    dibs_queue *q =
        open_queue(cl, DIBS_QUEUE_OPTS(.ttl_ms = pace_ms(3000),
                                       .on_lost = note_item, .arg = &l));
    dibs_item *item;
    dibs_status rc;

    push(q);
    item = reserve(q);
    world_fault(w, DIBS__STEP_RESERVE, DIBS__FAULT_DROP_BEFORE, -1);
    do { /* UNAVAIL: it was not sent in time. */
        rc = dibs_item_extend(item, 60000, NULL);
    } while (rc == DIBS_UNAVAIL);
    IN_TIME(rc == DIBS_UNKNOWN && dibs_item_check(item) == DIBS_OK);
    world_fault(w, DIBS__STEP_TEND, DIBS__FAULT_DROP_BEFORE, -1);
    await_item_loss(&l);
    dibs_item_free(item);
    dibs_queue_free(q);
    dibs_close(cl);
    assert_int_equal(atomic_load(&l.count), 1);
}

typedef struct outcome {
    atomic_int calls;
    dibs_status rc;
} outcome;

static void
note_settled(dibs_item *item, dibs_status rc, const dibs_error *err, void *arg)
{
    outcome *out = arg;

    (void)item;
    (void)err;
    out->rc = rc;
    atomic_fetch_add(&out->calls, 1);
}

static dibs_status ack_by_callback(dibs_item *item, outcome *out)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), WORLD_BOUND_MS);

    atomic_store(&out->calls, 0);
    CHECK(DIBS_OK, dibs_item_ack_async(item, note_settled, out, err));
    while (atomic_load(&out->calls) == 0) {
        IN_TIME(dibsx_now() < end);
        usleep(1000);
    }
    return out->rc;
}

/* Nobody waits for the request, so that a worker sends it, and sends it again. */
static void a_callback_learns_what_became_of_an_ack(void **state)
{
    world *w = *state;
    dibs_queue *q = open_queue(w->one, DIBS_QUEUE_OPTS(.ttl_ms = 1000));
    dibs_item *item;
    static outcome out;

    push(q);
    push(q);
    item = reserve(q);
    world_fault(w, DIBS__STEP_RESERVE, DIBS__FAULT_FAIL, 1);
    assert_status(ack_by_callback(item, &out), DIBS_UNAVAIL);
    world_fault(w, DIBS__STEP_RESERVE, DIBS__FAULT_DROP_AFTER, 2);
    assert_status(ack_by_callback(item, &out), DIBS_OK);
    assert_int_equal(stats(w).acked, 1);
    dibs_item_free(item);
    item = reserve(q);
    world_fault(w, DIBS__STEP_TEND, DIBS__FAULT_DROP_BEFORE, -1);
    world_fault(w, DIBS__STEP_RESERVE, DIBS__FAULT_DROP_BEFORE, -1);
    assert_status(ack_by_callback(item, &out), DIBS_UNKNOWN);
    dibs_item_free(item);
    world_heal(w);
    ack(reserve(q));
    dibs_queue_free(q);
}

static void *do_ack(void *arg)
{
    call *c = arg;

    c->rc = dibs_item_ack(c->item, NULL);
    return NULL;
}

static void *do_push(void *arg)
{
    call *c = arg;

    c->rc = dibs_queue_push(c->q, "x", 1, NULL, NULL, NULL);
    return NULL;
}

static void run_calls(call *calls, void *(*body)(void *))
{
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&calls[i].thread, NULL, body,
                                        &calls[i]),
                         0);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(calls[i].thread, NULL);
        assert_status(calls[i].rc, DIBS_OK);
    }
}

/* While one request is under way, the others gather. */
static void threads_share_requests(void **state)
{
    world *w = *state;
    dibs_queue *q = open_queue(w->one, NULL);
    call calls[THREADS];
    dibs_item *items[THREADS];
    size_t count;
    int before = world_seen(w, DIBS__STEP_PUSH);

    for (int i = 0; i < THREADS; i++)
        calls[i] = (call){.q = q};
    world_delay(w, DIBS__STEP_PUSH, 100);
    run_calls(calls, do_push);
    IN_TIME(world_seen(w, DIBS__STEP_PUSH) - before < THREADS);
    CHECK(DIBS_OK, dibs_queue_reserve_many(q, 0, items, THREADS, &count, err));
    assert_int_equal(count, THREADS);
    for (int i = 0; i < THREADS; i++)
        calls[i].item = items[i];
    before = world_seen(w, DIBS__STEP_RESERVE);
    world_delay(w, DIBS__STEP_RESERVE, 100);
    run_calls(calls, do_ack);
    IN_TIME(world_seen(w, DIBS__STEP_RESERVE) - before < THREADS);
    assert_int_equal(stats(w).acked, THREADS);
    for (int i = 0; i < THREADS; i++)
        dibs_item_free(items[i]);
    dibs_queue_free(q);
}

static void *do_ack_next(void *arg)
{
    call *c = arg;

    c->rc = dibs_item_ack_next(&c->item, WORLD_BOUND_MS, NULL);
    return NULL;
}

/* It waits for its ack and for the next item. */
static void await_wanted(dibs_queue *q)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), WORLD_BOUND_MS);
    bool wants = false;

    while (!wants) {
        IN_TIME(dibsx_now() < end);
        usleep(1000);
        pthread_mutex_lock(&q->cl->mutex);
        wants = q->wanted.first && q->waiters.first;
        pthread_mutex_unlock(&q->cl->mutex);
    }
}

/* The thread whose request was under way has no other one to send. A thread that is not
 * woken sleeps for a second. */
static void a_thread_that_acks_and_waits_sends_the_next(void **state)
{
    world *w = *state;
    gate g = {.w = w, .step = DIBS__STEP_RESERVE};
    call sends = {.q = open_queue(w->one, NULL)}, waits = {.q = sends.q};
    dibsx_nsec opened_at;

    for (int i = 0; i < 3; i++)
        push(sends.q);
    sends.item = reserve(sends.q);
    waits.item = reserve(sends.q);
    world_during(w, DIBS__STEP_RESERVE, hang_in_gate, &g);
    assert_int_equal(pthread_create(&sends.thread, NULL, do_ack, &sends), 0);
    await_at_least(&g.inside, 1);
    assert_int_equal(pthread_create(&waits.thread, NULL, do_ack_next, &waits),
                     0);
    await_wanted(sends.q);
    world_during(w, DIBS__STEP_RESERVE, NULL, NULL);
    opened_at = dibsx_now();
    atomic_store(&g.open, true);
    pthread_join(sends.thread, NULL);
    pthread_join(waits.thread, NULL);
    IN_TIME(dibsx_now() < dibsx_after_ms(opened_at, 500));
    assert_status(sends.rc, DIBS_OK);
    assert_status(waits.rc, DIBS_OK);
    assert_int_equal(stats(w).acked, 2);
    dibs_item_free(sends.item);
    ack(waits.item);
    dibs_queue_free(sends.q);
}

/* The lane asks by itself. */
static void a_lost_ring_costs_a_second(void **state)
{
    world *w = *state;
    call c = {.q = open_queue(w->one, NULL)};
    dibs_queue *q = open_queue(w->other, NULL);

    push(q);
    ack(reserve(q));
    world_fault(w, DIBS__STEP_BELL, DIBS__FAULT_DROP_BEFORE, -1);
    assert_int_equal(pthread_create(&c.thread, NULL, do_reserve, &c), 0);
    await_waiting(w);
    push(q);
    pthread_join(c.thread, NULL);
    assert_status(c.rc, DIBS_OK);
    IN_TIME(dibs_item_attempt(c.item) == 1);
    ack(c.item);
    dibs_queue_free(q);
    dibs_queue_free(c.q);
}

/* As the keeper does when the ring of `q` has come. */
static void ring(dibs_queue *q)
{
    dibs__notice notice = {.kind = DIBS__NOTICE_ITEMS};

    memcpy(notice.owner, q->address, sizeof(notice.owner));
    q->all->handler.hear(q->cl, &q->all->handler, &notice);
}

/* The first look takes no place. */
static void hang_in_second(void *arg)
{
    gate *g = arg;

    if (atomic_fetch_add(&g->inside, 1) == 0)
        world_during(g->w, g->step, hang_in_second, g);
    else
        while (!atomic_load(&g->open))
            usleep(1000);
}

/* The store has answered "nothing", and another has pushed and rung since. The thread that
 * has the answer comes after the ring to the mutex of the client. */
static void a_ring_that_overtakes_an_answer_counts(void **state)
{
    world *w = *state;
    gate g = {.w = w, .step = DIBS__STEP_RESERVE};
    call c = {.q = open_queue(w->one, NULL)};
    dibs_queue *q = open_queue(w->other, NULL);
    dibsx_nsec rung_at;

    push(q);
    ack(reserve(c.q));
    world_fault(w, DIBS__STEP_BELL, DIBS__FAULT_DROP_BEFORE, -1);
    world_during(w, DIBS__STEP_RESERVE, hang_in_second, &g);
    assert_int_equal(pthread_create(&c.thread, NULL, do_reserve, &c), 0);
    await_at_least(&g.inside, 2);
    pthread_mutex_lock(&w->one->mutex);
    atomic_store(&g.open, true);
    await_waiting(w);
    push(q);
    ring(c.q);
    rung_at = dibsx_now();
    pthread_mutex_unlock(&w->one->mutex);
    pthread_join(c.thread, NULL);
    IN_TIME(dibsx_now() < dibsx_after_ms(rung_at, 500));
    assert_status(c.rc, DIBS_OK);
    ack(c.item);
    dibs_queue_free(q);
    dibs_queue_free(c.q);
}

/* A wait that ended leaves no place, long before the store forgets it by itself: the push
 * after it finds no lane to hand over to. */
static void a_place_is_given_up(void **state)
{
    world *w = *state;
    dibs_queue *q = open_queue(w->one, NULL);
    dibs_queue *other = open_queue(w->other, NULL);
    dibs_item *item = NULL;
    dibsx_nsec end;

    push(q);
    ack(reserve(q));
    CHECK(DIBS_TIMEOUT, dibs_queue_reserve(q, 50, &item, err));
    end = dibsx_after_ms(dibsx_now(), PLACE_MS / 2);
    while (stats(w).waiting > 0) {
        IN_TIME(dibsx_now() < end);
        usleep(1000);
    }
    push(other);
    ack(reserve(other));
    dibs_queue_free(q);
    dibs_queue_free(other);
}

/* What does not fit together fits one by one. */
static void a_push_that_is_too_much_holds_up_nobody(void **state)
{
    world *w = *state;
    dibs_queue *q = open_queue(w->one, NULL);
    call calls[THREADS];
    size_t done = 0;

    set_cap(w, THREADS - 2);
    world_delay(w, DIBS__STEP_PUSH, 30);
    for (int i = 0; i < THREADS; i++) {
        calls[i] = (call){.q = q};
        assert_int_equal(pthread_create(&calls[i].thread, NULL, do_push,
                                        &calls[i]),
                         0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(calls[i].thread, NULL);
        done += calls[i].rc == DIBS_OK;
        if (calls[i].rc != DIBS_OK)
            assert_status(calls[i].rc, DIBS_FULL);
    }
    assert_int_equal(done, THREADS - 2);
    dibs_queue_free(q);
}

/* The first step of it dropped a thousand. */
static void a_purge_that_was_begun_is_not_denied(void **state)
{
    enum { MANY = 1001, PART = 77 };
    world *w = *state;
    dibs_queue *q = open_queue(w->one, NULL);
    dibs_push_item items[PART];
    dibs_error why = {0};
    uint64_t purged = 0;

    for (int i = 0; i < PART; i++)
        items[i] = (dibs_push_item){.data = "x", .len = 1};
    for (int i = 0; i < MANY; i += PART)
        CHECK(DIBS_OK, dibs_queue_push_many(q, items, PART, NULL, NULL, err));
    world_fault(w, DIBS__STEP_PURGE, DIBS__FAULT_FAIL, -1);
    CHECK(DIBS_UNAVAIL,
          dibs_queue_purge(w->one, "q", DIBS_ITEM_READY, &purged, err));
    assert_int_equal(purged, 0);
    world_fault(w, DIBS__STEP_PURGE, DIBS__FAULT_NONE, 1);
    world_fault_then(w, DIBS__STEP_PURGE, DIBS__FAULT_FAIL);
    assert_status(dibs_queue_purge(w->one, "q", DIBS_ITEM_READY, &purged, &why),
                  DIBS_UNKNOWN);
    assert_status(why.status, DIBS_UNKNOWN);
    assert_int_equal(purged, MANY - 1);
    assert_int_equal(stats(w).ready, 1);
    dibs_queue_free(q);
}

/* Neither call waits for a store that does not answer. */
static void a_free_ends_without_the_store(void **state)
{
    world *w = *state;
    dibs_client *cl = world_open(w);
    dibs_queue *q = open_queue(cl, DIBS_QUEUE_OPTS(.ttl_ms = 1000));
    dibs_queue *kept = open_queue(cl, NULL);
    dibs_item *item, *second;

    push(q);
    push(q);
    item = reserve(q);
    second = reserve(kept);
    world_fault(w, DIBS__STEP_LEAVE, DIBS__FAULT_DROP_BEFORE, -1);
    world_fault(w, DIBS__STEP_RESERVE, DIBS__FAULT_DROP_BEFORE, -1);
    dibs_item_free(item);
    dibs_queue_free(q);
    dibs_close(cl);
    assert_status(dibs_item_check(second), DIBS_LOST);
    dibs_item_free(second);
    dibs_queue_free(kept);
}

static void *free_both(void *arg)
{
    dibs_queue **queues = arg;

    dibs_queue_free(queues[0]);
    dibs_queue_free(queues[1]);
    return NULL;
}

/* Thread: that of the close, while it leaves the first lane. */
static void free_meanwhile(void *arg)
{
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, free_both, arg), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

/* A lane that is gone is not left. */
static void a_queue_may_be_freed_while_its_client_is_closed(void **state)
{
    world *w = *state;
    dibs_client *cl = world_open(w);
    dibs_queue *queues[] = {open_queue(cl, NULL), open_queue(cl, NULL)};

    assert_empty(queues[0]);
    assert_empty(queues[1]);
    world_during(w, DIBS__STEP_LEAVE, free_meanwhile, queues);
    dibs_close(cl);
    assert_int_equal(world_seen(w, DIBS__STEP_LEAVE), 1);
}

static void a_child_process_has_no_items(void **state)
{
    world *w = *state;
    dibs_queue *q = open_queue(w->one, NULL);
    dibs_item *item;
    int code = 0;
    pid_t child;

    push(q);
    item = reserve(q);
    child = fork();
    if (child == 0) {
        dibs_item *none = NULL;

        code = dibs_item_check(item) != DIBS_LOST;
        code |= dibs_item_ack(item, NULL) != DIBS_FORKED;
        code |= dibs_queue_reserve(q, 0, &none, NULL) != DIBS_FORKED;
        code |= dibs_queue_push(q, "", 0, NULL, NULL, NULL) != DIBS_FORKED;
        dibs_item_free(item);
        dibs_queue_cancel(q);
        dibs_queue_free(q);
        _exit(code);
    }
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_int_equal(code, 0);
    ack(item);
    dibs_queue_free(q);
}

/* ---- everything fails now and then */

enum { PUSHERS = 3, CONSUMERS = 4, EACH = 40, ALL = PUSHERS * EACH };

static dibs__fault fail_often(dibs__step step, uint64_t count, void *arg)
{
    static const dibs__fault_kind kinds[] = {DIBS__FAULT_FAIL,
                                             DIBS__FAULT_DROP_BEFORE,
                                             DIBS__FAULT_DROP_AFTER};
    dibsx_prng prng = {.state = count * 977 + (uint64_t)step};
    uint64_t draw = dibsx_prng_next(&prng) % 12;

    (void)arg;
    if ((step != DIBS__STEP_PUSH && step != DIBS__STEP_RESERVE &&
         step != DIBS__STEP_TEND && step != DIBS__STEP_BELL) ||
        draw > 2)
        return (dibs__fault){.kind = DIBS__FAULT_NONE};
    return (dibs__fault){.kind = kinds[draw]};
}

typedef struct trial {
    dibs_queue *in, *out;
    atomic_int part;
    atomic_int made, unsure; /* pushes */
    atomic_int acked[ALL];   /* OK, of each */
    atomic_bool over;
} trial;

static void *push_all(void *arg)
{
    trial *t = arg;
    int from = atomic_fetch_add(&t->part, 1) * EACH;

    for (int i = from; i < from + EACH; i++) {
        dibs_status rc = DIBS_UNAVAIL;

        while (rc == DIBS_UNAVAIL)
            rc = dibs_queue_push(t->in, &i, sizeof(i), NULL, NULL, NULL);
        if (pace_explains(rc))
            MISSED("a push is %s", dibs_status_name(rc));
        atomic_fetch_add(rc == DIBS_OK ? &t->made : &t->unsure, 1);
    }
    return NULL;
}

static void *consume_all(void *arg)
{
    trial *t = arg;

    while (!atomic_load(&t->over)) {
        dibs_item *item = NULL;
        dibs_status rc = DIBS_UNAVAIL;
        int number;

        if (dibs_queue_reserve(t->out, 20, &item, NULL) != DIBS_OK)
            continue;
        memcpy(&number, dibs_item_data(item, NULL), sizeof(number));
        while (rc == DIBS_UNAVAIL)
            rc = dibs_item_ack(item, NULL);
        if (rc == DIBS_UNKNOWN) /* It may be acked, and nobody is told. */
            MISSED("an ack is %s", dibs_status_name(rc));
        if (rc == DIBS_OK)
            atomic_fetch_add(&t->acked[number], 1);
        dibs_item_free(item);
    }
    return NULL;
}

/* No item is lost, none is made twice, and no ack is told twice. */
static void items_survive_all_of_it(void **state)
{
    world *w = *state;
    trial t = {.in = open_queue(w->one, NULL),
               .out = open_queue(w->other, DIBS_QUEUE_OPTS(.prefetch = 2))};
    pthread_t threads[PUSHERS + CONSUMERS];
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), pace_ms(60000));
    int told = 0;

    dibs__fault_set(fail_often, NULL);
    for (int i = 0; i < PUSHERS + CONSUMERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL,
                                        i < PUSHERS ? push_all : consume_all,
                                        &t),
                         0);
    for (int i = 0; i < PUSHERS; i++)
        pthread_join(threads[i], NULL);
    while (stats(w).acked < stats(w).pushed) {
        IN_TIME(dibsx_now() < end);
        usleep(1000);
    }
    atomic_store(&t.over, true);
    for (int i = PUSHERS; i < PUSHERS + CONSUMERS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&t.made), ALL);
    assert_int_equal(atomic_load(&t.unsure), 0);
    assert_int_equal(stats(w).pushed, ALL);
    for (int i = 0; i < ALL; i++) {
        assert_true(atomic_load(&t.acked[i]) <= 1);
        told += atomic_load(&t.acked[i]);
    }
    assert_int_equal(told, ALL);
    dibs_queue_free(t.in);
    dibs_queue_free(t.out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(a_push_without_an_answer_makes_one_item),
        WORLD_TEST(an_ack_without_an_answer_is_sent_again),
        WORLD_TEST(a_reserve_goes_on_while_the_store_is_away),
        WORLD_TEST(due_after_reconnect),
        WORLD_TEST(a_client_cut_off_learns_of_its_loss),
        WORLD_TEST(a_loss_is_told_when_there_is_a_thread),
        WORLD_TEST(requests_that_hang_delay_no_loss),
        WORLD_TEST(a_callback_delays_those_of_its_queue_alone),
        WORLD_TEST(a_request_ends_with_its_lane),
        WORLD_TEST(an_item_may_be_freed_while_it_is_extended),
        WORLD_TEST(a_shorter_limit_holds_without_its_answer),
        WORLD_TEST(a_limit_below_the_drift_is_over_at_once),
        WORLD_TEST(an_ack_sends_the_extension_before_it),
        WORLD_TEST(a_loss_is_told_after_an_extension_without_an_answer),
        WORLD_TEST(a_callback_learns_what_became_of_an_ack),
        WORLD_TEST(threads_share_requests),
        WORLD_TEST(a_thread_that_acks_and_waits_sends_the_next),
        WORLD_TEST(a_lost_ring_costs_a_second),
        WORLD_TEST(a_ring_that_overtakes_an_answer_counts),
        WORLD_TEST(a_place_is_given_up),
        WORLD_TEST(a_push_that_is_too_much_holds_up_nobody),
        WORLD_TEST(a_purge_that_was_begun_is_not_denied),
        WORLD_TEST(a_free_ends_without_the_store),
        WORLD_TEST(a_queue_may_be_freed_while_its_client_is_closed),
        WORLD_TEST(a_child_process_has_no_items),
        WORLD_TEST(items_survive_all_of_it),
    };

    return cmocka_run_group_tests_name("client: queues", tests, NULL, NULL);
}
