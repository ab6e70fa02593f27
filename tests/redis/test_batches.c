/* test_batches.c - many threads of one client, whose steps the server does
 * together: each is granted what is its own, whatever happens to the others. */
/* SPDX-License-Identifier: MIT */
#include "proxy.h"
#include "redis_world.h"

#include <pthread.h>
#include <sched.h>

enum { CREW = 24, SHARED = 4, NAMES = CREW + SHARED, ROUNDS = 60 };
#define TTL_MS pace_ms(1000)

/* Threads that take names of their own and, every other time, one that some
 * share. What they see while they hold is counted. */
typedef struct crew {
    dibs_client *cl;
    atomic_int joined;
    atomic_bool stop;
    atomic_int inside[NAMES];
    atomic_ullong last[NAMES];     /* fence */
    uint64_t fences[CREW][ROUNDS]; /* 0: not granted */
    atomic_llong taken;
    atomic_int two;       /* how often two were inside at once, */
    atomic_int backwards; /* ... a fence of a name did not rise, */
    atomic_int ended;     /* ... a lease did not last until its holder left, */
    atomic_int refused;   /* ... an acquire failed, */
    atomic_int undone;    /* ... a release did, */
    atomic_int odd;       /* ... one of them for another reason than time, */
    atomic_int warned;    /* ... and the library logged a warning */
    pthread_t threads[CREW];
} crew;

static void note_warning(dibs_log_level level, const char *event,
                         const char *message, void *arg)
{
    crew *cw = arg;

    if (level <= DIBS_LOG_WARN && atomic_fetch_add(&cw->warned, 1) < 5)
        fprintf(stderr, "%s: %s\n", event, message);
}

static crew *crew_new(const char *url)
{
    crew *cw = calloc(1, sizeof(*cw));

    assert_non_null(cw);
    CHECK(DIBS_OK,
          dibs_open(url,
                    DIBS_CLIENT_OPTS(.timeout_ms = 5000, .log = note_warning,
                                     .log_arg = cw, .log_level = DIBS_LOG_WARN),
                    &cw->cl, err));
    return cw;
}

static void crew_free(crew *cw)
{
    dibs_close(cw->cl);
    free(cw);
}

/* What a holder does: alone, if the lease is worth anything. */
static uint64_t hold(crew *cw, int name, dibs_lock *lock)
{
    uint64_t fence = dibs_lock_fence(lock);

    if (atomic_fetch_add(&cw->inside[name], 1) != 0)
        atomic_fetch_add(&cw->two, 1);
    if (atomic_exchange(&cw->last[name], fence) >= fence)
        atomic_fetch_add(&cw->backwards, 1);
    sched_yield();
    atomic_fetch_add(&cw->ended, dibs_lock_check(lock) != DIBS_OK);
    atomic_fetch_sub(&cw->inside[name], 1);
    atomic_fetch_add(&cw->taken, 1);
    return fence;
}

static dibs_lock *lock_of(crew *cw, int name)
{
    char text[32];

    snprintf(text, sizeof(text), "name-%d", name);
    return world_lock(cw->cl, text,
                      DIBS_LOCK_OPTS(.ttl_ms = TTL_MS, .wait_ms = 30000));
}

static void *work(void *arg)
{
    crew *cw = arg;
    int me = atomic_fetch_add(&cw->joined, 1);
    int names[2] = {me, CREW + me % SHARED};
    dibs_lock *locks[2] = {lock_of(cw, names[0]), lock_of(cw, names[1])};

    for (int i = 0; i < ROUNDS && !atomic_load(&cw->stop); i++) {
        dibs_lock *lock = locks[i % 2];
        dibs_error err = {0};
        dibs_status rc = dibs_lock_acquire(lock, &err);

        if (rc != DIBS_OK) {
            atomic_fetch_add(&cw->refused, 1);
            atomic_fetch_add(&cw->odd, !pace_explains(rc));
            continue;
        }
        cw->fences[me][i] = hold(cw, names[i % 2], lock);
        rc = dibs_lock_release(lock, &err);
        if (rc != DIBS_OK) {
            atomic_fetch_add(&cw->undone, 1);
            atomic_fetch_add(&cw->odd, !pace_explains(rc));
        }
    }
    dibs_lock_free(locks[0]);
    dibs_lock_free(locks[1]);
    return NULL;
}

static void crew_start(crew *cw)
{
    for (int i = 0; i < CREW; i++)
        assert_int_equal(pthread_create(&cw->threads[i], NULL, work, cw), 0);
}

static void crew_join(crew *cw)
{
    for (int i = 0; i < CREW; i++)
        assert_int_equal(pthread_join(cw->threads[i], NULL), 0);
}

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* Nobody was where somebody else was, no fence was given twice, and none is
 * above the watermark. */
static void assert_apart(crew *cw, const server *sv)
{
    uint64_t *fences = &cw->fences[0][0];
    char *text = server_ask(sv, "GET", "dibs:fence", NULL);
    uint64_t watermark = text ? strtoull(text, NULL, 10) : 0;

    /* A holder that did not run until its lease had ended is not alone. */
    if (atomic_load(&cw->two) > 0 || atomic_load(&cw->backwards) > 0)
        IN_TIME(atomic_load(&cw->ended) == 0);
    assert_int_equal(atomic_load(&cw->two), 0);
    assert_int_equal(atomic_load(&cw->backwards), 0);
    qsort(fences, CREW * ROUNDS, sizeof(*fences), by_size);
    for (int i = 1; i < CREW * ROUNDS; i++)
        assert_true(fences[i] == 0 || fences[i] > fences[i - 1]);
    assert_true(fences[CREW * ROUNDS - 1] <= watermark);
    free(text);
}

static void assert_all_served(crew *cw)
{
    assert_int_equal(atomic_load(&cw->odd), 0);
    IN_TIME(atomic_load(&cw->refused) == 0);
    IN_TIME(atomic_load(&cw->undone) == 0);
    IN_TIME(atomic_load(&cw->warned) == 0);
    assert_int_equal(atomic_load(&cw->taken), CREW * ROUNDS);
}

static long long calls_of(const server *sv, const char *command)
{
    long long calls = server_info(sv, "commandstats", command);

    return calls > 0 ? calls : 0;
}

static void steps_go_together(void **state)
{
    world *w = *state;
    crew *cw = crew_new(w->url);
    long long commands;

    assert_true(server_tell(&w->sv, "CONFIG", "RESETSTAT", NULL));
    crew_start(cw);
    crew_join(cw);
    assert_all_served(cw);
    assert_apart(cw, &w->sv);
    commands =
        calls_of(&w->sv, "cmdstat_evalsha") + calls_of(&w->sv, "cmdstat_eval");
    print_message("%lld commands for %d pairs\n", commands, CREW * ROUNDS);
    assert_true(calls_of(&w->sv, "cmdstat_time") <
                calls_of(&w->sv, "cmdstat_hset"));
    crew_free(cw);
}

/* As after the clock was set back: they count on from the watermark. */
static void fences_rise_above_the_clock(void **state)
{
    world *w = *state;
    crew *cw = crew_new(w->url);
    uint64_t ahead = 8000000000000000;

    assert_true(
        server_tell(&w->sv, "SET", "dibs:fence", "8000000000000000", NULL));
    crew_start(cw);
    crew_join(cw);
    assert_all_served(cw);
    assert_apart(cw, &w->sv);
    /* One each, and some that a group did not need. */
    assert_in_range(cw->fences[0][0], ahead + 1, ahead + DIBS_NAME_MAX);
    assert_true(cw->fences[CREW - 1][ROUNDS - 1] >= ahead + CREW * ROUNDS);
    crew_free(cw);
}

static void scripts_may_go_missing(void **state)
{
    world *w = *state;
    crew *cw = crew_new(w->url);

    crew_start(cw);
    while (atomic_load(&cw->taken) < CREW * ROUNDS * 9 / 10)
        assert_true(server_tell(&w->sv, "SCRIPT", "FLUSH", NULL));
    crew_join(cw);
    assert_all_served(cw);
    assert_apart(cw, &w->sv);
    crew_free(cw);
}

/* Threads that do one thing, each with a lock of its own. */
typedef struct act {
    dibs_lock *lock;
    dibs_status (*call)(dibs_lock *lock, dibs_error *err);
    dibs_status rc;
    dibs_error err;
    pthread_t thread;
} act;

static void *perform(void *arg)
{
    act *a = arg;

    a->rc = a->call(a->lock, &a->err);
    return NULL;
}

static void
perform_all(act *acts, dibs_status (*call)(dibs_lock *lock, dibs_error *err))
{
    for (int i = 0; i < CREW; i++) {
        acts[i].call = call;
        assert_int_equal(pthread_create(&acts[i].thread, NULL, perform,
                                        &acts[i]),
                         0);
    }
    for (int i = 0; i < CREW; i++)
        assert_int_equal(pthread_join(acts[i].thread, NULL), 0);
}

static void
acts_init(act *acts, dibs_client *cl, const char *begin, int64_t ttl_ms)
{
    for (int i = 0; i < CREW; i++) {
        char name[32];

        snprintf(name, sizeof(name), "%s-%d", begin, i);
        acts[i] = (act){
            .lock = world_lock(cl, name, DIBS_LOCK_OPTS(.ttl_ms = ttl_ms))};
    }
}

static void acts_fini(act *acts)
{
    for (int i = 0; i < CREW; i++)
        dibs_lock_free(acts[i].lock);
}

static void assert_acts(const act *acts, dibs_status rc, const char *origin)
{
    for (int i = 0; i < CREW; i++) {
        if (acts[i].rc != rc)
            FAIL_OF(acts[i].rc, "%d: %s: %s", i, dibs_status_name(acts[i].rc),
                    acts[i].err.message);
        if (origin && strcmp(acts[i].err.origin, origin) != 0)
            FAIL_OF(rc, "%d: %s, not %s: %s", i, acts[i].err.origin, origin,
                    acts[i].err.message);
    }
}

/* A group that needs more than there are is none: the last ones are still given,
 * each to one who asks. */
static void fences_are_used_up(void **state)
{
    enum { LEFT = 10 };
    world *w = *state;
    int granted = 0;
    act acts[CREW];

    acts_init(acts, w->one, "k", 0);
    assert_true(
        server_tell(&w->sv, "SET", "dibs:fence", "9007199254740981", NULL));
    perform_all(acts, dibs_lock_try);
    for (int i = 0; i < CREW; i++) {
        if (acts[i].rc == DIBS_OK) {
            granted++;
            continue;
        }
        CHECK(DIBS_INTERNAL, acts[i].rc);
        assert_string_equal(acts[i].err.origin, "USEDUP");
    }
    assert_int_equal(granted, LEFT);
    acts_fini(acts);
}

static void at_maxmemory_only_acquire_is_refused(void **state)
{
    world *w = *state;
    act held[CREW], fresh[CREW];

    acts_init(held, w->one, "held", 0);
    acts_init(fresh, w->one, "fresh", 0);
    perform_all(held, dibs_lock_try);
    assert_acts(held, DIBS_OK, NULL);
    assert_true(server_tell(&w->sv, "CONFIG", "SET", "maxmemory", "1", NULL));
    perform_all(fresh, dibs_lock_try);
    assert_acts(fresh, DIBS_UNAVAIL, "OOM");
    perform_all(held, dibs_lock_release);
    assert_acts(held, DIBS_OK, NULL);
    assert_true(server_tell(&w->sv, "CONFIG", "SET", "maxmemory", "0", NULL));
    perform_all(fresh, dibs_lock_try);
    assert_acts(fresh, DIBS_OK, NULL);
    acts_fini(held);
    acts_fini(fresh);
}

typedef struct side {
    act acts[CREW];
    pthread_t thread;
} side;

static void *try_on(void *arg)
{
    side *sd = arg;

    perform_all(sd->acts, dibs_lock_try);
    return NULL;
}

/* Some ask for what they may not have, at the same time as others for what they
 * may. */
static void the_denied_do_not_hurt_others(void **state)
{
    world *w = *state;
    dibs_client *cl;
    side good, bad;
    char url[64];

    assert_true(server_tell(&w->sv, "ACL", "SETUSER", "ann", "on", ">secret",
                            "~good-*", "~{good-*", "~dibs:fence", "+@all",
                            NULL));
    snprintf(url, sizeof(url), "redis://ann:secret@127.0.0.1:%d", w->sv.port);
    cl = world_client(url, 5000);
    acts_init(good.acts, cl, "good", 0);
    acts_init(bad.acts, cl, "bad", 0);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(pthread_create(&good.thread, NULL, try_on, &good), 0);
        assert_int_equal(pthread_create(&bad.thread, NULL, try_on, &bad), 0);
        assert_int_equal(pthread_join(good.thread, NULL), 0);
        assert_int_equal(pthread_join(bad.thread, NULL), 0);
        assert_acts(good.acts, DIBS_OK, NULL);
        assert_acts(bad.acts, DIBS_DENIED, "NOPERM");
        perform_all(good.acts, dibs_lock_release);
        assert_acts(good.acts, DIBS_OK, NULL);
    }
    acts_fini(good.acts);
    acts_fini(bad.acts);
    dibs_close(cl);
}

/* A key that is no lock is for its own asker to hear of. */
static void a_foreign_key_does_not_hurt_others(void **state)
{
    world *w = *state;
    act acts[CREW];

    acts_init(acts, w->one, "k", 0);
    assert_true(server_tell(&w->sv, "SET", "k-7", "not a lock", NULL));
    perform_all(acts, dibs_lock_try);
    CHECK(DIBS_INTERNAL, acts[7].rc);
    assert_string_equal(acts[7].err.origin, "FOREIGN");
    acts[7].rc = DIBS_OK;
    assert_acts(acts, DIBS_OK, NULL);
    assert_true(server_tell(&w->sv, "SET", "k-3", "no longer", NULL));
    perform_all(acts, dibs_lock_release);
    for (int i = 0; i < CREW; i++)
        if (i != 3 && i != 7)
            CHECK(DIBS_OK, acts[i].rc);
    acts_fini(acts);
}

/* What was cut may have been done; but nobody is where somebody else is. */
static void connections_may_be_cut(void **state)
{
    enum { CUTS = 40, ENOUGH = CREW * ROUNDS * 9 / 10 };
    world *w = *state;
    char url[SERVER_URL_MAX];
    crew *cw;
    static proxy px;

    assert_true(proxy_start(&px, w->sv.port));
    snprintf(url, sizeof(url), "redis://127.0.0.1:%d", px.port);
    cw = crew_new(url);
    crew_start(cw);
    for (long at = 0; at < CUTS && atomic_load(&cw->taken) < ENOUGH; at++) {
        int before = atomic_load(&px.cuts);

        proxy_arm(&px, 11 * at);
        while (atomic_load(&px.cuts) == before &&
               atomic_load(&cw->taken) < ENOUGH)
            sched_yield();
    }
    proxy_arm(&px, -1);
    atomic_store(&cw->stop, true);
    crew_join(cw);
    assert_apart(cw, &w->sv);
    assert_true(atomic_load(&px.cuts) > 0);
    print_message("%d cuts, %d refused, %d undone\n", atomic_load(&px.cuts),
                  atomic_load(&cw->refused), atomic_load(&cw->undone));
    crew_free(cw);
    proxy_stop(&px);
}

/* It stands still for longer than steps may take. What was not given back is free
 * when its time is over. */
static void the_server_may_stand_still(void **state)
{
    world *w = *state;
    act acts[CREW];

    acts_init(acts, w->one, "k", TTL_MS);
    perform_all(acts, dibs_lock_try);
    assert_acts(acts, DIBS_OK, NULL);
    server_pause(&w->sv);
    perform_all(acts, dibs_lock_release);
    server_resume(&w->sv);
    for (int i = 0; i < CREW; i++)
        CHECK(DIBS_OK, world_try_until(acts[i].lock, TTL_MS + WORLD_BOUND_MS));
    perform_all(acts, dibs_lock_release);
    assert_acts(acts, DIBS_OK, NULL);
    acts_fini(acts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(steps_go_together),
        WORLD_TEST(fences_rise_above_the_clock),
        WORLD_TEST(fences_are_used_up),
        WORLD_TEST(scripts_may_go_missing),
        WORLD_TEST(at_maxmemory_only_acquire_is_refused),
        WORLD_TEST(the_denied_do_not_hurt_others),
        WORLD_TEST(a_foreign_key_does_not_hurt_others),
        WORLD_TEST(connections_may_be_cut),
        WORLD_TEST(the_server_may_stand_still),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
