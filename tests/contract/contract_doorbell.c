/* contract_doorbell.c - the doorbell: notices reach the right handle, once heard it
 * is quiet, and nothing rests on it. */
/* SPDX-License-Identifier: MIT */
#include "contract.h"

#include <poll.h>
#include <string.h>

static bool readable(int fd)
{
    struct pollfd bell = {.fd = fd, .events = POLLIN};

    return poll(&bell, 1, 0) == 1;
}

static void opening_it_again_gives_the_same_doorbell(void **state)
{
    contract *t = *state;
    dibs_error err = {0};
    int fd = -1;

    assert_status(t->st[0]->ops->doorbell_open(t->st[0], contract_soon(), &fd,
                                               &err),
                  DIBS_OK);
    assert_int_equal(fd, t->bell[0]);
}

/* Nor does it talk to the server: the deadline has passed, and it is in time. */
static void opening_it_again_takes_no_time(void **state)
{
    contract *t = *state;
    dibs_error err = {0};
    int fd = -1;

    assert_status(t->st[0]->ops->doorbell_open(t->st[0], 0, &fd, &err),
                  DIBS_OK);
    assert_int_equal(fd, t->bell[0]);
}

static void a_quiet_doorbell_has_nothing_to_read(void **state)
{
    contract *t = *state;
    actor a = contract_actor(t, 0);
    dibs__notice notice;

    assert_status(actor_try(&a), DIBS_OK);
    assert_status(actor_release(&a), DIBS_OK);
    assert_int_equal(t->st[0]->ops->doorbell_read(t->st[0], &notice, 1), 0);
}

static void a_doorbell_that_was_read_is_quiet_again(void **state)
{
    contract *t = *state;
    actor a = contract_actor(t, 0);
    actor b = contract_actor(t, 1);
    dibsx_nsec end;
    uint64_t fence = 0;

    assert_status(actor_try(&a), DIBS_OK);
    assert_status(actor_queue(&b), DIBS_BUSY);
    assert_status(actor_release(&a), DIBS_OK);
    IN_TIME(actor_notified(&b, DIBS__NOTICE_GRANTED, &fence));
    end = dibsx_after_ms(dibsx_now(), CONTRACT_BOUND_MS);
    while (readable(t->bell[1]) && dibsx_now() < end)
        assert_false(actor_hears(&b, DIBS__NOTICE_BROKEN));
    assert_false(readable(t->bell[1]));
}

static void a_notice_reaches_its_own_handle_only(void **state)
{
    contract *t = *state;
    actor a = contract_actor(t, 0);
    actor b = contract_actor(t, 1);
    actor c = contract_actor(t, 2);
    uint64_t fence = 0;
    dibs__notice notice;

    assert_status(actor_try(&a), DIBS_OK);
    assert_status(actor_queue(&b), DIBS_BUSY);
    assert_status(actor_queue(&c), DIBS_BUSY);
    assert_status(actor_release(&a), DIBS_OK);
    IN_TIME(actor_notified(&b, DIBS__NOTICE_GRANTED, &fence));
    assert_int_equal(t->st[0]->ops->doorbell_read(t->st[0], &notice, 1), 0);
    assert_int_equal(t->st[2]->ops->doorbell_read(t->st[2], &notice, 1), 0);
}

enum { CROWD = 8 }; /* as many as any bell can hold unheard */

/* Of `got` notices after `heard` others, those that are not repeated. */
static size_t keep_new(dibs__notice *notices, size_t heard, size_t got)
{
    size_t count = heard;

    for (size_t i = heard; i < heard + got; i++) {
        bool known = false;

        for (size_t j = 0; j < count && !known; j++)
            known = strcmp(notices[j].owner, notices[i].owner) == 0;
        if (!known)
            notices[count++] = notices[i];
    }
    return count;
}

static void many_notices_are_read_a_few_at_a_time(void **state)
{
    contract *t = *state;
    actor holders[CROWD], waiters[CROWD];
    char names[CROWD][64];
    dibsx_nsec end;
    size_t heard = 0;

    for (size_t i = 0; i < CROWD; i++) {
        contract_name(names[i], sizeof(names[i]), "crowd");
        holders[i] = contract_actor(t, 0);
        waiters[i] = contract_actor(t, 1);
        holders[i].ask.name = waiters[i].ask.name = names[i];
        assert_status(actor_try(&holders[i]), DIBS_OK);
        assert_status(actor_queue(&waiters[i]), DIBS_BUSY);
    }
    for (size_t i = 0; i < CROWD; i++)
        assert_status(actor_release(&holders[i]), DIBS_OK);
    end = dibsx_after_ms(dibsx_now(), CONTRACT_BOUND_MS);
    while (heard < CROWD && dibsx_now() < end) {
        struct pollfd bell = {.fd = t->bell[1], .events = POLLIN};
        size_t got;

        poll(&bell, 1, (int)dibsx_wait_ms(end, dibsx_now()));
        got = t->st[1]->ops->doorbell_read(t->st[1], t->heard[1] + heard, 3);
        assert_true(got <= 3);
        heard = keep_new(t->heard[1], heard, got);
    }
    IN_TIME(heard == CROWD);
    t->heard_count[1] = heard;
    for (size_t i = 0; i < CROWD; i++)
        assert_true(actor_hears(&waiters[i], DIBS__NOTICE_GRANTED));
}

static void without_a_doorbell_the_grant_is_there_all_the_same(void **state)
{
    contract *t = *state;
    actor a = contract_actor(t, 0);
    actor b = contract_actor(t, 1);

    dibs__store_close(t->st[1]);
    t->st[1] = contract_open();
    assert_status(actor_try(&a), DIBS_OK);
    assert_status(actor_queue(&b), DIBS_BUSY);
    assert_status(actor_release(&a), DIBS_OK);
    assert_status(actor_queue(&b), DIBS_OK);
    IN_TIME(b.ans.claim);
    assert_true(b.ans.fence > a.ans.fence);
}

static void a_doorbell_opened_late_gets_notices_after_the_next_ask(void **state)
{
    contract *t = *state;
    actor a = contract_actor(t, 0);
    actor b = contract_actor(t, 1);

    dibs__store_close(t->st[1]);
    t->st[1] = contract_open();
    assert_status(actor_try(&a), DIBS_OK);
    assert_status(actor_queue(&b), DIBS_BUSY);
    contract_open_doorbell(t, 1);
    assert_status(actor_queue(&b), DIBS_BUSY);
    assert_status(actor_release(&a), DIBS_OK);
    actor_expect_claim(&b);
}

static void a_waiter_whose_handle_is_gone_holds_nobody_up(void **state)
{
    contract *t = *state;
    actor a = contract_actor(t, 0);
    actor b = contract_actor(t, 1);
    dibsx_nsec released_at;

    assert_status(actor_try(&a), DIBS_OK);
    assert_status(actor_queue(&b), DIBS_BUSY);
    dibs__store_close(t->st[1]);
    t->st[1] = NULL;
    released_at = dibsx_now();
    assert_status(actor_release(&a), DIBS_OK);
    IN_TIME(contract_ms_since(released_at) < pace_ms(1000));
    b.handle = 2;
    assert_status(actor_queue(&b), DIBS_OK);
    /* PostgreSQL may have seen by the release that the session of b has ended: then
     * it keeps the name free until b asks. */
    if (strncmp(t->st[0]->ops->scheme, "postgres", 8) != 0)
        IN_TIME(b.ans.claim);
}

/* A handle that never hears fills up; that must not fail those who ring it. */
static void an_unread_doorbell_does_not_block_the_senders(void **state)
{
    contract *t = *state;
    dibsx_nsec began_at = dibsx_now();

    for (size_t i = 0; i < 600; i++) {
        actor a = contract_actor(t, 0);
        actor b = contract_actor(t, 1);

        assert_status(actor_try(&a), DIBS_OK);
        assert_status(actor_queue(&b), DIBS_BUSY);
        assert_status(actor_release(&a), DIBS_OK);
        assert_status(actor_release(&b), DIBS_OK);
    }
    IN_TIME(contract_ms_since(began_at) < pace_ms(60000));
}

int contract_doorbell(void)
{
    const struct CMUnitTest tests[] = {
        CONTRACT_TEST(opening_it_again_gives_the_same_doorbell),
        CONTRACT_TEST(opening_it_again_takes_no_time),
        CONTRACT_TEST(a_quiet_doorbell_has_nothing_to_read),
        CONTRACT_TEST(a_doorbell_that_was_read_is_quiet_again),
        CONTRACT_TEST(a_notice_reaches_its_own_handle_only),
        CONTRACT_TEST(many_notices_are_read_a_few_at_a_time),
        CONTRACT_TEST(without_a_doorbell_the_grant_is_there_all_the_same),
        CONTRACT_TEST(a_doorbell_opened_late_gets_notices_after_the_next_ask),
        CONTRACT_TEST(a_waiter_whose_handle_is_gone_holds_nobody_up),
        CONTRACT_TEST(an_unread_doorbell_does_not_block_the_senders),
    };

    return cmocka_run_group_tests_name("bell", tests, NULL, NULL);
}
