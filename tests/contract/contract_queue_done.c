/* contract_queue_done.c - queues: the records of done items that a queue keeps. */
/* SPDX-License-Identifier: MIT */
#include "contract_queue.h"

static void keep(contract *t, uint32_t count)
{
    queue_set(t, DIBS__SET_KEEP_DONE, (dibs__queue_conf){.keep_done = count});
}

/* Pushes, takes and acks an item, with its text for the result. */
static dibs__token do_item(pusher *p, lane *ln, const char *text)
{
    taken got;

    push_ok(p, text);
    got = lane_take(ln);
    assert_string_equal(got.data, text);
    assert_status(lane_end(ln, DIBS__ITEM_ACK, got.token, 0, text), DIBS_OK);
    return got.token;
}

static void done_items_leave_no_record_unless_asked(void **state)
{
    contract *t = *state;
    pusher p = queue_pusher(t, 0);
    lane ln = queue_lane(t, 0);

    lane_open(&ln);
    do_item(&p, &ln, "a");
    assert_int_equal(queue_stats(t).done, 0);
    assert_int_equal(queue_stats(t).acked, 1);
    assert_int_equal(queue_peek(t, DIBS__PLACE_DONE, 0, 10).count, 0);
}

static void the_last_done_items_are_kept_with_results(void **state)
{
    contract *t = *state;
    pusher p = queue_pusher(t, 0);
    lane ln = queue_lane(t, 0);
    dibs__token token[4];
    queue_views done;

    keep(t, 3);
    lane_open(&ln);
    token[0] = do_item(&p, &ln, "a");
    token[1] = do_item(&p, &ln, "b");
    p.item.priority = 7;
    p.item.dedup = "order 17";
    token[2] = do_item(&p, &ln, "c");
    p.item.priority = 0;
    p.item.dedup = "";
    token[3] = do_item(&p, &ln, "d");

    done = queue_peek(t, DIBS__PLACE_DONE, 0, 10);
    assert_int_equal(done.count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(done.item[i].id, token[3 - i].id);
        assert_int_equal(done.item[i].place, DIBS__PLACE_DONE);
        assert_int_equal(done.item[i].attempts, 1);
        assert_true(done.item[i].ended_wall_us > 0);
        assert_string_equal(done.item[i].reason, "");
    }
    assert_string_equal(done.data[0], "d");
    assert_string_equal(done.data[2], "b");
    assert_int_equal(done.item[1].priority, 7);
    assert_string_equal(done.item[1].dedup, "order 17");
    assert_int_equal(queue_stats(t).done, 3);
    assert_int_equal(queue_stats(t).conf.keep_done, 3);

    done = queue_peek(t, DIBS__PLACE_DONE, 1, 1);
    assert_int_equal(done.count, 1);
    assert_string_equal(done.data[0], "c");
    assert_int_equal(queue_peek(t, DIBS__PLACE_DONE, 3, 5).count, 0);
}

static void acks_of_one_step_are_recorded_in_order(void **state)
{
    contract *t = *state;
    pusher p = queue_pusher(t, 0);
    lane ln = queue_lane(t, 0);
    queue_views done;

    keep(t, 10);
    lane_open(&ln);
    push_ok(&p, "a");
    push_ok(&p, "b");
    push_ok(&p, "c");
    assert_status(lane_next(&ln, 3, false), DIBS_OK);
    lane_settle(&ln, DIBS__ITEM_ACK, ln.got[1].token, 0, "second");
    lane_settle(&ln, DIBS__ITEM_ACK, ln.got[0].token, 0, NULL);
    lane_settle(&ln, DIBS__ITEM_NACK, ln.got[2].token, 0, "not yet");
    assert_status(lane_next(&ln, 1, false), DIBS_OK);
    lane_settle(&ln, DIBS__ITEM_ACK, ln.got[0].token, 0, "third");
    assert_status(lane_next(&ln, 0, false), DIBS_OK);

    done = queue_peek(t, DIBS__PLACE_DONE, 0, 10);
    assert_int_equal(done.count, 3);
    assert_string_equal(done.data[0], "third");
    assert_int_equal(done.item[0].attempts, 2);
    assert_string_equal(done.data[1], "");
    assert_string_equal(done.data[2], "second");
}

/* A late or repeated ack is no work that was accepted: it leaves no second record. */
static void one_record_for_each_accepted_ack(void **state)
{
    contract *t = *state;
    pusher p = queue_pusher(t, 0);
    lane ln = queue_lane(t, 0), other = queue_lane(t, 1);
    dibs__token token;

    keep(t, 10);
    lane_open(&ln);
    lane_open(&other);
    token = do_item(&p, &ln, "a");
    assert_status(lane_end(&ln, DIBS__ITEM_ACK, token, 0, "again"), DIBS_LOST);
    assert_status(lane_end(&other, DIBS__ITEM_ACK, token, 0, "late"),
                  DIBS_LOST);
    push_ok(&p, "b");
    token = lane_take(&ln).token;
    lane_settle(&ln, DIBS__ITEM_ACK, token, 0, "b");
    ln.ask.want = 0;
    ln.ask.seen = ln.ask.stamp;
    ln.ask.number++;
    assert_status(lane_send(&ln), DIBS_OK);
    assert_status(lane_send(&ln), DIBS_OK); /* its answer was lost */
    assert_status(ln.settle[0].rc, DIBS_OK);
    assert_int_equal(queue_stats(t).done, 2);
}

static void a_result_is_cut_at_a_character(void **state)
{
    contract *t = *state;
    pusher p = queue_pusher(t, 0);
    lane ln = queue_lane(t, 0);
    char text[DIBS__RESULT_MAX + 8];
    queue_views done;
    dibs__token token;

    memset(text, 'x', sizeof(text));
    memcpy(text + DIBS__RESULT_MAX - 2, "\xc3\xa9", 3);
    keep(t, 1);
    lane_open(&ln);
    push_ok(&p, "a");
    token = lane_take(&ln).token;
    assert_status(lane_end(&ln, DIBS__ITEM_ACK, token, 0, text), DIBS_OK);
    done = queue_peek(t, DIBS__PLACE_DONE, 0, 1);
    assert_int_equal(done.count, 1);
    assert_int_equal(done.item[0].len, DIBS__RESULT_MAX - 2);
}

static void fewer_records_are_kept_when_the_bound_falls(void **state)
{
    contract *t = *state;
    pusher p = queue_pusher(t, 0);
    lane ln = queue_lane(t, 0);

    keep(t, 5);
    lane_open(&ln);
    do_item(&p, &ln, "a");
    do_item(&p, &ln, "b");
    do_item(&p, &ln, "c");
    keep(t, 2);
    assert_int_equal(queue_stats(t).done, 2);
    assert_string_equal(queue_peek(t, DIBS__PLACE_DONE, 1, 1).data[0], "b");
    keep(t, 0);
    assert_int_equal(queue_stats(t).done, 0);
    keep(t, 5);
    assert_int_equal(queue_stats(t).done, 0);
}

static void records_are_purged_and_removed(void **state)
{
    contract *t = *state;
    dibs__store *st = t->st[0];
    pusher p = queue_pusher(t, 0);
    lane ln = queue_lane(t, 0);

    keep(t, 5);
    lane_open(&ln);
    do_item(&p, &ln, "a");
    do_item(&p, &ln, "b");
    do_item(&p, &ln, "c");
    assert_int_equal(queue_purge(t, DIBS__PLACE_READY | DIBS__PLACE_DEAD, 9),
                     0);
    assert_int_equal(queue_purge(t, DIBS__PLACE_DONE, 1), 1);
    assert_string_equal(queue_peek(t, DIBS__PLACE_DONE, 1, 1).data[0], "b");
    assert_int_equal(queue_purge(t, DIBS__PLACE_DONE, 9), 2);
    assert_int_equal(queue_stats(t).done, 0);
    assert_int_equal(queue_stats(t).purged, 0);

    do_item(&p, &ln, "d");
    lane_leave(&ln);
    CHECK(DIBS_OK,
          st->ops->queue_admin->remove(st, t->name, contract_soon(), err));
    keep(t, 5);
    assert_int_equal(queue_stats(t).done, 0);
}

/* A store that drops records beyond the bound only now and then shows none of them again. */
static void records_beyond_the_bound_do_not_come_back(void **state)
{
    contract *t = *state;
    pusher p = queue_pusher(t, 0);
    lane ln = queue_lane(t, 0);

    keep(t, 2);
    lane_open(&ln);
    for (int i = 0; i < 6; i++)
        do_item(&p, &ln, "a");
    assert_int_equal(queue_purge(t, DIBS__PLACE_DONE, 9), 2);
    assert_int_equal(queue_stats(t).done, 0);
    assert_int_equal(queue_peek(t, DIBS__PLACE_DONE, 0, 9).count, 0);
    for (int i = 0; i < 6; i++)
        do_item(&p, &ln, "b");
    keep(t, 9);
    assert_int_equal(queue_stats(t).done, 2);
}

int contract_queue_done(void)
{
    const struct CMUnitTest tests[] = {
        CONTRACT_TEST(done_items_leave_no_record_unless_asked),
        CONTRACT_TEST(the_last_done_items_are_kept_with_results),
        CONTRACT_TEST(acks_of_one_step_are_recorded_in_order),
        CONTRACT_TEST(one_record_for_each_accepted_ack),
        CONTRACT_TEST(a_result_is_cut_at_a_character),
        CONTRACT_TEST(fewer_records_are_kept_when_the_bound_falls),
        CONTRACT_TEST(records_are_purged_and_removed),
        CONTRACT_TEST(records_beyond_the_bound_do_not_come_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
