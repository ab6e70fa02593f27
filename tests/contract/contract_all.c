/* contract_all.c - several names in one step: all of them or none.
 *
 * A store that cannot do these names in one step says so, and the tests are
 * skipped on it. */
/* SPDX-License-Identifier: MIT */
#include "contract.h"

enum { SET = 5 };

/* A set of names with one actor for each. The braces are for stores that place
 * names by what is between them. */
typedef struct set {
    contract *t;
    size_t count;
    size_t blocked; /* of the last ask */
    char names[DIBS__ALL_MAX][96];
    actor actors[DIBS__ALL_MAX];
    dibs_error err;
} set;

static void set_init(set *s, contract *t, size_t count)
{
    *s = (set){.t = t, .count = count};
    for (size_t i = 0; i < count; i++) {
        snprintf(s->names[i], sizeof(s->names[i]), "%s/{set}%zu %s", t->name, i,
                 i % 2 ? "*odd" : "}plain{");
        s->actors[i] = contract_actor(t, 0);
        s->actors[i].ask.name = s->names[i];
    }
}

/* Another set on the same names, through another handle. */
static void set_rival(set *s, const set *other)
{
    set_init(s, other->t, other->count);
    for (size_t i = 0; i < s->count; i++)
        s->actors[i].handle = 1;
}

static actor set_other(const set *s, size_t i, size_t handle)
{
    actor a = contract_actor(s->t, handle);

    a.ask.name = s->names[i];
    return a;
}

static dibs_status set_ask_by(set *s, dibsx_nsec deadline)
{
    dibs__store *st = s->t->st[s->actors[0].handle];
    dibs__ask asks[DIBS__ALL_MAX];
    dibs__answer answers[DIBS__ALL_MAX];
    dibs_status rc;

    if (!st->ops->lease->acquire_all)
        skip();
    memset(answers, 0, sizeof(answers));
    memset(&s->err, 0, sizeof(s->err));
    s->blocked = SIZE_MAX;
    for (size_t i = 0; i < s->count; i++) {
        asks[i] = s->actors[i].ask;
        asks[i].owner = s->actors[i].owner;
    }
    rc = st->ops->lease->acquire_all(st, asks, s->count, deadline, answers,
                                     &s->blocked, &s->err);
    if (rc == DIBS_UNSUPPORTED)
        skip();
    for (size_t i = 0; rc == DIBS_OK && i < s->count; i++)
        s->actors[i].ans = answers[i];
    return rc;
}

static dibs_status set_ask(set *s)
{
    return set_ask_by(s, contract_soon());
}

static dibs_status set_until(set *s)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), CONTRACT_BOUND_MS);
    dibs_status rc;

    while ((rc = set_ask(s)) == DIBS_BUSY && dibsx_now() < end)
        contract_sleep_until(dibsx_now() + 5 * DIBSX_MS);
    IN_TIME(rc != DIBS_BUSY);
    return rc;
}

static void expect_unused(set *s, size_t i)
{
    contract_view view;

    assert_int_equal(contract_look(s->t, s->names[i], &view), 0);
}

/* Names from the first to the last but one that blocks hold no trace. */
static void expect_blocked(set *s, dibs_status want, size_t blocked)
{
    assert_status(set_ask(s), want);
    assert_int_equal(s->err.status, want);
    assert_int_equal(s->blocked, blocked);
    for (size_t i = 0; i < s->count; i++)
        if (i != blocked)
            expect_unused(s, i);
}

static void all_names_are_taken_in_one_step(void **state)
{
    contract_view view;
    set s;

    set_init(&s, *state, SET);
    assert_status(set_ask(&s), DIBS_OK);
    for (size_t i = 0; i < SET; i++) {
        actor *a = &s.actors[i];
        actor other = set_other(&s, i, 1);

        assert_true(a->ans.fence > 0);
        assert_true(a->ans.left_ms > 0 && a->ans.left_ms <= a->ask.ttl_ms);
        assert_false(a->ans.claim || a->ans.queued);
        for (size_t k = 0; k < i; k++)
            assert_int_not_equal(a->ans.fence, s.actors[k].ans.fence);
        assert_int_equal(contract_look(s.t, s.names[i], &view), 1);
        assert_string_equal(view.entries[0].owner, a->owner);
        assert_string_equal(view.entries[0].who, a->ask.who);
        assert_true(view.entries[0].holder && !view.entries[0].claim);
        assert_int_equal(view.entries[0].mode, DIBS__EXCLUSIVE);
        assert_int_equal(view.entries[0].fence, a->ans.fence);
        assert_status(actor_try(&other), DIBS_BUSY);
        assert_true(other.ans.fence >= a->ans.fence);
        assert_status(actor_renew(a, 20000, NULL), DIBS_OK);
        assert_status(actor_release(a), DIBS_OK);
        assert_status(actor_try(&other), DIBS_OK);
        assert_true(other.ans.fence > a->ans.fence);
    }
}

static void one_owner_may_take_them_all(void **state)
{
    set s;

    set_init(&s, *state, SET);
    for (size_t i = 1; i < SET; i++)
        memcpy(s.actors[i].owner, s.actors[0].owner, DIBS_OWNER_SIZE);
    assert_status(set_ask(&s), DIBS_OK);
    for (size_t i = 0; i < SET; i++)
        assert_status(actor_renew(&s.actors[i], 20000, NULL), DIBS_OK);
    assert_status(actor_release(&s.actors[2]), DIBS_OK);
    expect_unused(&s, 2);
    for (size_t i = 0; i < SET; i++)
        assert_status(actor_release(&s.actors[i]),
                      i == 2 ? DIBS_LOST : DIBS_OK);
}

static void one_name_or_as_many_as_may_be(void **state)
{
    const size_t counts[] = {1, DIBS__ALL_MAX};

    for (size_t k = 0; k < 2; k++) {
        actor other;
        set s, rival;

        set_init(&s, *state, counts[k]);
        assert_status(set_ask(&s), DIBS_OK);
        set_rival(&rival, &s);
        assert_status(set_ask(&rival), DIBS_BUSY);
        assert_int_equal(rival.blocked, 0);
        other = set_other(&s, s.count - 1, 1);
        assert_status(actor_try(&other), DIBS_BUSY);
        for (size_t i = 0; i < s.count; i++)
            assert_status(actor_release(&s.actors[i]), DIBS_OK);
        assert_status(set_ask(&rival), DIBS_OK);
        for (size_t i = 0; i < s.count; i++)
            assert_status(actor_release(&rival.actors[i]), DIBS_OK);
    }
}

/* In whatever place the name is that blocks. */
static void a_held_name_blocks_all_and_nothing_is_left_behind(void **state)
{
    set s;

    set_init(&s, *state, SET);
    for (size_t i = 0; i < SET; i++) {
        actor holder = set_other(&s, i, 1);
        dibs__renewal item = {.name = s.names[i],
                              .owner = holder.owner,
                              .ttl_ms = 20000};
        dibs__store *st = s.t->st[1];
        contract_view view;

        assert_status(actor_try(&holder), DIBS_OK);
        expect_blocked(&s, DIBS_BUSY, i);
        assert_int_equal(contract_look(s.t, s.names[i], &view), 1);
        assert_int_equal(view.entries[0].fence, holder.ans.fence);
        item.fence = holder.ans.fence;
        assert_status(st->ops->lease->renew(st, &item, 1, contract_soon(),
                                            &s.err),
                      DIBS_OK);
        assert_status(item.rc, DIBS_OK);
        assert_false(item.wanted);
        assert_status(actor_release(&holder), DIBS_OK);
        expect_unused(&s, i); /* nobody was waiting */
    }
    assert_status(set_ask(&s), DIBS_OK);
}

static void the_first_that_blocks_is_named(void **state)
{
    actor two, four;
    set s;

    set_init(&s, *state, SET);
    two = set_other(&s, 2, 1);
    four = set_other(&s, 4, 2);
    assert_status(actor_try(&four), DIBS_OK);
    assert_status(actor_try(&two), DIBS_OK);
    assert_status(set_ask(&s), DIBS_BUSY);
    assert_int_equal(s.blocked, 2);
    assert_status(actor_release(&two), DIBS_OK);
    expect_blocked(&s, DIBS_BUSY, 4);
    assert_status(actor_release(&four), DIBS_OK);
    assert_status(set_ask(&s), DIBS_OK);
}

/* Who holds some of it cannot stand in a circle with who holds the rest. */
static void sets_that_overlap_do_not_lock_each_other_out(void **state)
{
    actor swap;
    set s, rival;

    set_init(&s, *state, 2);
    set_rival(&rival, &s);
    swap = rival.actors[0];
    rival.actors[0] = rival.actors[1];
    rival.actors[1] = swap;
    for (int i = 0; i < 10; i++) {
        set *first = i % 2 ? &s : &rival;
        set *second = i % 2 ? &rival : &s;

        assert_status(set_ask(first), DIBS_OK);
        assert_status(set_ask(second), DIBS_BUSY);
        for (size_t k = 0; k < 2; k++)
            assert_status(actor_release(&first->actors[k]), DIBS_OK);
        assert_status(set_ask(second), DIBS_OK);
        for (size_t k = 0; k < 2; k++)
            assert_status(actor_release(&second->actors[k]), DIBS_OK);
    }
}

static void a_shared_name_blocks(void **state)
{
    actor reader;
    set s;

    set_init(&s, *state, SET);
    reader = set_other(&s, 1, 1);
    reader.ask.mode = DIBS__SHARED;
    assert_status(actor_try(&reader), DIBS_OK);
    expect_blocked(&s, DIBS_BUSY, 1);
    assert_status(actor_renew(&reader, 20000, NULL), DIBS_OK);
    assert_status(actor_release(&reader), DIBS_OK);
    assert_status(set_ask(&s), DIBS_OK);
}

static void a_name_of_another_kind_is_a_mismatch(void **state)
{
    actor holder;
    set s;

    set_init(&s, *state, SET);
    holder = set_other(&s, 3, 1);
    holder.ask.mode = DIBS__PERMITS;
    holder.ask.capacity = 4;
    assert_status(actor_try(&holder), DIBS_OK);
    expect_blocked(&s, DIBS_MISMATCH, 3);
    assert_status(actor_renew(&holder, 20000, NULL), DIBS_OK);
    assert_status(actor_release(&holder), DIBS_OK);
    assert_status(set_ask(&s), DIBS_OK);
}

static void a_kept_name_blocks_until_its_time(void **state)
{
    dibsx_nsec left_at;
    actor holder;
    set s;

    set_init(&s, *state, SET);
    holder = set_other(&s, 1, 1);
    assert_status(actor_try(&holder), DIBS_OK);
    left_at = dibsx_now();
    assert_status(actor_leave(&holder, false, 250), DIBS_OK);
    IN_TIME(set_ask(&s) == DIBS_BUSY);
    assert_status(set_until(&s), DIBS_OK);
    assert_true(contract_ms_since(left_at) >= 250 - CONTRACT_DRIFT_MS);
}

/* The dead holder's time is over and nobody has served the queue yet: who waits
 * has the right of it. */
static void a_set_does_not_go_past_those_who_wait(void **state)
{
    actor dead, waiter;
    contract_view view;
    set s;

    set_init(&s, *state, SET);
    dead = set_other(&s, 2, 1);
    waiter = set_other(&s, 2, 2);
    dead.ask.ttl_ms = contract_brief_ms(200);
    assert_status(actor_try(&dead), DIBS_OK);
    IN_TIME(actor_queue(&waiter) == DIBS_BUSY);
    contract_await(s.t, s.names[2], 1, &view);
    expect_blocked(&s, DIBS_BUSY, 2);
    assert_status(actor_until(&waiter, CONTRACT_BOUND_MS), DIBS_OK);
    expect_blocked(&s, DIBS_BUSY, 2);
    assert_status(actor_release(&waiter), DIBS_OK);
    assert_status(set_ask(&s), DIBS_OK);
}

static void a_claim_blocks(void **state)
{
    actor holder, waiter;
    set s;

    set_init(&s, *state, SET);
    holder = set_other(&s, 0, 1);
    waiter = set_other(&s, 0, 2);
    assert_status(actor_try(&holder), DIBS_OK);
    assert_status(actor_queue(&waiter), DIBS_BUSY);
    assert_status(actor_release(&holder), DIBS_OK);
    expect_blocked(&s, DIBS_BUSY, 0);
    actor_expect_claim(&waiter);
    assert_status(actor_release(&waiter), DIBS_OK);
    assert_status(set_ask(&s), DIBS_OK);
}

static void the_dead_block_no_longer_than_their_leases(void **state)
{
    const dibs__mode modes[SET] = {DIBS__EXCLUSIVE, DIBS__SHARED,
                                   DIBS__EXCLUSIVE, DIBS__SHARED,
                                   DIBS__PERMITS};
    dibsx_nsec began_at = dibsx_now();
    dibsx_nsec end = dibsx_after_ms(began_at, CONTRACT_BOUND_MS);
    dibs_status rc;
    set s;

    set_init(&s, *state, SET);
    for (size_t i = 0; i < SET; i++) {
        actor dead = set_other(&s, i, 1);

        dead.ask.ttl_ms = contract_brief_ms(100 + 10 * (int64_t)i);
        dead.ask.mode = modes[i];
        dead.ask.capacity = modes[i] == DIBS__PERMITS ? 4 : 0;
        assert_status(actor_try(&dead), DIBS_OK);
    }
    while ((rc = set_ask(&s)) != DIBS_OK && dibsx_now() < end) {
        if (rc != DIBS_BUSY)
            assert_status(rc, DIBS_MISMATCH);
        contract_sleep_until(dibsx_now() + 5 * DIBSX_MS);
    }
    IN_TIME(rc == DIBS_OK);
    assert_true(contract_ms_since(began_at) >= 140 - CONTRACT_DRIFT_MS);
}

static void a_repeated_ask_answers_the_same_leases(void **state)
{
    uint64_t fences[SET];
    set s;

    set_init(&s, *state, SET);
    assert_status(set_ask(&s), DIBS_OK);
    for (size_t i = 0; i < SET; i++) {
        fences[i] = s.actors[i].ans.fence;
        s.actors[i].ask.ttl_ms *= 10;
        s.actors[i].handle = 1; /* a retry may come over another connection */
    }
    for (int round = 0; round < 3; round++) {
        assert_status(set_ask(&s), DIBS_OK);
        for (size_t i = 0; i < SET; i++) {
            assert_int_equal(s.actors[i].ans.fence, fences[i]);
            assert_true(s.actors[i].ans.left_ms <= 10000);
        }
    }
    assert_status(actor_try(&s.actors[3]), DIBS_OK);
    assert_int_equal(s.actors[3].ans.fence, fences[3]);
}

/* As that of one name: an answer that says "held" has time left. */
static void the_last_millisecond_of_one_loses_all(void **state)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), CONTRACT_BOUND_MS);
    dibs_status rc;
    set s;

    set_init(&s, *state, 2);
    s.actors[0].ask.ttl_ms = 2 * CONTRACT_BOUND_MS;
    s.actors[1].ask.ttl_ms = contract_brief_ms(20);
    do {
        rc = set_ask(&s);
        if (rc == DIBS_OK)
            assert_true(s.actors[1].ans.left_ms > 0);
        else
            assert_string_not_equal(s.err.origin, "ODD");
    } while (rc != DIBS_LOST && dibsx_now() < end);
    IN_TIME(rc == DIBS_LOST);
    assert_int_equal(s.blocked, 1);
}

/* What its owner has by another ask counts as taken, and is not given up when
 * the rest cannot be had: no step shortens a lease. */
static void what_is_held_already_stays_held(void **state)
{
    contract_view view;
    actor holder;
    uint64_t fence;
    set s;

    set_init(&s, *state, SET);
    assert_status(actor_try(&s.actors[1]), DIBS_OK);
    fence = s.actors[1].ans.fence;
    holder = set_other(&s, 3, 1);
    assert_status(actor_try(&holder), DIBS_OK);
    assert_status(set_ask(&s), DIBS_BUSY);
    assert_int_equal(s.blocked, 3);
    assert_int_equal(contract_look(s.t, s.names[1], &view), 1);
    assert_int_equal(view.entries[0].fence, fence);
    expect_unused(&s, 0);
    expect_unused(&s, 4);
    assert_status(actor_release(&holder), DIBS_OK);
    assert_status(set_ask(&s), DIBS_OK);
    assert_int_equal(s.actors[1].ans.fence, fence);
    assert_true(s.actors[0].ans.fence > fence);
}

static void anothers_tombstone_does_not_block(void **state)
{
    actor gone;
    set s;

    set_init(&s, *state, SET);
    gone = set_other(&s, 1, 1);
    assert_status(actor_leave(&gone, true, 0), DIBS_LOST);
    assert_status(set_ask(&s), DIBS_OK);
    assert_status(actor_queue(&gone), DIBS_LOST);
}

/* Who was refused waits for the name that blocked, and asks for all when it has
 * that one: its place and its claim are not lost by asking. */
static void a_place_and_a_claim_of_ones_own_stay(void **state)
{
    contract_view view;
    actor holder;
    set s;

    set_init(&s, *state, SET);
    holder = set_other(&s, 2, 1);
    assert_status(actor_try(&holder), DIBS_OK);
    assert_status(actor_queue(&s.actors[2]), DIBS_BUSY);
    s.actors[2].ask.flags = 0;
    assert_status(set_ask(&s), DIBS_BUSY);
    assert_int_equal(s.blocked, 2);
    assert_int_equal(contract_look(s.t, s.names[2], &view), 2);
    assert_string_equal(view.entries[1].owner, s.actors[2].owner);
    assert_status(actor_release(&holder), DIBS_OK);
    actor_expect_claim(&s.actors[2]);
    s.actors[2].ask.flags = 0;
    assert_status(set_ask(&s), DIBS_OK);
    for (size_t i = 0; i < SET; i++) {
        assert_int_equal(s.actors[i].ans.claim, i == 2);
        assert_status(actor_renew(&s.actors[i], 20000, NULL), DIBS_OK);
    }
    assert_true(s.actors[2].ans.left_ms <= DIBS__CLAIM_MS);
}

/* The set was given up before the ask reached the store. */
static void one_who_has_left_a_name_gets_none(void **state)
{
    set s;

    set_init(&s, *state, SET);
    assert_status(actor_leave(&s.actors[2], true, 0), DIBS_LOST);
    assert_status(set_ask(&s), DIBS_LOST);
    assert_status(s.err.status, DIBS_LOST);
    assert_int_equal(s.blocked, 2);
    for (size_t i = 0; i < SET; i++)
        expect_unused(&s, i);
}

static void others_may_wait_for_each_of_them(void **state)
{
    actor waiters[SET];
    set s;

    set_init(&s, *state, SET);
    assert_status(set_ask(&s), DIBS_OK);
    for (size_t i = 0; i < SET; i++) {
        waiters[i] = set_other(&s, i, 1 + i % 2);
        assert_status(actor_queue(&waiters[i]), DIBS_BUSY);
    }
    for (size_t i = 0; i < SET; i++) {
        assert_status(actor_release(&s.actors[i]), DIBS_OK);
        actor_expect_claim(&waiters[i]);
    }
}

static void each_of_them_expires_alone(void **state)
{
    contract_view view;
    set s;

    set_init(&s, *state, SET);
    s.actors[2].ask.ttl_ms = contract_brief_ms(100);
    assert_status(set_ask(&s), DIBS_OK);
    contract_await(s.t, s.names[2], 0, &view);
    for (size_t i = 0; i < SET; i++)
        assert_status(actor_renew(&s.actors[i], 20000, NULL),
                      i == 2 ? DIBS_LOST : DIBS_OK);
}

static void their_holder_can_be_notified(void **state)
{
    uint64_t fence = 0;
    actor other;
    set s;

    set_init(&s, *state, SET);
    s.actors[1].ask.flags = DIBS__ASK_TELL;
    assert_status(set_ask(&s), DIBS_OK);
    for (size_t i = 0; i < SET; i++) {
        dibs__store *st = s.t->st[2];
        uint32_t asked = 0;

        assert_status(st->ops->lease->yield(st, s.names[i], 0, contract_soon(),
                                            &asked, &s.err),
                      DIBS_OK);
        assert_int_equal(asked, 1);
        IN_TIME(actor_notified(&s.actors[i], DIBS__NOTICE_YIELD, &fence));
        assert_int_equal(fence, s.actors[i].ans.fence);
        other = set_other(&s, i, 2);
        assert_status(actor_try(&other), DIBS_BUSY);
    }
    IN_TIME(actor_notified(&s.actors[1], DIBS__NOTICE_WANTED, &fence));
    assert_int_equal(fence, s.actors[1].ans.fence);
    actor_expect_quiet(&s.actors[2], DIBS__NOTICE_WANTED);
}

/* A sticky holder that is idle must give way to who asks for a set, too. */
static void a_holder_is_told_that_a_set_wants_its_name(void **state)
{
    uint64_t fence = 0;
    actor holder;
    set s;

    set_init(&s, *state, SET);
    holder = set_other(&s, 2, 1);
    holder.ask.flags = DIBS__ASK_TELL;
    assert_status(actor_try(&holder), DIBS_OK);
    expect_blocked(&s, DIBS_BUSY, 2);
    IN_TIME(actor_notified(&holder, DIBS__NOTICE_WANTED, &fence));
    assert_int_equal(fence, holder.ans.fence);
}

static void a_past_deadline_takes_none(void **state)
{
    set s;

    set_init(&s, *state, SET);
    assert_status(set_ask_by(&s, dibsx_now() - DIBSX_SEC), DIBS_UNAVAIL);
    for (size_t i = 0; i < SET; i++)
        expect_unused(&s, i);
}

int contract_all(void)
{
    const struct CMUnitTest tests[] = {
        CONTRACT_TEST(all_names_are_taken_in_one_step),
        CONTRACT_TEST(one_owner_may_take_them_all),
        CONTRACT_TEST(one_name_or_as_many_as_may_be),
        CONTRACT_TEST(a_held_name_blocks_all_and_nothing_is_left_behind),
        CONTRACT_TEST(the_first_that_blocks_is_named),
        CONTRACT_TEST(sets_that_overlap_do_not_lock_each_other_out),
        CONTRACT_TEST(a_shared_name_blocks),
        CONTRACT_TEST(a_name_of_another_kind_is_a_mismatch),
        CONTRACT_TEST(a_kept_name_blocks_until_its_time),
        CONTRACT_TEST(a_set_does_not_go_past_those_who_wait),
        CONTRACT_TEST(a_claim_blocks),
        CONTRACT_TEST(the_dead_block_no_longer_than_their_leases),
        CONTRACT_TEST(a_repeated_ask_answers_the_same_leases),
        CONTRACT_TEST(the_last_millisecond_of_one_loses_all),
        CONTRACT_TEST(what_is_held_already_stays_held),
        CONTRACT_TEST(anothers_tombstone_does_not_block),
        CONTRACT_TEST(a_place_and_a_claim_of_ones_own_stay),
        CONTRACT_TEST(one_who_has_left_a_name_gets_none),
        CONTRACT_TEST(others_may_wait_for_each_of_them),
        CONTRACT_TEST(each_of_them_expires_alone),
        CONTRACT_TEST(their_holder_can_be_notified),
        CONTRACT_TEST(a_holder_is_told_that_a_set_wants_its_name),
        CONTRACT_TEST(a_past_deadline_takes_none),
    };

    return cmocka_run_group_tests_name("all", tests, NULL, NULL);
}
