/* test_client_loss.c - keeping and losing a lease on a store that fails: doubt,
 * healing, loss announced in time, many threads on a store that drops answers. */
/* SPDX-License-Identifier: MIT */
#include "fault_world.h"

#include "base/rand.h"
#include "core/client.h"

#include <poll.h>
#include <pthread.h>

static bool lost_fd_says(dibs_lock *lock, int wait_ms)
{
    struct pollfd fd = {.fd = dibs_lock_lost_fd(lock), .events = POLLIN};

    assert_true(fd.fd >= 0);
    return poll(&fd, 1, wait_ms) == 1;
}

static void failing_renewals_are_doubted_and_healed(void **state)
{
    world *w = *state;
    loss lost = {0};
    dibs_lock *lock = world_lock_told(w->one, "k", 3000, &lost);
    uint64_t fence, doubted, healed;
    bool told;

    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    fence = dibs_lock_fence(lock);
    world_fault(w, DIBS__STEP_RENEW, DIBS__FAULT_FAIL, -1);
    world_await(lock, DIBS_LOCK_SUSPECT, 2500);
    doubted = dibs_lock_fence(lock);
    IN_TIME(dibs_lock_valid_ms(lock) > 0);
    assert_int_equal(doubted, fence);
    world_heal(w);
    world_await(lock, DIBS_LOCK_HELD, 2500);
    IN_TIME(dibs_lock_valid_ms(lock) > 2000);
    healed = dibs_lock_fence(lock);
    told = lost_fd_says(lock, 0);
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    assert_int_equal(healed, fence);
    assert_false(told);
    assert_int_equal(atomic_load(&lost.count), 0);
    dibs_lock_free(lock);
}

/* The lines about renewals, one after the other. */
typedef struct renew_log {
    atomic_int lines;
    char text[512];
} renew_log;

static void note_renew(dibs_log_level level, const char *event,
                       const char *message, void *arg)
{
    renew_log *log = arg;
    size_t len = strlen(log->text);

    if (strcmp(event, "renew") != 0)
        return;
    assert_int_equal(level, DIBS_LOG_WARN);
    snprintf(log->text + len, sizeof(log->text) - len, "%s\n", message);
    atomic_fetch_add(&log->lines, 1);
}

/* However many renewals fail, the log says when that begins and when it ends. */
static void the_log_says_once_that_renewals_fail(void **state)
{
    world *w = *state;
    renew_log log = {0};
    dibs_client *cl = NULL;
    dibs_lock *lock;

    CHECK(DIBS_OK,
          dibs_open(w->url,
                    DIBS_CLIENT_OPTS(.log = note_renew, .log_arg = &log,
                                     .log_level = DIBS_LOG_WARN),
                    &cl, err));
    lock = world_lock(cl, "k", DIBS_LOCK_OPTS(.ttl_ms = pace_ms(600)));
    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    world_fault(w, DIBS__STEP_RENEW, DIBS__FAULT_FAIL, 4);
    while (atomic_load(&log.lines) < 2 && dibs_lock_check(lock) == DIBS_OK)
        world_sleep_ms(1);
    IN_TIME(atomic_load(&log.lines) == 2);
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    dibs_lock_free(lock);
    dibs_close(cl);
    assert_int_equal(atomic_load(&log.lines), 2);
    assert_ptr_equal(strstr(log.text, "k is not renewed: "), log.text);
    assert_non_null(strstr(log.text, "; the client retries, "));
    assert_non_null(
        strstr(log.text, "\nk is renewed again after 4 failures; "));
}

/* What was done but not answered leaves the same doubt, and heals. */
static void renewals_without_answer_are_doubted_and_healed(void **state)
{
    world *w = *state;
    dibs_lock *lock = world_lock(w->one, "k", DIBS_LOCK_OPTS(.ttl_ms = 3000));

    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    world_fault(w, DIBS__STEP_RENEW, DIBS__FAULT_DROP_AFTER, 2);
    world_await(lock, DIBS_LOCK_SUSPECT, 2500);
    world_await(lock, DIBS_LOCK_HELD, 2500);
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    dibs_lock_free(lock);
}

/* The store answers a renewal of a lease that was given back meanwhile. */
static void a_late_answer_is_not_about_the_next_lease(void **state)
{
    world *w = *state;
    loss lost = {0};
    dibs_lock *lock = world_lock_told(w->one, "k", 3000, &lost);
    dibs_stats stats = {.size = sizeof(stats)};
    uint64_t fence;

    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    world_delay(w, DIBS__STEP_RENEW, 400);
    while (world_seen(w, DIBS__STEP_RENEW) == 0)
        world_sleep_ms(1);
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    fence = dibs_lock_fence(lock);
    do {
        world_sleep_ms(1);
        dibs_stats_get(w->one, &stats);
    } while (stats.renewed + stats.renewals_failed == 0);
    IN_TIME(stats.renewals_failed == 1); /* Answered before the release else. */
    CHECK(DIBS_OK, dibs_lock_check(lock));
    assert_int_equal(dibs_lock_fence(lock), fence);
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    assert_int_equal(atomic_load(&lost.count), 0);
    dibs_lock_free(lock);
}

static void loss_is_announced_in_every_way_and_in_time(void **state)
{
    world *w = *state;
    loss lost = {0};
    dibs_lock *lock = world_lock_told(w->one, "k", 1500, &lost);
    dibs_lock *rival = world_lock(w->other, "k", NULL);
    dibs_stats stats = {.size = sizeof(stats)};
    dibsx_nsec end_at;

    world_fault(w, DIBS__STEP_RENEW, DIBS__FAULT_FAIL, -1);
    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    end_at = end_of(lock);
    IN_TIME(lost_fd_says(lock, WORLD_BOUND_MS));
    assert_int_equal(dibs_lock_state_get(lock), DIBS_LOCK_LOST);
    assert_int_equal(dibs_lock_fence(lock), 0);
    assert_int_equal(dibs_lock_valid_ms(lock), 0);
    await_loss(&lost, WORLD_BOUND_MS);
    assert_true(atomic_load(&lost.told_at) >= end_at - 10 * DIBSX_MS);
    IN_TIME(atomic_load(&lost.told_at) <= end_at + WORLD_LATE_MS * DIBSX_MS);
    CHECK(DIBS_OK, world_try_until(rival, WORLD_BOUND_MS));
    CHECK(DIBS_LOST, dibs_lock_release(lock, err));
    assert_true(dibs_lock_fence(rival) > 0);
    dibs_stats_get(w->one, &stats);
    assert_int_equal(stats.lost, 1);
    assert_int_equal(stats.held, 0);
    dibs_lock_free(lock);
    dibs_lock_free(rival);
}

/* Whoever is granted the name finds that the former holder knows already. */
static void belief_ends_before_another_is_granted(void **state)
{
    world *w = *state;
    dibs_error err = {0};

    world_fault(w, DIBS__STEP_RENEW, DIBS__FAULT_DROP_BEFORE, -1);
    for (int i = 0; i < 10; i++) {
        dibs_lock *lock =
            world_lock(w->one, "k", DIBS_LOCK_OPTS(.ttl_ms = 100 + 17 * i));
        dibs_lock *rival = world_lock(w->other, "k", NULL);
        dibs_status rc;

        assert_status(dibs_lock_acquire(lock, &err), DIBS_OK);
        do {
            rc = dibs_lock_try(rival, &err);
        } while (rc == DIBS_BUSY);
        assert_int_equal(dibs_lock_fence(lock), 0);
        assert_int_equal(dibs_lock_state_get(lock), DIBS_LOCK_LOST);
        assert_status(rc, DIBS_OK);
        dibs_lock_free(lock);
        assert_status(dibs_lock_release(rival, &err), DIBS_OK);
        dibs_lock_free(rival);
    }
}

static void a_lost_handle_can_acquire_again(void **state)
{
    world *w = *state;
    loss lost = {0};
    dibs_lock *lock =
        world_lock(w->one, "k",
                   DIBS_LOCK_OPTS(.ttl_ms = pace_ms(300), .wait_ms = 5000,
                                  .on_lost = note_loss, .on_lost_arg = &lost));
    uint64_t first, second;
    bool told;

    world_fault(w, DIBS__STEP_RENEW, DIBS__FAULT_FAIL, -1);
    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    first = dibs_lock_fence(lock);
    IN_TIME(lost_fd_says(lock, WORLD_BOUND_MS));
    await_loss(&lost, WORLD_BOUND_MS);
    world_heal(w);
    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    second = dibs_lock_fence(lock);
    told = lost_fd_says(lock, 0);
    world_expect_held(lock);
    assert_true(second > first);
    assert_false(told);
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    dibs_lock_free(lock);
}

enum { SLOW = 5 };

/* One slow renewal, whosever it is, must not delay the news to the others. */
static void a_slow_renewal_delays_no_announcement(void **state)
{
    world *w = *state;
    loss lost[SLOW] = {0};
    dibs_lock *locks[SLOW];
    dibsx_nsec end_at[SLOW];

    world_delay(w, DIBS__STEP_RENEW, 1900);
    for (size_t i = 0; i < SLOW; i++) {
        char name[16];

        snprintf(name, sizeof(name), "k%zu", i);
        locks[i] = world_lock(w->one, name,
                              DIBS_LOCK_OPTS(.ttl_ms = 300 + 200 * (int64_t)i,
                                             .on_lost = note_loss,
                                             .on_lost_arg = &lost[i]));
        CHECK(DIBS_OK, dibs_lock_acquire(locks[i], err));
        end_at[i] = end_of(locks[i]);
    }
    for (size_t i = 0; i < SLOW; i++) {
        await_loss(&lost[i], WORLD_BOUND_MS);
        IN_TIME(atomic_load(&lost[i].told_at) <=
                end_at[i] + WORLD_LATE_MS * DIBSX_MS);
    }
    world_heal(w);
    for (size_t i = 0; i < SLOW; i++)
        dibs_lock_free(locks[i]);
}

/* Giving up what rests and is wanted takes long: what is held is renewed all the
 * same. */
static void a_slow_release_delays_no_renewal(void **state)
{
    world *w = *state;
    dibs_client *cl = world_client(w->url, 10000);
    loss lost = {0};
    dibs_lock *kept = world_lock_told(cl, "kept", 2000, &lost);
    dibs_lock *idle =
        world_lock(cl, "idle", DIBS_LOCK_OPTS(.flags = DIBS_LOCK_STICKY));
    dibs_lock *rival =
        world_lock(w->other, "idle", DIBS_LOCK_OPTS(.wait_ms = WORLD_BOUND_MS));

    CHECK(DIBS_OK, dibs_lock_acquire(kept, err));
    CHECK(DIBS_OK, dibs_lock_acquire(idle, err));
    CHECK(DIBS_OK, dibs_lock_release(idle, err));
    world_delay(w, DIBS__STEP_RELEASE, 4000);
    CHECK(DIBS_OK, dibs_lock_acquire(rival, err));
    assert_true(world_seen(w, DIBS__STEP_RELEASE) > 0);
    CHECK(DIBS_OK, dibs_lock_check(kept));
    assert_int_equal(atomic_load(&lost.count), 0);
    world_heal(w);
    dibs_lock_free(rival);
    dibs_lock_free(idle);
    dibs_lock_free(kept);
    dibs_close(cl);
}

static void a_broken_lease_is_noticed_at_once(void **state)
{
    world *w = *state;
    loss lost = {0};
    dibs_lock *waiter =
        world_lock(w->one, "k",
                   DIBS_LOCK_OPTS(.wait_ms = 5000, .on_lost = note_loss,
                                  .on_lost_arg = &lost));
    dibsx_nsec broken_at;
    uint32_t broken = 0;

    CHECK(DIBS_OK, dibs_lock_acquire(waiter, err));
    broken_at = dibsx_now();
    CHECK(DIBS_OK, dibs_lease_break(w->other, "k", dibs_lock_fence(waiter),
                                    "test", &broken, err));
    assert_int_equal(broken, 1);
    await_loss(&lost, WORLD_BOUND_MS);
    IN_TIME(world_ms_since(broken_at) < pace_ms(3000));
    assert_int_equal(dibs_lock_state_get(waiter), DIBS_LOCK_LOST);
    dibs_lock_free(waiter);
}

static atomic_int floods; /* how often the doorbell below was read */

static size_t
read_without_end(dibs__store *st, dibs__notice *notices, size_t max)
{
    (void)st;
    for (size_t i = 0; i < max; i++)
        notices[i] = (dibs__notice){.kind = DIBS__NOTICE_CHANGED};
    atomic_fetch_add(&floods, 1);
    return max;
}

/* Notices come faster than they are read. */
static void a_flood_of_notices_delays_no_renewal(void **state)
{
    world *w = *state;
    dibs_client *cl = world_open(w);
    dibs__store_ops ops = *cl->st->ops;
    const dibs__store_ops *own = cl->st->ops;
    dibs_lock *lock =
        world_lock(cl, "k",
                   DIBS_LOCK_OPTS(.ttl_ms = 3600000, .renew_every_ms = 20,
                                  .wait_ms = -1));

    ops.doorbell_read = read_without_end;
    cl->st->ops = &ops;
    atomic_store(&floods, 0);
    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    while (atomic_load(&floods) < 10)
        world_sleep_ms(1);
    world_await_renewal(cl);
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    /* And not the end of the client, after which the last handle frees it. */
    dibs_close(cl);
    cl->st->ops = own;
    dibs_lock_free(lock);
}

static void close_gives_back_what_is_held(void **state)
{
    world *w = *state;
    dibs_client *cl = world_open(w);
    dibs_lock *held = world_lock(cl, "k", NULL);
    dibs_lock *rival = world_lock(w->other, "k", NULL);

    CHECK(DIBS_OK, dibs_lock_acquire(held, err));
    dibs_close(cl);
    CHECK(DIBS_OK, dibs_lock_try(rival, err));
    dibs_lock_free(held);
    dibs_lock_free(rival);
}

static void close_on_a_store_that_is_away_ends(void **state)
{
    world *w = *state;
    dibs_client *cl = world_open(w);
    dibs_lock *held = world_lock(cl, "k", DIBS_LOCK_OPTS(.ttl_ms = 300));
    dibs_lock *rival = world_lock(w->other, "k", NULL);
    dibsx_nsec began_at;

    CHECK(DIBS_OK, dibs_lock_acquire(held, err));
    world_fault(w, DIBS__STEP_RELEASE, DIBS__FAULT_DROP_BEFORE, -1);
    world_fault(w, DIBS__STEP_RENEW, DIBS__FAULT_FAIL, -1);
    began_at = dibsx_now();
    dibs_close(cl);
    IN_TIME(world_ms_since(began_at) < pace_ms(5000));
    world_heal(w);
    CHECK(DIBS_OK, world_try_until(rival, WORLD_BOUND_MS));
    dibs_lock_free(held);
    dibs_lock_free(rival);
}

enum { THREADS = 4, ROUNDS = 12 };

typedef struct crowd {
    world *w;
    atomic_int wrong;
    pthread_mutex_t mutex; /* for the two below */
    uint64_t last_fence;
    dibsx_prng prng;
} crowd;

/* One step in four has a fault, each kind as likely as the others. */
static dibs__fault by_chance(dibs__step step, uint64_t count, void *arg)
{
    crowd *all = arg;
    uint64_t pick;

    (void)count;
    if (step == DIBS__STEP_OPEN)
        return (dibs__fault){0};
    pthread_mutex_lock(&all->mutex);
    pick = dibsx_prng_below(&all->prng, 16);
    pthread_mutex_unlock(&all->mutex);
    return (dibs__fault){.kind = pick < 4 ? (dibs__fault_kind)pick
                                          : DIBS__FAULT_NONE,
                         .delay_ms = pick == 5 ? 3 : 0};
}

/* A guarded resource: refuses a fence below one that it has seen. */
static void work(crowd *all, dibs_lock *lock)
{
    uint64_t fence;

    pthread_mutex_lock(&all->mutex);
    fence = dibs_lock_fence(lock);
    if (fence != 0 && fence <= all->last_fence)
        atomic_fetch_add(&all->wrong, 1);
    if (fence != 0)
        all->last_fence = fence;
    pthread_mutex_unlock(&all->mutex);
}

static void *contend(void *arg)
{
    crowd *all = arg;
    dibs_client *cl = world_open(all->w);
    dibs_lock *lock =
        world_lock(cl, "k", DIBS_LOCK_OPTS(.ttl_ms = 400, .wait_ms = 60000));

    for (int i = 0; i < ROUNDS; i++) {
        dibs_error err = {0};
        dibs_status rc = dibs_lock_acquire(lock, &err);

        if (pace_explains(rc))
            MISSED("acquire: %s: %s", dibs_status_name(rc), err.message);
        if (rc != DIBS_OK) {
            fprintf(stderr, "acquire: status %d: %s\n", (int)rc, err.message);
            atomic_fetch_add(&all->wrong, 1);
            break;
        }
        work(all, lock);
        (void)dibs_lock_release(lock, &err);
    }
    dibs_lock_free(lock);
    dibs_close(cl);
    return NULL;
}

/* Fences rise from holder to holder whatever gets lost on the way. */
static void many_contend_on_a_store_that_drops_and_fails(void **state)
{
    crowd all = {.w = *state, .prng = {.state = 20240607}};
    pthread_t threads[THREADS];

    pthread_mutex_init(&all.mutex, NULL);
    dibs__fault_set(by_chance, &all);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, contend, &all), 0);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    dibs__fault_set(NULL, NULL);
    pthread_mutex_destroy(&all.mutex);
    assert_int_equal(atomic_load(&all.wrong), 0);
    assert_true(all.last_fence > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(failing_renewals_are_doubted_and_healed),
        WORLD_TEST(the_log_says_once_that_renewals_fail),
        WORLD_TEST(renewals_without_answer_are_doubted_and_healed),
        WORLD_TEST(a_late_answer_is_not_about_the_next_lease),
        WORLD_TEST(loss_is_announced_in_every_way_and_in_time),
        WORLD_TEST(belief_ends_before_another_is_granted),
        WORLD_TEST(a_lost_handle_can_acquire_again),
        WORLD_TEST(a_slow_renewal_delays_no_announcement),
        WORLD_TEST(a_slow_release_delays_no_renewal),
        WORLD_TEST(a_broken_lease_is_noticed_at_once),
        WORLD_TEST(a_flood_of_notices_delays_no_renewal),
        WORLD_TEST(close_gives_back_what_is_held),
        WORLD_TEST(close_on_a_store_that_is_away_ends),
        WORLD_TEST(many_contend_on_a_store_that_drops_and_fails),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
