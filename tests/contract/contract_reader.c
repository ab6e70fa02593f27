/* contract_reader.c - readers and writers: each reader a lease of its own,
 * and writers are not starved. */
/* SPDX-License-Identifier: MIT */
#include "contract.h"

static void readers_share_and_exclude_writers(void **state)
{
    actor one = contract_sharer(*state, 0);
    actor two = contract_sharer(*state, 1);
    actor writer = contract_actor(*state, 2);

    assert_status(actor_try(&one), DIBS_OK);
    assert_status(actor_try(&two), DIBS_OK);
    assert_int_not_equal(one.ans.fence, two.ans.fence);
    assert_status(actor_try(&writer), DIBS_BUSY);
    assert_status(actor_release(&one), DIBS_OK);
    assert_status(actor_try(&writer), DIBS_BUSY);
    assert_status(actor_release(&two), DIBS_OK);
    assert_status(actor_try(&writer), DIBS_OK);
    assert_status(actor_try(&one), DIBS_BUSY);
}

static void each_reader_expires_alone(void **state)
{
    actor brief = contract_sharer(*state, 0);
    actor longer = contract_sharer(*state, 1);
    actor writer = contract_actor(*state, 2);
    dibsx_nsec sent_at = dibsx_now();

    brief.ask.ttl_ms = contract_brief_ms(100);
    longer.ask.ttl_ms = contract_brief_ms(500);
    assert_status(actor_try(&brief), DIBS_OK);
    assert_status(actor_try(&longer), DIBS_OK);
    assert_status(actor_until(&writer, CONTRACT_BOUND_MS), DIBS_OK);
    assert_true(contract_ms_since(sent_at) >= 500 - 5 - CONTRACT_DRIFT_MS);
    assert_status(actor_renew(&longer, 60000, NULL), DIBS_LOST);
}

static void a_refused_writer_is_told_when_the_first_could_end(void **state)
{
    actor brief = contract_sharer(*state, 0);
    actor longer = contract_sharer(*state, 1);
    actor writer = contract_actor(*state, 2);

    brief.ask.ttl_ms = 5000;
    longer.ask.ttl_ms = 60000;
    assert_status(actor_try(&brief), DIBS_OK);
    assert_status(actor_try(&longer), DIBS_OK);
    assert_status(actor_try(&writer), DIBS_BUSY);
    assert_true(writer.ans.left_ms > 0 && writer.ans.left_ms <= 5000);
    assert_status(actor_release(&brief), DIBS_OK);
    assert_status(actor_try(&writer), DIBS_BUSY);
    assert_true(writer.ans.left_ms > 5000 && writer.ans.left_ms <= 60000);
}

static void a_waiting_writer_holds_back_new_readers(void **state)
{
    actor one = contract_sharer(*state, 0);
    actor writer = contract_actor(*state, 1);
    actor two = contract_sharer(*state, 2);
    actor three = contract_sharer(*state, 0);

    assert_status(actor_try(&one), DIBS_OK);
    assert_status(actor_queue(&writer), DIBS_BUSY);
    assert_status(actor_try(&two), DIBS_BUSY);
    assert_status(actor_queue(&two), DIBS_BUSY);
    assert_int_equal(two.ans.ahead, 1);
    assert_status(actor_queue(&three), DIBS_BUSY);
    assert_int_equal(three.ans.ahead, 2);
    assert_status(actor_release(&one), DIBS_OK);
    actor_expect_claim(&writer);
    assert_status(actor_queue(&two), DIBS_BUSY);
    assert_status(actor_release(&writer), DIBS_OK);
    actor_expect_claim(&two);
    actor_expect_claim(&three);
    assert_true(three.ans.fence > two.ans.fence); /* granted in one step */
}

static void a_barging_reader_goes_past_a_waiting_writer(void **state)
{
    actor one = contract_sharer(*state, 0);
    actor writer = contract_actor(*state, 1);
    actor two = contract_sharer(*state, 2);
    actor rival = contract_actor(*state, 2);

    assert_status(actor_try(&one), DIBS_OK);
    assert_status(actor_queue(&writer), DIBS_BUSY);
    two.ask.flags = rival.ask.flags = DIBS__ASK_BARGE;
    assert_status(actor_try(&two), DIBS_OK);
    assert_status(actor_try(&rival), DIBS_BUSY);
    assert_status(actor_release(&one), DIBS_OK);
    assert_status(actor_release(&two), DIBS_OK);
    actor_expect_claim(&writer);
}

/* Redisson #7098: the renewal of a live reader kept a dead one alive. */
static void reader_renewal_does_not_extend_a_dead_reader(void **state)
{
    contract *t = *state;
    actor dead = contract_sharer(t, 0);
    actor alive = contract_sharer(t, 1);
    actor writer = contract_actor(t, 2);
    contract_view view;

    dead.ask.ttl_ms = alive.ask.ttl_ms = contract_brief_ms(250);
    assert_status(actor_try(&dead), DIBS_OK);
    assert_status(actor_try(&alive), DIBS_OK);
    assert_status(actor_renew(&alive, 20000, NULL), DIBS_OK);
    contract_await(t, t->name, 1, &view);
    assert_string_equal(view.entries[0].owner, alive.owner);
    assert_status(actor_renew(&alive, 20000, NULL), DIBS_OK);
    assert_status(actor_renew(&dead, 20000, NULL), DIBS_LOST);
    assert_status(actor_try(&writer), DIBS_BUSY);
    assert_status(actor_release(&alive), DIBS_OK);
    assert_status(actor_try(&writer), DIBS_OK);
}

/* Redisson #2144: a reader with a short lease shortened the others'. */
static void a_brief_reader_does_not_shorten_another(void **state)
{
    contract *t = *state;
    actor longer = contract_sharer(t, 0);
    actor brief = contract_sharer(t, 1);
    actor writer = contract_actor(t, 2);
    dibsx_nsec asked_at = dibsx_now();
    contract_view view;
    int64_t left_ms = 0;

    assert_status(actor_try(&longer), DIBS_OK);
    brief.ask.ttl_ms = contract_brief_ms(200);
    assert_status(actor_try(&brief), DIBS_OK);
    assert_status(actor_renew(&brief, contract_brief_ms(250), &left_ms),
                  DIBS_OK);
    assert_true(left_ms <= contract_brief_ms(250));
    contract_await(t, t->name, 1, &view);
    assert_string_equal(view.entries[0].owner, longer.owner);
    assert_true(view.entries[0].left_ms >= longer.ask.ttl_ms -
                                               contract_ms_since(asked_at) -
                                               CONTRACT_DRIFT_MS);
    assert_status(actor_try(&writer), DIBS_BUSY);
    assert_status(actor_renew(&longer, 1, NULL), DIBS_OK);
}

/* The same with a reader that leaves instead of dying. */
static void a_reader_that_leaves_does_not_shorten_another(void **state)
{
    contract *t = *state;
    actor longer = contract_sharer(t, 0);
    actor longest = contract_sharer(t, 1);
    contract_view view;

    longest.ask.ttl_ms = 60000;
    assert_status(actor_try(&longer), DIBS_OK);
    assert_status(actor_try(&longest), DIBS_OK);
    assert_status(actor_release(&longer), DIBS_OK);
    assert_int_equal(contract_look(t, t->name, &view), 1);
    assert_true(view.entries[0].left_ms > 10000);
    assert_status(actor_try(&longer), DIBS_OK);
    assert_status(actor_release(&longest), DIBS_OK);
    assert_int_equal(contract_look(t, t->name, &view), 1);
    assert_string_equal(view.entries[0].owner, longer.owner);
    IN_TIME(view.entries[0].left_ms > 5000);
    assert_true(view.entries[0].left_ms <= 10000);
}

/* Redisson #7251: giving back a read lock that was over touched the rest. */
static void a_dead_readers_release_frees_nothing(void **state)
{
    contract *t = *state;
    actor dead = contract_sharer(t, 0);
    actor alive = contract_sharer(t, 1);
    actor writer = contract_actor(t, 2);
    contract_view view;

    dead.ask.ttl_ms = contract_brief_ms(100);
    assert_status(actor_try(&dead), DIBS_OK);
    assert_status(actor_try(&alive), DIBS_OK);
    contract_await(t, t->name, 1, &view);
    assert_status(actor_release(&dead), DIBS_LOST);
    assert_status(actor_release(&dead), DIBS_LOST);
    assert_status(actor_try(&writer), DIBS_BUSY);
    assert_status(actor_renew(&alive, 20000, NULL), DIBS_OK);
}

/* Readers keep coming, each for longer than the writer should have to wait. */
static void a_writer_waits_for_the_readers_it_found_only(void **state)
{
    contract *t = *state;
    actor writer = contract_actor(t, 1);
    actor barred[3], found[3];
    dibsx_nsec began_at = dibsx_now();
    dibsx_nsec end = dibsx_after_ms(began_at, CONTRACT_BOUND_MS);
    dibs_status rc;

    for (size_t i = 0; i < 3; i++) {
        found[i] = contract_sharer(t, i);
        found[i].ask.ttl_ms = contract_brief_ms(100 * (int64_t)(i + 1));
        assert_status(actor_try(&found[i]), DIBS_OK);
        barred[i] = contract_sharer(t, i);
        barred[i].ask.ttl_ms = 60000;
    }
    while ((rc = actor_queue(&writer)) == DIBS_BUSY && dibsx_now() < end)
        for (size_t i = 0; i < 3; i++)
            /* A place that is not asked for in time is none. */
            IN_TIME((i == 0 ? actor_try(&barred[i])
                            : actor_queue(&barred[i])) == DIBS_BUSY);
    IN_TIME(rc != DIBS_BUSY);
    assert_status(rc, DIBS_OK);
    assert_true(contract_ms_since(began_at) >= 300 - CONTRACT_DRIFT_MS);
    for (size_t i = 0; i < 3; i++)
        assert_status(actor_renew(&found[i], 60000, NULL), DIBS_LOST);
    assert_status(actor_release(&writer), DIBS_OK);
    actor_expect_claim(&barred[1]);
    actor_expect_claim(&barred[2]);
}

static void readers_between_writers_enter_together(void **state)
{
    contract *t = *state;
    actor writers[3], readers[2];

    for (size_t i = 0; i < 3; i++)
        writers[i] = contract_actor(t, i);
    for (size_t i = 0; i < 2; i++)
        readers[i] = contract_sharer(t, i);
    assert_status(actor_try(&writers[0]), DIBS_OK);
    assert_status(actor_queue(&writers[1]), DIBS_BUSY);
    assert_status(actor_queue(&readers[0]), DIBS_BUSY);
    assert_status(actor_queue(&readers[1]), DIBS_BUSY);
    assert_status(actor_queue(&writers[2]), DIBS_BUSY);
    assert_status(actor_release(&writers[0]), DIBS_OK);
    actor_expect_claim(&writers[1]);
    assert_status(actor_queue(&readers[0]), DIBS_BUSY);
    assert_status(actor_release(&writers[1]), DIBS_OK);
    actor_expect_claim(&readers[0]);
    actor_expect_claim(&readers[1]);
    assert_status(actor_release(&readers[1]), DIBS_OK);
    assert_status(actor_queue(&writers[2]), DIBS_BUSY);
    assert_status(actor_release(&readers[0]), DIBS_OK);
    actor_expect_claim(&writers[2]);
}

static void a_reader_of_higher_priority_goes_before_a_writer(void **state)
{
    actor one = contract_sharer(*state, 0);
    actor writer = contract_actor(*state, 1);
    actor urgent = contract_sharer(*state, 2);
    actor patient = contract_sharer(*state, 2);

    assert_status(actor_try(&one), DIBS_OK);
    assert_status(actor_queue(&writer), DIBS_BUSY);
    urgent.ask.priority = 1;
    patient.ask.priority = -1;
    assert_status(actor_queue(&patient), DIBS_BUSY);
    assert_int_equal(patient.ans.ahead, 1);
    assert_status(actor_try(&urgent), DIBS_OK);
    assert_false(urgent.ans.claim);
    assert_status(actor_release(&one), DIBS_OK);
    assert_status(actor_queue(&writer), DIBS_BUSY);
    assert_status(actor_release(&urgent), DIBS_OK);
    actor_expect_claim(&writer);
}

int contract_reader(void)
{
    const struct CMUnitTest tests[] = {
        CONTRACT_TEST(readers_share_and_exclude_writers),
        CONTRACT_TEST(each_reader_expires_alone),
        CONTRACT_TEST(a_refused_writer_is_told_when_the_first_could_end),
        CONTRACT_TEST(a_waiting_writer_holds_back_new_readers),
        CONTRACT_TEST(a_barging_reader_goes_past_a_waiting_writer),
        CONTRACT_TEST(reader_renewal_does_not_extend_a_dead_reader),
        CONTRACT_TEST(a_brief_reader_does_not_shorten_another),
        CONTRACT_TEST(a_reader_that_leaves_does_not_shorten_another),
        CONTRACT_TEST(a_dead_readers_release_frees_nothing),
        CONTRACT_TEST(a_writer_waits_for_the_readers_it_found_only),
        CONTRACT_TEST(readers_between_writers_enter_together),
        CONTRACT_TEST(a_reader_of_higher_priority_goes_before_a_writer),
    };

    return cmocka_run_group_tests_name("reader", tests, NULL, NULL);
}
