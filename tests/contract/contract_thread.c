/* contract_thread.c - many threads, on one handle and on several.
 *
 * The threads only count what goes wrong; the test's own thread asserts. */
/* SPDX-License-Identifier: MIT */
#include "contract.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { THREADS = 8, ROUNDS = 15 };

typedef struct crowd {
    contract *t;
    size_t handles;          /* how many of the three are used */
    pthread_barrier_t ready; /* all begin together */
    atomic_int inside;       /* who is in the critical section now */
    atomic_int wrong;        /* what should not have happened */
    uint64_t last_fence;     /* guarded by the lease under test */
    int64_t turns;           /* likewise */
    dibs__ask ask;           /* what each asks for */
    int limit;               /* how many may be inside */
} crowd;

typedef struct member {
    crowd *all;
    size_t number;
    pthread_t thread;
} member;

static void gather(crowd *all, void *(*run)(void *))
{
    member members[THREADS];

    assert_int_equal(pthread_barrier_init(&all->ready, NULL, THREADS), 0);
    for (size_t i = 0; i < THREADS; i++) {
        members[i] = (member){.all = all, .number = i};
        assert_int_equal(pthread_create(&members[i].thread, NULL, run,
                                        &members[i]),
                         0);
    }
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(members[i].thread, NULL), 0);
    pthread_barrier_destroy(&all->ready);
    assert_int_equal(atomic_load(&all->wrong), 0);
}

static void count_wrong(crowd *all, bool good)
{
    if (!good)
        atomic_fetch_add(&all->wrong, 1);
}

/* The status of a step on a value. A store that works has one in time. */
static void count_status(crowd *all, dibs_status rc)
{
    if (pace_explains(rc))
        MISSED("a step is %s", dibs_status_name(rc));
    count_wrong(all, rc == DIBS_OK);
}

/* A claim stands for seconds only: a thread that did not run for so long has lost it, and
 * another was let in meanwhile. */
static void check_kept(const actor *a, dibs_status rc)
{
    if (rc == DIBS_LOST)
        IN_TIME(dibsx_now() < dibsx_after_ms(a->asked_at, a->ans.left_ms));
}

static void renew_turn(crowd *all, actor *a)
{
    dibsx_nsec asked_at = dibsx_now();
    int64_t left_ms = 0;
    dibs_status rc = actor_renew(a, 20000, &left_ms);

    check_kept(a, rc);
    count_wrong(all, rc == DIBS_OK);
    a->asked_at = asked_at;
    a->ans.left_ms = left_ms;
}

/* Gives back. */
static void end_turn(crowd *all, actor *a)
{
    dibs_status rc = actor_release(a);

    check_kept(a, rc);
    count_wrong(all, rc == DIBS_OK);
}

/* One who takes a turn: waits in the queue, works, gives back. */
static void take_turn(member *m)
{
    crowd *all = m->all;
    actor a = contract_actor(all->t, m->number % all->handles);
    dibs_status rc;

    a.ask = all->ask;
    a.ask.flags = DIBS__ASK_QUEUE;
    rc = actor_until(&a, 60000);
    if (rc != DIBS_OK) {
        fprintf(stderr, "acquire: status %d: %s\n", (int)rc, a.err.message);
        count_wrong(all, false);
        return;
    }
    count_wrong(all, atomic_fetch_add(&all->inside, 1) < all->limit);
    if (all->limit == 1) {
        count_wrong(all, a.ans.fence > all->last_fence);
        all->last_fence = a.ans.fence;
        all->turns++;
    }
    sched_yield();
    atomic_fetch_sub(&all->inside, 1);
    end_turn(all, &a);
}

static void *take_turns(void *arg)
{
    member *m = arg;

    pthread_barrier_wait(&m->all->ready);
    for (int i = 0; i < ROUNDS; i++)
        take_turn(m);
    return NULL;
}

static void exclude(contract *t, size_t handles)
{
    crowd all = {.t = t, .handles = handles, .limit = 1};
    contract_view view;

    all.ask = contract_actor(t, 0).ask;
    gather(&all, take_turns);
    assert_int_equal(all.turns, THREADS * ROUNDS);
    assert_int_equal(contract_look(t, t->name, &view), 0);
}

static void one_at_a_time_over_many_handles(void **state)
{
    exclude(*state, CONTRACT_HANDLES);
}

static void one_at_a_time_on_one_handle(void **state)
{
    exclude(*state, 1);
}

static void permits_bound_how_many_are_inside(void **state)
{
    contract *t = *state;
    crowd all = {.t = t, .handles = CONTRACT_HANDLES, .limit = 3};

    all.ask = contract_actor(t, 0).ask;
    all.ask.mode = DIBS__PERMITS;
    all.ask.capacity = 3;
    gather(&all, take_turns);
}

/* Each has a name of its own: nobody may be refused. */
static void *use_own_name(void *arg)
{
    member *m = arg;
    crowd *all = m->all;
    char name[64];

    contract_name(name, sizeof(name), "own");
    pthread_barrier_wait(&all->ready);
    for (int i = 0; i < ROUNDS; i++) {
        actor a = contract_actor(all->t, m->number % all->handles);

        a.ask.name = name;
        count_wrong(all, actor_try(&a) == DIBS_OK);
        renew_turn(all, &a);
        end_turn(all, &a);
    }
    return NULL;
}

static void different_names_do_not_disturb_each_other(void **state)
{
    crowd all = {.t = *state, .handles = 1};

    gather(&all, use_own_name);
}

static int64_t number_of(contract *t, uint64_t *version)
{
    dibs__store *st = t->st[0];
    dibs_value value = {0};
    dibs_error err = {0};
    int64_t number = -1;
    dibs_status rc =
        st->ops->value->get(st, t->name, contract_soon(), &value, &err);

    if (pace_explains(rc))
        MISSED("get: %s: %s", dibs_status_name(rc), err.message);
    *version = 0;
    if (rc == DIBS_OK) {
        number = strtoll(value.data, NULL, 10);
        *version = value.version;
    }
    dibs_value_free(&value);
    return number;
}

static void *increment(void *arg)
{
    member *m = arg;
    crowd *all = m->all;
    dibs__store *st = all->t->st[m->number % all->handles];

    pthread_barrier_wait(&all->ready);
    for (int done = 0; done < ROUNDS;) {
        char text[24];
        dibs__put what = {.key = all->t->name, .data = text};
        dibs_error err = {0};
        uint64_t version;
        dibs_status rc;

        snprintf(text, sizeof(text), "%" PRId64,
                 number_of(all->t, &what.expected) + 1);
        what.len = strlen(text);
        rc = st->ops->value->put(st, &what, contract_soon(), &version, &err);
        if (rc == DIBS_OK) {
            done++;
        } else if (rc != DIBS_STALE) {
            fprintf(stderr, "put: status %d: %s\n", (int)rc, err.message);
            count_status(all, rc);
            break;
        }
    }
    return NULL;
}

static void no_update_is_lost(void **state)
{
    contract *t = *state;
    crowd all = {.t = t, .handles = CONTRACT_HANDLES};
    dibs__put zero = {.key = t->name,
                      .data = "0",
                      .len = 1,
                      .expected = DIBS_VERSION_NONE};
    dibs_error err = {0};
    uint64_t version;

    contract_needs(t, DIBS__CAN_VALUE);
    assert_status(t->st[0]->ops->value->put(t->st[0], &zero, contract_soon(),
                                            &version, &err),
                  DIBS_OK);
    gather(&all, increment);
    assert_int_equal(number_of(t, &version), THREADS * ROUNDS);
}

static void *add_one(void *arg)
{
    member *m = arg;
    crowd *all = m->all;
    dibs__store *st = all->t->st[m->number % all->handles];

    pthread_barrier_wait(&all->ready);
    for (int i = 0; i < ROUNDS; i++) {
        dibs_error err = {0};
        int64_t sum;

        count_status(all, st->ops->value->add(st, all->t->name, 1,
                                              contract_soon(), &sum, &err));
    }
    return NULL;
}

static void no_addition_is_lost(void **state)
{
    contract *t = *state;
    crowd all = {.t = t, .handles = CONTRACT_HANDLES};
    uint64_t version;

    contract_needs(t, DIBS__CAN_VALUE);
    gather(&all, add_one);
    assert_int_equal(number_of(t, &version), THREADS * ROUNDS);
}

/* Readers and writers, some of which change over in place. `inside` counts a
 * reader as one and a writer as WHOLE, so that no sum but these is right. */
enum { WHOLE = 1000 };

static void enter(crowd *all, int weight)
{
    int inside = atomic_fetch_add(&all->inside, weight);

    count_wrong(all, weight == 1 ? inside < WHOLE : inside == 0);
}

static dibs_status change_over(actor *a, dibs__mode mode)
{
    dibsx_nsec asked_at = dibsx_now();
    dibs__answer ans;
    dibs_status rc = actor_convert(a, mode, NULL, 10000, &ans);

    check_kept(a, rc);
    if (rc == DIBS_OK) {
        a->ans = ans;
        a->asked_at = asked_at;
    }
    return rc;
}

/* A writer counts as one until the change is over, and before it begins. */
static void read_then_write(crowd *all, actor *a)
{
    dibs_status rc;

    enter(all, 1);
    sched_yield();
    atomic_fetch_sub(&all->inside, 1);
    rc = change_over(a, DIBS__EXCLUSIVE);
    count_wrong(all, rc == DIBS_OK || rc == DIBS_BUSY);
    if (rc != DIBS_OK)
        return;
    enter(all, WHOLE);
    count_wrong(all, a->ans.fence > all->last_fence);
    all->last_fence = a->ans.fence;
    sched_yield();
    atomic_fetch_sub(&all->inside, WHOLE);
}

static void write_then_read(crowd *all, actor *a)
{
    enter(all, WHOLE);
    count_wrong(all, a->ans.fence > all->last_fence);
    all->last_fence = a->ans.fence;
    sched_yield();
    atomic_fetch_sub(&all->inside, WHOLE);
    count_wrong(all, change_over(a, DIBS__SHARED) == DIBS_OK);
    enter(all, 1);
    sched_yield();
    atomic_fetch_sub(&all->inside, 1);
}

static void *read_and_write(void *arg)
{
    member *m = arg;
    crowd *all = m->all;

    pthread_barrier_wait(&all->ready);
    for (int i = 0; i < ROUNDS; i++) {
        actor a = contract_actor(all->t, m->number % all->handles);
        bool writes = (m->number + (size_t)i) % 3 == 0;

        a.ask.flags = DIBS__ASK_QUEUE;
        a.ask.mode = writes ? DIBS__EXCLUSIVE : DIBS__SHARED;
        count_wrong(all, actor_until(&a, 60000) == DIBS_OK);
        if (writes)
            write_then_read(all, &a);
        else
            read_then_write(all, &a);
        end_turn(all, &a);
    }
    return NULL;
}

static void a_writer_is_alone_however_it_became_one(void **state)
{
    contract *t = *state;
    crowd all = {.t = t, .handles = CONTRACT_HANDLES};
    contract_view view;

    contract_needs(t, DIBS__CAN_SHARE);
    gather(&all, read_and_write);
    assert_int_equal(contract_look(t, t->name, &view), 0);
}

/* Sets of two out of NAMES in a circle, each in its own order, the worst there
 * is for who takes one after the other. */
enum { NAMES = 4 };

typedef struct circle_of_names {
    crowd all;
    char names[NAMES][96];
    atomic_int inside[NAMES];
} circle_of_names;

static dibs_status take_two(dibs__store *st, actor *two[2])
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), 60000);
    dibs__ask asks[2] = {two[0]->ask, two[1]->ask};
    dibs__answer answers[2];
    dibs_error err = {0};
    size_t blocked;
    dibs_status rc;

    for (size_t i = 0; i < 2; i++)
        asks[i].owner = two[i]->owner;
    for (;;) {
        two[0]->asked_at = two[1]->asked_at = dibsx_now();
        rc = st->ops->lease->acquire_all(st, asks, 2, contract_soon(), answers,
                                         &blocked, &err);
        if (rc != DIBS_BUSY)
            break;
        IN_TIME(dibsx_now() < end);
        contract_sleep_until(dibsx_now() + DIBSX_MS);
    }
    if (pace_explains(rc))
        MISSED("a set is %s: %s", dibs_status_name(rc), err.message);
    for (size_t i = 0; rc == DIBS_OK && i < 2; i++)
        two[i]->ans = answers[i];
    return rc;
}

static void *take_twos(void *arg)
{
    member *m = arg;
    circle_of_names *circle = (circle_of_names *)m->all;
    size_t handle = m->number % CONTRACT_HANDLES;
    size_t at[2] = {m->number % NAMES, (m->number + 1) % NAMES};

    pthread_barrier_wait(&circle->all.ready);
    for (int i = 0; i < ROUNDS; i++) {
        actor a = contract_actor(circle->all.t, handle);
        actor b = contract_actor(circle->all.t, handle);

        a.ask.name = circle->names[at[0]];
        b.ask.name = circle->names[at[1]];
        count_wrong(&circle->all, take_two(circle->all.t->st[handle],
                                           (actor *[]){&a, &b}) == DIBS_OK);
        for (size_t k = 0; k < 2; k++)
            count_wrong(&circle->all,
                        atomic_fetch_add(&circle->inside[at[k]], 1) == 0);
        sched_yield();
        for (size_t k = 0; k < 2; k++)
            atomic_fetch_sub(&circle->inside[at[k]], 1);
        end_turn(&circle->all, &a);
        end_turn(&circle->all, &b);
    }
    return NULL;
}

static void sets_exclude_each_other_and_never_stand_still(void **state)
{
    contract *t = *state;
    circle_of_names circle = {.all = {.t = t, .handles = CONTRACT_HANDLES}};
    contract_view view;
    actor a = contract_actor(t, 0), b = contract_actor(t, 0);
    dibs_status rc = DIBS_UNSUPPORTED;

    for (size_t i = 0; i < NAMES; i++)
        snprintf(circle.names[i], sizeof(circle.names[i]), "{%s}/%zu", t->name,
                 i);
    a.ask.name = circle.names[0];
    b.ask.name = circle.names[1];
    if (t->st[0]->ops->lease->acquire_all)
        rc = take_two(t->st[0], (actor *[]){&a, &b});
    if (rc == DIBS_UNSUPPORTED)
        skip();
    assert_status(rc, DIBS_OK);
    assert_status(actor_release(&a), DIBS_OK);
    assert_status(actor_release(&b), DIBS_OK);
    gather(&circle.all, take_twos);
    for (size_t i = 0; i < NAMES; i++)
        assert_int_equal(contract_look(t, circle.names[i], &view), 0);
}

int contract_thread(void)
{
    const struct CMUnitTest tests[] = {
        CONTRACT_TEST(one_at_a_time_over_many_handles),
        CONTRACT_TEST(one_at_a_time_on_one_handle),
        CONTRACT_TEST(permits_bound_how_many_are_inside),
        CONTRACT_TEST(different_names_do_not_disturb_each_other),
        CONTRACT_TEST(a_writer_is_alone_however_it_became_one),
        CONTRACT_TEST(sets_exclude_each_other_and_never_stand_still),
        CONTRACT_TEST(no_update_is_lost),
        CONTRACT_TEST(no_addition_is_lost),
    };

    return cmocka_run_group_tests_name("thread", tests, NULL, NULL);
}
