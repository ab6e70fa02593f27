/* test_acquire.c - the take machine, driven by hand with a clock of the test's own. */
/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include "core/machine/acquire.h"
#include <string.h>

static const char OWNER[DIBS_OWNER_SIZE] = "0123456789abcdef0123456789abcdef";

/* A taking and its lease, with the time of its world. */
typedef struct world {
    dibs__acquire aq;
    dibs__lease ls;
    dibsx_prng jitter;
    dibsx_nsec now;
    int begun; /* owners */
} world;

static world *start(world *w, dibs__acquire_terms terms)
{
    *w = (world){.now = 1000 * DIBSX_SEC, .jitter = {.state = 1}};
    if (terms.retry_delay_ms == 0)
        terms.retry_delay_ms = 100;
    dibs__acquire_start(&w->aq, &terms, &w->jitter, w->now);
    return w;
}

static dibs__acquire_step next(world *w)
{
    return dibs__acquire_next(&w->aq, &w->ls, w->now);
}

static void pass_ms(world *w, int64_t span_ms)
{
    w->now = dibsx_after_ms(w->now, span_ms);
}

/* Sleeps as the machine says, to the moment. */
static void sleep_out(world *w)
{
    assert_int_equal(next(w), DIBS__ACQUIRE_SLEEP);
    assert_true(w->aq.wake_at > w->now);
    w->now = w->aq.wake_at;
}

static void ask(world *w)
{
    const dibs__terms terms = {.ttl_ms = 30000};

    assert_int_equal(next(w), DIBS__ACQUIRE_ASK);
    if (w->ls.state == DIBS__LEASE_FREE) {
        dibs__lease_begin(&w->ls, OWNER, &terms);
        w->begun++;
    }
    dibs__lease_asked(&w->ls, w->now);
    dibs__acquire_asked(&w->aq, &w->ls);
}

static void answer(world *w, dibs_status rc, dibs__answer ans)
{
    dibs__lease_answered(&w->ls, rc, &ans, w->now);
    dibs__acquire_answered(&w->aq, &w->ls, rc, &ans, w->now);
}

static void grant(world *w, int64_t left_ms)
{
    answer(w, DIBS_OK, (dibs__answer){.fence = 7, .left_ms = left_ms});
}

static void refuse(world *w)
{
    answer(w, DIBS_BUSY, (dibs__answer){.fence = 5, .left_ms = 60000});
}

static void enqueue(world *w, int64_t left_ms, uint32_t ahead)
{
    answer(w, DIBS_BUSY,
           (dibs__answer){
               .fence = 5, .left_ms = left_ms, .queued = true, .ahead = ahead});
}

static void fall_away(world *w, dibs_status rc)
{
    answer(w, rc, (dibs__answer){0});
}

static void leave_told(world *w, dibs_status rc)
{
    assert_int_equal(next(w), DIBS__ACQUIRE_LEAVE);
    (void)dibs__lease_leave(&w->ls);
    dibs__acquire_left(&w->aq, &w->ls, rc, w->now);
}

static void leave(world *w)
{
    leave_told(w, DIBS_OK);
}

static void expect_over(world *w, dibs_status rc)
{
    assert_int_equal(next(w), DIBS__ACQUIRE_DONE);
    assert_int_equal(w->aq.rc, rc);
    assert_int_equal(next(w), DIBS__ACQUIRE_DONE);
}

static void a_try_asks_once(void **state)
{
    world w;

    (void)state;
    ask(start(&w, (dibs__acquire_terms){0}));
    grant(&w, 30000);
    expect_over(&w, DIBS_OK);
    assert_false(w.aq.contended);
    ask(start(&w, (dibs__acquire_terms){0}));
    refuse(&w);
    expect_over(&w, DIBS_BUSY);
    assert_true(w.aq.contended);
    ask(start(&w, (dibs__acquire_terms){0}));
    answer(&w, DIBS_MISMATCH, (dibs__answer){0});
    expect_over(&w, DIBS_MISMATCH);
}

static void a_failed_try_leaves(void **state)
{
    world w;

    (void)state;
    ask(start(&w, (dibs__acquire_terms){0}));
    fall_away(&w, DIBS_UNKNOWN);
    leave(&w);
    expect_over(&w, DIBS_UNKNOWN);
}

/* It was not granted after all, but an earlier ask may yet be. */
static void a_refusal_after_a_lost_answer_leaves(void **state)
{
    world w;

    (void)state;
    ask(start(&w, (dibs__acquire_terms){.wait_ms = 5000}));
    fall_away(&w, DIBS_UNKNOWN);
    sleep_out(&w);
    ask(&w);
    answer(&w, DIBS_DENIED, (dibs__answer){0});
    leave(&w);
    expect_over(&w, DIBS_DENIED);
}

/* Its lease was nearly over when it asked again: another owner asks, after what an ask
 * without an answer may have got is released. */
static void one_who_was_too_late_asks_anew(void **state)
{
    world w;

    (void)state;
    ask(start(&w, (dibs__acquire_terms){.wait_ms = 5000}));
    enqueue(&w, 100, 0);
    sleep_out(&w);
    ask(&w);
    answer(&w, DIBS_LOST, (dibs__answer){0});
    ask(&w);
    assert_int_equal(w.begun, 2);
    fall_away(&w, DIBS_UNKNOWN);
    sleep_out(&w);
    ask(&w);
    answer(&w, DIBS_LOST, (dibs__answer){0});
    leave(&w);
    ask(&w);
    assert_int_equal(w.begun, 3);
    grant(&w, 30000);
    expect_over(&w, DIBS_OK);
}

static void one_who_was_too_late_has_no_more_time_than_others(void **state)
{
    world w;

    (void)state;
    ask(start(&w, (dibs__acquire_terms){0}));
    answer(&w, DIBS_LOST, (dibs__answer){0});
    expect_over(&w, DIBS_LOST);
    ask(start(&w, (dibs__acquire_terms){.wait_ms = 100}));
    pass_ms(&w, 200);
    answer(&w, DIBS_LOST, (dibs__answer){0});
    expect_over(&w, DIBS_TIMEOUT);
    ask(start(&w, (dibs__acquire_terms){.wait_ms = 5000}));
    w.aq.cancelled = true;
    answer(&w, DIBS_LOST, (dibs__answer){0});
    expect_over(&w, DIBS_CANCELLED);
    ask(start(&w, (dibs__acquire_terms){.wait_ms = 5000, .asks_again = true}));
    answer(&w, DIBS_LOST, (dibs__answer){0});
    sleep_out(&w);
    ask(&w);
    assert_int_equal(w.begun, 2);
}

/* One ask is answered so, the store is away for the next, and then the time is up,
 * with this answer to the release. */
static dibs_status
end_of(dibs_status first, bool queued, bool asks_again, dibs_status released)
{
    const dibs__answer ans = {.fence = 5, .left_ms = 1, .queued = queued};
    world w;

    start(&w, (dibs__acquire_terms){.wait_ms = 900, .asks_again = asks_again});
    ask(&w);
    pass_ms(&w, 100);
    answer(&w, first, ans);
    if (next(&w) == DIBS__ACQUIRE_LEAVE)
        leave_told(&w, released);
    if (next(&w) == DIBS__ACQUIRE_SLEEP)
        sleep_out(&w);
    ask(&w);
    pass_ms(&w, 1000);
    fall_away(&w, DIBS_UNAVAIL);
    leave_told(&w, released);
    assert_int_equal(next(&w), DIBS__ACQUIRE_DONE);
    return w.aq.rc;
}

static void what_could_not_be_left_is_not_denied(void **state)
{
    static const struct {
        dibs_status first;
        bool queued, asks_again;
    } traces[] = {{DIBS_UNKNOWN, false, false},
                  {DIBS_BUSY, true, false},
                  {DIBS_OK, false, false}, /* granted, and run out by then */
                  {DIBS_UNKNOWN, false, true}};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(traces); i++) {
        dibs_status first = traces[i].first;
        bool queued = traces[i].queued, asks_again = traces[i].asks_again;

        assert_int_equal(end_of(first, queued, asks_again, DIBS_UNAVAIL),
                         DIBS_UNKNOWN);
        assert_int_equal(end_of(first, queued, asks_again, DIBS_UNKNOWN),
                         DIBS_UNKNOWN);
        assert_int_equal(end_of(first, queued, asks_again, DIBS_OK),
                         DIBS_UNAVAIL);
        assert_int_equal(end_of(first, queued, asks_again, DIBS_LOST),
                         DIBS_UNAVAIL);
    }
    assert_int_equal(end_of(DIBS_UNAVAIL, false, false, DIBS_UNAVAIL),
                     DIBS_UNAVAIL);
}

static void the_doorbell_is_opened_first(void **state)
{
    world w;

    (void)state;
    start(&w, (dibs__acquire_terms){.wait_ms = 100, .listen = true});
    assert_int_equal(next(&w), DIBS__ACQUIRE_LISTEN);
    pass_ms(&w, 90);
    dibs__acquire_listened(&w.aq, w.now);
    ask(&w);
    assert_true(w.aq.until == dibsx_after_ms(w.now, 100));
}

static void a_notice_ends_the_wait(void **state)
{
    world w;

    (void)state;
    ask(start(&w, (dibs__acquire_terms){.wait_ms = -1}));
    enqueue(&w, 60000, 3);
    assert_int_equal(next(&w), DIBS__ACQUIRE_SLEEP);
    assert_true(w.aq.wake_at == dibsx_after_ms(w.now, 1000));
    pass_ms(&w, 20);
    assert_true(dibs__lease_noticed(&w.ls, 9, w.now));
    expect_over(&w, DIBS_OK);
    assert_int_equal(w.aq.polls, 0);
}

/* A notice that leaves too little validity is a reason to ask. */
static void a_late_notice_asks(void **state)
{
    world w;

    (void)state;
    ask(start(&w, (dibs__acquire_terms){.wait_ms = -1}));
    enqueue(&w, 60000, 0);
    pass_ms(&w, 900);
    w.ls.asked_at -= 2000 * DIBSX_MS;
    assert_true(dibs__lease_noticed(&w.ls, 9, w.now));
    assert_int_equal(w.ls.state, DIBS__LEASE_QUEUED);
    ask(&w);
    assert_int_equal(w.begun, 1);
}

static void a_nudge_asks_once(void **state)
{
    world w;

    (void)state;
    ask(start(&w, (dibs__acquire_terms){.wait_ms = -1}));
    enqueue(&w, 60000, 0);
    assert_int_equal(next(&w), DIBS__ACQUIRE_SLEEP);
    w.aq.nudged = true;
    ask(&w);
    enqueue(&w, 60000, 0);
    assert_int_equal(next(&w), DIBS__ACQUIRE_SLEEP);
    assert_int_equal(w.aq.polls, 0);
}

/* Polls come when the holder could end, staggered by place, and each second. */
static void polls_follow_the_holder(void **state)
{
    static const struct {
        int64_t left_ms;
        uint32_t ahead;
        int64_t span_ms;
    } cases[] = {
        {0, 0, 1},       {100, 0, 101},    {100, 5, 151},
        {5000, 0, 1000}, {100, 1000, 301}, {995, 1, 1000},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        world w;

        ask(start(&w, (dibs__acquire_terms){.wait_ms = -1}));
        enqueue(&w, cases[i].left_ms, cases[i].ahead);
        assert_true(w.aq.wake_at == dibsx_after_ms(w.now, cases[i].span_ms));
        sleep_out(&w);
        ask(&w);
        assert_int_equal(w.aq.polls, 1);
    }
}

/* The place is that of the latest answer, also while the next is asked for. */
static void a_place_is_known_from_an_answer_alone(void **state)
{
    world w;

    (void)state;
    ask(start(&w, (dibs__acquire_terms){.wait_ms = -1}));
    assert_int_equal(w.aq.place, 0);
    enqueue(&w, 60000, 2);
    assert_int_equal(w.aq.place, 3);
    sleep_out(&w);
    ask(&w);
    assert_int_equal(w.aq.place, 3);
    fall_away(&w, DIBS_UNKNOWN);
    assert_int_equal(w.aq.place, 0);
    sleep_out(&w);
    ask(&w);
    enqueue(&w, 60000, 0);
    assert_int_equal(w.aq.place, 1);
    w.aq.cancelled = true;
    leave(&w);
    expect_over(&w, DIBS_CANCELLED);
    assert_int_equal(w.aq.place, 0);
}

/* Neither a lease that is held nor a store without a queue has a place. */
static void nobody_else_has_a_place(void **state)
{
    world w;

    (void)state;
    ask(start(&w, (dibs__acquire_terms){.wait_ms = -1}));
    enqueue(&w, 60000, 0);
    sleep_out(&w);
    ask(&w);
    grant(&w, 30000);
    assert_int_equal(w.aq.place, 0);
    expect_over(&w, DIBS_OK);
    ask(start(&w, (dibs__acquire_terms){.wait_ms = -1, .asks_again = true}));
    refuse(&w);
    assert_int_equal(w.aq.place, 0);
}

static void a_bounded_wait_ends(void **state)
{
    world w;

    (void)state;
    ask(start(&w, (dibs__acquire_terms){.wait_ms = 1500}));
    enqueue(&w, 60000, 0);
    sleep_out(&w);
    ask(&w);
    enqueue(&w, 60000, 0);
    assert_true(w.aq.wake_at == w.aq.until);
    sleep_out(&w);
    leave(&w);
    expect_over(&w, DIBS_TIMEOUT);
}

static void a_cancel_ends_every_sleep(void **state)
{
    world w;

    (void)state;
    ask(start(&w, (dibs__acquire_terms){.wait_ms = -1}));
    enqueue(&w, 60000, 0);
    w.aq.cancelled = true;
    leave(&w);
    expect_over(&w, DIBS_CANCELLED);

    ask(start(&w, (dibs__acquire_terms){.wait_ms = -1}));
    fall_away(&w, DIBS_UNAVAIL);
    w.aq.cancelled = true;
    leave(&w);
    expect_over(&w, DIBS_CANCELLED);

    ask(start(&w, (dibs__acquire_terms){.retries = 3}));
    refuse(&w);
    w.aq.cancelled = true;
    expect_over(&w, DIBS_CANCELLED);
}

/* Before the first ask there is nothing to leave. */
static void a_cancel_before_the_ask_asks_nothing(void **state)
{
    world w;

    (void)state;
    start(&w, (dibs__acquire_terms){.wait_ms = -1, .listen = true});
    w.aq.cancelled = true;
    expect_over(&w, DIBS_CANCELLED);
    assert_int_equal(w.begun, 0);
}

/* What is in hand is not thrown away. */
static void a_grant_wins_over_a_cancel(void **state)
{
    world w;

    (void)state;
    ask(start(&w, (dibs__acquire_terms){.wait_ms = -1}));
    w.aq.cancelled = true;
    grant(&w, 30000);
    expect_over(&w, DIBS_OK);
}

static void failures_back_off(void **state)
{
    static const int64_t spans_ms[] = {10, 20, 40, 80, 160, 320, 640, 640};
    world w;

    (void)state;
    start(&w, (dibs__acquire_terms){.wait_ms = -1});
    for (size_t i = 0; i < COUNT_OF(spans_ms); i++) {
        dibsx_nsec before = w.now;

        ask(&w);
        fall_away(&w, DIBS_UNAVAIL);
        sleep_out(&w);
        assert_in_range((uint64_t)((w.now - before) / DIBSX_MS),
                        (uint64_t)spans_ms[i] / 2,
                        (uint64_t)(spans_ms[i] + spans_ms[i] / 2));
    }
    ask(&w);
    enqueue(&w, 60000, 0);
    assert_int_equal(w.aq.backoff_ms, 10);
    assert_int_equal(w.begun, 1);
}

/* The time is up while the store is away: the failure is what is told. */
static void a_wait_that_ends_in_failure_tells_it(void **state)
{
    world w;

    (void)state;
    ask(start(&w, (dibs__acquire_terms){.wait_ms = 3}));
    fall_away(&w, DIBS_UNAVAIL);
    assert_true(w.aq.wake_at <= w.aq.until);
    pass_ms(&w, 3);
    leave(&w);
    expect_over(&w, DIBS_UNAVAIL);
}

static void retries_pause_and_begin_anew(void **state)
{
    world w;

    (void)state;
    start(&w, (dibs__acquire_terms){.retries = 2, .retry_delay_ms = 40});
    for (int i = 1; i <= 2; i++) {
        dibsx_nsec before;

        ask(&w);
        refuse(&w);
        before = w.now;
        sleep_out(&w);
        assert_in_range((uint64_t)((w.now - before) / DIBSX_MS), 20, 60);
    }
    ask(&w);
    refuse(&w);
    expect_over(&w, DIBS_BUSY);
    assert_int_equal(w.begun, 3);
}

static void a_timeout_is_retried_with_its_own_time(void **state)
{
    world w;

    (void)state;
    ask(start(&w, (dibs__acquire_terms){.wait_ms = 100, .retries = 1}));
    enqueue(&w, 60000, 0);
    sleep_out(&w);
    leave(&w);
    sleep_out(&w);
    ask(&w);
    assert_true(w.aq.until == dibsx_after_ms(w.now, 100));
    grant(&w, 30000);
    expect_over(&w, DIBS_OK);
}

static void a_store_that_is_away_is_retried(void **state)
{
    world w;

    (void)state;
    ask(start(&w, (dibs__acquire_terms){.retries = 2, .retry_delay_ms = 40}));
    assert_true(dibs__acquire_waits(&w.aq, w.now));
    fall_away(&w, DIBS_UNAVAIL);
    leave(&w);
    sleep_out(&w);
    ask(&w);
    fall_away(&w, DIBS_UNKNOWN);
    leave(&w);
    sleep_out(&w);
    ask(&w);
    assert_false(dibs__acquire_waits(&w.aq, w.now));
    fall_away(&w, DIBS_UNAVAIL);
    leave(&w);
    expect_over(&w, DIBS_UNAVAIL);
    assert_int_equal(w.begun, 3);
}

static void other_failures_are_not_retried(void **state)
{
    world w;

    (void)state;
    ask(start(&w, (dibs__acquire_terms){.retries = 5}));
    answer(&w, DIBS_DENIED, (dibs__answer){0});
    expect_over(&w, DIBS_DENIED);
}

static void the_fallback_is_used_once(void **state)
{
    world w;

    (void)state;
    ask(start(&w, (dibs__acquire_terms){.wait_ms = 5000, .fallback = true}));
    fall_away(&w, DIBS_UNAVAIL);
    leave(&w);
    assert_int_equal(next(&w), DIBS__ACQUIRE_FALL_BACK);
    dibs__acquire_fell_back(&w.aq, DIBS_OK, w.now);
    ask(&w);
    fall_away(&w, DIBS_UNAVAIL);
    sleep_out(&w);
    ask(&w);
    grant(&w, 30000);
    expect_over(&w, DIBS_OK);
    assert_int_equal(w.begun, 2);
}

/* A store that answered is not away: too few of its replicas had the grant. */
static void too_few_replicas_call_for_no_fallback(void **state)
{
    const dibs__answer few = {.under_replicated = true};
    world w;

    (void)state;
    ask(start(&w, (dibs__acquire_terms){.fallback = true}));
    answer(&w, DIBS_UNAVAIL, few);
    leave(&w);
    expect_over(&w, DIBS_UNAVAIL);

    ask(start(&w, (dibs__acquire_terms){.wait_ms = 5000, .fallback = true}));
    answer(&w, DIBS_UNAVAIL, few);
    sleep_out(&w);
    ask(&w);
    fall_away(&w, DIBS_UNAVAIL);
    leave(&w);
    assert_int_equal(next(&w), DIBS__ACQUIRE_FALL_BACK);

    ask(start(&w, (dibs__acquire_terms){.fallback = true}));
    answer(&w, DIBS_UNKNOWN, few); /* It went away before it was given back. */
    leave(&w);
    assert_int_equal(next(&w), DIBS__ACQUIRE_FALL_BACK);
}

static void without_a_fallback_that_works_it_fails(void **state)
{
    world w;

    (void)state;
    ask(start(&w, (dibs__acquire_terms){.fallback = true}));
    fall_away(&w, DIBS_UNKNOWN);
    leave(&w);
    assert_int_equal(next(&w), DIBS__ACQUIRE_FALL_BACK);
    dibs__acquire_fell_back(&w.aq, DIBS_UNAVAIL, w.now);
    expect_over(&w, DIBS_UNAVAIL);

    ask(start(&w, (dibs__acquire_terms){.fallback = true}));
    fall_away(&w, DIBS_UNKNOWN);
    leave_told(&w, DIBS_UNAVAIL);
    assert_int_equal(next(&w), DIBS__ACQUIRE_FALL_BACK);
    dibs__acquire_fell_back(&w.aq, DIBS_UNAVAIL, w.now);
    expect_over(&w, DIBS_UNKNOWN);
}

/* The next try is for the store again. */
static void each_try_begins_at_the_store(void **state)
{
    world w;

    (void)state;
    ask(start(&w, (dibs__acquire_terms){.fallback = true, .retries = 1}));
    fall_away(&w, DIBS_UNAVAIL);
    leave(&w);
    assert_int_equal(next(&w), DIBS__ACQUIRE_FALL_BACK);
    dibs__acquire_fell_back(&w.aq, DIBS_OK, w.now);
    ask(&w);
    refuse(&w);
    assert_true(w.aq.on_fallback);
    sleep_out(&w);
    ask(&w);
    assert_false(w.aq.on_fallback);
    fall_away(&w, DIBS_UNAVAIL);
    leave(&w);
    assert_int_equal(next(&w), DIBS__ACQUIRE_FALL_BACK);
}

/* A grant that ran out on the way is asked for again by the same owner. */
static void a_grant_that_came_too_late_is_asked_for_again(void **state)
{
    world w;

    (void)state;
    ask(start(&w, (dibs__acquire_terms){.wait_ms = -1}));
    pass_ms(&w, 600);
    grant(&w, 500);
    ask(&w);
    assert_int_equal(w.begun, 1);
    grant(&w, 30000);
    expect_over(&w, DIBS_OK);
}

/* It was in hand and ran out before the program had it: another owner asks. */
static void a_lapsed_lease_is_taken_anew(void **state)
{
    world w;

    (void)state;
    ask(start(&w, (dibs__acquire_terms){.wait_ms = -1}));
    grant(&w, 500);
    expect_over(&w, DIBS_OK);
    pass_ms(&w, 600);
    leave(&w);
    ask(&w);
    assert_int_equal(w.begun, 2);
    grant(&w, 30000);
    expect_over(&w, DIBS_OK);

    ask(start(&w, (dibs__acquire_terms){0}));
    grant(&w, 500);
    pass_ms(&w, 600);
    leave(&w);
    expect_over(&w, DIBS_TIMEOUT);
}

/* Lost or resting, it is not this acquire's. */
static void what_stood_before_is_left_first(void **state)
{
    const dibs__acquire_terms terms = {.wait_ms = 0};
    world w;

    (void)state;
    ask(start(&w, terms));
    grant(&w, 30000);
    expect_over(&w, DIBS_OK);
    dibs__acquire_start(&w.aq, &terms, &w.jitter, w.now);
    leave(&w);
    ask(&w);
    refuse(&w);
    expect_over(&w, DIBS_BUSY);
}

static void without_an_owner_there_is_no_ask(void **state)
{
    world w;

    (void)state;
    start(&w, (dibs__acquire_terms){.wait_ms = -1});
    assert_int_equal(next(&w), DIBS__ACQUIRE_ASK);
    dibs__acquire_answered(&w.aq, &w.ls, DIBS_UNAVAIL, &(dibs__answer){0},
                           w.now);
    expect_over(&w, DIBS_UNAVAIL);
}

static void an_ask_has_a_fair_chance(void **state)
{
    world w;
    dibsx_nsec limit;

    (void)state;
    ask(start(&w, (dibs__acquire_terms){.wait_ms = 200}));
    limit = dibsx_after_ms(w.now, 5000);
    assert_true(dibs__acquire_ask_until(&w.aq, limit, w.now) == w.aq.until);
    pass_ms(&w, 199);
    assert_true(dibs__acquire_ask_until(&w.aq, limit, w.now) ==
                dibsx_after_ms(w.now, 50));
    ask(start(&w, (dibs__acquire_terms){.wait_ms = 0}));
    limit = dibsx_after_ms(w.now, 5000);
    assert_true(dibs__acquire_ask_until(&w.aq, limit, w.now) == limit);
}

/* A store without a queue says no, and is asked again. */
static void without_a_queue_it_asks_again(void **state)
{
    world w;

    (void)state;
    start(&w, (dibs__acquire_terms){.wait_ms = 10000, .asks_again = true});
    for (int i = 1; i <= 10; i++) {
        dibsx_nsec before = w.now;

        ask(&w);
        assert_int_equal(w.begun, i);
        refuse(&w);
        sleep_out(&w);
        assert_true(w.now - before <= 250 * DIBSX_MS);
    }
    ask(&w);
    grant(&w, 30000);
    expect_over(&w, DIBS_OK);
    assert_true(w.aq.contended);
}

static void without_a_queue_a_wait_ends_in_time(void **state)
{
    world w;
    dibsx_nsec end;

    (void)state;
    start(&w, (dibs__acquire_terms){.wait_ms = 500, .asks_again = true});
    end = w.now + 500 * DIBSX_MS;
    while (w.now < end) {
        ask(&w);
        refuse(&w);
        sleep_out(&w);
        assert_true(w.now <= end);
    }
    expect_over(&w, DIBS_TIMEOUT);
}

/* The answer comes when the wait is over: that is what it is told. */
static void without_a_queue_a_late_refusal_ends_the_wait(void **state)
{
    world w;

    (void)state;
    start(&w, (dibs__acquire_terms){.wait_ms = 500, .asks_again = true});
    ask(&w);
    pass_ms(&w, 600);
    refuse(&w);
    expect_over(&w, DIBS_TIMEOUT);
}

static void without_a_queue_a_try_is_one_try(void **state)
{
    world w;

    (void)state;
    start(&w, (dibs__acquire_terms){.wait_ms = 0, .asks_again = true});
    ask(&w);
    refuse(&w);
    expect_over(&w, DIBS_BUSY);
}

static void without_a_queue_a_cancel_ends_the_wait(void **state)
{
    world w;

    (void)state;
    start(&w, (dibs__acquire_terms){.wait_ms = -1, .asks_again = true});
    ask(&w);
    refuse(&w);
    assert_int_equal(next(&w), DIBS__ACQUIRE_SLEEP);
    w.aq.cancelled = true;
    expect_over(&w, DIBS_CANCELLED);
}

/* What was begun for its owner may yet be done, or undone: another goes on. */
static void without_a_queue_a_lost_answer_ends_its_owner(void **state)
{
    world w;

    (void)state;
    start(&w, (dibs__acquire_terms){.wait_ms = 10000, .asks_again = true});
    ask(&w);
    fall_away(&w, DIBS_UNAVAIL);
    sleep_out(&w);
    ask(&w);
    assert_int_equal(w.begun, 1);
    fall_away(&w, DIBS_UNKNOWN);
    leave(&w);
    sleep_out(&w);
    ask(&w);
    assert_int_equal(w.begun, 2);
    refuse(&w);
    sleep_out(&w);
    ask(&w);
    assert_int_equal(w.begun, 3);
}

static void the_end_is_explained(void **state)
{
    dibs_error err = {.status = DIBS_UNAVAIL, .message = "gone"};
    world w;

    (void)state;
    ask(start(&w, (dibs__acquire_terms){0}));
    refuse(&w);
    expect_over(&w, DIBS_BUSY);
    dibs__acquire_explain(&w.aq, "k", &err);
    assert_int_equal(err.status, DIBS_BUSY);
    assert_non_null(strstr(err.message, "k is held"));
    strncpy(err.message, "held by me", sizeof(err.message) - 1);
    dibs__acquire_explain(&w.aq, "k", &err);
    assert_string_equal(err.message, "held by me");

    ask(start(&w, (dibs__acquire_terms){.fallback = true}));
    fall_away(&w, DIBS_UNKNOWN);
    leave_told(&w, DIBS_UNAVAIL);
    dibs__acquire_fell_back(&w.aq, DIBS_UNAVAIL, w.now);
    err = (dibs_error){.status = DIBS_UNAVAIL, .message = "gone"};
    dibs__acquire_explain(&w.aq, "k", &err);
    assert_int_equal(err.status, DIBS_UNKNOWN);
    assert_string_equal(err.message, "gone");
}

static dibs_status some_status(world *w)
{
    static const dibs_status all[] = {DIBS_OK,      DIBS_BUSY,    DIBS_BUSY,
                                      DIBS_UNAVAIL, DIBS_UNKNOWN, DIBS_BUSY,
                                      DIBS_DENIED};

    return all[dibsx_prng_below(&w->jitter, COUNT_OF(all))];
}

static bool chance(world *w, uint64_t in_hundred)
{
    return dibsx_prng_below(&w->jitter, 100) < in_hundred;
}

/* Carries out one step with whatever may come of it. */
static void any_step(world *w, dibs__acquire_step step)
{
    dibs_status rc = some_status(w);

    switch (step) {
    case DIBS__ACQUIRE_LISTEN:
        dibs__acquire_listened(&w->aq, w->now);
        break;
    case DIBS__ACQUIRE_ASK:
        ask(w);
        pass_ms(w, (int64_t)dibsx_prng_below(&w->jitter, 700));
        answer(w, rc,
               (dibs__answer){
                   .fence = 100 + (uint64_t)w->begun,
                   .left_ms = 400 + (int64_t)dibsx_prng_below(&w->jitter, 3000),
                   .queued = rc == DIBS_BUSY && w->aq.terms.wait_ms != 0});
        break;
    case DIBS__ACQUIRE_LEAVE:
        leave_told(w, some_status(w));
        break;
    case DIBS__ACQUIRE_FALL_BACK:
        dibs__acquire_fell_back(&w->aq, chance(w, 50) ? DIBS_OK : DIBS_UNAVAIL,
                                w->now);
        break;
    case DIBS__ACQUIRE_SLEEP:
        if (chance(w, 20))
            (void)dibs__lease_noticed(&w->ls, w->ls.watermark + 1, w->now);
        else
            w->now = w->aq.wake_at;
        w->aq.nudged = w->aq.nudged || chance(w, 10);
        break;
    case DIBS__ACQUIRE_DONE:
        break;
    }
    w->aq.cancelled = w->aq.cancelled || chance(w, 1);
}

/* From whatever happens it comes to an end, and every invariant holds on the way
 * there (the machine checks them with each call). */
static void whatever_happens_it_ends(void **state)
{
    uint64_t granted = 0, ended = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= 3000; seed++) {
        world w;
        dibs__acquire_step step;
        int steps = 0;

        start(&w, (dibs__acquire_terms){.wait_ms = (int64_t)(seed % 3) * 2500,
                                        .retries = (uint32_t)(seed % 4),
                                        .listen = seed % 2 == 0,
                                        .fallback = seed % 5 == 0});
        w.jitter.state = seed * 0x9e3779b97f4a7c15u;
        while ((step = next(&w)) != DIBS__ACQUIRE_DONE && steps++ < 10000)
            any_step(&w, step);
        assert_int_equal(step, DIBS__ACQUIRE_DONE);
        assert_int_equal(w.aq.rc == DIBS_OK, dibs__lease_valid(&w.ls, w.now));
        if (w.aq.rc == DIBS_OK)
            granted++;
        else
            ended++;
    }
    assert_true(granted > 100 && ended > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_try_asks_once),
        cmocka_unit_test(a_failed_try_leaves),
        cmocka_unit_test(a_refusal_after_a_lost_answer_leaves),
        cmocka_unit_test(one_who_was_too_late_asks_anew),
        cmocka_unit_test(one_who_was_too_late_has_no_more_time_than_others),
        cmocka_unit_test(what_could_not_be_left_is_not_denied),
        cmocka_unit_test(the_doorbell_is_opened_first),
        cmocka_unit_test(a_notice_ends_the_wait),
        cmocka_unit_test(a_late_notice_asks),
        cmocka_unit_test(a_nudge_asks_once),
        cmocka_unit_test(polls_follow_the_holder),
        cmocka_unit_test(a_place_is_known_from_an_answer_alone),
        cmocka_unit_test(nobody_else_has_a_place),
        cmocka_unit_test(a_bounded_wait_ends),
        cmocka_unit_test(a_cancel_ends_every_sleep),
        cmocka_unit_test(a_cancel_before_the_ask_asks_nothing),
        cmocka_unit_test(a_grant_wins_over_a_cancel),
        cmocka_unit_test(failures_back_off),
        cmocka_unit_test(a_wait_that_ends_in_failure_tells_it),
        cmocka_unit_test(retries_pause_and_begin_anew),
        cmocka_unit_test(a_timeout_is_retried_with_its_own_time),
        cmocka_unit_test(a_store_that_is_away_is_retried),
        cmocka_unit_test(other_failures_are_not_retried),
        cmocka_unit_test(the_fallback_is_used_once),
        cmocka_unit_test(too_few_replicas_call_for_no_fallback),
        cmocka_unit_test(without_a_fallback_that_works_it_fails),
        cmocka_unit_test(each_try_begins_at_the_store),
        cmocka_unit_test(a_grant_that_came_too_late_is_asked_for_again),
        cmocka_unit_test(a_lapsed_lease_is_taken_anew),
        cmocka_unit_test(what_stood_before_is_left_first),
        cmocka_unit_test(without_an_owner_there_is_no_ask),
        cmocka_unit_test(an_ask_has_a_fair_chance),
        cmocka_unit_test(without_a_queue_it_asks_again),
        cmocka_unit_test(without_a_queue_a_wait_ends_in_time),
        cmocka_unit_test(without_a_queue_a_late_refusal_ends_the_wait),
        cmocka_unit_test(without_a_queue_a_try_is_one_try),
        cmocka_unit_test(without_a_queue_a_cancel_ends_the_wait),
        cmocka_unit_test(without_a_queue_a_lost_answer_ends_its_owner),
        cmocka_unit_test(the_end_is_explained),
        cmocka_unit_test(whatever_happens_it_ends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
