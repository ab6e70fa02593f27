/* world.c - see world.h. */
/* SPDX-License-Identifier: MIT */
#include "world.h"

#include <errno.h>
#include <time.h>

dibs_client *world_client(const char *url, int64_t timeout_ms)
{
    dibs_client *cl = NULL;

    CHECK(DIBS_OK,
          dibs_open(url, DIBS_CLIENT_OPTS(.timeout_ms = timeout_ms), &cl, err));
    return cl;
}

dibs_lock *
world_lock(dibs_client *cl, const char *name, const dibs_lock_opts *opts)
{
    dibs_lock *lock = NULL;

    CHECK(DIBS_OK, dibs_lock_new(cl, name, opts, &lock, err));
    return lock;
}

dibs_status world_try_url(const char *url, int64_t timeout_ms, dibs_error *why)
{
    dibsx_nsec from_at = dibsx_now();
    dibs_client *cl = NULL;
    dibs_status rc =
        dibs_open(url, DIBS_CLIENT_OPTS(.timeout_ms = timeout_ms), &cl, why);

    IN_TIME(world_ms_since(from_at) <= pace_ms(timeout_ms + WORLD_SLACK_MS));
    if (rc == DIBS_OK) {
        dibs_lock *lock = world_lock(cl, "k", NULL);

        CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
        CHECK(DIBS_OK, dibs_lock_release(lock, err));
        dibs_lock_free(lock);
        dibs_close(cl);
    } else {
        assert_null(cl);
        assert_true(strlen(why->message) > 10);
        print_message("%s: %s\n", dibs_status_name(rc), why->message);
    }
    return rc;
}

dibs_status world_try_until(dibs_lock *lock, int64_t bound_ms)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), bound_ms);
    dibs_error err = {0};
    dibs_status rc = dibs_lock_try(lock, &err);

    while (rc != DIBS_OK && dibsx_now() < end) {
        world_sleep_ms(5);
        rc = dibs_lock_try(lock, &err);
    }
    if (rc == DIBS_BUSY)
        MISSED("not free after %lld ms: %s", (long long)bound_ms, err.message);
    if (rc != DIBS_OK)
        fprintf(stderr, "the last try: %s: %s\n", dibs_status_name(rc),
                err.message);
    return rc;
}

void world_await(const dibs_lock *lock, dibs_lock_state state, int64_t bound_ms)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), bound_ms);

    while (dibs_lock_state_get(lock) != state) {
        IN_TIME(dibsx_now() < end);
        world_sleep_ms(1);
    }
}

void world_expect_held(const dibs_lock *lock)
{
    dibs_lock_state state = dibs_lock_state_get(lock);

    IN_TIME(state != DIBS_LOCK_SUSPECT && state != DIBS_LOCK_LOST);
    assert_int_equal(state, DIBS_LOCK_HELD);
}

void world_expect_busy(dibs_lock *rival, const dibs_lock *held)
{
    dibs_error why = {0};
    dibs_status rc = dibs_lock_try(rival, &why);

    IN_TIME(rc != DIBS_OK || dibs_lock_check(held) == DIBS_OK);
    if (rc != DIBS_BUSY)
        FAIL_OF(rc, "%s, not BUSY: %s", dibs_status_name(rc), why.message);
}

static bool count_waiters(const dibs_lease_info *info, void *arg)
{
    *(size_t *)arg = info->waiter_count;
    return true;
}

void world_await_waiters(dibs_client *cl, const char *name, size_t count)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), WORLD_BOUND_MS);
    size_t waiting = 0;

    while (dibs_lease_show(cl, name, count_waiters, &waiting, NULL) !=
               DIBS_OK ||
           waiting != count) {
        if (dibsx_now() >= end)
            MISSED("%zu wait for %s, not %zu", waiting, name, count);
        world_sleep_ms(2);
    }
}

static uint64_t renewals_of(const dibs_client *cl)
{
    dibs_stats stats = {.size = sizeof(stats)};

    dibs_stats_get(cl, &stats);
    return stats.renewed;
}

void world_await_renewal(const dibs_client *cl)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), WORLD_BOUND_MS);
    uint64_t before = renewals_of(cl);

    while (renewals_of(cl) == before) {
        IN_TIME(dibsx_now() < end);
        world_sleep_ms(2);
    }
}

void note_loss(dibs_lock *lock, void *arg)
{
    loss *lost = arg;

    (void)lock;
    atomic_store(&lost->told_at, dibsx_now());
    atomic_fetch_add(&lost->count, 1);
}

dibs_lock *
world_lock_told(dibs_client *cl, const char *name, int64_t ttl_ms, loss *lost)
{
    return world_lock(cl, name,
                      DIBS_LOCK_OPTS(.ttl_ms = ttl_ms, .on_lost = note_loss,
                                     .on_lost_arg = lost));
}

void await_loss(loss *lost, int64_t bound_ms)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), bound_ms);

    while (atomic_load(&lost->count) == 0 && dibsx_now() < end)
        world_sleep_ms(1);
    IN_TIME(atomic_load(&lost->count) > 0);
    assert_int_equal(atomic_load(&lost->count), 1);
}

dibsx_nsec end_of(const dibs_lock *lock)
{
    /* The clock first: a thread that does not run between the two makes the end
     * earlier, never later than it is. */
    dibsx_nsec now = dibsx_now();

    return dibsx_after_ms(now, dibs_lock_valid_ms(lock) + 1);
}

bool world_watch_sees(dibs_client *cl, dibs_watch *watch, const char *text)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), pace_ms(WORLD_BOUND_MS));
    dibs_change ch;
    dibs_status rc;
    bool found = false;

    do
        rc = dibs_state_set(cl, "v", text, strlen(text), 0, NULL, NULL);
    while (rc != DIBS_OK && dibsx_now() < end);
    CHECK(DIBS_OK, rc);
    while (!found) {
        CHECK(DIBS_OK,
              dibs_watch_next(watch, pace_ms(WORLD_BOUND_MS), &ch, err));
        found = ch.value.data && strcmp(ch.value.data, text) == 0;
        dibs_value_free(&ch.value);
    }
    return ch.merged;
}

void world_watch_told(dibs_client *cl, dibs_watch *watch)
{
    char text[16];
    bool merged = true;

    for (int i = 0; merged && i < 100; i++) {
        snprintf(text, sizeof(text), "told %d", i);
        merged = world_watch_sees(cl, watch, text);
    }
    assert_false(merged);
}

void world_sleep_ms(int64_t span_ms)
{
    struct timespec span = {.tv_sec = (time_t)(span_ms / 1000),
                            .tv_nsec = (long)(span_ms % 1000) * 1000000};

    while (nanosleep(&span, &span) != 0 && errno == EINTR)
        continue;
}

int64_t world_ms_since(dibsx_nsec from_at)
{
    return (dibsx_now() - from_at) / DIBSX_MS;
}
