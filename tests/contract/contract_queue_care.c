/* contract_queue_care.c - queues: lanes that end, attempts, dead letters, work stealing,
 * settings, and the steps of an operator. */
/* SPDX-License-Identifier: MIT */
#include "contract_queue.h"

#include <stdlib.h>

static size_t redrive(contract *t, uint64_t id, size_t max)
{
    dibs__store *st = t->st[0];
    size_t redriven = 0;

    CHECK(DIBS_OK,
          st->ops->queue_admin->redrive(st, t->name, id, max, contract_soon(),
                                        &redriven, err));
    return redriven;
}

static dibs_status remove_it(contract *t)
{
    dibs__store *st = t->st[0];
    dibs_error err = {0};

    return st->ops->queue_admin->remove(st, t->name, contract_soon(), &err);
}

static dibs__tend tend(lane *ln, int64_t span_ms)
{
    dibs__store *st = ln->t->st[ln->handle];
    dibs__tend item = {.queue = ln->ask.queue,
                       .lane = ln->ask.lane,
                       .span_ms = span_ms};

    CHECK(DIBS_OK, st->ops->queue->tend(st, &item, 1, contract_soon(), err));
    return item;
}

static void ack(lane *ln, dibs__token token)
{
    assert_status(lane_end(ln, DIBS__ITEM_ACK, token, 0, NULL), DIBS_OK);
}

static void nack(lane *ln, dibs__token token, const char *reason)
{
    assert_status(lane_end(ln, DIBS__ITEM_NACK, token, 0, reason), DIBS_OK);
}

/* ---- lanes that end */

/* Without a restart of anybody, and what it had not begun is not charged. */
static void dead_client_items_back_in_one_span(void **state)
{
    contract *t = *state;
    pusher p = queue_pusher(t, 0);
    lane dead = queue_lane(t, 0), other = queue_lane(t, 1);

    push_ok(&p, "a");
    push_ok(&p, "b");
    push_ok(&p, "c");
    lane_open(&dead);
    lane_open(&other);
    dead.ask.span_ms = contract_brief_ms(60);
    dead.ask.hands = 1;
    assert_status(lane_next(&dead, 3, false), DIBS_OK);
    assert_int_equal(dead.count, 3);
    queue_sleep(dead.ask.span_ms);
    assert_status(lane_next(&other, 3, false), DIBS_OK);
    assert_int_equal(other.count, 3);
    assert_string_equal(other.got[0].data, "a");
    assert_int_equal(other.got[0].token.attempt, 2);
    assert_int_equal(other.got[0].lost, 1);
    /* Prefetched innocents live. */
    assert_int_equal(other.got[1].token.attempt, 1);
    assert_int_equal(other.got[2].lost, 0);
}

static void what_was_not_heard_of_is_not_charged(void **state)
{
    contract *t = *state;
    pusher p = queue_pusher(t, 0);
    lane dead = queue_lane(t, 0), other = queue_lane(t, 1);

    lane_open(&dead);
    lane_open(&other);
    dead.ask.span_ms = contract_brief_ms(60);
    assert_status(lane_next(&dead, 1, true), DIBS_OK);
    push_ok(&p, "handed over");
    queue_sleep(dead.ask.span_ms);
    assert_status(lane_next(&other, 1, false), DIBS_OK);
    assert_int_equal(other.count, 1);
    assert_int_equal(other.got[0].token.attempt, 1);
    assert_int_equal(other.got[0].lost, 0);
}

static void a_lane_that_leaves_returns_uncounted(void **state)
{
    contract *t = *state;
    pusher p = queue_pusher(t, 0);
    lane a = queue_lane(t, 0), b = queue_lane(t, 1);
    taken got;

    push_ok(&p, "job");
    lane_open(&a);
    lane_open(&b);
    got = lane_take(&a);
    assert_status(lane_next(&b, 1, true), DIBS_OK);
    lane_leave(&a);
    lane_leave(&a);
    /* The lane that waits has it in the same step. */
    assert_int_equal(queue_stats(t).out, 1);
    assert_status(lane_next(&b, 0, false), DIBS_OK);
    assert_int_equal(b.count, 1);
    assert_int_equal(b.got[0].token.attempt, 1);
    assert_true(b.got[0].token.fence > got.token.fence);
    lane_settle(&a, DIBS__ITEM_ACK, got.token, 0, NULL);
    assert_status(lane_next(&a, 0, false), DIBS_LOST);
}

/* However a lane ends, what it had comes back: what is out is out to a lane that lives. */
static void no_item_is_out_without_a_lane(void **state)
{
    contract *t = *state;
    pusher p = queue_pusher(t, 0);
    lane gone = queue_lane(t, 0), dead = queue_lane(t, 0);
    lane skips = queue_lane(t, 1), waits = queue_lane(t, 1);
    lane lives = queue_lane(t, 2);
    lane *all[] = {&gone, &dead, &skips, &waits, &lives};
    enum { LANES = sizeof(all) / sizeof(all[0]) };
    dibs__queue_stats st;

    for (size_t i = 0; i < LANES; i++)
        lane_open(all[i]);
    for (size_t i = 0; i < LANES - 1; i++)
        push_ok(&p, "job");
    (void)lane_take(&gone);
    (void)lane_take(&skips);
    (void)lane_take(&lives);
    waits.ask.span_ms = dead.ask.span_ms = contract_brief_ms(60);
    IN_TIME(lane_next(&dead, 1, false) == DIBS_OK);
    assert_status(lane_next(&waits, 1, true), DIBS_OK);
    push_ok(&p, "job");
    IN_TIME(queue_stats(t).out == LANES);
    lane_leave(&gone);
    /* A number that the store has not seen the one before of: it lost something. */
    skips.ask.number++;
    assert_status(lane_next(&skips, 0, false), DIBS_LOST);
    /* It never heard of what it was handed, and the other died at its work. */
    queue_sleep(dead.ask.span_ms);
    assert_status(lane_next(&lives, 0, false), DIBS_OK);
    st = queue_stats(t);
    IN_TIME(st.lanes == 1);
    assert_int_equal(st.out, 1);
    assert_int_equal(st.ready, LANES - 1);
    lane_leave(&lives);
    st = queue_stats(t);
    assert_int_equal(st.out, 0);
    assert_int_equal(st.ready, LANES);
}

static void a_lane_that_is_tended_lives(void **state)
{
    contract *t = *state;
    pusher p = queue_pusher(t, 0);
    lane ln = queue_lane(t, 0);
    dibs__tend item;
    taken got;

    push_ok(&p, "a");
    push_ok(&p, "b");
    lane_open(&ln);
    ln.ask.span_ms = contract_brief_ms(100);
    assert_status(lane_next(&ln, 1, false), DIBS_OK);
    got = ln.got[0];
    item = tend(&ln, LONG_MS);
    IN_TIME(item.rc == DIBS_OK);
    IN_TIME(item.left_ms > LONG_MS / 2);
    assert_true(item.ready);
    queue_sleep(ln.ask.span_ms);
    /* A request with a short span does not shorten a lane that has something. */
    ln.ask.span_ms = 1;
    assert_status(lane_next(&ln, 0, false), DIBS_OK);
    queue_sleep(1);
    item = tend(&ln, 1);
    assert_status(item.rc, DIBS_OK);
    IN_TIME(item.left_ms > LONG_MS / 2);
    ack(&ln, got.token);
    queue_sleep(1);
    item = tend(&ln, 1);
    assert_status(item.rc, DIBS_LOST);
    assert_false(item.ready);
}

/* ---- attempts */

static void an_item_is_dead_after_its_tries(void **state)
{
    contract *t = *state;
    pusher p = queue_pusher(t, 0);
    lane ln = queue_lane(t, 0);
    taken got;
    queue_views dead;

    queue_set(t, DIBS__SET_TRIES, (dibs__queue_conf){.tries = 3});
    p.item.tries = 2;
    p.item.dedup = "poison";
    push_ok(&p, "two tries");
    lane_open(&ln);
    got = lane_take(&ln);
    nack(&ln, got.token, "first");
    got = lane_take(&ln);
    assert_int_equal(queue_stats(t).dead, 0);
    nack(&ln, got.token, "second");
    assert_int_equal(queue_stats(t).dead, 1);
    assert_int_equal(queue_stats(t).ready, 0);
    dead = queue_peek(t, DIBS__PLACE_DEAD, 0, 10);
    assert_int_equal(dead.count, 1);
    assert_string_equal(dead.item[0].reason, "second");
    assert_int_equal(dead.item[0].attempts, 2);
    assert_string_equal(dead.data[0], "two tries");
    /* Dead items free their id. */
    push_ok(&p, "anew");
    assert_false(p.item.duplicate);
    got = lane_take(&ln);
    assert_status(lane_end(&ln, DIBS__ITEM_DEAD, got.token, 0, "hopeless"),
                  DIBS_OK);
    dead = queue_peek(t, DIBS__PLACE_DEAD, 1, 10);
    assert_int_equal(dead.count, 1);
    assert_string_equal(dead.item[0].reason, "hopeless");
    assert_int_equal(queue_stats(t).died, 2);
}

static void unbegun_attempts_do_not_count(void **state)
{
    contract *t = *state;
    pusher p = queue_pusher(t, 0);
    lane ln = queue_lane(t, 0);

    p.item.tries = 1;
    push_ok(&p, "job");
    lane_open(&ln);
    for (int i = 0; i < 3; i++) {
        taken got = lane_take(&ln);

        assert_int_equal(got.token.attempt, 1);
        assert_status(lane_end(&ln, DIBS__ITEM_UNBEGUN, got.token, 0, NULL),
                      DIBS_OK);
    }
    assert_int_equal(queue_stats(t).dead, 0);
}

/* The second loss is delayed, so that a poison does not run through a fleet. */
static void poison_dies_after_lost_max(void **state)
{
    contract *t = *state;
    pusher p = queue_pusher(t, 0);
    lane ln = queue_lane(t, 0), last = queue_lane(t, 0);
    dibs__queue_stats st;
    queue_views dead;

    queue_set(t, DIBS__SET_LOST_MAX, (dibs__queue_conf){.lost_max = 2});
    push_ok(&p, "poison");
    for (int i = 0; i < 2; i++) {
        ln = queue_lane(t, 0);
        lane_open(&ln);
        lane_take(&ln);
        /* A gap ends a lane at once, as if it had died. */
        ln.ask.number++;
        assert_status(lane_next(&ln, 0, false), DIBS_LOST);
    }
    assert_int_equal(queue_stats(t).dead, 1);
    dead = queue_peek(t, DIBS__PLACE_DEAD, 0, 10);
    assert_int_equal(dead.item[0].lost, 2);
    assert_true(dead.item[0].reason[0] != '\0');
    /* With tries left and fewer losses it is not dead. */
    queue_set(t, DIBS__SET_LOST_MAX, (dibs__queue_conf){.lost_max = 3});
    push_ok(&p, "survivor");
    for (int i = 0; i < 2; i++) {
        ln = queue_lane(t, 0);
        lane_open(&ln);
        lane_take(&ln);
        ln.ask.number++;
        assert_status(lane_next(&ln, 0, false), DIBS_LOST);
    }
    st = queue_stats(t);
    assert_int_equal(st.dead, 1);
    assert_int_equal(st.ready + st.later, 1);
    IN_TIME(st.later == 1);
    lane_open(&last);
    assert_status(lane_next(&last, 1, false), DIBS_OK);
    IN_TIME(last.count == 0);
    IN_TIME(last.ask.due_ms > 0 && last.ask.due_ms <= 2000);
}

static void hung_handler_frees_its_item_at_the_limit(void **state)
{
    contract *t = *state;
    pusher p = queue_pusher(t, 0);
    lane hung = queue_lane(t, 0), other = queue_lane(t, 1);
    taken got, again;

    push_ok(&p, "job");
    lane_open(&hung);
    lane_open(&other);
    hung.ask.limit_ms = LONG_MS;
    got = lane_take(&hung);
    IN_TIME(got.limit_ms > LONG_MS / 2);
    assert_status(lane_end(&hung, DIBS__ITEM_EXTEND, got.token, 1, NULL),
                  DIBS_OK);
    queue_sleep(1);
    again = lane_take(&other);
    assert_int_equal(again.token.attempt, 2);
    assert_status(lane_end(&hung, DIBS__ITEM_ACK, got.token, 0, NULL),
                  DIBS_LOST);
    assert_status(lane_end(&hung, DIBS__ITEM_EXTEND, got.token, 1, NULL),
                  DIBS_LOST);
    ack(&other, again.token);
}

/* A step that is refused may have ended the time of others all the same. */
static void a_refused_request_loses_no_count(void **state)
{
    contract *t = *state;
    pusher p = queue_pusher(t, 0);
    lane hung = queue_lane(t, 0), other = queue_lane(t, 1);
    dibs__queue_stats st;
    taken got;

    p.item.tries = 1;
    push_ok(&p, "job");
    lane_open(&hung);
    lane_open(&other);
    assert_status(lane_next(&other, 0, false), DIBS_OK);
    got = lane_take(&hung);
    assert_status(lane_end(&hung, DIBS__ITEM_EXTEND, got.token, 1, NULL),
                  DIBS_OK);
    queue_sleep(1);
    lane_settle(&other, DIBS__ITEM_ACK, got.token, 0, NULL);
    assert_status(lane_send(&other), DIBS_INVALID);
    st = queue_stats(t);
    assert_int_equal(st.ready + st.later + st.out, 0);
    assert_int_equal(st.dead, 1);
    assert_int_equal(st.died, 1);
    assert_int_equal(st.lost, 1);
}

static void delay_longer_than_ttl_runs_once(void **state)
{
    contract *t = *state;
    pusher p = queue_pusher(t, 0);
    lane ln = queue_lane(t, 0), other = queue_lane(t, 0);
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), CONTRACT_BOUND_MS);
    int64_t span_ms = contract_brief_ms(20);

    p.item.delay_ms = 2 * span_ms;
    push_ok(&p, "job");
    ln.ask.span_ms = span_ms;
    lane_open(&ln);
    queue_sleep(span_ms);
    lane_open(&other);
    do {
        IN_TIME(dibsx_now() < end);
        contract_sleep_until(dibsx_now() + 5 * DIBSX_MS);
        assert_status(lane_next(&other, 1, false), DIBS_OK);
    } while (other.count == 0);
    assert_int_equal(other.got[0].token.attempt, 1);
    ack(&other, other.got[0].token);
    assert_int_equal(queue_stats(t).delivered, 1);
}

static void dead_cap_drops_whole_items(void **state)
{
    contract *t = *state;
    pusher p = queue_pusher(t, 0);
    lane ln = queue_lane(t, 0);
    queue_views dead;

    queue_set(t, DIBS__SET_DEADS | DIBS__SET_TRIES,
              (dibs__queue_conf){.deads = 2, .tries = 1});
    lane_open(&ln);
    for (int i = 0; i < 3; i++) {
        char text[2] = {(char)('a' + i), '\0'};

        push_ok(&p, text);
        nack(&ln, lane_take(&ln).token, text);
    }
    dead = queue_peek(t, DIBS__PLACE_DEAD, 0, 10);
    assert_int_equal(dead.count, 2);
    assert_string_equal(dead.data[0], "b");
    assert_int_equal(queue_stats(t).dead, 2);
    assert_int_equal(queue_stats(t).dropped, 1);
}

/* After a bound was lowered: to drop them all at once would hold up others. */
static void a_death_drops_a_part_of_the_dead(void **state)
{
    enum { MANY = 100, EACH = 64, BOUND = 10 };
    contract *t = *state;
    pusher p = queue_pusher(t, 0);
    lane ln = queue_lane(t, 0);
    dibs__push_item items[MANY];

    for (int i = 0; i < MANY; i++)
        items[i] = (dibs__push_item){.to = "",
                                     .dedup = "",
                                     .data = i == MANY - 1 ? "b" : "a",
                                     .len = 1};
    p.push.items = items;
    p.push.count = MANY;
    p.push.number = 1;
    assert_status(pusher_send(&p), DIBS_OK);
    lane_open(&ln);
    assert_status(lane_next(&ln, MANY, false), DIBS_OK);
    assert_int_equal(ln.count, MANY);
    for (int i = 0; i < MANY; i++)
        lane_settle(&ln, DIBS__ITEM_DEAD, ln.got[i].token, 0, NULL);
    assert_status(lane_next(&ln, 0, false), DIBS_OK);
    queue_set(t, DIBS__SET_DEADS, (dibs__queue_conf){.deads = BOUND});
    assert_int_equal(queue_stats(t).dead, MANY);
    p.push.items = NULL;
    for (int i = 1; i <= 2; i++) {
        push_ok(&p, "c");
        assert_status(lane_end(&ln, DIBS__ITEM_DEAD, lane_take(&ln).token, 0,
                               NULL),
                      DIBS_OK);
        assert_int_equal(queue_stats(t).dead, i == 1 ? MANY + 1 - EACH : BOUND);
    }
    assert_int_equal(queue_stats(t).dropped, MANY + 2 - BOUND);
    assert_string_equal(queue_peek(t, DIBS__PLACE_DEAD, BOUND - 3, 1).data[0],
                        "b");
}

static void redrive_makes_new_items_at_the_end(void **state)
{
    contract *t = *state;
    pusher p = queue_pusher(t, 0);
    lane ln = queue_lane(t, 0);
    uint64_t first, second;
    taken got;

    p.item.tries = 1;
    first = push_ok(&p, "first");
    second = push_ok(&p, "second");
    lane_open(&ln);
    nack(&ln, lane_take(&ln).token, NULL);
    nack(&ln, lane_take(&ln).token, NULL);
    push_ok(&p, "third");
    assert_int_equal(redrive(t, second, 10), 1);
    assert_int_equal(redrive(t, second, 10), 0);
    assert_int_equal(redrive(t, 0, 10), 1);
    assert_int_equal(queue_stats(t).dead, 0);
    assert_string_equal(lane_take(&ln).data, "third");
    got = lane_take(&ln);
    assert_string_equal(got.data, "second");
    assert_true(got.token.id > first);
    assert_int_equal(got.token.attempt, 1);
    assert_string_equal(lane_take(&ln).data, "first");
}

/* ---- settings */

static void pause_keeps_items(void **state)
{
    contract *t = *state;
    pusher p = queue_pusher(t, 0);
    lane ln = queue_lane(t, 0), waits = queue_lane(t, 1);
    taken got;

    push_ok(&p, "a");
    lane_open(&ln);
    lane_open(&waits);
    got = lane_take(&ln);
    assert_status(lane_next(&waits, 1, true), DIBS_OK);
    queue_set(t, DIBS__SET_PAUSED, (dibs__queue_conf){.paused = true});
    push_ok(&p, "b");
    ack(&ln, got.token);
    assert_status(lane_next(&ln, 1, false), DIBS_OK);
    assert_int_equal(ln.count, 0);
    assert_int_equal(queue_stats(t).ready, 1);
    assert_int_equal(queue_stats(t).waiting, 1);
    queue_set(t, DIBS__SET_PAUSED, (dibs__queue_conf){.paused = false});
    /* Resumed: the lane that waits has it at once. */
    assert_int_equal(queue_stats(t).out, 1);
    assert_status(lane_next(&waits, 0, false), DIBS_OK);
    assert_int_equal(waits.count, 1);
}

static void a_serial_queue_delivers_one_at_a_time(void **state)
{
    contract *t = *state;
    pusher p = queue_pusher(t, 0);
    lane a = queue_lane(t, 0), b = queue_lane(t, 1);
    taken got;

    queue_set(t, DIBS__SET_SERIAL, (dibs__queue_conf){.serial = true});
    push_ok(&p, "a");
    push_ok(&p, "b");
    lane_open(&a);
    lane_open(&b);
    assert_status(lane_next(&a, 2, false), DIBS_OK);
    assert_int_equal(a.count, 1);
    got = a.got[0];
    assert_status(lane_next(&b, 1, false), DIBS_OK);
    assert_int_equal(b.count, 0);
    assert_status(lane_end(&a, DIBS__ITEM_NACK, got.token, LONG_MS, NULL),
                  DIBS_OK);
    assert_status(lane_next(&b, 1, false), DIBS_OK);
    assert_int_equal(b.count, 0);
    assert_int_equal(queue_purge(t, DIBS__PLACE_LATER, 10), 1);
    assert_string_equal(lane_take(&b).data, "b");
}

/* What a delayed retry held up does not go before it in the end. */
static void a_serial_queue_keeps_its_order_over_a_delay(void **state)
{
    contract *t = *state;
    pusher p = queue_pusher(t, 0);
    lane a = queue_lane(t, 0);

    queue_set(t, DIBS__SET_SERIAL, (dibs__queue_conf){.serial = true});
    push_ok(&p, "a");
    push_ok(&p, "b");
    lane_open(&a);
    assert_status(lane_end(&a, DIBS__ITEM_NACK, lane_take(&a).token, 10, NULL),
                  DIBS_OK);
    queue_sleep(10);
    ack(&a, lane_take(&a).token);
    assert_string_equal(lane_take(&a).data, "b");
    assert_int_equal(queue_stats(t).acked, 1);
}

/* ---- work stealing */

static lane worker(contract *t, size_t handle, const char *as)
{
    lane ln = queue_lane(t, handle);

    ln.ask.as = as;
    lane_open(&ln);
    return ln;
}

static void a_worker_takes_its_own_first(void **state)
{
    contract *t = *state;
    pusher p = queue_pusher(t, 0);
    lane anna = worker(t, 0, "anna"), bert = worker(t, 1, "bert");

    p.item.to = "bert";
    push_ok(&p, "for bert");
    p.item.to = "anna";
    push_ok(&p, "for anna");
    p.item.to = "";
    push_ok(&p, "for all");
    assert_string_equal(lane_take(&anna).data, "for anna");
    assert_string_equal(lane_take(&anna).data, "for all");
    /* Then from the worker that has most. */
    assert_string_equal(lane_take(&anna).data, "for bert");
    assert_status(lane_next(&bert, 1, false), DIBS_OK);
    assert_int_equal(bert.count, 0);
}

/* Own and common items have one order. */
static void an_address_is_not_a_priority(void **state)
{
    contract *t = *state;
    pusher p = queue_pusher(t, 0);
    lane anna = worker(t, 0, "anna");

    push_ok(&p, "for all");
    p.item.to = "anna";
    push_ok(&p, "for anna");
    assert_string_equal(lane_take(&anna).data, "for all");
    assert_string_equal(lane_take(&anna).data, "for anna");
}

static void half_of_what_another_has_is_stolen_at_once(void **state)
{
    contract *t = *state;
    pusher p = queue_pusher(t, 0);
    lane anna = worker(t, 0, "anna"), bert = worker(t, 1, "bert");

    p.item.to = "bert";
    for (int i = 0; i < 5; i++)
        push_ok(&p, "job");
    assert_status(lane_next(&anna, 10, false), DIBS_OK);
    assert_int_equal(anna.count, 3);
    assert_status(lane_next(&anna, 10, false), DIBS_OK);
    assert_int_equal(anna.count, 1);
    assert_status(lane_next(&bert, 10, false), DIBS_OK);
    assert_int_equal(bert.count, 1);
}

static void the_items_of_a_dead_worker_have_their_old_places(void **state)
{
    contract *t = *state;
    pusher p = queue_pusher(t, 0);
    lane anna = worker(t, 0, "anna"), bert = worker(t, 1, "bert");

    p.item.to = "bert";
    push_ok(&p, "for bert");
    p.item.to = "";
    push_ok(&p, "for all");
    p.item.to = "nobody";
    push_ok(&p, "for nobody");
    lane_leave(&bert);
    assert_string_equal(lane_take(&anna).data, "for bert");
    assert_string_equal(lane_take(&anna).data, "for all");
    assert_string_equal(lane_take(&anna).data, "for nobody");
}

enum { LOAD = 2000, LOAD_PART = 100 };

/* Items "0" to "1999", for the workers in turn. */
static void push_load(pusher *p, const char *const *workers, size_t count)
{
    static char texts[LOAD][8];
    dibs__push_item items[LOAD_PART];

    for (int from = 0; from < LOAD; from += LOAD_PART) {
        for (int i = 0; i < LOAD_PART; i++) {
            char *text = texts[from + i];

            snprintf(text, sizeof(texts[0]), "%d", from + i);
            items[i] = p->item;
            items[i].data = text;
            items[i].len = strlen(text);
            items[i].to = workers[(size_t)(from + i) % count];
        }
        p->push.items = items;
        p->push.count = LOAD_PART;
        p->push.number++;
        assert_status(pusher_send(p), DIBS_OK);
    }
}

/* More than some steps move, in whatever order they look at the workers. */
static void all_items_of_dead_workers_have_their_old_places(void **state)
{
    static const char *const both[] = {"bert", "carl"};
    contract *t = *state;
    pusher p = queue_pusher(t, 0);
    lane anna = worker(t, 0, "anna");
    lane bert = queue_lane(t, 1), carl = queue_lane(t, 1);
    size_t seen = 0;

    bert.ask.as = "bert";
    carl.ask.as = "carl";
    bert.ask.lane = carl.ask.lane - 1;
    lane_open(&bert);
    lane_open(&carl);
    push_load(&p, both, 2);
    lane_leave(&bert);
    lane_leave(&carl);
    while (seen < LOAD) {
        assert_status(lane_next(&anna, DIBS__QUEUE_BATCH, false), DIBS_OK);
        assert_true(anna.count > 0);
        for (size_t i = 0; i < anna.count; i++, seen++)
            assert_int_equal(strtol(anna.got[i].data, NULL, 10), seen);
    }
    assert_int_equal(queue_stats(t).lanes, 1);
}

/* The first request of its lane comes once more: whatever the answer, what it had is there
 * for all. */
static void a_dead_worker_may_ask_again(void **state)
{
    static const char *const one[] = {"bert"};
    contract *t = *state;
    pusher p = queue_pusher(t, 0);
    lane anna = worker(t, 0, "anna"), bert = queue_lane(t, 1);
    size_t seen = 0;
    dibs_status rc;

    bert.ask.as = "bert";
    lane_open(&bert);
    push_load(&p, one, 1);
    lane_leave(&bert);
    bert.ask.number = 1;
    bert.ask.want = 0;
    rc = lane_send(&bert);
    assert_true(rc == DIBS_OK || rc == DIBS_LOST);
    do {
        assert_status(lane_next(&anna, DIBS__QUEUE_BATCH, false), DIBS_OK);
        seen += anna.count;
    } while (anna.count > 0);
    assert_int_equal(seen, LOAD);
}

static void a_push_goes_to_the_worker_that_waits_for_it(void **state)
{
    contract *t = *state;
    pusher p = queue_pusher(t, 0);
    lane anna = worker(t, 0, "anna"), bert = worker(t, 1, "bert");

    assert_status(lane_next(&anna, 1, true), DIBS_OK);
    queue_sleep(1);
    assert_status(lane_next(&bert, 1, true), DIBS_OK);
    p.item.to = "anna";
    push_ok(&p, "for anna");
    assert_status(lane_next(&bert, 1, true), DIBS_OK);
    assert_int_equal(bert.count, 0);
    assert_status(lane_next(&anna, 0, false), DIBS_OK);
    assert_int_equal(anna.count, 1);
    /* Its own worker does not wait: nothing is ready while another does. */
    push_ok(&p, "for anna");
    assert_status(lane_next(&bert, 0, false), DIBS_OK);
    assert_int_equal(bert.count, 1);
}

/* ---- operators */

static void purge_leaves_what_is_out(void **state)
{
    contract *t = *state;
    pusher p = queue_pusher(t, 0);
    lane ln = queue_lane(t, 0);
    taken got;

    p.item.dedup = "a";
    push_ok(&p, "a");
    lane_open(&ln);
    got = lane_take(&ln);
    p.item.dedup = "b";
    push_ok(&p, "b");
    p.item.dedup = "c";
    p.item.delay_ms = LONG_MS;
    push_ok(&p, "c");
    assert_int_equal(queue_purge(t, DIBS__PLACE_READY | DIBS__PLACE_LATER, 1),
                     1);
    assert_int_equal(queue_purge(t, DIBS__PLACE_READY | DIBS__PLACE_LATER, 10),
                     1);
    assert_int_equal(queue_stats(t).out, 1);
    assert_int_equal(queue_stats(t).purged, 2);
    /* Purged items free their ids; removal frees only its own. */
    p.item.delay_ms = 0;
    push_ok(&p, "c again");
    assert_false(p.item.duplicate);
    p.item.dedup = "a";
    push_ok(&p, "a again");
    assert_true(p.item.duplicate);
    assert_status(lane_end(&ln, DIBS__ITEM_EXTEND, got.token, 0, NULL),
                  DIBS_OK);
    assert_int_equal(queue_purge(t, DIBS__PLACE_OUT, 10), 1);
    assert_status(lane_end(&ln, DIBS__ITEM_ACK, got.token, 0, NULL), DIBS_LOST);
}

static void peek_shows_each_place(void **state)
{
    contract *t = *state;
    pusher p = queue_pusher(t, 0);
    lane ln = queue_lane(t, 0);
    taken got;
    queue_views all;

    push_ok(&p, "out");
    lane_open(&ln);
    got = lane_take(&ln);
    push_ok(&p, "second");
    p.item.priority = 1;
    p.item.dedup = "key";
    push_ok(&p, "first");
    p.item.dedup = "";
    p.item.delay_ms = LONG_MS;
    push_ok(&p, "later");
    all = queue_peek(t, DIBS__PLACE_READY, 0, 10);
    assert_int_equal(all.count, 2);
    assert_string_equal(all.data[0], "first");
    assert_string_equal(all.item[0].dedup, "key");
    assert_string_equal(all.data[1], "second");
    all = queue_peek(t, DIBS__PLACE_READY, 1, 1);
    assert_int_equal(all.count, 1);
    assert_string_equal(all.data[0], "second");
    all = queue_peek(t, DIBS__PLACE_LATER, 0, 10);
    assert_int_equal(all.count, 1);
    IN_TIME(all.item[0].due_ms > LONG_MS / 2);
    all = queue_peek(t, DIBS__PLACE_OUT, 0, 10);
    assert_int_equal(all.count, 1);
    assert_int_equal(all.item[0].lane, ln.ask.lane);
    assert_int_equal(all.item[0].fence, got.token.fence);
    assert_int_equal(queue_peek(t, DIBS__PLACE_DEAD, 0, 10).count, 0);
    assert_int_equal(queue_stats(t).ready, 2);
}

static void stats_count_what_was_done(void **state)
{
    contract *t = *state;
    pusher p = queue_pusher(t, 0);
    lane ln = queue_lane(t, 0);
    dibs__queue_stats stats;

    push_ok(&p, "a");
    push_ok(&p, "b");
    lane_open(&ln);
    ack(&ln, lane_take(&ln).token);
    nack(&ln, lane_take(&ln).token, NULL);
    queue_sleep(2);
    stats = queue_stats(t);
    assert_int_equal(stats.pushed, 2);
    assert_int_equal(stats.delivered, 2);
    assert_int_equal(stats.acked, 1);
    assert_int_equal(stats.nacked, 1);
    assert_int_equal(stats.ready, 1);
    assert_int_equal(stats.lanes, 1);
    assert_true(stats.oldest_ms >= 1);
    assert_int_equal(stats.conf.tries, DIBS__QUEUE_TRIES);
    assert_int_equal(stats.conf.cap, DIBS__QUEUE_CAP);
}

static void a_queue_is_removed_when_it_is_empty(void **state)
{
    contract *t = *state;
    dibs__store *st = t->st[0];
    dibs__queue_stats stats;
    pusher p = queue_pusher(t, 0);
    lane ln = queue_lane(t, 0);
    size_t purged;

    CHECK(DIBS_NOTFOUND,
          st->ops->queue_admin->stats(st, t->name, contract_soon(), &stats,
                                      err));
    assert_status(remove_it(t), DIBS_NOTFOUND);
    CHECK(DIBS_NOTFOUND,
          st->ops->queue_admin->purge(st, t->name, DIBS__PLACE_READY, 1,
                                      contract_soon(), &purged, err));
    push_ok(&p, "a");
    assert_status(remove_it(t), DIBS_BUSY);
    lane_open(&ln);
    ack(&ln, lane_take(&ln).token);
    assert_status(remove_it(t), DIBS_BUSY);
    lane_leave(&ln);
    assert_status(remove_it(t), DIBS_OK);
    assert_status(remove_it(t), DIBS_NOTFOUND);
}

static void only_own_queue_is_swept(void **state)
{
    contract *t = *state;
    pusher p = queue_pusher(t, 0), q = queue_pusher(t, 0);
    lane here = queue_lane(t, 0), there = queue_lane(t, 0);
    char other[64];
    taken got;

    contract_name(other, sizeof(other), "other");
    q.push.queue = there.ask.queue = other;
    there.ask.lane = here.ask.lane;
    push_ok(&p, "here");
    push_ok(&q, "there");
    lane_open(&here);
    lane_open(&there);
    got = lane_take(&there);
    assert_string_equal(got.data, "there");
    lane_leave(&here);
    ack(&there, got.token);
    assert_int_equal(queue_stats(t).ready, 1);
}

/* ---- list */

typedef struct queue_names {
    char name[8][DIBS_NAME_MAX + 1];
    size_t count, enough;
} queue_names;

static bool copy_name(const char *queue, void *arg)
{
    queue_names *out = arg;

    assert_true(out->count < 8);
    snprintf(out->name[out->count++], sizeof(out->name[0]), "%s", queue);
    return out->count != out->enough;
}

static queue_names
list_queues(contract *t, const char *begins, const char *after, size_t max)
{
    dibs__store *st = t->st[0];
    queue_names out = {.count = 0};

    CHECK(DIBS_OK,
          st->ops->queue_admin->list(st, begins, after, max, contract_soon(),
                                     copy_name, &out, err));
    return out;
}

static void assert_names(const queue_names *got, const contract *t,
                         const char *const *ends, size_t count)
{
    assert_int_equal(got->count, count);
    for (size_t i = 0; i < count; i++) {
        char name[DIBS_NAME_MAX + 1];

        snprintf(name, sizeof(name), "%s%s", t->name, ends[i]);
        assert_string_equal(got->name[i], name);
    }
}

/* Names with what keys and patterns make of them, in their order. */
static const char *const odd_ends[] = {"",      "%",         "%x{",  "_~meta",
                                       "a{b}c", "a{b}c~out", "{tag}"};
enum { ODD = sizeof(odd_ends) / sizeof(odd_ends[0]) };

static void queues_are_listed_by_name(void **state)
{
    contract *t = *state;
    char name[DIBS_NAME_MAX + 1];
    queue_names got = {.enough = 2};

    assert_int_equal(list_queues(t, t->name, "", 10).count, 0);
    for (size_t i = 0; i < ODD; i++) {
        pusher p = queue_pusher(t, 1);

        snprintf(name, sizeof(name), "%s%s", t->name, odd_ends[ODD - 1 - i]);
        p.push.queue = name;
        push_ok(&p, "x");
    }
    got = list_queues(t, t->name, "", 100);
    assert_names(&got, t, odd_ends, ODD);
    got = list_queues(t, t->name, "", 3);
    assert_names(&got, t, odd_ends, 3);
    got = list_queues(t, t->name, got.name[2], 3);
    assert_names(&got, t, odd_ends + 3, 3);
    got = list_queues(t, t->name, got.name[2], 3);
    assert_names(&got, t, odd_ends + 6, 1);
    assert_int_equal(list_queues(t, t->name, "", 0).count, 0);
    assert_int_equal(list_queues(t, t->name, "~", 10).count, 0);
    snprintf(name, sizeof(name), "%s%%", t->name);
    got = list_queues(t, name, "", 10);
    assert_names(&got, t, odd_ends + 1, 2);
    snprintf(name, sizeof(name), "%sa{", t->name);
    got = list_queues(t, name, "", 10);
    assert_names(&got, t, odd_ends + 4, 2);
    got = (queue_names){.enough = 2};
    CHECK(DIBS_OK, t->st[0]->ops->queue_admin->list(t->st[0], t->name, "", 10,
                                                    contract_soon(), copy_name,
                                                    &got, err));
    assert_names(&got, t, odd_ends, 2);
}

static void a_queue_without_items_is_listed(void **state)
{
    contract *t = *state;

    queue_set(t, DIBS__SET_TRIES, (dibs__queue_conf){.tries = 2});
    assert_int_equal(list_queues(t, t->name, "", 10).count, 1);
    assert_status(remove_it(t), DIBS_OK);
    assert_int_equal(list_queues(t, t->name, "", 10).count, 0);
}

int contract_queue_care(void)
{
    const struct CMUnitTest tests[] = {
        CONTRACT_TEST(dead_client_items_back_in_one_span),
        CONTRACT_TEST(what_was_not_heard_of_is_not_charged),
        CONTRACT_TEST(a_lane_that_leaves_returns_uncounted),
        CONTRACT_TEST(no_item_is_out_without_a_lane),
        CONTRACT_TEST(a_lane_that_is_tended_lives),
        CONTRACT_TEST(an_item_is_dead_after_its_tries),
        CONTRACT_TEST(unbegun_attempts_do_not_count),
        CONTRACT_TEST(poison_dies_after_lost_max),
        CONTRACT_TEST(hung_handler_frees_its_item_at_the_limit),
        CONTRACT_TEST(a_refused_request_loses_no_count),
        CONTRACT_TEST(delay_longer_than_ttl_runs_once),
        CONTRACT_TEST(dead_cap_drops_whole_items),
        CONTRACT_TEST(a_death_drops_a_part_of_the_dead),
        CONTRACT_TEST(redrive_makes_new_items_at_the_end),
        CONTRACT_TEST(pause_keeps_items),
        CONTRACT_TEST(a_serial_queue_delivers_one_at_a_time),
        CONTRACT_TEST(a_serial_queue_keeps_its_order_over_a_delay),
        CONTRACT_TEST(a_worker_takes_its_own_first),
        CONTRACT_TEST(an_address_is_not_a_priority),
        CONTRACT_TEST(half_of_what_another_has_is_stolen_at_once),
        CONTRACT_TEST(the_items_of_a_dead_worker_have_their_old_places),
        CONTRACT_TEST(all_items_of_dead_workers_have_their_old_places),
        CONTRACT_TEST(a_dead_worker_may_ask_again),
        CONTRACT_TEST(a_push_goes_to_the_worker_that_waits_for_it),
        CONTRACT_TEST(purge_leaves_what_is_out),
        CONTRACT_TEST(peek_shows_each_place),
        CONTRACT_TEST(stats_count_what_was_done),
        CONTRACT_TEST(a_queue_is_removed_when_it_is_empty),
        CONTRACT_TEST(only_own_queue_is_swept),
        CONTRACT_TEST(queues_are_listed_by_name),
        CONTRACT_TEST(a_queue_without_items_is_listed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
