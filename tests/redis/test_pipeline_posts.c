/* test_pipeline_posts.c - commands that no thread waits for: who takes their replies, and
 * what becomes of them when none comes. */
/* SPDX-License-Identifier: MIT */
#include "pipeline_world.h"

#include "store/redis/pipe/pending.h"
#include "store/redis/wire/reply.h"
#include <poll.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    UNDER_WAY_MAX = 64,
    LARGE = 32 << 20,   /* no socket has room for that */
    IDLE_LOOK_MS = 100, /* after which a connection is looked at */
    PATIENT_MS = 20000
};

typedef struct letter {
    dibs__pending pd;
    char bytes[TEXT_MAX];
    redisReply *reply;
    dibs_error err;
} letter;

static int setup(void **state)
{
    static server sv;

    *state = &sv;
    return server_start_forgetful(&sv, NULL) ? 0 : -1;
}

static int teardown(void **state)
{
    server_resume(*state);
    server_stop(*state);
    return 0;
}

/* INCR n. */
static void write_letter(letter *lt, int64_t ms)
{
    dibs__words words = {.count = 0};

    *lt = (letter){.pd = {.due = 1,
                          .bytes = lt->bytes,
                          .replies = &lt->reply,
                          .err = &lt->err,
                          .deadline = dibsx_after_ms(dibsx_now(), ms)}};
    dibs__words_puts(&words, "INCR");
    dibs__words_puts(&words, "n");
    lt->pd.len = dibs__words_encode(&words, lt->bytes);
}

static void post(piped *pd, letter *lt, int64_t ms)
{
    write_letter(lt, ms);
    assert_true(dibs__pipeline_post(pd->pl, &lt->pd));
}

static void expect_number(piped *pd, letter *lt, long long number)
{
    assert_true(dibs__pipeline_is_over(pd->pl, &lt->pd));
    CHECK(DIBS_OK, lt->pd.rc);
    assert_int_equal(lt->reply->type, REDIS_REPLY_INTEGER);
    assert_int_equal(lt->reply->integer, number);
    dibs__reply_free(lt->reply);
}

/* A connection, and no key. */
static void begin(piped *pd, void **state)
{
    pipe_open_server(pd, *state);
    expect(pd, "SET n 0", "OK");
}

static void a_post_needs_a_connection(void **state)
{
    letter lt;
    piped pd;

    pipe_open_server(&pd, *state);
    write_letter(&lt, PATIENT_MS);
    assert_false(dibs__pipeline_post(pd.pl, &lt.pd));
    expect(&pd, "PING", "PONG");
    dibs__pipeline_drop(pd.pl);
    assert_false(dibs__pipeline_post(pd.pl, &lt.pd));
    expect_soon(&pd, "EXISTS n", "0");
    pipe_close(&pd);
}

static void a_reply_that_nobody_took_comes_before_the_next(void **state)
{
    letter one, two;
    piped pd;

    begin(&pd, state);
    post(&pd, &one, PATIENT_MS);
    post(&pd, &two, PATIENT_MS);
    expect(&pd, "INCR n", "3");
    expect_number(&pd, &one, 1);
    expect_number(&pd, &two, 2);
    pipe_close(&pd);
}

static void a_thread_may_come_to_wait_for_it(void **state)
{
    letter lt;
    piped pd;

    begin(&pd, state);
    post(&pd, &lt, PATIENT_MS);
    dibs__pipeline_await(pd.pl, &lt.pd);
    expect_number(&pd, &lt, 1);
    post(&pd, &lt, PATIENT_MS);
    expect(&pd, "GET n", "2");
    dibs__pipeline_await(pd.pl, &lt.pd);
    expect_number(&pd, &lt, 2);
    pipe_close(&pd);
}

typedef struct other {
    dibs__pipeline *pl;
    atomic_int tid;
    dibs_status rc;
    char text[TEXT_MAX];
} other;

static void *ask(void *arg)
{
    other *ot = arg;

    atomic_store(&ot->tid, (int)syscall(SYS_gettid));
    ot->rc = put_quietly(ot->pl, PATIENT_MS, "ECHO x", ot->text, NULL);
    return NULL;
}

/* The leader takes the reply that comes behind its own, or leaves it to the next. */
static void one_is_posted_while_another_thread_leads(void **state)
{
    other ot = {.rc = DIBS_OK};
    pthread_t thread;
    letter lt;
    piped pd;

    begin(&pd, state);
    server_pause(*state);
    ot.pl = pd.pl;
    assert_int_equal(pthread_create(&thread, NULL, ask, &ot), 0);
    await_asleep(&ot.tid);
    post(&pd, &lt, PATIENT_MS);
    server_resume(*state);
    dibs__pipeline_await(pd.pl, &lt.pd);
    expect_number(&pd, &lt, 1);
    pthread_join(thread, NULL);
    CHECK(DIBS_OK, ot.rc);
    assert_string_equal(ot.text, "x");
    pipe_close(&pd);
}

/* Each thread has its own answers, with posts between them. */
typedef struct poster {
    dibs__pipeline *pl;
    atomic_bool stop;
    size_t posted;
} poster;

static void *post_many(void *arg)
{
    poster *ps = arg;
    letter lt;

    while (!atomic_load(&ps->stop)) {
        write_letter(&lt, PATIENT_MS);
        if (!dibs__pipeline_post(ps->pl, &lt.pd))
            continue;
        dibs__pipeline_await(ps->pl, &lt.pd);
        IN_TIME(!pace_explains(lt.pd.rc));
        if (lt.pd.rc == DIBS_OK && lt.reply->type == REDIS_REPLY_INTEGER)
            ps->posted++;
        dibs__reply_free(lt.reply);
    }
    return NULL;
}

static void posts_among_the_commands_of_a_crowd(void **state)
{
    poster ps = {.posted = 0};
    char text[TEXT_MAX];
    pthread_t thread;
    piped pd;

    begin(&pd, state);
    ps.pl = pd.pl;
    assert_int_equal(pthread_create(&thread, NULL, post_many, &ps), 0);
    expect_crowd(&pd, 8, 200);
    atomic_store(&ps.stop, true);
    pthread_join(thread, NULL);
    snprintf(text, sizeof(text), "%zu", ps.posted);
    expect(&pd, "GET n", text);
    pipe_close(&pd);
}

static void what_was_posted_ends_with_its_connection(void **state)
{
    letter lt;
    piped pd;

    begin(&pd, state);
    server_pause(*state);
    post(&pd, &lt, PATIENT_MS);
    dibs__pipeline_drop(pd.pl);
    dibs__pipeline_await(pd.pl, &lt.pd);
    CHECK(DIBS_UNKNOWN, lt.pd.rc);
    server_resume(*state);
    pipe_close(&pd);
}

/* It was not sent, and is not sent on the next connection either: what comes first there
 * must not be behind it. */
static void what_was_not_sent_is_not_sent_later(void **state)
{
    char *bytes = calloc(1, LARGE + TEXT_MAX);
    letter large, lt;
    int len;
    piped pd;

    assert_non_null(bytes);
    begin(&pd, state);
    server_pause(*state);
    write_letter(&large, PATIENT_MS);
    len = snprintf(bytes, TEXT_MAX, "*2\r\n$4\r\nECHO\r\n$%d\r\n", (int)LARGE);
    memset(bytes + len, 'x', LARGE);
    memcpy(bytes + len + LARGE, "\r\n", 2);
    large.pd.bytes = bytes;
    large.pd.len = (size_t)len + LARGE + 2;
    assert_true(dibs__pipeline_post(pd.pl, &large.pd));
    post(&pd, &lt, PATIENT_MS);
    dibs__pipeline_drop(pd.pl);
    server_resume(*state);
    expect_soon(&pd, "GET n", "0");
    assert_true(dibs__pipeline_is_over(pd.pl, &large.pd));
    assert_true(dibs__pipeline_is_over(pd.pl, &lt.pd));
    CHECK(DIBS_UNKNOWN, large.pd.rc);
    CHECK(DIBS_STALE, lt.pd.rc);
    pipe_close(&pd);
    free(bytes);
}

/* One that waits gives the connection up in time, as every command does. */
static void a_server_that_hangs_is_left(void **state)
{
    letter lt;
    piped pd;

    begin(&pd, state);
    server_pause(*state);
    post(&pd, &lt, 1);
    dibs__pipeline_await(pd.pl, &lt.pd);
    CHECK(DIBS_UNKNOWN, lt.pd.rc);
    server_resume(*state);
    expect_soon(&pd, "PING", "PONG");
    pipe_close(&pd);
}

static void few_are_under_way(void **state)
{
    static letter all[UNDER_WAY_MAX + 1];
    piped pd;

    begin(&pd, state);
    server_pause(*state);
    for (size_t i = 0; i < UNDER_WAY_MAX; i++)
        post(&pd, &all[i], PATIENT_MS);
    write_letter(&all[UNDER_WAY_MAX], PATIENT_MS);
    assert_false(dibs__pipeline_post(pd.pl, &all[UNDER_WAY_MAX].pd));
    server_resume(*state);
    expect(&pd, "GET n", "64");
    for (size_t i = 0; i < UNDER_WAY_MAX; i++)
        expect_number(&pd, &all[i], (long long)i + 1);
    pipe_close(&pd);
}

/* The server has closed it while it was idle. */
static void a_closed_connection_gets_no_post(void **state)
{
    dibsx_nsec looked_at;
    letter lt;
    piped pd;

    begin(&pd, state);
    looked_at = dibsx_after_ms(dibsx_now(), IDLE_LOOK_MS);
    assert_true(server_tell(*state, "CLIENT", "KILL", "TYPE", "normal", NULL));
    while (dibsx_now() <= looked_at)
        usleep(1000);
    write_letter(&lt, PATIENT_MS);
    assert_false(dibs__pipeline_post(pd.pl, &lt.pd));
    expect_soon(&pd, "GET n", "0");
    pipe_close(&pd);
}

/* Bound to the connection that there is. */
static void write_bound(piped *pd, letter *lt)
{
    dibs__link link;

    dibs__pipeline_link(pd->pl, &link);
    write_letter(lt, PATIENT_MS);
    lt->pd.only_on = link.number;
}

static void take_when_it_comes(piped *pd, letter *lt)
{
    struct pollfd fd;

    do {
        dibs__pipeline_watch(pd->pl, &fd);
        IN_TIME(poll(&fd, 1, PATIENT_MS) == 1);
    } while (!dibs__pipeline_take(pd->pl, &lt->pd));
}

static void a_seized_pipeline_is_polled(void **state)
{
    letter posted, lt;
    piped pd;

    begin(&pd, state);
    post(&pd, &posted, PATIENT_MS);
    write_bound(&pd, &lt);
    assert_true(dibs__pipeline_seize(pd.pl, &lt.pd));
    take_when_it_comes(&pd, &lt);
    expect_number(&pd, &posted, 1);
    expect_number(&pd, &lt, 2);
    expect(&pd, "INCR n", "3");
    pipe_close(&pd);
}

/* What was learned on a connection is true of no other; and one thread leads. */
static void no_pipeline_is_seized_on_another_connection(void **state)
{
    letter lt, second;
    piped pd;

    begin(&pd, state);
    write_bound(&pd, &lt);
    write_bound(&pd, &second);
    assert_true(dibs__pipeline_seize(pd.pl, &lt.pd));
    assert_false(dibs__pipeline_seize(pd.pl, &second.pd));
    take_when_it_comes(&pd, &lt);
    expect_number(&pd, &lt, 1);
    dibs__pipeline_drop(pd.pl);
    assert_false(dibs__pipeline_seize(pd.pl, &second.pd));
    expect_soon(&pd, "GET n", "1");
    assert_false(dibs__pipeline_seize(pd.pl, &second.pd));
    pipe_close(&pd);
}

/* The one that polls has the replies of all; when it resigns, another leads. */
static void who_resigns_is_followed(void **state)
{
    other ot = {.rc = DIBS_OK};
    pthread_t thread;
    letter lt;
    piped pd;

    begin(&pd, state);
    server_pause(*state);
    write_bound(&pd, &lt);
    assert_true(dibs__pipeline_seize(pd.pl, &lt.pd));
    ot.pl = pd.pl;
    assert_int_equal(pthread_create(&thread, NULL, ask, &ot), 0);
    await_asleep(&ot.tid);
    dibs__pipeline_resign(pd.pl);
    server_resume(*state);
    pthread_join(thread, NULL);
    CHECK(DIBS_OK, ot.rc);
    assert_string_equal(ot.text, "x");
    expect_number(&pd, &lt, 1);
    pipe_close(&pd);
}

/* A connection that ends while it is polled ends the command, and the next thread
 * makes another. */
static void a_seized_connection_may_end(void **state)
{
    letter lt;
    piped pd;

    begin(&pd, state);
    server_pause(*state);
    write_bound(&pd, &lt);
    assert_true(dibs__pipeline_seize(pd.pl, &lt.pd));
    dibs__pipeline_drop(pd.pl);
    take_when_it_comes(&pd, &lt);
    CHECK(DIBS_UNKNOWN, lt.pd.rc);
    server_resume(*state);
    expect_soon(&pd, "PING", "PONG");
    pipe_close(&pd);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_post_needs_a_connection),
        cmocka_unit_test(a_reply_that_nobody_took_comes_before_the_next),
        cmocka_unit_test(a_thread_may_come_to_wait_for_it),
        cmocka_unit_test(one_is_posted_while_another_thread_leads),
        cmocka_unit_test(posts_among_the_commands_of_a_crowd),
        cmocka_unit_test(what_was_posted_ends_with_its_connection),
        cmocka_unit_test(what_was_not_sent_is_not_sent_later),
        cmocka_unit_test(a_server_that_hangs_is_left),
        cmocka_unit_test(few_are_under_way),
        cmocka_unit_test(a_closed_connection_gets_no_post),
        cmocka_unit_test(a_seized_pipeline_is_polled),
        cmocka_unit_test(no_pipeline_is_seized_on_another_connection),
        cmocka_unit_test(who_resigns_is_followed),
        cmocka_unit_test(a_seized_connection_may_end),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, setup, teardown);
}
