/* fault_world.c - see fault_world.h. */
/* SPDX-License-Identifier: MIT */
#include "fault_world.h"

#include "base/rand.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

/* Runs on whichever thread takes the step. */
static dibs__fault follow(dibs__step step, uint64_t count, void *arg)
{
    world *w = arg;
    dibs__fault fault = {.delay_ms = atomic_load(&w->delay_ms[step])};
    int left = atomic_load(&w->times[step]);

    (void)count;
    atomic_fetch_add(&w->seen[step], 1);
    while (left > 0 &&
           !atomic_compare_exchange_weak(&w->times[step], &left, left - 1))
        continue;
    if (left != 0)
        fault.kind = (dibs__fault_kind)atomic_load(&w->kind[step]);
    return fault;
}

dibs_client *world_client(world *w)
{
    dibs_client *cl = NULL;
    dibs_error err = {0};
    dibs_status rc =
        dibs_open(w->url, DIBS_CLIENT_OPTS(.timeout_ms = 2000), &cl, &err);

    if (rc != DIBS_OK)
        fail_msg("open %s: status %d: %s", w->url, (int)rc, err.message);
    return cl;
}

int world_setup(void **state)
{
    world *w = calloc(1, sizeof(*w));
    unsigned char bits[8];
    char hex[2 * sizeof(bits) + 1];

    assert_non_null(w);
    assert_true(dibsx_random(bits, sizeof(bits)));
    dibsx_hex(bits, sizeof(bits), hex);
    snprintf(w->url, sizeof(w->url), "fault+memory:world-%s", hex);
    dibs__fault_set(follow, w);
    w->keep = world_client(w);
    w->one = world_client(w);
    w->other = world_client(w);
    *state = w;
    return 0;
}

int world_teardown(void **state)
{
    world *w = *state;

    world_heal(w);
    dibs_close(w->one);
    dibs_close(w->other);
    dibs_close(w->keep);
    dibs__fault_set(NULL, NULL);
    free(w);
    return 0;
}

void world_fault(world *w, dibs__step step, dibs__fault_kind kind, int times)
{
    atomic_store(&w->times[step], 0);
    atomic_store(&w->kind[step], (int)kind);
    atomic_store(&w->times[step], times);
}

void world_delay(world *w, dibs__step step, int delay_ms)
{
    atomic_store(&w->delay_ms[step], delay_ms);
}

void world_heal(world *w)
{
    for (int i = 0; i < DIBS__STEP_COUNT; i++) {
        atomic_store(&w->times[i], 0);
        atomic_store(&w->delay_ms[i], 0);
    }
}

int world_seen(world *w, dibs__step step)
{
    return atomic_load(&w->seen[step]);
}

dibs_lock *
world_lock(dibs_client *cl, const char *name, const dibs_lock_opts *opts)
{
    dibs_lock *lock = NULL;
    dibs_error err = {0};

    assert_int_equal(dibs_lock_new(cl, name, opts, &lock, &err), DIBS_OK);
    return lock;
}

typedef struct tally {
    size_t holders;
    size_t waiters;
    uint64_t fence;
} tally;

static bool add_up(const dibs_lease_info *info, void *arg)
{
    tally *sum = arg;

    sum->holders = info->holder_count;
    sum->waiters = info->waiter_count;
    if (info->holder_count > 0)
        sum->fence = info->holders[info->holder_count - 1].fence;
    return true;
}

void world_count(world *w, const char *name, size_t *holders, size_t *waiters,
                 uint64_t *fence)
{
    tally sum = {0};
    dibs_error err = {0};
    dibs_status rc = dibs_lease_show(w->keep, name, add_up, &sum, &err);

    assert_true(rc == DIBS_OK || rc == DIBS_NOTFOUND);
    *holders = sum.holders;
    *waiters = sum.waiters;
    if (fence)
        *fence = sum.fence;
}

dibs_status world_try_until(dibs_lock *lock, int64_t bound_ms)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), bound_ms);
    dibs_error err = {0};
    dibs_status rc = dibs_lock_try(lock, &err);

    while (rc == DIBS_BUSY && dibsx_now() < end) {
        world_sleep_ms(5);
        rc = dibs_lock_try(lock, &err);
    }
    return rc;
}

bool world_await(dibs_lock *lock, dibs_lock_state state, int64_t bound_ms)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), bound_ms);

    while (dibs_lock_state_get(lock) != state) {
        if (dibsx_now() >= end)
            return false;
        world_sleep_ms(1);
    }
    return true;
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
