/* test_client_reentry.c - handles that entered through another, while the store is
 * yet busy with leases that they had themselves. */
/* SPDX-License-Identifier: MIT */
#include "fault_world.h"

#include <poll.h>
#include <pthread.h>

static bool lost_fd_says(dibs_lock *lock)
{
    struct pollfd fd = {.fd = dibs_lock_lost_fd(lock), .events = POLLIN};

    assert_true(fd.fd >= 0);
    return poll(&fd, 1, 0) == 1;
}

static void expect_guest(const dibs_lock *guest, uint64_t fence)
{
    world_expect_held(guest);
    CHECK(DIBS_OK, dibs_lock_check(guest));
    assert_int_equal(dibs_lock_fence(guest), fence);
    assert_int_equal(dibs_lock_depth(guest), 1);
}

/* The store answers a renewal of the lease that the handle had before. */
static void a_late_answer_is_not_about_the_lease_entered(void **state)
{
    world *w = *state;
    const dibs_lock_opts *opts =
        DIBS_LOCK_OPTS(.flags = DIBS_LOCK_REENTRANT, .ttl_ms = 3000);
    dibs_lock *host = world_lock(w->one, "k", opts);
    dibs_lock *guest = world_lock(w->one, "k", opts);
    dibs_stats stats = {.size = sizeof(stats)};

    CHECK(DIBS_OK, dibs_lock_acquire(guest, err));
    world_delay(w, DIBS__STEP_RENEW, 400);
    while (world_seen(w, DIBS__STEP_RENEW) == 0)
        world_sleep_ms(1);
    CHECK(DIBS_OK, dibs_lock_release(guest, err));
    CHECK(DIBS_OK, dibs_lock_acquire(host, err));
    CHECK(DIBS_OK, dibs_lock_acquire(guest, err));
    do {
        world_sleep_ms(1);
        dibs_stats_get(w->one, &stats);
    } while (stats.renewed + stats.renewals_failed == 0);
    expect_guest(guest, dibs_lock_fence(host));
    assert_false(lost_fd_says(guest));
    CHECK(DIBS_OK, dibs_lock_release(guest, err));
    CHECK(DIBS_OK, dibs_lock_release(host, err));
    dibs_lock_free(guest);
    dibs_lock_free(host);
}

static void note_yield(dibs_lock *lock, void *arg)
{
    (void)lock;
    atomic_fetch_add((atomic_int *)arg, 1);
}

static void ask_back(world *w, const char *name, uint64_t fence)
{

    CHECK(DIBS_OK, dibs_lease_yield(w->other, name, fence, NULL, err));
}

static void await_releases(world *w, int count)
{
    while (world_seen(w, DIBS__STEP_RELEASE) < count)
        world_sleep_ms(1);
}

static void await_holders(world *w, const char *name, size_t wanted)
{
    size_t holders, waiters;

    do {
        world_sleep_ms(1);
        world_count(w, name, &holders, &waiters, NULL);
    } while (holders != wanted);
}

static dibs_lock *resting(dibs_client *cl, const char *name,
                          const dibs_lock_opts *opts, uint64_t *fence)
{
    dibs_lock *lock = world_lock(cl, name, opts);

    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    *fence = dibs_lock_fence(lock);
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    return lock;
}

/* A lease that rests is asked for, and goes back late because the one before it
 * does. Meanwhile its handle has entered through another. */
static void a_kept_lease_goes_back_and_the_guest_stays(void **state)
{
    world *w = *state;
    atomic_int asked = 0;
    loss lost = {0};
    uint64_t slow_fence, own_fence;
    dibs_lock *slow =
        resting(w->one, "slow", DIBS_LOCK_OPTS(.flags = DIBS_LOCK_STICKY),
                &slow_fence);
    dibs_lock *guest =
        resting(w->one, "k",
                DIBS_LOCK_OPTS(.mode = DIBS_SHARED, .on_lost = note_loss,
                               .on_lost_arg = &lost,
                               .flags = DIBS_LOCK_REENTRANT | DIBS_LOCK_STICKY),
                &own_fence);
    dibs_lock *host = world_lock(w->one, "k",
                                 DIBS_LOCK_OPTS(.mode = DIBS_SHARED,
                                                .flags = DIBS_LOCK_REENTRANT,
                                                .on_yield = note_yield,
                                                .on_yield_arg = &asked));
    uint64_t fence;

    CHECK(DIBS_OK, dibs_lock_acquire(host, err));
    fence = dibs_lock_fence(host);
    assert_int_not_equal(fence, own_fence);
    world_delay(w, DIBS__STEP_RELEASE, 700);
    ask_back(w, "slow", slow_fence);
    await_releases(w, 1);
    ask_back(w, "k", own_fence);
    ask_back(w, "k", fence); /* which is heard after the other */
    while (atomic_load(&asked) == 0)
        world_sleep_ms(1);
    CHECK(DIBS_OK, dibs_lock_acquire(guest, err));
    expect_guest(guest, fence);
    CHECK(DIBS_OK, dibs_lock_release(host, err));
    await_releases(w, 2);
    expect_guest(guest, fence);
    await_holders(w, "k", 1);
    expect_guest(guest, fence);
    assert_false(lost_fd_says(guest));
    world_heal(w);
    CHECK(DIBS_OK, dibs_lock_release(guest, err));
    await_holders(w, "k", 0);
    assert_int_equal(atomic_load(&lost.count), 0);
    dibs_lock_free(host);
    dibs_lock_free(guest);
    dibs_lock_free(slow);
}

/* A handle and a guest of it, and a thread that makes one call on either. */
typedef struct pair {
    dibs_lock *host;
    dibs_lock *guest;
    uint64_t fence; /* of the host's lease */
    pthread_t thread;
    dibs_status rc; /* of the call */
} pair;

static pair pair_open(world *w, uint32_t flags)
{
    const dibs_lock_opts *opts =
        DIBS_LOCK_OPTS(.mode = DIBS_SHARED, .ttl_ms = 4000,
                       .flags = DIBS_LOCK_REENTRANT | flags);
    pair pr = {.host = world_lock(w->one, "k", opts),
               .guest = world_lock(w->one, "k", opts)};

    CHECK(DIBS_OK, dibs_lock_acquire(pr.host, err));
    CHECK(DIBS_OK, dibs_lock_acquire(pr.guest, err));
    pr.fence = dibs_lock_fence(pr.host);
    expect_guest(pr.guest, pr.fence);
    return pr;
}

static void *renew_guest(void *arg)
{
    pair *pr = arg;

    pr->rc = dibs_lock_renew(pr->guest, NULL);
    return NULL;
}

static void *upgrade_host(void *arg)
{
    pair *pr = arg;

    pr->rc = dibs_lock_upgrade(pr->host, NULL);
    return NULL;
}

/* Starts the call and waits until the store has that step before it. */
static void start(world *w, pair *pr, void *(*call)(void *), dibs__step step)
{
    int seen = world_seen(w, step);

    assert_int_equal(pthread_create(&pr->thread, NULL, call, pr), 0);
    while (world_seen(w, step) == seen)
        world_sleep_ms(1);
}

static void expect_end(pair *pr, dibs_status rc)
{
    assert_int_equal(pthread_join(pr->thread, NULL), 0);
    /* An answer that was there before the lease ended is no loss. */
    IN_TIME(rc == DIBS_OK || pr->rc != DIBS_OK);
    assert_status(pr->rc, rc);
}

static void a_renewal_by_a_guest_outlives_the_host(void **state)
{
    world *w = *state;
    pair pr = pair_open(w, 0);

    world_delay(w, DIBS__STEP_RENEW, 300);
    start(w, &pr, renew_guest, DIBS__STEP_RENEW);
    dibs_lock_leave(pr.host);
    dibs_lock_free(pr.host);
    expect_end(&pr, DIBS_LOST);
    dibs_lock_free(pr.guest);
}

static void what_a_guest_is_told_is_not_about_a_newer_lease(void **state)
{
    world *w = *state;
    pair pr = pair_open(w, 0);

    world_delay(w, DIBS__STEP_RENEW, 400);
    start(w, &pr, renew_guest, DIBS__STEP_RENEW);
    dibs_lock_leave(pr.host);
    CHECK(DIBS_OK,
          dibs_lease_break(w->other, "k", pr.fence, "test", NULL, err));
    CHECK(DIBS_OK, dibs_lock_acquire(pr.host, err));
    expect_end(&pr, DIBS_LOST);
    CHECK(DIBS_OK, dibs_lock_check(pr.host));
    dibs_lock_free(pr.guest);
    dibs_lock_free(pr.host);
}

static void a_guest_renews_after_the_conversion_of_its_host(void **state)
{
    world *w = *state;
    pair pr = pair_open(w, DIBS_LOCK_NO_RENEW);

    world_delay(w, DIBS__STEP_CONVERT, 300);
    world_delay(w, DIBS__STEP_RENEW, 600);
    start(w, &pr, upgrade_host, DIBS__STEP_CONVERT);
    CHECK(DIBS_OK, dibs_lock_renew(pr.guest, err));
    expect_end(&pr, DIBS_OK);
    expect_guest(pr.guest, dibs_lock_fence(pr.host));
    assert_true(dibs_lock_fence(pr.guest) > pr.fence);
    dibs_lock_free(pr.guest);
    dibs_lock_free(pr.host);
}

static void a_host_converts_after_the_renewal_by_a_guest(void **state)
{
    world *w = *state;
    pair pr = pair_open(w, DIBS_LOCK_NO_RENEW);

    world_delay(w, DIBS__STEP_RENEW, 300);
    start(w, &pr, renew_guest, DIBS__STEP_RENEW);
    CHECK(DIBS_OK, dibs_lock_upgrade(pr.host, err));
    expect_end(&pr, DIBS_OK);
    expect_guest(pr.guest, dibs_lock_fence(pr.host));
    dibs_lock_free(pr.guest);
    dibs_lock_free(pr.host);
}

/* Keeps the keeper busy in the callback of a loss. */
typedef struct halt {
    atomic_bool reached;
    atomic_bool open;
} halt;

static void stop_in_callback(dibs_lock *lock, void *arg)
{
    halt *ht = arg;

    (void)lock;
    atomic_store(&ht->reached, true);
    while (!atomic_load(&ht->open))
        world_sleep_ms(1);
}

/* The keeper comes to this loss after what it was at. */
static void await_keeper(world *w, dibs_client *cl)
{
    loss lost = {0};
    dibs_lock *lock = world_lock_told(cl, "last", 30000, &lost);

    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    CHECK(DIBS_OK, dibs_lease_break(w->other, "last", 0, "test", NULL, err));
    CHECK(DIBS_LOST, dibs_lock_renew(lock, err));
    await_loss(&lost, WORLD_BOUND_MS);
    dibs_lock_free(lock);
}

/* The lease is lost, and before the keeper has told all, both have left it and
 * entered another, of which there is nothing to tell. */
static void who_left_a_lost_lease_is_not_told_in_the_next(void **state)
{
    world *w = *state;
    halt ht = {0};
    loss lost = {0};
    dibs_client *cl = NULL;
    dibs_lock *host, *guest;

    CHECK(DIBS_OK, dibs_open(w->url, NULL, &cl, err));
    host = world_lock(cl, "k",
                      DIBS_LOCK_OPTS(.flags = DIBS_LOCK_REENTRANT,
                                     .on_lost = stop_in_callback,
                                     .on_lost_arg = &ht));
    guest =
        world_lock(cl, "k",
                   DIBS_LOCK_OPTS(.flags = DIBS_LOCK_REENTRANT,
                                  .on_lost = note_loss, .on_lost_arg = &lost));
    CHECK(DIBS_OK, dibs_lock_try(host, err));
    CHECK(DIBS_OK, dibs_lock_try(guest, err));
    CHECK(DIBS_OK, dibs_lease_break(w->other, "k", 0, "test", NULL, err));
    CHECK(DIBS_LOST, dibs_lock_renew(host, err));
    while (!atomic_load(&ht.reached))
        world_sleep_ms(1);
    CHECK(DIBS_LOST, dibs_lock_release(guest, err));
    CHECK(DIBS_LOST, dibs_lock_release(host, err));
    CHECK(DIBS_OK, dibs_lock_try(host, err));
    CHECK(DIBS_OK, dibs_lock_try(guest, err));
    atomic_store(&ht.open, true);
    await_keeper(w, cl);
    expect_guest(guest, dibs_lock_fence(host));
    dibs_lock_free(host);
    dibs_lock_free(guest); /* which waits for a callback */
    assert_int_equal(atomic_load(&lost.count), 0);
    dibs_close(cl);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(a_late_answer_is_not_about_the_lease_entered),
        WORLD_TEST(a_kept_lease_goes_back_and_the_guest_stays),
        WORLD_TEST(a_renewal_by_a_guest_outlives_the_host),
        WORLD_TEST(what_a_guest_is_told_is_not_about_a_newer_lease),
        WORLD_TEST(a_guest_renews_after_the_conversion_of_its_host),
        WORLD_TEST(a_host_converts_after_the_renewal_by_a_guest),
        WORLD_TEST(who_left_a_lost_lease_is_not_told_in_the_next),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
