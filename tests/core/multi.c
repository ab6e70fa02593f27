/* multi.c - sets of names: all or none, one deadline, never a circle. */
/* SPDX-License-Identifier: MIT */
#include "core.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { NAMES_MAX = DIBS_MULTI_MAX + 1 };

/* Names of one test, in the order in which a set has them. */
typedef struct names {
    char text[NAMES_MAX][80];
    const char *list[NAMES_MAX];
} names;

static names names_of(const char *base)
{
    names ns;

    for (size_t i = 0; i < NAMES_MAX; i++)
        snprintf(ns.text[i], sizeof(ns.text[i]), "%s-%02zu", base, i);
    return ns;
}

static names make_names(void)
{
    return names_of(core_name());
}

static dibs_multi *
make_set(dibs_client *cl, names *ns, size_t count, const dibs_lock_opts *opts)
{
    dibs_multi *multi = NULL;

    for (size_t i = 0; i < NAMES_MAX; i++)
        ns->list[i] = ns->text[i];
    CHECK(DIBS_OK, dibs_multi_new(cl, ns->list, count, opts, &multi, err));
    return multi;
}

/* A set that could not be acquired gives back what it had, for which each lock has a
 * quarter of a second: IN_TIME then. */
static bool is_free(dibs_client *cl, const char *name)
{
    dibs_lock *lock = core_lock(cl, name, NULL);
    dibs_status rc = dibs_lock_try(lock, NULL);

    if (rc != DIBS_OK)
        assert_status(rc, DIBS_BUSY);
    dibs_lock_free(lock);
    return rc == DIBS_OK;
}

static void all_or_none(void **state)
{
    dibs_client *cl = core_open();
    dibs_client *other = core_open();
    names ns = make_names();
    dibs_multi *multi = make_set(cl, &ns, 3, NULL);
    dibs_lock *in_the_way = core_lock(other, ns.text[1], NULL);
    dibs_error why = {0};

    (void)state;
    CHECK(DIBS_OK, dibs_lock_try(in_the_way, err));
    CHECK(DIBS_BUSY, dibs_multi_acquire(multi, &why));
    assert_non_null(strstr(why.message, ns.text[1]));
    CHECK(DIBS_LOST, dibs_multi_check(multi));
    IN_TIME(is_free(other, ns.text[0]));
    IN_TIME(is_free(other, ns.text[2]));
    CHECK(DIBS_OK, dibs_lock_release(in_the_way, err));
    CHECK(DIBS_OK, dibs_multi_acquire(multi, err));
    CHECK(DIBS_OK, dibs_multi_check(multi));
    assert_true(dibs_multi_valid_ms(multi) <= 30000);
    IN_TIME(dibs_multi_valid_ms(multi) >= 20000);
    for (size_t i = 0; i < 3; i++) {
        assert_true(dibs_lock_fence(dibs_multi_lock(multi, i)) > 0);
        assert_false(is_free(other, ns.text[i]));
    }
    CHECK(DIBS_INVALID, dibs_multi_acquire(multi, err));
    CHECK(DIBS_OK, dibs_multi_release(multi, err));
    CHECK(DIBS_LOST, dibs_multi_release(multi, err));
    for (size_t i = 0; i < 3; i++)
        assert_true(is_free(other, ns.text[i]));
    CHECK(DIBS_OK, dibs_multi_try(multi, err));
    dibs_multi_free(multi);
    for (size_t i = 0; i < 3; i++)
        IN_TIME(is_free(other, ns.text[i]));
    dibs_lock_free(in_the_way);
    dibs_close(other);
    dibs_close(cl);
}

static void duplicates_count_once(void **state)
{
    dibs_client *cl = NULL;
    names ns = make_names();
    const char *given[] = {ns.text[2], ns.text[0], ns.text[2], ns.text[1],
                           ns.text[0]};
    dibs_multi *multi = NULL;

    (void)state;
    CHECK(DIBS_OK,
          dibs_open(core_url, DIBS_CLIENT_OPTS(.prefix = "set:"), &cl, err));
    CHECK(DIBS_OK,
          dibs_multi_new(cl, given, COUNT_OF(given), NULL, &multi, err));
    assert_int_equal(dibs_multi_count(multi), 3);
    for (size_t i = 0; i < 3; i++)
        assert_string_equal(dibs_multi_name(multi, i), ns.text[i]);
    assert_null(dibs_multi_name(multi, 3));
    assert_null(dibs_multi_lock(multi, 3));
    CHECK(DIBS_OK, dibs_multi_try(multi, err));
    CHECK(DIBS_OK, dibs_multi_release(multi, err));
    dibs_multi_free(multi);
    dibs_close(cl);
}

static void a_set_of_64(void **state)
{
    dibs_client *cl = core_open();
    dibs_client *other = core_open();
    names ns = make_names();
    dibs_multi *multi = make_set(cl, &ns, DIBS_MULTI_MAX, NULL);
    dibs_multi *again =
        make_set(other, &ns, DIBS_MULTI_MAX, DIBS_LOCK_OPTS(.wait_ms = -1));
    dibs_multi *none = NULL;
    dibs_stats stats = {.size = sizeof(stats)};

    (void)state;
    CHECK(DIBS_INVALID,
          dibs_multi_new(cl, ns.list, DIBS_MULTI_MAX + 1, NULL, &none, err));
    CHECK(DIBS_OK, dibs_multi_try(multi, err));
    dibs_stats_get(cl, &stats);
    assert_int_equal(stats.held, DIBS_MULTI_MAX);
    CHECK(DIBS_BUSY, dibs_multi_try(again, err));
    CHECK(DIBS_OK, dibs_multi_release(multi, err));
    dibs_stats_get(cl, &stats);
    assert_int_equal(stats.held, 0);
    CHECK(DIBS_OK, dibs_multi_acquire(again, err));
    dibs_multi_free(again);
    dibs_multi_free(multi);
    dibs_close(other);
    dibs_close(cl);
}

static void shared_sets(void **state)
{
    const dibs_lock_opts *shared = DIBS_LOCK_OPTS(.mode = DIBS_SHARED);
    dibs_client *cl = core_open();
    dibs_client *other = core_open();
    names ns = make_names();
    dibs_multi *a = make_set(cl, &ns, 3, shared);
    dibs_multi *b = make_set(other, &ns, 3, shared);
    dibs_multi *writer = make_set(other, &ns, 2, NULL);

    (void)state;
    CHECK(DIBS_OK, dibs_multi_try(a, err));
    CHECK(DIBS_OK, dibs_multi_try(b, err));
    CHECK(DIBS_BUSY, dibs_multi_try(writer, err));
    CHECK(DIBS_OK, dibs_multi_release(a, err));
    CHECK(DIBS_BUSY, dibs_multi_try(writer, err));
    CHECK(DIBS_OK, dibs_multi_release(b, err));
    CHECK(DIBS_OK, dibs_multi_try(writer, err));
    CHECK(DIBS_BUSY, dibs_multi_try(a, err));
    dibs_multi_free(a);
    dibs_multi_free(b);
    dibs_multi_free(writer);
    dibs_close(other);
    dibs_close(cl);
}

static void bad_arguments(void **state)
{
    dibs_client *cl = core_open();
    const char *list[] = {"a", "b"};
    const char *empty[] = {"a", ""};
    dibs_multi *multi = NULL;

    (void)state;
#define REFUSED(...)                                                           \
    CHECK(DIBS_INVALID,                                                        \
          dibs_multi_new(cl, list, 2, DIBS_LOCK_OPTS(__VA_ARGS__), &multi,     \
                         err))
    CHECK(DIBS_INVALID, dibs_multi_new(NULL, list, 2, NULL, &multi, err));
    CHECK(DIBS_INVALID, dibs_multi_new(cl, NULL, 2, NULL, &multi, err));
    CHECK(DIBS_INVALID, dibs_multi_new(cl, list, 0, NULL, &multi, err));
    CHECK(DIBS_INVALID, dibs_multi_new(cl, empty, 2, NULL, &multi, err));
    REFUSED(.flags = DIBS_LOCK_REENTRANT);
    REFUSED(.flags = DIBS_LOCK_STICKY);
    REFUSED(.mode = DIBS_PERMITS, .capacity = 2);
    REFUSED(.progress_ms = 1000);
    REFUSED(.ttl_ms = 1);
#undef REFUSED
    assert_null(multi);
    CHECK(DIBS_INVALID, dibs_multi_acquire(NULL, err));
    CHECK(DIBS_INVALID, dibs_multi_release(NULL, err));
    dibs_multi_cancel(NULL);
    dibs_multi_free(NULL);
    dibs_close(cl);
}

/* An acquire in another thread. */
typedef struct taker {
    dibs_multi *multi;
    pthread_t thread;
    dibs_status rc;
    dibs_error err;
    bool done; /* atomic */
} taker;

static void *take(void *arg)
{
    taker *tk = arg;

    tk->rc = dibs_multi_acquire(tk->multi, &tk->err);
    __atomic_store_n(&tk->done, true, __ATOMIC_SEQ_CST);
    return NULL;
}

static void start(taker *tk, dibs_multi *multi)
{
    *tk = (taker){.multi = multi};
    assert_int_equal(pthread_create(&tk->thread, NULL, take, tk), 0);
}

static dibs_status finish(taker *tk)
{
    assert_int_equal(pthread_join(tk->thread, NULL), 0);
    return tk->rc;
}

typedef struct place {
    dibs_client *cl;
    const char *name;
} place;

static bool count_waiters(const dibs_lease_info *info, void *arg)
{
    *(size_t *)arg = info->waiter_count;
    return true;
}

static bool has_waiter(void *arg)
{
    const place *pl = arg;
    size_t count = 0;
    dibs_status rc =
        dibs_lease_show(pl->cl, pl->name, count_waiters, &count, NULL);

    if (rc != DIBS_OK)
        assert_status(rc, DIBS_NOTFOUND);
    return count > 0;
}

static void waits_in_order(void **state)
{
    dibs_client *cl = core_open();
    dibs_client *other = core_open();
    names ns = make_names();
    dibs_multi *multi = make_set(cl, &ns, 3, DIBS_LOCK_OPTS(.wait_ms = -1));
    dibs_lock *in_the_way = core_lock(other, ns.text[1], NULL);
    taker tk;

    (void)state;
    CHECK(DIBS_OK, dibs_lock_try(in_the_way, err));
    start(&tk, multi);
    core_until(has_waiter, &(place){other, ns.text[1]});
    assert_false(is_free(other, ns.text[0]));
    assert_true(is_free(other, ns.text[2]));
    CHECK(DIBS_LOST, dibs_multi_check(multi));
    CHECK(DIBS_INVALID, dibs_multi_acquire(multi, err));
    CHECK(DIBS_INVALID, dibs_multi_release(multi, err));
    CHECK(DIBS_OK, dibs_lock_release(in_the_way, err));
    CHECK(DIBS_OK, finish(&tk));
    CHECK(DIBS_OK, dibs_multi_check(multi));
    dibs_multi_free(multi);
    dibs_lock_free(in_the_way);
    dibs_close(other);
    dibs_close(cl);
}

static int64_t now_ms(void)
{
    struct timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    return (int64_t)at.tv_sec * 1000 + at.tv_nsec / 1000000;
}

/* The second name is held for ever, the first for most of the time: were the time
 * counted anew for each, the wait would end that much later. */
static void one_total_deadline(void **state)
{
    const int64_t wait_ms = pace_ms(1200), first_ms = pace_ms(900);
    dibs_client *cl = core_open();
    dibs_client *other = core_open();
    names ns = make_names();
    dibs_multi *multi =
        make_set(cl, &ns, 2, DIBS_LOCK_OPTS(.wait_ms = wait_ms));
    dibs_lock *first = core_lock(other, ns.text[0], NULL);
    dibs_lock *second = core_lock(other, ns.text[1], NULL);
    int64_t begun_ms, let_go_ms, ended_ms;
    taker tk;

    (void)state;
    CHECK(DIBS_OK, dibs_lock_try(first, err));
    CHECK(DIBS_OK, dibs_lock_try(second, err));
    begun_ms = now_ms();
    start(&tk, multi);
    while (now_ms() < begun_ms + first_ms)
        poll(NULL, 0, 10);
    let_go_ms = now_ms();
    CHECK(DIBS_OK, dibs_lock_release(first, err));
    CHECK(DIBS_TIMEOUT, finish(&tk));
    ended_ms = now_ms();
    IN_TIME(strstr(tk.err.message, ns.text[1]) != NULL);
    assert_true(ended_ms >= begun_ms + wait_ms);
    IN_TIME(ended_ms < let_go_ms + wait_ms);
    IN_TIME(is_free(other, ns.text[0]));
    dibs_multi_free(multi);
    dibs_lock_free(first);
    dibs_lock_free(second);
    dibs_close(other);
    dibs_close(cl);
}

static void tries_again_as_a_whole(void **state)
{
    dibs_client *cl = core_open();
    dibs_client *other = core_open();
    names ns = make_names();
    dibs_multi *multi =
        make_set(cl, &ns, 2,
                 DIBS_LOCK_OPTS(.retries = 1000, .retry_delay_ms = 20));
    dibs_lock *in_the_way = core_lock(other, ns.text[1], NULL);
    taker tk;

    (void)state;
    CHECK(DIBS_OK, dibs_lock_try(in_the_way, err));
    start(&tk, multi);
    poll(NULL, 0, 60);
    CHECK(DIBS_OK, dibs_lock_release(in_the_way, err));
    CHECK(DIBS_OK, finish(&tk));
    dibs_multi_free(multi);
    dibs_lock_free(in_the_way);
    dibs_close(other);
    dibs_close(cl);
}

typedef struct losses {
    int count;       /* atomic */
    dibs_lock *lock; /* atomic */
} losses;

static void note_loss(dibs_lock *lock, void *arg)
{
    losses *ls = arg;

    __atomic_store_n(&ls->lock, lock, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&ls->count, 1, __ATOMIC_SEQ_CST);
}

static bool was_told(void *arg)
{
    return __atomic_load_n(&((losses *)arg)->count, __ATOMIC_SEQ_CST) > 0;
}

static void a_lost_member_ends_the_set(void **state)
{
    losses ls = {0};
    dibs_client *cl = core_open();
    dibs_client *other = core_open();
    names ns = make_names();
    dibs_multi *multi =
        make_set(cl, &ns, 3,
                 DIBS_LOCK_OPTS(.ttl_ms = pace_ms(2000), .on_lost = note_loss,
                                .on_lost_arg = &ls));

    (void)state;
    CHECK(DIBS_OK, dibs_multi_try(multi, err));
    CHECK(DIBS_OK, dibs_lease_break(other, ns.text[1], 0, NULL, NULL, err));
    core_until(was_told, &ls);
    /* The others are kept, unless the keeper is late. */
    IN_TIME(__atomic_load_n(&ls.lock, __ATOMIC_SEQ_CST) ==
            dibs_multi_lock(multi, 1));
    CHECK(DIBS_LOST, dibs_multi_check(multi));
    assert_int_equal(dibs_multi_valid_ms(multi), 0);
    IN_TIME(!is_free(other, ns.text[0]));
    CHECK(DIBS_LOST, dibs_multi_release(multi, err));
    for (size_t i = 0; i < 3; i++)
        assert_true(is_free(other, ns.text[i]));
    /* A set that was lost is taken anew without a release. */
    CHECK(DIBS_OK, dibs_multi_try(multi, err));
    __atomic_store_n(&ls.count, 0, __ATOMIC_SEQ_CST);
    CHECK(DIBS_OK, dibs_lease_break(other, ns.text[2], 0, NULL, NULL, err));
    core_until(was_told, &ls);
    CHECK(DIBS_OK, dibs_multi_try(multi, err));
    CHECK(DIBS_OK, dibs_multi_release(multi, err));
    dibs_multi_free(multi);
    dibs_close(other);
    dibs_close(cl);
}

static bool first_is_held(void *arg)
{
    return dibs_lock_state_get(dibs_multi_lock(arg, 0)) == DIBS_LOCK_HELD;
}

typedef struct fence_change {
    dibs_multi *multi;
    uint64_t fence;
} fence_change;

static bool has_another_fence(void *arg)
{
    const fence_change *fc = arg;
    uint64_t fence = dibs_lock_fence(dibs_multi_lock(fc->multi, 0));

    return fence > fc->fence;
}

static void a_loss_while_waiting_begins_anew(void **state)
{
    losses ls = {0};
    dibs_client *cl = core_open();
    dibs_client *other = core_open();
    names ns = make_names();
    dibs_multi *multi =
        make_set(cl, &ns, 2,
                 DIBS_LOCK_OPTS(.wait_ms = -1, .ttl_ms = pace_ms(2000),
                                .retry_delay_ms = 10, .on_lost = note_loss,
                                .on_lost_arg = &ls));
    dibs_lock *in_the_way = core_lock(other, ns.text[1], NULL);
    fence_change fc = {.multi = multi};
    taker tk;

    (void)state;
    CHECK(DIBS_OK, dibs_lock_try(in_the_way, err));
    start(&tk, multi);
    core_until(first_is_held, multi);
    core_until(has_waiter, &(place){other, ns.text[1]});
    fc.fence = dibs_lock_fence(dibs_multi_lock(multi, 0));
    CHECK(DIBS_OK, dibs_lease_break(other, ns.text[0], 0, NULL, NULL, err));
    core_until(has_another_fence, &fc);
    CHECK(DIBS_OK, dibs_lock_release(in_the_way, err));
    CHECK(DIBS_OK, finish(&tk));
    CHECK(DIBS_OK, dibs_multi_check(multi));
    assert_false(was_told(&ls));
    CHECK(DIBS_OK, dibs_multi_release(multi, err));
    dibs_multi_free(multi);
    dibs_lock_free(in_the_way);
    dibs_close(other);
    dibs_close(cl);
}

static bool has_begun(void *arg)
{
    return dibs_lock_state_get(dibs_multi_lock(arg, 0)) != DIBS_LOCK_FREE;
}

/* One cancel, at whatever point the acquire has come to, is enough. */
static void cancelled_at_any_point(void **state)
{
    enum { TIMES = 40 };
    dibs_client *cl = core_open();
    dibs_client *other = core_open();
    names ns = make_names();
    dibs_multi *multi = make_set(cl, &ns, 3, DIBS_LOCK_OPTS(.wait_ms = -1));
    dibs_lock *in_the_way = core_lock(other, ns.text[2], NULL);
    taker tk;

    (void)state;
    dibs_multi_cancel(multi);
    CHECK(DIBS_OK, dibs_lock_try(in_the_way, err));
    for (int i = 0; i < TIMES; i++) {
        start(&tk, multi);
        core_until(has_begun, multi);
        if (i % 2)
            core_until(has_waiter, &(place){other, ns.text[2]});
        dibs_multi_cancel(multi);
        CHECK(DIBS_CANCELLED, finish(&tk));
        assert_int_equal(dibs_lock_state_get(dibs_multi_lock(multi, 0)),
                         DIBS_LOCK_FREE);
    }
    IN_TIME(is_free(other, ns.text[0]));
    CHECK(DIBS_OK, dibs_lock_release(in_the_way, err));
    CHECK(DIBS_OK, dibs_multi_acquire(multi, err));
    dibs_multi_cancel(multi);
    CHECK(DIBS_OK, dibs_multi_check(multi));
    dibs_multi_free(multi);
    dibs_lock_free(in_the_way);
    dibs_close(other);
    dibs_close(cl);
}

/* A pause shows nowhere, so it is cancelled until it has ended. */
static bool cancelled_again(void *arg)
{
    taker *tk = arg;

    dibs_multi_cancel(tk->multi);
    return __atomic_load_n(&tk->done, __ATOMIC_SEQ_CST);
}

static void a_cancel_ends_the_pause(void **state)
{
    dibs_client *cl = core_open();
    dibs_client *other = core_open();
    names ns = make_names();
    dibs_multi *multi =
        make_set(cl, &ns, 2,
                 DIBS_LOCK_OPTS(.retries = 9, .retry_delay_ms = 3600000));
    dibs_lock *in_the_way = core_lock(other, ns.text[1], NULL);
    taker tk;

    (void)state;
    CHECK(DIBS_OK, dibs_lock_try(in_the_way, err));
    start(&tk, multi);
    core_until(cancelled_again, &tk);
    CHECK(DIBS_CANCELLED, finish(&tk));
    dibs_multi_free(multi);
    dibs_lock_free(in_the_way);
    dibs_close(other);
    dibs_close(cl);
}

static void does_not_wait_for_itself(void **state)
{
    dibs_client *cl = core_open();
    names ns = make_names();
    dibs_multi *multi = make_set(cl, &ns, 2, DIBS_LOCK_OPTS(.wait_ms = -1));
    dibs_lock *mine = core_lock(cl, ns.text[1], NULL);

    (void)state;
    CHECK(DIBS_OK, dibs_lock_try(mine, err));
    CHECK(DIBS_INVALID, dibs_multi_acquire(multi, err));
    CHECK(DIBS_BUSY, dibs_multi_try(multi, err));
    IN_TIME(is_free(cl, ns.text[0]));
    dibs_lock_free(mine);
    dibs_multi_free(multi);
    dibs_close(cl);
}

enum { ARENA_NAMES = 6, ARENA_THREADS = 6, ARENA_TURNS = 20 };

/* Many who take random sets of few names, as readers or as writers. */
typedef struct arena {
    dibs_client *cl;
    names *ns;
    int readers[ARENA_NAMES]; /* atomic */
    int writers[ARENA_NAMES]; /* atomic */
    unsigned seed;
} arena;

/* Whether those inside are as they may be, with one more. */
static bool come_in(arena *ar, unsigned picked, bool shared)
{
    bool good = true;

    for (unsigned i = 0; i < ARENA_NAMES; i++) {
        int *inside = shared ? &ar->readers[i] : &ar->writers[i];

        if (!(picked & 1U << i))
            continue;
        __atomic_add_fetch(inside, 1, __ATOMIC_SEQ_CST);
        if (__atomic_load_n(&ar->writers[i], __ATOMIC_SEQ_CST) >
            (shared ? 0 : 1))
            good = false;
        if (!shared && __atomic_load_n(&ar->readers[i], __ATOMIC_SEQ_CST) > 0)
            good = false;
    }
    return good;
}

static void go_out(arena *ar, unsigned picked, bool shared)
{
    for (unsigned i = 0; i < ARENA_NAMES; i++)
        if (picked & 1U << i)
            __atomic_sub_fetch(shared ? &ar->readers[i] : &ar->writers[i], 1,
                               __ATOMIC_SEQ_CST);
}

/* NULL when the status is DIBS_OK. A lease of 20 s that was lost meanwhile, and a store
 * that did not answer, are lateness. */
static const char *wrong_of(dibs_status rc, const char *wrong)
{
    if (pace_explains(rc))
        MISSED("%s: %s", wrong, dibs_status_name(rc));
    return rc == DIBS_OK ? NULL : wrong;
}

/* One set, taken and given back; an explanation when that fails. */
static const char *one_turn(arena *ar, unsigned picked, bool shared)
{
    const char *list[ARENA_NAMES];
    dibs_multi *multi = NULL;
    size_t count = 0;
    const char *wrong = NULL;

    /* Backwards: the order in which they are given does not matter. */
    for (unsigned i = ARENA_NAMES; i-- > 0;)
        if (picked & 1U << i)
            list[count++] = ar->ns->text[i];
    if (dibs_multi_new(ar->cl, list, count,
                       DIBS_LOCK_OPTS(.wait_ms = -1, .ttl_ms = 20000,
                                      .mode = shared ? DIBS_SHARED
                                                     : DIBS_EXCLUSIVE),
                       &multi, NULL) != DIBS_OK)
        return "no handle";
    wrong = wrong_of(dibs_multi_acquire(multi, NULL), "not acquired");
    if (!wrong) {
        bool alone = come_in(ar, picked, shared);

        wrong = wrong_of(dibs_multi_check(multi), "not valid");
        if (!wrong && !alone)
            wrong = "not alone";
        go_out(ar, picked, shared);
    }
    if (!wrong)
        wrong = wrong_of(dibs_multi_release(multi, NULL), "not released");
    dibs_multi_free(multi);
    return wrong;
}

static void *play(void *arg)
{
    arena *ar = arg;
    unsigned seed = __atomic_add_fetch(&ar->seed, 7919, __ATOMIC_SEQ_CST);
    const char *wrong = NULL;

    for (int i = 0; i < ARENA_TURNS && !wrong; i++) {
        unsigned picked = (unsigned)rand_r(&seed) % (1U << ARENA_NAMES);

        wrong = one_turn(ar, picked ? picked : 1U, rand_r(&seed) % 3 == 0);
    }
    /* Read by the thread that joins. */
    return (void *)(uintptr_t)wrong;
}

static void overlapping_sets_never_deadlock(void **state)
{
    names ns = make_names();
    arena ar = {.cl = core_open(), .ns = &ns};
    pthread_t threads[ARENA_THREADS];
    void *wrong[ARENA_THREADS];

    (void)state;
    for (int i = 0; i < ARENA_THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, play, &ar), 0);
    /* One that was late says so itself, perhaps after another was not alone. */
    for (int i = 0; i < ARENA_THREADS; i++)
        assert_int_equal(pthread_join(threads[i], &wrong[i]), 0);
    for (int i = 0; i < ARENA_THREADS; i++)
        if (wrong[i])
            fail_msg("%s", (const char *)wrong[i]);
    dibs_close(ar.cl);
}

/* A process of its own, with the URL, the first part of the names, and a seed. */
int core_play_sets(char **words)
{
    names ns = names_of(words[1]);
    arena ar = {.ns = &ns, .seed = (unsigned)strtoul(words[2], NULL, 10)};
    const char *wrong;

    CHECK(DIBS_OK, dibs_open(words[0], NULL, &ar.cl, err));
    wrong = play(&ar);
    dibs_close(ar.cl);
    if (wrong)
        fprintf(stderr, "%s\n", wrong);
    return wrong ? 1 : 0;
}

/* The same between processes, where each thread of above has one of its own. */
static void processes_never_deadlock(void **state)
{
    static const char *const seeds[] = {"0", "31", "62"};
    const char *base = core_name();
    pid_t pids[COUNT_OF(seeds)];
    int codes[COUNT_OF(seeds)];

    (void)state;
    if (strncmp(core_url, "memory:", 7) == 0)
        skip();
    for (size_t i = 0; i < COUNT_OF(pids); i++)
        pids[i] = child_start("sets", core_url, base, seeds[i], NULL);
    for (size_t i = 0; i < COUNT_OF(pids); i++)
        codes[i] = child_code(pids[i]);
    for (size_t i = 0; i < COUNT_OF(pids); i++)
        assert_int_equal(codes[i], 0);
}

static void a_child_process_is_told(void **state)
{
    dibs_client *cl = core_open();
    names ns = make_names();
    dibs_multi *multi = make_set(cl, &ns, 2, NULL);
    int status = -1;
    pid_t pid;

    (void)state;
    CHECK(DIBS_OK, dibs_multi_try(multi, err));
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        bool told = dibs_multi_try(multi, NULL) == DIBS_FORKED &&
                    dibs_multi_release(multi, NULL) == DIBS_FORKED &&
                    dibs_multi_check(multi) == DIBS_LOST;

        dibs_multi_cancel(multi);
        dibs_multi_free(multi);
        _exit(told ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    CHECK(DIBS_OK, dibs_multi_release(multi, err));
    dibs_multi_free(multi);
    dibs_close(cl);
}

int core_multi_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_or_none),
        cmocka_unit_test(duplicates_count_once),
        cmocka_unit_test(a_set_of_64),
        cmocka_unit_test(shared_sets),
        cmocka_unit_test(bad_arguments),
        cmocka_unit_test(waits_in_order),
        cmocka_unit_test(one_total_deadline),
        cmocka_unit_test(tries_again_as_a_whole),
        cmocka_unit_test(a_lost_member_ends_the_set),
        cmocka_unit_test(a_loss_while_waiting_begins_anew),
        cmocka_unit_test(cancelled_at_any_point),
        cmocka_unit_test(a_cancel_ends_the_pause),
        cmocka_unit_test(does_not_wait_for_itself),
        cmocka_unit_test(overlapping_sets_never_deadlock),
        cmocka_unit_test(processes_never_deadlock),
        cmocka_unit_test(a_child_process_is_told),
    };

    return cmocka_run_group_tests_name("multi", tests, NULL, NULL);
}
