/* contract_queue_peers.c - queues: what went wrong with the queues of others
 * (docs/track-record.md), and work stealing as a whole. */
/* SPDX-License-Identifier: MIT */
#include "contract_queue.h"

#include <pthread.h>
#include <stdatomic.h>

enum { BRIEF_MS = 30, ROUNDS = 12, SHARED_IDS = 4, JOBS = 9 };
enum { DEAD_LANES = 70, DUE_BATCHES = 3, LOOKS = 40 };

static void ack(lane *ln, dibs__token token)
{
    assert_status(lane_end(ln, DIBS__ITEM_ACK, token, 0, NULL), DIBS_OK);
}

/* The lane of an acked item runs out: that returns nothing, nor does its late repeat. */
static void rescue_does_not_undo_a_done(void **state)
{
    contract *t = *state;
    pusher p = queue_pusher(t, 0);
    lane a = queue_lane(t, 0), b = queue_lane(t, 1);
    int64_t brief_ms = contract_brief_ms(BRIEF_MS);

    push_ok(&p, "job");
    a.ask.span_ms = LONG_MS;
    lane_open(&a);
    lane_settle(&a, DIBS__ITEM_ACK, lane_take(&a).token, 0, NULL);
    a.ask.span_ms = brief_ms;
    assert_status(lane_next(&a, 0, false), DIBS_OK);
    assert_status(a.settle[0].rc, DIBS_OK);
    queue_sleep(brief_ms);
    lane_open(&b);
    assert_status(lane_next(&b, 1, false), DIBS_OK);
    assert_int_equal(b.count, 0);
    a.ask.settle_count = 1;
    assert_status(lane_send(&a), DIBS_LOST);
    assert_int_equal(queue_stats(t).acked, 1);
    assert_int_equal(queue_stats(t).lost, 0);
    assert_int_equal(queue_stats(t).ready + queue_stats(t).out, 0);
}

static void a_failed_push_does_not_block_its_id(void **state)
{
    contract *t = *state;
    pusher p = queue_pusher(t, 0);

    queue_set(t, DIBS__SET_CAP, (dibs__queue_conf){.cap = 1});
    push_ok(&p, "fills it");
    p.item.dedup = "order 42";
    p.item.dedup_ms = LONG_MS;
    assert_status(push_text(&p, "too many"), DIBS_FULL);
    queue_set(t, DIBS__SET_CAP, (dibs__queue_conf){.cap = 2});
    push_ok(&p, "now");
    assert_false(p.item.duplicate);
}

static void dead_done_purged_items_free_their_id(void **state)
{
    static const dibs__settle_verb verbs[] = {DIBS__ITEM_DEAD, DIBS__ITEM_ACK};
    contract *t = *state;
    pusher p = queue_pusher(t, 0);
    lane ln = queue_lane(t, 0);

    lane_open(&ln);
    p.item.dedup = "order 42";
    for (size_t i = 0; i < 2; i++) {
        push_ok(&p, "job");
        assert_false(p.item.duplicate);
        assert_status(lane_end(&ln, verbs[i], lane_take(&ln).token, 0,
                               "no use"),
                      DIBS_OK);
    }
    push_ok(&p, "to be purged");
    assert_false(p.item.duplicate);
    assert_int_equal(queue_purge(t, DIBS__PLACE_READY, 10), 1);
    push_ok(&p, "again");
    assert_false(p.item.duplicate);
}

/* A dead letter goes whose id is another's by now. */
static void removal_frees_only_its_own_id(void **state)
{
    contract *t = *state;
    pusher p = queue_pusher(t, 0);
    lane ln = queue_lane(t, 0);
    uint64_t second;

    lane_open(&ln);
    p.item.dedup = "order 42";
    push_ok(&p, "first");
    assert_status(lane_end(&ln, DIBS__ITEM_DEAD, lane_take(&ln).token, 0,
                           "no use"),
                  DIBS_OK);
    second = push_ok(&p, "second");
    assert_false(p.item.duplicate);
    assert_int_equal(queue_purge(t, DIBS__PLACE_DEAD, 10), 1);
    assert_int_equal(push_ok(&p, "third"), second);
    assert_true(p.item.duplicate);
}

/* The item is dropped within its window, which the store keeps: another
 * handle finds it. */
static void a_window_outlives_a_purge(void **state)
{
    contract *t = *state;
    pusher p = queue_pusher(t, 0), q = queue_pusher(t, 1);
    uint64_t id;

    p.item.dedup = q.item.dedup = "order 42";
    p.item.dedup_ms = q.item.dedup_ms = LONG_MS;
    id = push_ok(&p, "first");
    push_ok(&p, "again");
    assert_true(p.item.duplicate);
    assert_int_equal(queue_purge(t, DIBS__PLACE_READY, 10), 1);
    assert_int_equal(push_ok(&q, "after the purge"), id);
    assert_true(q.item.duplicate);
    assert_int_equal(queue_stats(t).ready, 0);
}

/* An item without tries left is out of the way, of a serial queue too. */
static void max_deliver_frees_the_queue(void **state)
{
    contract *t = *state;
    pusher p = queue_pusher(t, 0);
    lane ln = queue_lane(t, 0);

    queue_set(t, DIBS__SET_SERIAL | DIBS__SET_TRIES,
              (dibs__queue_conf){.serial = true, .tries = 1});
    push_ok(&p, "bad");
    push_ok(&p, "good");
    lane_open(&ln);
    assert_status(lane_end(&ln, DIBS__ITEM_NACK, lane_take(&ln).token, LONG_MS,
                           "no luck"),
                  DIBS_OK);
    assert_string_equal(lane_take(&ln).data, "good");
    assert_int_equal(queue_stats(t).dead, 1);
}

static void plain_items_have_priority_0(void **state)
{
    static const char *const order[] = {"higher", "plain", "lower"};
    contract *t = *state;
    pusher p = queue_pusher(t, 0);
    lane ln = queue_lane(t, 0);

    p.item.priority = -1;
    push_ok(&p, "lower");
    p.item.priority = 0;
    push_ok(&p, "plain");
    p.item.priority = 1;
    push_ok(&p, "higher");
    lane_open(&ln);
    for (size_t i = 0; i < 3; i++)
        assert_string_equal(lane_take(&ln).data, order[i]);
}

/* A delay that no timer of 32 bits holds. */
static void due_after_days(void **state)
{
    const int64_t days_ms = INT64_C(40) * 24 * 3600 * 1000;
    contract *t = *state;
    pusher p = queue_pusher(t, 0);
    lane ln = queue_lane(t, 0);

    p.item.delay_ms = days_ms;
    push_ok(&p, "later");
    lane_open(&ln);
    assert_status(lane_next(&ln, 1, true), DIBS_OK);
    assert_int_equal(ln.count, 0);
    assert_true(ln.ask.due_ms > days_ms - pace_ms(LONG_MS));
    assert_true(ln.ask.due_ms <= days_ms);
    assert_int_equal(queue_stats(t).later, 1);
}

static void lost_push_reply_of_a_done_item_makes_none(void **state)
{
    contract *t = *state;
    pusher p = queue_pusher(t, 0);
    lane ln = queue_lane(t, 1);
    uint64_t id = push_ok(&p, "job");

    lane_open(&ln);
    ack(&ln, lane_take(&ln).token);
    assert_status(pusher_send(&p), DIBS_OK);
    assert_int_equal(p.item.id, id);
    assert_status(lane_next(&ln, 1, false), DIBS_OK);
    assert_int_equal(ln.count, 0);
    assert_int_equal(queue_stats(t).pushed, 1);
}

enum { LIFE_STEPS = 4, LIFE_ITEMS = 3 };

/* One step of the life of a consumer. */
static void live_step(lane *ln, int step, dibs__token *hand)
{
    switch (step) {
    case 1:
        lane_open(ln);
        return;
    case 2:
        *hand = lane_take(ln).token;
        return;
    case 3:
        lane_settle(ln, DIBS__ITEM_ACK, *hand, 0, NULL);
        break;
    default:
        lane_settle(ln, DIBS__ITEM_NACK, *hand, 0, "not now");
        break;
    }
    assert_status(lane_next(ln, 1, false), DIBS_OK); /* settles and takes */
    assert_status(ln->settle[0].rc, DIBS_OK);
    assert_int_equal(ln->count, 1);
    *hand = ln->got[0].token;
}

/* Lives for so many steps, and is never heard of again. The last one settles all
 * that it has before, so that it may shorten the lane. */
static void
live_and_die(contract *t, const char *queue, int steps, int64_t span_ms)
{
    pusher p = queue_pusher(t, 0);
    lane ln = queue_lane(t, 0);
    dibs__token hand = {0};

    p.push.queue = ln.ask.queue = queue;
    for (int i = 0; i < LIFE_ITEMS; i++)
        push_ok(&p, "job");
    for (int step = 1; step <= steps; step++) {
        ln.ask.span_ms = step == steps ? span_ms : LONG_MS;
        live_step(&ln, step, &hand);
    }
}

/* How many are left in the queue; each is acked once. */
static size_t take_and_ack_all(contract *t, const char *queue)
{
    lane ln = queue_lane(t, 1);
    size_t count = 0;

    ln.ask.queue = queue;
    lane_open(&ln);
    for (;;) {
        assert_status(lane_next(&ln, 1, false), DIBS_OK);
        if (ln.count == 0)
            break;
        assert_status(lane_end(&ln, DIBS__ITEM_ACK, ln.got[0].token, 0, NULL),
                      DIBS_OK);
        assert_true(++count <= LIFE_ITEMS);
    }
    lane_leave(&ln);
    return count;
}

/* A request is done or not, so death comes after one of them. */
static void kill_9_anywhere_loses_nothing(void **state)
{
    contract *t = *state;
    int64_t span_ms = contract_brief_ms(BRIEF_MS);
    char queues[LIFE_STEPS + 1][96];

    for (int steps = 0; steps <= LIFE_STEPS; steps++) {
        snprintf(queues[steps], sizeof(queues[steps]), "%s/%d", t->name, steps);
        live_and_die(t, queues[steps], steps, span_ms);
    }
    queue_sleep(span_ms);
    for (int steps = 0; steps <= LIFE_STEPS; steps++)
        assert_int_equal(take_and_ack_all(t, queues[steps]),
                         steps < 3 ? LIFE_ITEMS : LIFE_ITEMS - 1);
}

/* Below a second nothing is rounded away, nor refused. */
static void short_windows_and_ttls(void **state)
{
    contract *t = *state;
    pusher p = queue_pusher(t, 0);
    lane dead = queue_lane(t, 0), ln = queue_lane(t, 1);
    int64_t brief_ms = contract_brief_ms(BRIEF_MS);
    uint64_t first;

    p.item.dedup = "order 1";
    p.item.dedup_ms = brief_ms;
    first = push_ok(&p, "window");
    dead.ask.span_ms = brief_ms;
    lane_open(&dead);
    lane_open(&ln);
    ack(&ln, lane_take(&ln).token);
    queue_sleep(brief_ms);
    assert_true(push_ok(&p, "window over") != first);
    assert_false(p.item.duplicate);
    /* The lane is over as well. */
    assert_status(lane_next(&dead, 1, false), DIBS_LOST);
    assert_string_equal(lane_take(&ln).data, "window over");
}

/* A lane that is over has nothing, whoever draws its number again. */
static void lane_names_are_never_reused(void **state)
{
    contract *t = *state;
    pusher p = queue_pusher(t, 0);
    lane old = queue_lane(t, 0), young = queue_lane(t, 1);
    dibs__token token;

    push_ok(&p, "job");
    lane_open(&old);
    token = lane_take(&old).token;
    lane_leave(&old);
    young.ask.lane = old.ask.lane;
    lane_open(&young);
    assert_status(lane_end(&young, DIBS__ITEM_ACK, token, 0, NULL), DIBS_LOST);
    assert_int_equal(queue_stats(t).ready, 1);
    /* The first owner of the number goes on with its own count of requests. */
    old.ask.number += 5;
    assert_status(lane_next(&old, 1, false), DIBS_LOST);
    assert_int_equal(old.count, 0);
}

/* More dead lanes than one step ends, and more due items than one step moves: the last
 * of them come too. */
static void a_full_batch_of_unrescuable_hides_nothing(void **state)
{
    contract *t = *state;
    pusher p = queue_pusher(t, 0);
    static lane dead[DEAD_LANES];
    lane ln = queue_lane(t, 1);
    dibs__push_item items[DIBS__QUEUE_BATCH];
    int64_t brief_ms = contract_brief_ms(10 * BRIEF_MS);
    size_t got = 0, all = DEAD_LANES + DUE_BATCHES * DIBS__QUEUE_BATCH;
    dibsx_nsec end;

    for (size_t i = 0; i < DEAD_LANES; i++) {
        push_ok(&p, "of a dead lane");
        dead[i] = queue_lane(t, 0);
        lane_open(&dead[i]);
    }
    for (size_t i = 0; i < DEAD_LANES; i++) {
        dead[i].ask.span_ms = brief_ms;
        (void)lane_next(&dead[i], 1, false);
    }
    for (size_t i = 0; i < DIBS__QUEUE_BATCH; i++)
        items[i] = (dibs__push_item){.data = "due",
                                     .len = 3,
                                     .to = "",
                                     .dedup = "",
                                     .delay_ms = brief_ms};
    for (size_t i = 0; i < DUE_BATCHES; i++) {
        p.push.items = items;
        p.push.count = DIBS__QUEUE_BATCH;
        p.push.number++;
        assert_status(pusher_send(&p), DIBS_OK);
    }
    queue_sleep(brief_ms);
    lane_open(&ln);
    end = dibsx_after_ms(dibsx_now(), pace_ms(LONG_MS));
    while (got < all) {
        IN_TIME(dibsx_now() < end);
        assert_status(lane_next(&ln, DIBS__QUEUE_BATCH, false), DIBS_OK);
        got += ln.count;
    }
    assert_int_equal(got, all);
}

static void braces_in_names(void **state)
{
    static const char *const ends[] = {"{a}", "a{b",     "}{",
                                       "{}",  "a}b{c}d", "{a}~done"};
    contract *t = *state;
    dibs__store *st = t->st[0];

    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        char name[DIBS_NAME_MAX + 1];
        pusher p = queue_pusher(t, 0);
        lane ln = queue_lane(t, 1);
        size_t count = 0;
        dibs__token token;

        snprintf(name, sizeof(name), "%s%s", t->name, ends[i]);
        p.push.queue = ln.ask.queue = name;
        push_ok(&p, "dies");
        lane_open(&ln);
        token = lane_take(&ln).token;
        assert_status(lane_end(&ln, DIBS__ITEM_DEAD, token, 0, "why"), DIBS_OK);
        CHECK(DIBS_OK,
              st->ops->queue_admin->redrive(st, name, 0, 1, contract_soon(),
                                            &count, err));
        assert_int_equal(count, 1);
        ack(&ln, lane_take(&ln).token);
        p.item.priority = 1;
        push_ok(&p, "is purged");
        CHECK(DIBS_OK,
              st->ops->queue_admin->purge(st, name, DIBS__PLACE_READY, 9,
                                          contract_soon(), &count, err));
        assert_int_equal(count, 1);
        lane_leave(&ln);
        CHECK(DIBS_OK,
              st->ops->queue_admin->remove(st, name, contract_soon(), err));
    }
}

/* ---- looks while items come and go */

typedef struct traffic {
    contract *t;
    pthread_t thread;
    atomic_bool stop;
    atomic_int rc;
} traffic;

static void *keep_busy(void *arg)
{
    traffic *tr = arg;
    pusher p = queue_pusher(tr->t, 1);
    lane ln = queue_lane(tr->t, 1);

    lane_open(&ln);
    while (!tr->stop && tr->rc == DIBS_OK) {
        p.item.priority = !p.item.priority;
        tr->rc = (int)push_text(&p, "job");
        if (tr->rc == DIBS_OK)
            tr->rc = (int)lane_next(&ln, 1, false);
        if (tr->rc == DIBS_OK && ln.count == 1)
            lane_settle(&ln, DIBS__ITEM_ACK, ln.got[0].token, 0, NULL);
    }
    return NULL;
}

static void stats_never_fail_while_items_go(void **state)
{
    contract *t = *state;
    traffic tr = {.t = t};

    queue_set(t, DIBS__SET_KEEP_DONE, (dibs__queue_conf){.keep_done = 5});
    assert_int_equal(pthread_create(&tr.thread, NULL, keep_busy, &tr), 0);
    for (int i = 0; i < LOOKS; i++) {
        (void)queue_peek(t, DIBS__PLACE_READY, 0, VIEWS_MAX);
        (void)queue_peek(t, DIBS__PLACE_OUT, 0, VIEWS_MAX);
        (void)queue_peek(t, DIBS__PLACE_DONE, 0, VIEWS_MAX);
        assert_true(queue_stats(t).done <= 5);
    }
    tr.stop = true;
    assert_int_equal(pthread_join(tr.thread, NULL), 0);
    assert_status(tr.rc, DIBS_OK);
}

/* ---- the same dedup ids at the same time, each in another order */

typedef struct rival {
    contract *t;
    size_t handle;
    pthread_t thread;
    atomic_int *made;
    atomic_int rc;
} rival;

static void *push_batches(void *arg)
{
    rival *rv = arg;
    pusher p = queue_pusher(rv->t, rv->handle);

    for (int round = 0; round < ROUNDS && rv->rc == DIBS_OK; round++) {
        dibs__push_item items[SHARED_IDS];
        char ids[SHARED_IDS][32];

        for (int i = 0; i < SHARED_IDS; i++) {
            int k = rv->handle == 0 ? i : SHARED_IDS - 1 - i;

            snprintf(ids[i], sizeof(ids[i]), "%d of round %d", k, round);
            items[i] = (dibs__push_item){.data = "job",
                                         .len = 3,
                                         .to = "",
                                         .dedup = ids[i]};
        }
        p.push.items = items;
        p.push.count = SHARED_IDS;
        p.push.number++;
        rv->rc = (int)pusher_send(&p);
        for (int i = 0; i < SHARED_IDS; i++)
            atomic_fetch_add(rv->made,
                             rv->rc == DIBS_OK && !items[i].duplicate);
    }
    return NULL;
}

static void unique_conflict_stops_no_worker(void **state)
{
    contract *t = *state;
    atomic_int made = 0;
    rival rivals[2];

    for (size_t i = 0; i < 2; i++) {
        rivals[i] = (rival){.t = t, .handle = i, .made = &made};
        assert_int_equal(pthread_create(&rivals[i].thread, NULL, push_batches,
                                        &rivals[i]),
                         0);
    }
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(pthread_join(rivals[i].thread, NULL), 0);
    for (size_t i = 0; i < 2; i++)
        if (rivals[i].rc != DIBS_OK)
            FAIL_OF((dibs_status)rivals[i].rc, "a push is %s",
                    dibs_status_name((dibs_status)rivals[i].rc));
    assert_int_equal(made, ROUNDS * SHARED_IDS);
    assert_int_equal(queue_stats(t).ready, ROUNDS * SHARED_IDS);
}

/* ---- work stealing */

static lane worker(contract *t, size_t handle, const char *as)
{
    lane ln = queue_lane(t, handle);

    ln.ask.as = as;
    lane_open(&ln);
    return ln;
}

static void push_for(pusher *p, const char *to, int count)
{
    for (int i = 0; i < count; i++) {
        char text[32];

        snprintf(text, sizeof(text), "%s %d", to, i);
        p->item.to = to;
        push_ok(p, text);
    }
}

static void the_worker_with_most_is_robbed(void **state)
{
    contract *t = *state;
    pusher p = queue_pusher(t, 0);
    lane anna = worker(t, 0, "anna");
    lane bert = worker(t, 1, "bert"), carl = worker(t, 1, "carl");

    push_for(&p, "bert", 2);
    push_for(&p, "carl", 4);
    assert_string_equal(lane_take(&anna).data, "carl 0");
    assert_string_equal(lane_take(&anna).data, "carl 1");
    /* Who has most is decided by what is ready now. */
    assert_string_equal(lane_take(&carl).data, "carl 2");
    assert_string_equal(lane_take(&anna).data, "bert 0");
    assert_string_equal(lane_take(&bert).data, "bert 1");
    assert_string_equal(lane_take(&bert).data, "carl 3");
}

/* Stealing delivers and moves nothing: with all workers after the items of one, each item
 * is delivered once, and what a thief gives back is its owner's first again. */
static void thieves_pass_nothing_to_and_fro(void **state)
{
    contract *t = *state;
    pusher p = queue_pusher(t, 0);
    lane anna = worker(t, 0, "anna");
    lane thieves[] = {worker(t, 0, "bert"), worker(t, 1, "carl")};
    dibs__token first;

    push_for(&p, "anna", JOBS);
    first = lane_take(&thieves[0]).token;
    assert_status(lane_end(&thieves[0], DIBS__ITEM_UNBEGUN, first, 0, NULL),
                  DIBS_OK);
    assert_int_equal(lane_take(&anna).token.id, first.id);
    ack(&anna, anna.got[0].token);
    for (size_t i = 1; i < JOBS; i++) {
        lane *thief = &thieves[i % 2];

        assert_int_equal(lane_take(thief).token.attempt, 1);
        ack(thief, thief->got[0].token);
    }
    assert_int_equal(queue_stats(t).delivered, JOBS + 1);
    assert_int_equal(queue_stats(t).acked, JOBS);
    assert_int_equal(queue_stats(t).ready + queue_stats(t).out, 0);
}

int contract_queue_peers(void)
{
    const struct CMUnitTest tests[] = {
        CONTRACT_TEST(rescue_does_not_undo_a_done),
        CONTRACT_TEST(a_failed_push_does_not_block_its_id),
        CONTRACT_TEST(dead_done_purged_items_free_their_id),
        CONTRACT_TEST(removal_frees_only_its_own_id),
        CONTRACT_TEST(a_window_outlives_a_purge),
        CONTRACT_TEST(max_deliver_frees_the_queue),
        CONTRACT_TEST(plain_items_have_priority_0),
        CONTRACT_TEST(due_after_days),
        CONTRACT_TEST(lost_push_reply_of_a_done_item_makes_none),
        CONTRACT_TEST(kill_9_anywhere_loses_nothing),
        CONTRACT_TEST(short_windows_and_ttls),
        CONTRACT_TEST(lane_names_are_never_reused),
        CONTRACT_TEST(a_full_batch_of_unrescuable_hides_nothing),
        CONTRACT_TEST(braces_in_names),
        CONTRACT_TEST(stats_never_fail_while_items_go),
        CONTRACT_TEST(unique_conflict_stops_no_worker),
        CONTRACT_TEST(the_worker_with_most_is_robbed),
        CONTRACT_TEST(thieves_pass_nothing_to_and_fro),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
