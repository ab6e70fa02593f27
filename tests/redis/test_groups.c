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
    proxy px;

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

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST_FORGETFUL(calls_go_out_together),
        WORLD_TEST_FORGETFUL(each_has_its_own_answer),
        WORLD_TEST_FORGETFUL(a_server_without_the_scripts_gets_them),
        WORLD_TEST_FORGETFUL(a_release_whose_answer_was_lost_is_sent_again),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
