/* test_groups.c - asynchronous calls whose steps go out together: each has the answer
 * to its own, and the server gets few commands. */
/* SPDX-License-Identifier: MIT */
#include "proxy.h"
#include "redis_world.h"
#include <dibs/async.h>

enum { LOCKS = 64, TIMEOUT_MS = 1000 };

/* A lock and what its last call came to. */
typedef struct seat {
    dibs_lock *lock;
    atomic_int calls;
    dibs_status rc;
} seat;

typedef struct row {
    dibs_client *cl;
    seat seats[LOCKS];
} row;

static void
see(dibs_lock *lock, dibs_status rc, const dibs_error *err, void *arg)
{
    seat *st = arg;

    (void)lock;
    if (rc != DIBS_OK)
        print_message("%s: %s\n", dibs_status_name(rc), err->message);
    st->rc = rc;
    atomic_fetch_add(&st->calls, 1);
}

static void acquire(seat *st)
{
    atomic_store(&st->calls, 0);
    CHECK(DIBS_OK, dibs_lock_acquire_async(st->lock, see, st, err));
}

static void release(seat *st)
{
    atomic_store(&st->calls, 0);
    CHECK(DIBS_OK, dibs_lock_release_async(st->lock, see, st, err));
}

static void await_call(seat *st)
{
    while (atomic_load(&st->calls) == 0)
        world_sleep_ms(1);
}

static void await_calls(row *rw)
{
    for (size_t i = 0; i < LOCKS; i++)
        await_call(&rw->seats[i]);
}

static void expect_all(row *rw, dibs_status rc)
{
    await_calls(rw);
    for (size_t i = 0; i < LOCKS; i++)
        CHECK(rc, rw->seats[i].rc);
}

/* All at a server that answers only when all have been started. */
static void begin_together(world *w, row *rw, void (*begin)(seat *st))
{
    assert_true(server_tell(&w->sv, "CONFIG", "RESETSTAT", NULL));
    server_pause(&w->sv);
    for (size_t i = 0; i < LOCKS; i++)
        begin(&rw->seats[i]);
    server_resume(&w->sv);
    await_calls(rw);
}

/* Locks that have been held before, so that the server has the scripts and the
 * client thinks that the names are free. */
static void open_row(row *rw, world *w)
{
    rw->cl = world_client(w->url, 10000);
    for (size_t i = 0; i < LOCKS; i++) {
        char name[16];

        snprintf(name, sizeof(name), "k%zu", i);
        rw->seats[i].lock =
            world_lock(rw->cl, name, DIBS_LOCK_OPTS(.ttl_ms = 30000));
    }
    for (int i = 0; i < 2; i++) {
        begin_together(w, rw, acquire);
        expect_all(rw, DIBS_OK);
        begin_together(w, rw, release);
        expect_all(rw, DIBS_OK);
    }
}

static void close_row(row *rw)
{
    for (size_t i = 0; i < LOCKS; i++)
        dibs_lock_free(rw->seats[i].lock);
    dibs_close(rw->cl);
}

/* What is ready while one group is on its way is the next one. */
static void calls_go_out_together(void **state)
{
    static row rw;
    world *w = *state;

    open_row(&rw, w);
    begin_together(w, &rw, acquire);
    expect_all(&rw, DIBS_OK);
    assert_in_range(server_info(&w->sv, "commandstats", "cmdstat_evalsha"), 1,
                    2);
    begin_together(w, &rw, release);
    expect_all(&rw, DIBS_OK);
    assert_in_range(server_info(&w->sv, "commandstats", "cmdstat_evalsha"), 1,
                    2);
    close_row(&rw);
}

static void each_has_its_own_answer(void **state)
{
    static row rw;
    world *w = *state;
    dibs_lock *held[LOCKS / 2];

    open_row(&rw, w);
    for (size_t i = 0; i < LOCKS / 2; i++) {
        char name[16];

        snprintf(name, sizeof(name), "k%zu", 2 * i);
        held[i] = world_lock(w->other, name, DIBS_LOCK_OPTS(.ttl_ms = 30000));
        CHECK(DIBS_OK, dibs_lock_try(held[i], err));
        dibs_lock_free(rw.seats[2 * i].lock);
        rw.seats[2 * i].lock =
            world_lock(rw.cl, name, DIBS_LOCK_OPTS(.ttl_ms = 30000));
    }
    begin_together(w, &rw, acquire);
    for (size_t i = 0; i < LOCKS; i++) {
        CHECK(i % 2 ? DIBS_OK : DIBS_BUSY, rw.seats[i].rc);
        assert_int_equal(dibs_lock_fence(rw.seats[i].lock) > 0, i % 2);
    }
    for (size_t i = 0; i < LOCKS / 2; i++)
        dibs_lock_free(held[i]);
    close_row(&rw);
}

static void a_server_without_the_scripts_gets_them(void **state)
{
    static row rw;
    world *w = *state;

    open_row(&rw, w);
    assert_true(server_tell(&w->sv, "SCRIPT", "FLUSH", NULL));
    begin_together(w, &rw, acquire);
    expect_all(&rw, DIBS_OK);
    assert_true(server_tell(&w->sv, "SCRIPT", "FLUSH", NULL));
    begin_together(w, &rw, release);
    expect_all(&rw, DIBS_OK);
    close_row(&rw);
}

static bool is_held(world *w, const char *name)
{
    char *there = server_ask(&w->sv, "EXISTS", name, NULL);
    bool held = there && strcmp(there, "0") != 0;

    free(there);
    return held;
}

/* The release was done and its answer lost: it is sent again, finds nothing, and so
 * is known to have been done. */
static void a_release_whose_answer_was_lost_is_sent_again(void **state)
{
    static seat st;
    world *w = *state;
    char url[SERVER_URL_MAX];
    dibs_client *cl;
    static proxy px;

    assert_true(proxy_start(&px, w->sv.port));
    snprintf(url, sizeof(url), "redis://127.0.0.1:%d", px.port);
    cl = world_client(url, TIMEOUT_MS);
    st.lock = world_lock(cl, "k", DIBS_LOCK_OPTS(.ttl_ms = 30000));
    /* The first time brings the scripts to the server. */
    for (int i = 0; i < 2; i++) {
        CHECK(DIBS_OK, dibs_lock_try(st.lock, err));
        CHECK(DIBS_OK, dibs_lock_release(st.lock, err));
    }
    acquire(&st);
    await_call(&st);
    CHECK(DIBS_OK, st.rc);
    proxy_swallow(&px, true);
    release(&st);
    while (is_held(w, "k"))
        world_sleep_ms(1);
    proxy_swallow(&px, false);
    await_call(&st);
    CHECK(DIBS_OK, st.rc);
    dibs_lock_free(st.lock);
    dibs_close(cl);
    proxy_stop(&px);
}

/* A release that nobody waits for is not done, as the server lacks its script, and the
 * ask behind it has come to the server before its text. */
static void an_ask_does_not_pass_a_release_without_its_script(void **state)
{
    world *w = *state;
    dibs_client *cl = world_client(w->url, 10000);
    dibs_lock *lock = world_lock(cl, "k", DIBS_LOCK_OPTS(.ttl_ms = 30000));

    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    for (int i = 0; i < 20; i++) {
        assert_true(server_tell(&w->sv, "SCRIPT", "FLUSH", NULL));
        CHECK(DIBS_OK, dibs_lock_release_async(lock, NULL, NULL, err));
        CHECK(DIBS_OK, dibs_lock_try(lock, err));
    }
    dibs_lock_free(lock);
    dibs_close(cl);
}

/* The connection ends with its answer: it is sent again, before the handle asks again. */
static void a_release_not_awaited_is_sent_again(void **state)
{
    world *w = *state;
    char url[SERVER_URL_MAX];
    dibs_lock *lock, *next = world_lock(w->other, "k", NULL);
    dibs_client *cl;
    static proxy px;

    assert_true(proxy_start(&px, w->sv.port));
    snprintf(url, sizeof(url), "redis://127.0.0.1:%d", px.port);
    cl = world_client(url, 10000);
    lock =
        world_lock(cl, "k", DIBS_LOCK_OPTS(.ttl_ms = 60000, .wait_ms = 30000));
    for (int i = 0; i < 10; i++) {
        CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
        proxy_arm(&px, 0);
        CHECK(DIBS_OK, dibs_lock_release_async(lock, NULL, NULL, err));
    }
    dibs_lock_free(lock);
    dibs_close(cl);
    CHECK(DIBS_OK, dibs_lock_try(next, err));
    dibs_lock_free(next);
    proxy_stop(&px);
}

static void release_unawaited(seat *st)
{
    CHECK(DIBS_OK, dibs_lock_release_async(st->lock, NULL, NULL, err));
}

/* Some are posted and some go with groups; every handle can be acquired at once. */
static void many_releases_are_not_awaited(void **state)
{
    static row rw;
    world *w = *state;

    open_row(&rw, w);
    for (int i = 0; i < 20; i++) {
        for (size_t j = 0; j < LOCKS; j++)
            CHECK(DIBS_OK, dibs_lock_try(rw.seats[j].lock, err));
        for (size_t j = 0; j < LOCKS; j++)
            release_unawaited(&rw.seats[j]);
        for (size_t j = 0; j < LOCKS; j++)
            acquire(&rw.seats[j]);
        expect_all(&rw, DIBS_OK);
        for (size_t j = 0; j < LOCKS; j++)
            release_unawaited(&rw.seats[j]);
    }
    close_row(&rw);
    open_row(&rw, w);
    close_row(&rw);
}

/* The client's time is ten minutes, and no release takes any of it. */
static void a_server_that_hangs_holds_no_release_up(void **state)
{
    world *w = *state;
    dibs_client *cl = world_client(w->url, 600000);
    dibs_lock *one = world_lock(cl, "one", DIBS_LOCK_OPTS(.ttl_ms = 60000));
    dibs_lock *two = world_lock(cl, "two", DIBS_LOCK_OPTS(.ttl_ms = 60000));

    CHECK(DIBS_OK, dibs_lock_try(one, err));
    CHECK(DIBS_OK, dibs_lock_try(two, err));
    server_pause(&w->sv);
    CHECK(DIBS_OK, dibs_lock_release_async(one, NULL, NULL, err));
    CHECK(DIBS_OK, dibs_lock_release_async(two, NULL, NULL, err));
    assert_int_equal(dibs_lock_state_get(two), DIBS_LOCK_FREE);
    server_resume(&w->sv);
    CHECK(DIBS_OK, dibs_lock_try(two, err));
    CHECK(DIBS_OK, dibs_lock_try(one, err));
    dibs_lock_free(two);
    dibs_lock_free(one);
    dibs_close(cl);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST_FORGETFUL(calls_go_out_together),
        WORLD_TEST_FORGETFUL(each_has_its_own_answer),
        WORLD_TEST_FORGETFUL(a_server_without_the_scripts_gets_them),
        WORLD_TEST_FORGETFUL(a_release_whose_answer_was_lost_is_sent_again),
        WORLD_TEST_FORGETFUL(an_ask_does_not_pass_a_release_without_its_script),
        WORLD_TEST_FORGETFUL(a_release_not_awaited_is_sent_again),
        WORLD_TEST_FORGETFUL(many_releases_are_not_awaited),
        WORLD_TEST_FORGETFUL(a_server_that_hangs_holds_no_release_up),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
