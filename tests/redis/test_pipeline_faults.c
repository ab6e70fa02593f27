/* test_pipeline_faults.c - what becomes of commands when the server or the way to it
 * fails: nothing hangs, nobody gets another's reply, DIBS_UNAVAIL means that
 * nothing was done, and the pipeline mends. */
/* SPDX-License-Identifier: MIT */
#include "pipeline_world.h"
#include "proxy.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

static int setup(void **state)
{
    static const char *const args[] = {"--enable-debug-command", "yes", NULL};
    static server sv;

    *state = &sv;
    return server_start(&sv, args) ? 0 : -1;
}

static int teardown(void **state)
{
    server_stop(*state);
    return 0;
}

static void assert_soon_after(dibsx_nsec from_at, int64_t ms)
{
    /* Ample, as machines are busy; a hang would be longer. */
    IN_TIME(dibsx_now() < dibsx_after_ms(from_at, ms + 3000));
}

static void a_silent_server_does_not_hold_a_call(void **state)
{
    dibsx_nsec start;
    piped pd;

    pipe_open_server(&pd, *state);
    expect(&pd, "SET silent 0", "OK");
    server_pause(*state);
    start = dibsx_now();
    expect_status(&pd, 150, "INCR silent", DIBS_UNKNOWN);
    assert_true(dibsx_now() >= start + 150 * DIBSX_MS);
    assert_soon_after(start, 150);
    assert_true(pd.err.retriable);
    /* A new connection is taken by the kernel, and its greeting not answered. */
    start = dibsx_now();
    expect_status(&pd, 150, "INCR silent", DIBS_UNAVAIL);
    assert_soon_after(start, 150);
    server_resume(*state);
    expect_soon(&pd, "GET silent", "1");
    pipe_close(&pd);
}

/* One of a crowd that puts one command each. */
typedef struct asker_thread {
    dibs__pipeline *pl;
    int64_t ms;
    char command[64];
    char text[TEXT_MAX];
    dibs_status rc;
    dibs_error err;
    atomic_int tid;
    pthread_t thread;
} asker_thread;

static void *ask_once(void *arg)
{
    asker_thread *at = arg;

    atomic_store(&at->tid, (int)syscall(SYS_gettid));
    at->rc = put_quietly(at->pl, at->ms, at->command, at->text, &at->err);
    return NULL;
}

static void
ask_start(asker_thread *at, dibs__pipeline *pl, int64_t ms, const char *command)
{
    at->pl = pl;
    at->ms = ms;
    atomic_init(&at->tid, 0);
    snprintf(at->command, sizeof(at->command), "%s", command);
    assert_int_equal(pthread_create(&at->thread, NULL, ask_once, at), 0);
}

/* Whoever was sent with it does not know; whoever was not yet sent goes on over
 * the next connection. Either way all are answered by their own deadlines. */
static void a_timeout_takes_those_in_flight_along(void **state)
{
    enum { CROWD = 12 };
    asker_thread impatient, crowd[CROWD];
    dibsx_nsec start;
    long long count = 0, unknown = 0;
    char text[TEXT_MAX];
    piped pd;

    pipe_open_server(&pd, *state);
    expect(&pd, "SET along 0", "OK");
    server_pause(*state);
    start = dibsx_now();
    ask_start(&impatient, pd.pl, 300, "INCR along");
    for (int i = 0; i < CROWD; i++)
        ask_start(&crowd[i], pd.pl, 10000, "INCR along");
    pthread_join(impatient.thread, NULL);
    server_resume(*state);
    CHECK(DIBS_UNKNOWN, impatient.rc);
    assert_soon_after(start, 300);
    for (int i = 0; i < CROWD; i++) {
        pthread_join(crowd[i].thread, NULL);
        if (crowd[i].rc == DIBS_OK)
            count++;
        else if (crowd[i].rc == DIBS_UNKNOWN)
            unknown++;
        else
            FAIL_OF(crowd[i].rc, "%s", crowd[i].err.message);
    }
    IN_TIME(unknown > 0);
    assert_status(put(&pd, 10000, "GET along", text), DIBS_OK);
    assert_in_range(strtoll(text, NULL, 10), count, count + unknown + 1);
    pipe_close(&pd);
}

/* A value that is larger than all buffers on the way. */
static void *put_large(void *arg)
{
    enum { LARGE = 32 << 20 };
    asker_thread *at = arg;
    dibs__words words = {.count = 0};
    redisReply *reply = NULL;
    char *bytes = calloc(1, LARGE);

    atomic_store(&at->tid, (int)syscall(SYS_gettid));
    dibs__words_puts(&words, "SET");
    dibs__words_puts(&words, "large");
    dibs__words_add(&words, bytes, LARGE);
    at->rc =
        dibs__pipeline_call(at->pl, &words, dibsx_after_ms(dibsx_now(), at->ms),
                            &reply, &at->err);
    dibs__reply_free(reply);
    free(bytes);
    return NULL;
}

/* The first to ask is answered, and leaves the rest to the last, whose large value
 * goes slowly: it takes what comes for others nevertheless. */
static void who_waits_for_room_takes_answers(void **state)
{
    asker_thread first, second, large = {.ms = 30000};
    const server *sv = *state;
    static proxy px;
    piped pd;

    assert_true(proxy_start(&px, sv->port));
    pipe_open_port(&pd, px.port);
    expect(&pd, "PING", "PONG");
    ask_start(&first, pd.pl, 20000, "BLPOP nothing 0.5");
    await_asleep(&first.tid);
    ask_start(&second, pd.pl, 4000, "BLPOP nothing 0.5");
    await_asleep(&second.tid);
    proxy_slow(&px, 0, 0, 50000);
    large.pl = pd.pl;
    assert_int_equal(pthread_create(&large.thread, NULL, put_large, &large), 0);
    pthread_join(first.thread, NULL);
    pthread_join(second.thread, NULL);
    proxy_slow(&px, 0, 0, 0);
    pthread_join(large.thread, NULL);
    CHECK(DIBS_OK, first.rc);
    CHECK(DIBS_OK, second.rc);
    CHECK(DIBS_OK, large.rc);
    pipe_close(&pd);
    proxy_stop(&px);
}

/* Workers count in the store and for themselves while connections are cut. */
typedef struct tally {
    dibs__pipeline *pl;
    atomic_bool stop;
    atomic_llong done;
    atomic_llong unknown;
    atomic_llong unavail;
    atomic_llong wrong;
} tally;

static void count_answer(tally *tl, const char *text)
{
    if (strtoll(text, NULL, 10) > 0)
        atomic_fetch_add(&tl->done, 1);
    else if (strncmp(text, "-LOADING", 8) == 0)
        atomic_fetch_add(&tl->unavail, 1);
    else
        atomic_fetch_add(&tl->wrong, 1);
}

static void *count_up(void *arg)
{
    tally *tl = arg;

    while (!atomic_load(&tl->stop)) {
        char text[TEXT_MAX];

        switch (put_quietly(tl->pl, 5000, "INCR tally", text, NULL)) {
        case DIBS_OK:
            count_answer(tl, text);
            break;
        case DIBS_UNKNOWN:
            atomic_fetch_add(&tl->unknown, 1);
            break;
        case DIBS_UNAVAIL:
            atomic_fetch_add(&tl->unavail, 1);
            break;
        default:
            atomic_fetch_add(&tl->wrong, 1);
        }
    }
    return NULL;
}

enum { WORKERS = 8 };

static void workers_start(tally *tl, pthread_t *threads)
{
    for (int i = 0; i < WORKERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count_up, tl), 0);
}

static void workers_stop(tally *tl, pthread_t *threads)
{
    atomic_store(&tl->stop, true);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
}

/* What was answered was done once; what is unknown once or not at all; what was
 * unavailable not at all. */
static void assert_tally(const server *sv, tally *tl)
{
    long long done = atomic_load(&tl->done);
    char *text = server_ask(sv, "GET", "tally", NULL);

    assert_int_equal(atomic_load(&tl->wrong), 0);
    assert_non_null(text);
    assert_in_range(strtoll(text, NULL, 10), done,
                    done + atomic_load(&tl->unknown));
    free(text);
}

static void await_count(atomic_llong *number, long long at_least)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), 20000);

    while (atomic_load(number) < at_least && dibsx_now() < end)
        poll(NULL, 0, 1);
    IN_TIME(atomic_load(number) >= at_least);
}

static void cut_connections_count_right(void **state)
{
    pthread_t threads[WORKERS];
    tally tl = {.pl = NULL};
    piped pd;

    pipe_open_server(&pd, *state);
    expect(&pd, "SET tally 0", "OK");
    tl.pl = pd.pl;
    workers_start(&tl, threads);
    for (int i = 0; i < 60; i++) {
        await_count(&tl.done, atomic_load(&tl.done) + 20);
        assert_true(
            server_tell(*state, "CLIENT", "KILL", "TYPE", "normal", NULL));
    }
    workers_stop(&tl, threads);
    assert_true(atomic_load(&tl.unknown) > 0);
    assert_tally(*state, &tl);
    pipe_close(&pd);
}

static void a_killed_server_is_found_again(void **state)
{
    pthread_t threads[WORKERS];
    tally tl = {.pl = NULL};
    piped pd;

    pipe_open_server(&pd, *state);
    expect(&pd, "CONFIG SET appendfsync always", "OK");
    expect(&pd, "SET tally 0", "OK");
    tl.pl = pd.pl;
    workers_start(&tl, threads);
    for (int i = 0; i < 3; i++) {
        await_count(&tl.done, atomic_load(&tl.done) + 50);
        server_kill(*state);
        await_count(&tl.unavail, atomic_load(&tl.unavail) + 1);
        assert_true(server_restart(*state));
    }
    await_count(&tl.done, atomic_load(&tl.done) + 50);
    workers_stop(&tl, threads);
    assert_tally(*state, &tl);
    pipe_close(&pd);
}

/* Nobody sent anything: the restart must not cost an unknown answer. */
static void an_idle_pipeline_outlives_a_restart(void **state)
{
    piped pd;

    pipe_open_server(&pd, *state);
    expect(&pd, "SET idle 1", "OK");
    server_kill(*state);
    assert_true(server_restart(*state));
    poll(NULL, 0, 150); /* Only then does it count as idle. */
    expect(&pd, "EXISTS idle", "1");
    pipe_close(&pd);
}

/* Greeted with "+OK\r\n", then "$5\r\nvalue\r\n". */
static void a_reply_is_cut_at_every_byte(void **state)
{
    enum { GREETING = 5, REPLY = 11 };
    const server *sv = *state;
    static proxy px;

    assert_true(server_tell(sv, "SET", "cut", "value", NULL));
    assert_true(proxy_start(&px, sv->port));
    for (long at = 0; at <= GREETING + REPLY; at++) {
        piped pd;

        pipe_open_port(&pd, px.port);
        proxy_arm(&px, at);
        if (at < GREETING)
            expect_status(&pd, 5000, "GET cut", DIBS_UNAVAIL);
        else if (at < GREETING + REPLY)
            expect_status(&pd, 5000, "GET cut", DIBS_UNKNOWN);
        else
            expect(&pd, "GET cut", "value");
        proxy_arm(&px, -1);
        expect(&pd, "GET cut", "value");
        pipe_close(&pd);
    }
    assert_int_equal(atomic_load(&px.cuts), GREETING + REPLY);
    proxy_stop(&px);
}

static void many_are_cut_at_every_byte(void **state)
{
    const server *sv = *state;
    pthread_t threads[WORKERS];
    tally tl = {.pl = NULL};
    piped pd;
    static proxy px;

    assert_true(proxy_start(&px, sv->port));
    assert_true(server_tell(sv, "SET", "tally", "0", NULL));
    pipe_open_port(&pd, px.port);
    tl.pl = pd.pl;
    workers_start(&tl, threads);
    for (long at = 0; at < 150; at++) {
        int before = atomic_load(&px.cuts);
        dibsx_nsec end = dibsx_after_ms(dibsx_now(), 10000);

        proxy_arm(&px, at);
        while (atomic_load(&px.cuts) == before && dibsx_now() < end)
            poll(NULL, 0, 1);
        IN_TIME(atomic_load(&px.cuts) > before);
        assert_int_equal(atomic_load(&px.cuts), before + 1);
    }
    workers_stop(&tl, threads);
    assert_tally(sv, &tl);
    pipe_close(&pd);
    proxy_stop(&px);
}

/* More than a socket holds, to a server that reads nothing. */
static void a_full_socket_keeps_deadlines(void **state)
{
    enum { THREADS = 12, SIZE = 1 << 20 };
    asker_thread small[THREADS];
    dibs__words words = {.count = 0};
    char *bytes = calloc(1, SIZE);
    dibsx_nsec start;
    redisReply *reply;
    piped pd;

    assert_non_null(bytes);
    pipe_open_server(&pd, *state);
    expect(&pd, "PING", "PONG");
    dibs__words_puts(&words, "SET");
    dibs__words_puts(&words, "large");
    for (int i = 0; i < 16; i++)
        dibs__words_add(&words, bytes, SIZE);
    server_pause(*state);
    start = dibsx_now();
    for (int i = 0; i < THREADS; i++)
        ask_start(&small[i], pd.pl, 600 + i, "PING");
    assert_status(dibs__pipeline_call(pd.pl, &words, dibsx_after_ms(start, 300),
                                      &reply, &pd.err),
                  DIBS_UNKNOWN);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(small[i].thread, NULL);
        assert_true(small[i].rc == DIBS_UNKNOWN || small[i].rc == DIBS_UNAVAIL);
    }
    assert_soon_after(start, 600);
    server_resume(*state);
    expect_soon(&pd, "PING", "PONG");
    pipe_close(&pd);
    free(bytes);
}

static void nothing_is_left_open(void **state)
{
    int before = open_fds();
    piped pd;

    pipe_open_server(&pd, *state);
    for (int i = 0; i < 20; i++) {
        expect_soon(&pd, "PING", "PONG");
        assert_true(
            server_tell(*state, "CLIENT", "KILL", "TYPE", "normal", NULL));
    }
    pipe_close(&pd);
    assert_int_equal(open_fds(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_waits_for_room_takes_answers),
        cmocka_unit_test(a_silent_server_does_not_hold_a_call),
        cmocka_unit_test(a_timeout_takes_those_in_flight_along),
        cmocka_unit_test(cut_connections_count_right),
        cmocka_unit_test(a_killed_server_is_found_again),
        cmocka_unit_test(an_idle_pipeline_outlives_a_restart),
        cmocka_unit_test(a_reply_is_cut_at_every_byte),
        cmocka_unit_test(many_are_cut_at_every_byte),
        cmocka_unit_test(a_full_socket_keeps_deadlines),
        cmocka_unit_test(nothing_is_left_open),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
