/* test_client_barrier.c - barriers on a store that fails, with notices that are lost,
 * and with parties that die. */
/* SPDX-License-Identifier: MIT */
#include "coord/barrier.h"
#include "fault_world.h"
#include "store/roster.h"

#include <pthread.h>
#include <unistd.h>

enum { SHORT_TTL_MS = 300 };

static dibs_barrier *
make_barrier(dibs_client *cl, uint32_t parties, int64_t ttl_ms, int64_t wait_ms)
{
    dibs_barrier *barrier = NULL;

    CHECK(DIBS_OK, dibs_barrier_new(cl, "b",
                                    DIBS_BARRIER_OPTS(.parties = parties,
                                                      .ttl_ms = ttl_ms,
                                                      .wait_ms = wait_ms),
                                    &barrier, err));
    return barrier;
}

typedef struct waiter {
    dibs_barrier *barrier;
    dibs_status rc;
    dibs_error err;
    pthread_t thread;
} waiter;

static void *wait_here(void *arg)
{
    waiter *w = arg;

    w->rc = dibs_barrier_wait(w->barrier, NULL, &w->err);
    return NULL;
}

static void start_waiter(waiter *w, dibs_barrier *barrier)
{
    *w = (waiter){.barrier = barrier};
    assert_int_equal(pthread_create(&w->thread, NULL, wait_here, w), 0);
}

/* With short ttls a slow machine may lose a seat, or be too late to fail. */
static void end_waiter(waiter *w, dibs_status want)
{
    pthread_join(w->thread, NULL);
    IN_TIME(w->rc == want);
}

static dibs_barrier_state look(world *w)
{
    dibs_barrier_state at;
    dibs_status rc = dibs_barrier_show(w->keep, "b", &at, NULL, NULL, NULL);

    if (rc != DIBS_NOTFOUND)
        assert_status(rc, DIBS_OK);
    return at;
}

static void await_state(world *w, uint32_t seated, uint32_t arrived)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), pace_ms(WORLD_BOUND_MS));
    dibs_barrier_state at = look(w);

    for (; at.seated != seated || at.arrived != arrived; at = look(w)) {
        IN_TIME(dibsx_now() < end);
        usleep(1000);
    }
}

static void await_steps(world *w, int count)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), pace_ms(WORLD_BOUND_MS));

    while (world_seen(w, DIBS__STEP_MEET) < count) {
        IN_TIME(dibsx_now() < end);
        usleep(1000);
    }
}

/* One step of a party that is no client: a process that dies. */
static uint64_t
play_party(world *w, dibs__meet_verb verb, uint64_t fence, int64_t ttl_ms)
{
    dibs_client *cl = w->other;
    dibs__meet item = {.name = "b",
                       .id = "00112233445566778899aabbccddeeff",
                       .who = "web2:4711 dead",
                       .verb = verb,
                       .flags = DIBS__MEET_FIXED,
                       .fence = fence,
                       .need = 3,
                       .ttl_ms = ttl_ms};

    CHECK(DIBS_OK,
          cl->st->ops->roster->meet(cl->st, &item, 1,
                                    dibs__client_deadline(cl, dibsx_now()),
                                    err));
    assert_status(item.rc, DIBS_OK);
    return item.number;
}

static void a_party_that_dies_breaks_it_and_is_named(void **state)
{
    world *w = *state;
    int64_t ttl_ms = pace_ms(SHORT_TTL_MS);
    waiter one, two;
    uint64_t fence = play_party(w, DIBS__SIT, 0, ttl_ms);

    start_waiter(&one, make_barrier(w->one, 3, ttl_ms, 0));
    start_waiter(&two, make_barrier(w->other, 3, ttl_ms, 0));
    await_state(w, 3, 2);
    (void)play_party(w, DIBS__KEEP, fence, ttl_ms);
    end_waiter(&one, DIBS_BROKEN);
    end_waiter(&two, DIBS_BROKEN);
    IN_TIME(strstr(one.err.message, "gone: web2:4711 dead") != NULL);
    IN_TIME(look(w).seated >= 2);
    dibs_barrier_free(one.barrier);
    dibs_barrier_free(two.barrier);
}

/* Curator's waited for ever, or an hour too long. */
static void time_out_is_kept(void **state)
{
    world *w = *state;
    dibs_barrier *barrier = make_barrier(w->one, 2, 0, 100);
    dibsx_nsec begun_at = dibsx_now();

    world_fault(w, DIBS__STEP_MEET, DIBS__FAULT_FAIL, -1);
    CHECK(DIBS_UNAVAIL, dibs_barrier_wait(barrier, NULL, err));
    IN_TIME(dibsx_now() - begun_at < (100 + WORLD_SLACK_MS) * DIBSX_MS);
    world_heal(w);
    CHECK(DIBS_TIMEOUT, dibs_barrier_wait(barrier, NULL, err));
    dibs_barrier_free(barrier);
}

/* The store is away when the time is over: the arrival may count, until the seat has
 * ended; then nothing is left of it. */
static void a_withdrawal_without_an_answer_is_unknown(void **state)
{
    world *w = *state;
    waiter one;
    dibsx_nsec begun_at = dibsx_now();

    start_waiter(&one,
                 make_barrier(w->one, 2, pace_ms(SHORT_TTL_MS), pace_ms(300)));
    await_state(w, 1, 1);
    world_fault(w, DIBS__STEP_MEET, DIBS__FAULT_DROP_BEFORE, -1);
    end_waiter(&one, DIBS_UNKNOWN);
    IN_TIME(dibsx_now() - begun_at <
            (pace_ms(300) + WORLD_SLACK_MS) * DIBSX_MS);
    world_heal(w);
    await_state(w, 0, 0);
    dibs_barrier_free(one.barrier);
}

/* The arrival counted, its answer was lost, and the call timed out. */
static void error_leaves_nothing_counted(void **state)
{
    world *w = *state;
    dibs_barrier *barrier = make_barrier(w->one, 2, 60000, 50);
    dibs_barrier *other;
    waiter one;

    CHECK(DIBS_TIMEOUT, dibs_barrier_wait(barrier, NULL, err));
    world_fault(w, DIBS__STEP_MEET, DIBS__FAULT_DROP_AFTER, 1);
    CHECK(DIBS_TIMEOUT, dibs_barrier_wait(barrier, NULL, err));
    assert_int_equal(look(w).arrived, 0);
    other = make_barrier(w->other, 2, 60000, 0);
    start_waiter(&one, other);
    await_state(w, 2, 1);
    dibs_barrier_free(barrier);
    end_waiter(&one, DIBS_BROKEN);
    dibs_barrier_free(other);
}

/* As when the release comes before the subscription, which etcd's did not see. */
static void release_before_the_watch_is_seen(void **state)
{
    world *w = *state;
    dibs_barrier *last;
    waiter one;

    world_fault(w, DIBS__STEP_EAR, DIBS__FAULT_FAIL, -1);
    start_waiter(&one, make_barrier(w->one, 2, pace_ms(SHORT_TTL_MS), 0));
    await_state(w, 1, 1);
    last = make_barrier(w->other, 2, pace_ms(SHORT_TTL_MS), 0);
    CHECK(DIBS_OK, dibs_barrier_wait(last, NULL, err));
    end_waiter(&one, DIBS_OK);
    dibs_barrier_free(last);
    dibs_barrier_free(one.barrier);
}

/* The notices of the opening are lost with the connection. */
static void missed_notices_are_made_up_for(void **state)
{
    world *w = *state;
    dibs_barrier *last;
    waiter one;

    start_waiter(&one, make_barrier(w->one, 2, 0, 0));
    await_state(w, 1, 1);
    world_fault(w, DIBS__STEP_BELL, DIBS__FAULT_DROP_AFTER, -1);
    last = make_barrier(w->other, 2, 0, 0);
    CHECK(DIBS_OK, dibs_barrier_wait(last, NULL, err));
    end_waiter(&one, DIBS_OK);
    dibs_barrier_free(last);
    dibs_barrier_free(one.barrier);
}

static void a_seat_is_kept_between_waits(void **state)
{
    world *w = *state;
    int64_t ttl_ms = pace_ms(SHORT_TTL_MS);
    dibs_barrier *barrier = make_barrier(w->one, 1, ttl_ms, 0);
    uint64_t first, second;

    CHECK(DIBS_OK, dibs_barrier_wait(barrier, &first, err));
    /* More than a ttl: a round of the session is due each third of it. */
    await_steps(w, world_seen(w, DIBS__STEP_MEET) + 5);
    IN_TIME(look(w).seated == 1);
    CHECK(DIBS_OK, dibs_barrier_wait(barrier, &second, err));
    assert_true(second > first);
    dibs_barrier_free(barrier);
    assert_int_equal(look(w).seated, 0);
}

/* The generations of quick rounds cost one step each for each party. */
static void a_round_is_one_step(void **state)
{
    world *w = *state;
    dibs_barrier *barrier = make_barrier(w->one, 1, 60000, 0);
    int before;

    CHECK(DIBS_OK, dibs_barrier_wait(barrier, NULL, err));
    before = world_seen(w, DIBS__STEP_MEET);
    for (int i = 0; i < 10; i++)
        CHECK(DIBS_OK, dibs_barrier_wait(barrier, NULL, err));
    assert_int_equal(world_seen(w, DIBS__STEP_MEET) - before, 10);
    assert_int_equal(world_seen(w, DIBS__STEP_EAR), 1);
    dibs_barrier_free(barrier);
}

static bool take_seat_away(const dibs__seat_entry *seat, void *arg)
{
    *(dibs__seat_entry *)arg = *seat;
    return false;
}

/* The store ends the seat behind the back of its party. */
static void end_seat(world *w)
{
    dibs_client *cl = w->other;
    dibsx_nsec deadline = dibs__client_deadline(cl, dibsx_now());
    dibs__roster_head head;
    dibs__seat_entry seat = {.fence = 0};
    dibs__meet item = {.name = "b", .id = seat.id, .verb = DIBS__LEAVE};
    dibs_status rc =
        cl->st->ops->roster->roll_call(cl->st, "b", deadline, &head,
                                       take_seat_away, &seat, NULL);

    if (rc != DIBS_NOTFOUND)
        assert_status(rc, DIBS_OK);
    IN_TIME(seat.fence != 0); /* The ttl is over else. */
    item.fence = seat.fence;
    CHECK(DIBS_OK, cl->st->ops->roster->meet(cl->st, &item, 1, deadline, err));
    assert_status(item.rc, DIBS_OK);
}

/* Waits until the session has heard that the seat has ended. */
static void await_unseating(dibs_barrier *barrier)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), pace_ms(WORLD_BOUND_MS));
    uint64_t fence;

    for (;;) {
        pthread_mutex_lock(&barrier->cl->mutex);
        fence = barrier->machine.fence;
        pthread_mutex_unlock(&barrier->cl->mutex);
        if (fence == 0)
            return;
        IN_TIME(dibsx_now() < end);
        usleep(1000);
    }
}

static void a_lost_seat_is_noticed(void **state)
{
    world *w = *state;
    dibs_barrier *barrier = make_barrier(w->one, 1, 60000, 0);
    waiter one;

    CHECK(DIBS_OK, dibs_barrier_wait(barrier, NULL, err));
    end_seat(w);
    CHECK(DIBS_LOST, dibs_barrier_wait(barrier, NULL, err));
    CHECK(DIBS_OK, dibs_barrier_wait(barrier, NULL, err));
    dibs_barrier_free(barrier);
    /* The session has noticed it first. */
    barrier = make_barrier(w->one, 1, pace_ms(SHORT_TTL_MS), 0);
    CHECK(DIBS_OK, dibs_barrier_wait(barrier, NULL, err));
    end_seat(w);
    await_unseating(barrier);
    CHECK(DIBS_LOST, dibs_barrier_wait(barrier, NULL, err));
    CHECK(DIBS_OK, dibs_barrier_wait(barrier, NULL, err));
    dibs_barrier_free(barrier);
    /* One that waits: its own end breaks the generation, or it is asked first. */
    start_waiter(&one, make_barrier(w->one, 2, pace_ms(SHORT_TTL_MS), 0));
    await_state(w, 1, 1);
    end_seat(w);
    pthread_join(one.thread, NULL);
    assert_true(one.rc == DIBS_LOST || one.rc == DIBS_BROKEN);
    dibs_barrier_free(one.barrier);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(a_party_that_dies_breaks_it_and_is_named),
        WORLD_TEST(time_out_is_kept),
        WORLD_TEST(a_withdrawal_without_an_answer_is_unknown),
        WORLD_TEST(error_leaves_nothing_counted),
        WORLD_TEST(release_before_the_watch_is_seen),
        WORLD_TEST(missed_notices_are_made_up_for),
        WORLD_TEST(a_seat_is_kept_between_waits),
        WORLD_TEST(a_round_is_one_step),
        WORLD_TEST(a_lost_seat_is_noticed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
