/* contract_queue_peers.c - queues: what went wrong with the queues of others
 * (docs/track-record.md), and work stealing as a whole. */
/* SPDX-License-Identifier: MIT */
#include "contract_queue.h"

#include <pthread.h>
#include <stdatomic.h>

enum { BRIEF_MS = 30, ROUNDS = 12, SHARED_IDS = 4, JOBS = 9 };

static void ack(lane *ln, dibs__token token)
{
    assert_status(lane_end(ln, DIBS__ITEM_ACK, token, 0, NULL), DIBS_OK);
}

static size_t purge(contract *t, uint32_t places)
{
    dibs__store *st = t->st[0];
    size_t purged = 0;

    CHECK(DIBS_OK, st->ops->queue_admin->purge(st, t->name, places, 10,
                                               contract_soon(), &purged, err));
    return purged;
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
    assert_int_equal(purge(t, DIBS__PLACE_READY), 1);
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
    assert_int_equal(purge(t, DIBS__PLACE_DEAD), 1);
    assert_int_equal(push_ok(&p, "third"), second);
    assert_true(p.item.duplicate);
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
        CONTRACT_TEST(max_deliver_frees_the_queue),
        CONTRACT_TEST(plain_items_have_priority_0),
        CONTRACT_TEST(due_after_days),
        CONTRACT_TEST(unique_conflict_stops_no_worker),
        CONTRACT_TEST(the_worker_with_most_is_robbed),
        CONTRACT_TEST(thieves_pass_nothing_to_and_fro),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
