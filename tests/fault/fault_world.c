/* fault_world.c - see fault_world.h. */
/* SPDX-License-Identifier: MIT */
#include "fault_world.h"

#include "base/rand.h"
#include <unistd.h>

/* Runs on whichever thread takes the step. */
static dibs__fault follow(dibs__step step, uint64_t count, void *arg)
{
    world *w = arg;
    dibs__fault fault = {.delay_ms = atomic_load(&w->delay_ms[step])};
    int left = atomic_load(&w->times[step]);
    world_event *event = atomic_exchange(&w->event[step], NULL);

    (void)count;
    if (event)
        event(w->event_arg[step]);
    while (left > 0 &&
           !atomic_compare_exchange_weak(&w->times[step], &left, left - 1))
        continue;
    fault.kind = (dibs__fault_kind)atomic_load(left != 0 ? &w->kind[step]
                                                         : &w->then[step]);
    /* Last, so that a test that waits for it cannot heal what was to be hit. */
    atomic_fetch_add(&w->seen[step], 1);
    return fault;
}

dibs_client *world_open(world *w)
{
    return world_client(w->url, 2000);
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
    w->keep = world_open(w);
    w->one = world_open(w);
    w->other = world_open(w);
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
    atomic_store(&w->then[step], DIBS__FAULT_NONE);
    atomic_store(&w->kind[step], (int)kind);
    atomic_store(&w->times[step], times);
}

void world_fault_then(world *w, dibs__step step, dibs__fault_kind kind)
{
    atomic_store(&w->then[step], (int)kind);
}

void world_delay(world *w, dibs__step step, int delay_ms)
{
    atomic_store(&w->delay_ms[step], delay_ms);
}

void world_heal(world *w)
{
    for (int i = 0; i < DIBS__STEP_COUNT; i++) {
        atomic_store(&w->times[i], 0);
        atomic_store(&w->then[i], DIBS__FAULT_NONE);
        atomic_store(&w->delay_ms[i], 0);
    }
}

void world_during(world *w, dibs__step step, world_event *event, void *arg)
{
    w->event_arg[step] = arg;
    atomic_store(&w->event[step], event);
}

int world_seen(world *w, dibs__step step)
{
    return atomic_load(&w->seen[step]);
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

    if (rc != DIBS_NOTFOUND)
        assert_status(rc, DIBS_OK);
    *holders = sum.holders;
    *waiters = sum.waiters;
    if (fence)
        *fence = sum.fence;
}

void hang_in_gate(void *arg)
{
    gate *g = arg;

    world_during(g->w, g->step, hang_in_gate, g);
    atomic_fetch_add(&g->inside, 1);
    while (!atomic_load(&g->open))
        usleep(1000);
}

void await_at_least(const atomic_int *count, int least)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), pace_ms(WORLD_BOUND_MS));

    while (atomic_load(count) < least) {
        IN_TIME(dibsx_now() < end);
        usleep(1000);
    }
}
