/* test_client_convert.c - upgrades and downgrades whose answers are lost: what the
 * client believes is never more than what the store has, or will have. */
/* SPDX-License-Identifier: MIT */
#include "fault_world.h"

#include <pthread.h>

enum { TRIES = 3 }; /* of one turn, as in convert.c */

typedef struct pair {
    dibs_lock *lock;   /* a writer, which holds */
    dibs_lock *reader; /* of another client */
    uint64_t fence;
} pair;

static pair pair_open(world *w, uint32_t flags)
{
    pair pr = {.lock = world_lock(w->one, "k", DIBS_LOCK_OPTS(.flags = flags)),
               .reader = world_lock(w->other, "k",
                                    DIBS_LOCK_OPTS(.mode = DIBS_SHARED))};

    CHECK(DIBS_OK, dibs_lock_acquire(pr.lock, err));
    pr.fence = dibs_lock_fence(pr.lock);
    return pr;
}

static void pair_close(pair *pr)
{
    dibs_lock_free(pr->lock);
    dibs_lock_free(pr->reader);
}

static void a_downgrade_without_an_answer_is_believed_done(void **state)
{
    world *w = *state;
    pair pr = pair_open(w, DIBS_LOCK_REENTRANT);

    world_fault(w, DIBS__STEP_CONVERT, DIBS__FAULT_DROP_AFTER, TRIES);
    CHECK(DIBS_UNKNOWN, dibs_lock_downgrade(pr.lock, err));
    CHECK(DIBS_OK, dibs_lock_check(pr.lock));
    CHECK(DIBS_INVALID, dibs_lock_acquire(pr.lock, err));
    CHECK(DIBS_OK, dibs_lock_try(pr.reader, err));
    CHECK(DIBS_BUSY, dibs_lock_upgrade(pr.lock, err));
    CHECK(DIBS_OK, dibs_lock_downgrade(pr.lock, err));
    CHECK(DIBS_OK, dibs_lock_release(pr.reader, err));
    CHECK(DIBS_OK, dibs_lock_upgrade(pr.lock, err));
    assert_true(dibs_lock_fence(pr.lock) > pr.fence);
    world_expect_busy(pr.reader, pr.lock);
    pair_close(&pr);
}

/* The store sees a downgrade that was lost on the way. */
static dibs_status arrive_late(world *w, const pair *pr)
{
    char owner[DIBS_OWNER_SIZE];
    const dibs__conversion turn = {.name = "k",
                                   .owner = owner,
                                   .to_owner = owner,
                                   .fence = pr->fence,
                                   .mode = DIBS__SHARED,
                                   .ttl_ms = 1000};
    dibsx_nsec deadline = dibsx_after_ms(dibsx_now(), WORLD_BOUND_MS);
    dibs__store *st = NULL;
    dibs__answer ans = {0};
    dibs_status rc;

    dibs_lock_owner(pr->lock, owner);
    CHECK(DIBS_OK, dibs__store_open(w->url, deadline, &st, err));
    rc = st->ops->lease->convert(st, &turn, deadline, &ans, NULL);
    dibs__store_close(st);
    return rc;
}

/* An upgrade that only confirmed what the store still had would keep the fence, by
 * which the downgrade under way is known. */
static void a_downgrade_that_arrives_after_an_upgrade_is_void(void **state)
{
    world *w = *state;
    pair pr = pair_open(w, 0);

    world_fault(w, DIBS__STEP_CONVERT, DIBS__FAULT_DROP_BEFORE, TRIES);
    CHECK(DIBS_UNKNOWN, dibs_lock_downgrade(pr.lock, err));
    world_expect_busy(pr.reader, pr.lock);
    CHECK(DIBS_OK, dibs_lock_upgrade(pr.lock, err));
    assert_true(dibs_lock_fence(pr.lock) > pr.fence);
    assert_status(arrive_late(w, &pr), DIBS_LOST);
    world_expect_busy(pr.reader, pr.lock);
    CHECK(DIBS_OK, dibs_lock_renew(pr.lock, err));
    pair_close(&pr);
}

static void a_store_that_goes_away_meanwhile_is_no_answer(void **state)
{
    world *w = *state;
    pair pr = pair_open(w, 0);
    dibs_error why = {0};

    world_fault(w, DIBS__STEP_CONVERT, DIBS__FAULT_DROP_AFTER, 1);
    world_fault_then(w, DIBS__STEP_CONVERT, DIBS__FAULT_FAIL);
    CHECK(DIBS_UNKNOWN, dibs_lock_downgrade(pr.lock, &why));
    assert_status(why.status, DIBS_UNKNOWN);
    CHECK(DIBS_UNAVAIL, dibs_lock_upgrade(pr.lock, err));
    CHECK(DIBS_OK, dibs_lock_try(pr.reader, err));
    world_heal(w);
    CHECK(DIBS_BUSY, dibs_lock_upgrade(pr.lock, err));
    pair_close(&pr);
}

static void a_downgrade_that_was_not_sent_changes_nothing(void **state)
{
    world *w = *state;
    pair pr = pair_open(w, DIBS_LOCK_REENTRANT);
    int turns;

    world_fault(w, DIBS__STEP_CONVERT, DIBS__FAULT_FAIL, -1);
    CHECK(DIBS_UNAVAIL, dibs_lock_downgrade(pr.lock, err));
    turns = world_seen(w, DIBS__STEP_CONVERT);
    CHECK(DIBS_OK, dibs_lock_upgrade(pr.lock, err));
    CHECK(DIBS_OK, dibs_lock_acquire(pr.lock, err));
    assert_int_equal(world_seen(w, DIBS__STEP_CONVERT), turns);
    assert_int_equal(dibs_lock_fence(pr.lock), pr.fence);
    world_expect_busy(pr.reader, pr.lock);
    pair_close(&pr);
}

static void an_upgrade_without_an_answer_is_not_believed(void **state)
{
    world *w = *state;
    pair pr = pair_open(w, DIBS_LOCK_REENTRANT);

    CHECK(DIBS_OK, dibs_lock_downgrade(pr.lock, err));
    world_fault(w, DIBS__STEP_CONVERT, DIBS__FAULT_DROP_AFTER, TRIES);
    CHECK(DIBS_UNKNOWN, dibs_lock_upgrade(pr.lock, err));
    CHECK(DIBS_INVALID, dibs_lock_acquire(pr.lock, err));
    CHECK(DIBS_OK, dibs_lock_upgrade(pr.lock, err));
    assert_true(dibs_lock_fence(pr.lock) > pr.fence);
    CHECK(DIBS_OK, dibs_lock_acquire(pr.lock, err));
    world_expect_busy(pr.reader, pr.lock);
    pair_close(&pr);
}

typedef struct turner {
    dibs_lock *lock;
    dibs_status rc;
    pthread_t thread;
} turner;

static void *downgrade(void *arg)
{
    turner *tn = arg;

    tn->rc = dibs_lock_downgrade(tn->lock, NULL);
    return NULL;
}

/* The turn waits for a renewal that stands behind another, and that is not sent
 * any more. */
static void closing_ends_a_conversion_that_waits(void **state)
{
    world *w = *state;
    dibs_client *cl = world_open(w);
    dibs_lock *first = world_lock(cl, "a", DIBS_LOCK_OPTS(.ttl_ms = 900));
    turner tn = {.lock = world_lock(cl, "k", DIBS_LOCK_OPTS(.ttl_ms = 1500))};

    world_delay(w, DIBS__STEP_RENEW, 1500);
    CHECK(DIBS_OK, dibs_lock_acquire(first, err));
    CHECK(DIBS_OK, dibs_lock_acquire(tn.lock, err));
    while (world_seen(w, DIBS__STEP_RENEW) == 0)
        world_sleep_ms(2);
    /* By now the second one is due too, and still valid. */
    world_sleep_ms(350);
    assert_int_equal(pthread_create(&tn.thread, NULL, downgrade, &tn), 0);
    world_sleep_ms(100);
    dibs_close(cl);
    assert_int_equal(pthread_join(tn.thread, NULL), 0);
    IN_TIME(tn.rc != DIBS_OK);
    dibs_lock_free(first);
    dibs_lock_free(tn.lock);
}

static void await_renewals(dibs_client *cl, uint64_t count)
{
    dibs_stats stats = {.size = sizeof(stats)};

    do {
        world_sleep_ms(2);
        dibs_stats_get(cl, &stats);
    } while (stats.renewed + stats.renewals_failed < count);
}

/* The renewer is busy while a lease falls due, and the handle has another one when
 * it comes to that: a renewal that this one does not count would leave with the
 * fence of before the turn. */
static void a_renewal_that_was_due_is_not_sent_in_a_conversion(void **state)
{
    world *w = *state;
    const dibs_lock_opts *opts =
        DIBS_LOCK_OPTS(.mode = DIBS_SHARED, .ttl_ms = 1800);
    dibs_lock *first = world_lock(w->one, "a", opts);
    dibs_lock *lock = world_lock(w->one, "k", opts);

    world_delay(w, DIBS__STEP_RENEW, 800);
    CHECK(DIBS_OK, dibs_lock_acquire(first, err));
    world_sleep_ms(50);
    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    while (world_seen(w, DIBS__STEP_RENEW) == 0)
        world_sleep_ms(2);
    world_delay(w, DIBS__STEP_RENEW, 400);
    world_delay(w, DIBS__STEP_CONVERT, 850);
    world_sleep_ms(150); /* By now the second one is due too. */
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    CHECK(DIBS_OK, dibs_lock_upgrade(lock, err));
    await_renewals(w->one, 2);
    CHECK(DIBS_OK, dibs_lock_check(lock));
    CHECK(DIBS_OK, dibs_lock_renew(lock, err));
    dibs_lock_free(first);
    dibs_lock_free(lock);
}

/* A lost answer is asked for again, and gives the same lease; without any, the handle
 * holds nothing and the token is used up. */
static void an_acceptance_without_an_answer_is_asked_again(void **state)
{
    world *w = *state;
    pair pr = pair_open(w, 0);
    dibs_lock *heir = world_lock(w->other, "k", NULL);
    dibs_lock *late = world_lock(w->other, "k", NULL);
    char token[DIBS_TOKEN_SIZE];

    CHECK(DIBS_OK, dibs_lock_transfer(pr.lock, token, err));
    world_fault(w, DIBS__STEP_CONVERT, DIBS__FAULT_DROP_AFTER, 1);
    CHECK(DIBS_OK, dibs_lock_accept(heir, token, err));
    CHECK(DIBS_OK, dibs_lock_check(heir));
    CHECK(DIBS_LOST, dibs_lock_accept(late, token, err));
    CHECK(DIBS_OK, dibs_lock_transfer(heir, token, err));
    world_fault(w, DIBS__STEP_CONVERT, DIBS__FAULT_DROP_AFTER, TRIES);
    CHECK(DIBS_UNKNOWN, dibs_lock_accept(heir, token, err));
    assert_int_equal(dibs_lock_state_get(heir), DIBS_LOCK_FREE);
    CHECK(DIBS_LOST, dibs_lock_accept(late, token, err));
    dibs_lock_free(heir);
    dibs_lock_free(late);
    pair_close(&pr);
}

/* The store does it so late that the ttl, counted from the request, is over. */
static void a_lease_that_comes_too_late_is_not_held(void **state)
{
    world *w = *state;
    int64_t wait_ms = pace_ms(WORLD_BOUND_MS);
    dibs_lock *lock =
        world_lock(w->one, "k",
                   DIBS_LOCK_OPTS(.ttl_ms = pace_ms(1500), .wait_ms = wait_ms));
    dibs_lock *heir =
        world_lock(w->other, "k",
                   DIBS_LOCK_OPTS(.ttl_ms = 300, .wait_ms = wait_ms));
    char token[DIBS_TOKEN_SIZE], owner[DIBS_OWNER_SIZE];
    uint64_t fence;

    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    CHECK(DIBS_OK, dibs_lock_transfer(lock, token, err));
    world_delay(w, DIBS__STEP_CONVERT, 400);
    CHECK(DIBS_LOST, dibs_lock_accept(heir, token, err));
    assert_int_equal(dibs_lock_state_get(heir), DIBS_LOCK_FREE);
    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    dibs_lock_owner(lock, owner);
    fence = dibs_lock_fence(lock);
    dibs_lock_leave(lock);
    world_delay(w, DIBS__STEP_RENEW, 400);
    CHECK(DIBS_LOST, dibs_lock_adopt(heir, owner, fence, err));
    assert_int_equal(dibs_lock_state_get(heir), DIBS_LOCK_FREE);
    world_heal(w);
    CHECK(DIBS_OK, dibs_lock_acquire(heir, err));
    dibs_lock_free(heir);
    dibs_lock_free(lock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(a_downgrade_without_an_answer_is_believed_done),
        WORLD_TEST(a_downgrade_that_arrives_after_an_upgrade_is_void),
        WORLD_TEST(a_store_that_goes_away_meanwhile_is_no_answer),
        WORLD_TEST(a_downgrade_that_was_not_sent_changes_nothing),
        WORLD_TEST(an_upgrade_without_an_answer_is_not_believed),
        WORLD_TEST(closing_ends_a_conversion_that_waits),
        WORLD_TEST(a_renewal_that_was_due_is_not_sent_in_a_conversion),
        WORLD_TEST(an_acceptance_without_an_answer_is_asked_again),
        WORLD_TEST(a_lease_that_comes_too_late_is_not_held),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
