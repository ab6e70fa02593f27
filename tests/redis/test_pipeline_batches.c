/* test_pipeline_batches.c - commands of many threads that are sent as one: each gets
 * its own answer, also when the one command was of no use.
 *
 * They are all queued while the pipeline connects to a server that stands still, so
 * that it is known what is put together. */
/* SPDX-License-Identifier: MIT */
#include "pipeline_world.h"
#include "proxy.h"

#include "base/alloc.h"
#include "base/sha1.h"
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CROWD_MAX = 40, SOME = 8 };

/* What a member says decides what its group answers. */
static const char many[] =
    "local answers = {}\n"
    "for i = 1, #KEYS do\n"
    "    local word = ARGV[1 + i]\n"
    "    local by = i <= tonumber(ARGV[1]) and 'many ' or 'more '\n"
    "    if word == 'bad' then return redis.error_reply('BAD all') end\n"
    "    answers[i] = word ~= 'alone' and by .. KEYS[i] .. ' ' .. word\n"
    "    if word == 'short' then return {'one too few'} end\n"
    "end\n"
    "return answers\n";
static const char one[] =
    "if ARGV[1] == 'bad' then return redis.error_reply('BAD one') end\n"
    "return 'one ' .. KEYS[1] .. ' ' .. table.concat(ARGV, ' ')\n";

static char sha1[DIBSX_SHA1_TEXT];
static const dibs__batch batch_script = {.sha1 = sha1,
                                         .text = many,
                                         .text_len = sizeof(many) - 1};
static const dibs__part parts[] = {
    {.batch = &batch_script, .key_at = 3, .key_count = 1, .rest_at = 4},
    {.batch = &batch_script,
     .second = true,
     .key_at = 3,
     .key_count = 1,
     .rest_at = 4}};

typedef struct member {
    dibs__pipeline *pl;
    int64_t ms;
    char key[16];
    const char *says;
    const char *adds; /* a further word, or NULL */
    bool second;      /* part of the group */
    char text[TEXT_MAX];
    dibs_status rc;
    dibs_error err;
    atomic_int tid;
    pthread_t thread;
} member;

static int setup(void **state)
{
    static server sv;

    *state = &sv;
    dibsx_sha1(many, sizeof(many) - 1, sha1);
    return server_start_forgetful(&sv, NULL) ? 0 : -1;
}

static int teardown(void **state)
{
    server_stop(*state);
    return 0;
}

static void *take_part(void *arg)
{
    member *mb = arg;
    dibs__words words = {.count = 0};
    redisReply *reply = NULL;

    dibs__words_puts(&words, "EVAL");
    dibs__words_puts(&words, one);
    dibs__words_puts(&words, "1");
    dibs__words_puts(&words, mb->key);
    dibs__words_puts(&words, mb->says);
    if (mb->adds)
        dibs__words_puts(&words, mb->adds);
    atomic_store(&mb->tid, (int)syscall(SYS_gettid));
    mb->rc = dibs__pipeline_join(mb->pl, &parts[mb->second], &words,
                                 dibsx_after_ms(dibsx_now(), mb->ms), &reply,
                                 &mb->err);
    if (reply)
        snprintf(mb->text, sizeof(mb->text), "%s", reply->str);
    dibs__reply_free(reply);
    return NULL;
}

/* All say the same, for a start. */
static void crowd_init(member *crowd, int count, piped *pd, const char *says)
{
    for (int i = 0; i < count; i++) {
        crowd[i] = (member){.pl = pd->pl, .ms = 20000, .says = says};
        snprintf(crowd[i].key, sizeof(crowd[i].key), "k%d", i);
    }
}

/* Starts them; each waits for an answer, or for the connection, before the next
 * comes. */
static void crowd_start(member *crowd, int count)
{
    for (int i = 0; i < count; i++) {
        assert_int_equal(pthread_create(&crowd[i].thread, NULL, take_part,
                                        &crowd[i]),
                         0);
        await_asleep(&crowd[i].tid);
    }
}

static void crowd_join(member *crowd, int count)
{
    for (int i = 0; i < count; i++)
        assert_int_equal(pthread_join(crowd[i].thread, NULL), 0);
}

/* Puts all of them into the queue of a pipeline without a connection, and lets the
 * server go on. */
static void crowd_run(const server *sv, member *crowd, int count)
{
    assert_true(server_tell(sv, "CONFIG", "RESETSTAT", NULL));
    server_pause((server *)(uintptr_t)sv);
    crowd_start(crowd, count);
    server_resume((server *)(uintptr_t)sv);
    crowd_join(crowd, count);
}

static long long calls_of(const server *sv, const char *command)
{
    long long calls = server_info(sv, "commandstats", command);

    return calls > 0 ? calls : 0;
}

static void assert_calls(const server *sv, int evalsha, int eval)
{
    assert_int_equal(calls_of(sv, "cmdstat_evalsha"), evalsha);
    assert_int_equal(calls_of(sv, "cmdstat_eval"), eval);
}

/* Answered, by a group ("many") or alone ("one"). */
static void assert_answer(const member *mb, const char *by)
{
    char expected[TEXT_MAX];

    snprintf(expected, sizeof(expected), "%s %s %s%s%s", by, mb->key, mb->says,
             mb->adds ? " " : "", mb->adds ? mb->adds : "");
    if (mb->rc != DIBS_OK)
        FAIL_OF(mb->rc, "%s: %s", dibs_status_name(mb->rc), mb->err.message);
    assert_string_equal(mb->text, expected);
}

static void load_script(const server *sv)
{
    assert_true(server_tell(sv, "SCRIPT", "LOAD", many, NULL));
}

static void what_is_queued_together_is_one_command(void **state)
{
    static member crowd[CROWD_MAX];
    piped pd;

    load_script(*state);
    pipe_open_server(&pd, *state);
    crowd_init(crowd, CROWD_MAX, &pd, "x");
    crowd_run(*state, crowd, CROWD_MAX);
    for (int i = 0; i < CROWD_MAX; i++)
        assert_answer(&crowd[i], "many");
    assert_calls(*state, (CROWD_MAX + DIBS__BATCH_MAX - 1) / DIBS__BATCH_MAX,
                 0);
    pipe_close(&pd);
}

static void one_thread_sends_its_own_command(void **state)
{
    static member alone[1];
    piped pd;

    load_script(*state);
    pipe_open_server(&pd, *state);
    crowd_init(alone, 1, &pd, "x");
    crowd_run(*state, alone, 1);
    assert_answer(&alone[0], "one");
    assert_calls(*state, 0, 1);
    pipe_close(&pd);
}

static void a_pipeline_may_send_each_for_itself(void **state)
{
    static member crowd[SOME];
    piped pd;

    load_script(*state);
    pipe_open_server(&pd, *state);
    pd.conf.unbatched = true;
    crowd_init(crowd, SOME, &pd, "x");
    crowd_run(*state, crowd, SOME);
    for (int i = 0; i < SOME; i++)
        assert_answer(&crowd[i], "one");
    assert_calls(*state, 0, SOME);
    pipe_close(&pd);
}

/* Of one with a word more it could not be told where it ends. */
static void unlike_commands_are_kept_apart(void **state)
{
    static member crowd[SOME];
    piped pd;

    load_script(*state);
    pipe_open_server(&pd, *state);
    crowd_init(crowd, SOME, &pd, "x");
    crowd[2].adds = "y";
    crowd_run(*state, crowd, SOME);
    for (int i = 0; i < SOME; i++)
        assert_answer(&crowd[i], i == 2 ? "one" : "many");
    assert_calls(*state, 1, 1);
    pipe_close(&pd);
}

/* Each part is told from the other, whoever came first. */
static void unlike_commands_may_be_parts_of_one(void **state)
{
    static member crowd[SOME];
    piped pd;

    load_script(*state);
    pipe_open_server(&pd, *state);
    crowd_init(crowd, SOME, &pd, "x");
    for (int i = 0; i < SOME; i += 3)
        crowd[i].second = true;
    crowd_run(*state, crowd, SOME);
    for (int i = 0; i < SOME; i++)
        assert_answer(&crowd[i], i % 3 == 0 ? "more" : "many");
    assert_calls(*state, 1, 0);
    pipe_close(&pd);
}

static void who_is_not_answered_goes_alone(void **state)
{
    static member crowd[SOME];
    piped pd;

    load_script(*state);
    pipe_open_server(&pd, *state);
    crowd_init(crowd, SOME, &pd, "x");
    crowd[0].says = crowd[3].says = crowd[SOME - 1].says = "alone";
    crowd_run(*state, crowd, SOME);
    for (int i = 0; i < SOME; i++)
        assert_answer(&crowd[i],
                      strcmp(crowd[i].says, "alone") == 0 ? "one" : "many");
    assert_calls(*state, 1, 3);
    pipe_close(&pd);
}

/* The error of one is not that of the others. */
static void an_error_sends_each_alone(void **state)
{
    static member crowd[SOME];
    piped pd;

    load_script(*state);
    pipe_open_server(&pd, *state);
    crowd_init(crowd, SOME, &pd, "x");
    crowd[5].says = "bad";
    crowd_run(*state, crowd, SOME);
    for (int i = 0; i < SOME; i++)
        if (i != 5)
            assert_answer(&crowd[i], "one");
    CHECK(DIBS_OK, crowd[5].rc);
    assert_string_equal(crowd[5].text, "BAD one");
    assert_calls(*state, 1, SOME);
    pipe_close(&pd);
}

static void an_answer_of_another_length_sends_each_alone(void **state)
{
    static member crowd[SOME];
    piped pd;

    load_script(*state);
    pipe_open_server(&pd, *state);
    crowd_init(crowd, SOME, &pd, "x");
    crowd[1].says = "short";
    crowd_run(*state, crowd, SOME);
    for (int i = 0; i < SOME; i++)
        assert_answer(&crowd[i], "one");
    assert_calls(*state, 1, SOME);
    pipe_close(&pd);
}

/* Ends the pipeline's connection so that the next command makes a new one. */
static void cut_off(const server *sv)
{
    assert_true(server_tell(sv, "CLIENT", "KILL", "TYPE", "normal", NULL));
    poll(NULL, 0, 150); /* Only then does it count as idle. */
}

/* The members go alone, and the next group brings the text. */
static void a_script_that_is_missing_comes_with_the_next(void **state)
{
    static member crowd[SOME];
    piped pd;

    assert_true(server_tell(*state, "SCRIPT", "FLUSH", NULL));
    pipe_open_server(&pd, *state);
    crowd_init(crowd, SOME, &pd, "x");
    crowd_run(*state, crowd, SOME);
    for (int i = 0; i < SOME; i++)
        assert_answer(&crowd[i], "one");
    assert_calls(*state, 1, SOME);
    for (int round = 0; round < 2; round++) {
        cut_off(*state);
        crowd_init(crowd, SOME, &pd, "x");
        crowd_run(*state, crowd, SOME);
        for (int i = 0; i < SOME; i++)
            assert_answer(&crowd[i], "many");
        assert_calls(*state, round, 1 - round);
    }
    pipe_close(&pd);
}

/* Who is first bears it; the others have their turn. */
static void short_memory_is_survived(void **state)
{
    static member crowd[SOME];
    int refused = 0;
    piped pd;

    load_script(*state);
    pipe_open_server(&pd, *state);
    crowd_init(crowd, SOME, &pd, "x");
    server_pause(*state);
    crowd_start(crowd, SOME);
    /* All of the connection is allocated by now, and then its buffer grows. */
    dibsx_alloc_fail_at(2);
    server_resume(*state);
    crowd_join(crowd, SOME);
    dibsx_alloc_fail_at(0);
    for (int i = 0; i < SOME; i++) {
        if (crowd[i].rc == DIBS_NOMEM)
            refused++;
        else
            assert_answer(&crowd[i], "many");
    }
    assert_int_equal(refused, 1);
    pipe_close(&pd);
}

/* The greeting is "+OK\r\n"; the answer "*3\r\n" and "$9\r\nmany k0 x\r\n" for
 * each. Cut anywhere within, nobody knows; nobody got that of another. */
static void an_answer_is_cut_at_every_byte(void **state)
{
    enum { CROWD = 3, GREETING = 5, ANSWER = 4 + 3 * 15 };
    const server *sv = *state;
    static member crowd[CROWD];
    static proxy px;

    load_script(sv);
    assert_true(proxy_start(&px, sv->port));
    for (long at = GREETING; at <= GREETING + ANSWER; at++) {
        bool cut = at < GREETING + ANSWER;
        piped pd;

        pipe_open_port(&pd, px.port);
        proxy_arm(&px, at);
        crowd_init(crowd, CROWD, &pd, "x");
        crowd_run(sv, crowd, CROWD);
        for (int i = 0; i < CROWD; i++) {
            if (cut)
                CHECK(DIBS_UNKNOWN, crowd[i].rc);
            else
                assert_answer(&crowd[i], "many");
        }
        proxy_arm(&px, -1);
        expect(&pd, "PING", "PONG");
        pipe_close(&pd);
    }
    assert_int_equal(atomic_load(&px.cuts), ANSWER);
    proxy_stop(&px);
}

/* Greeting and "-BAD all\r\n" are let through, and no answer to what each then
 * sends for itself. */
static void a_cut_after_an_error_is_unknown(void **state)
{
    enum { CROWD = 3, GREETING = 5, ERROR = 10 };
    const server *sv = *state;
    static member crowd[CROWD];
    static proxy px;
    piped pd;

    load_script(sv);
    assert_true(proxy_start(&px, sv->port));
    pipe_open_port(&pd, px.port);
    proxy_arm(&px, GREETING + ERROR);
    crowd_init(crowd, CROWD, &pd, "bad");
    crowd_run(sv, crowd, CROWD);
    for (int i = 0; i < CROWD; i++)
        CHECK(DIBS_UNKNOWN, crowd[i].rc);
    pipe_close(&pd);
    proxy_stop(&px);
}

/* A server that fails a group and is gone, with its port. What was sent to it and
 * not read makes the kernel refuse what comes after the answer. */
typedef struct quitter {
    int fd;
    int port;
    pthread_t thread;
} quitter;

static void *fail_and_quit(void *arg)
{
    static const char greeting[] = "+OK\r\n", error[] = "-BAD all\r\n";
    quitter *qt = arg;
    int fd = accept4(qt->fd, NULL, NULL, SOCK_CLOEXEC);
    struct pollfd readable = {.fd = fd, .events = POLLIN};
    char heard[512];

    close(qt->fd);
    if (recv(fd, heard, sizeof(heard), 0) > 0)
        (void)send(fd, greeting, sizeof(greeting) - 1, MSG_NOSIGNAL);
    (void)poll(&readable, 1, 10000);
    (void)send(fd, error, sizeof(error) - 1, MSG_NOSIGNAL);
    close(fd);
    return NULL;
}

static void quitter_start(quitter *qt)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);

    qt->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(qt->fd, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(qt->fd, 8), 0);
    getsockname(qt->fd, (struct sockaddr *)&at, &len);
    qt->port = ntohs(at.sin_port);
}

/* Nothing of their own commands has left; but what of the group? */
static void a_server_that_fails_and_quits_is_unknown(void **state)
{
    enum { CROWD = 3 };
    static member crowd[CROWD];

    (void)state;
    for (int round = 0; round < 10; round++) {
        quitter qt;
        piped pd;

        quitter_start(&qt);
        pipe_open_port(&pd, qt.port);
        crowd_init(crowd, CROWD, &pd, "x");
        crowd_start(crowd, CROWD);
        assert_int_equal(pthread_create(&qt.thread, NULL, fail_and_quit, &qt),
                         0);
        crowd_join(crowd, CROWD);
        assert_int_equal(pthread_join(qt.thread, NULL), 0);
        for (int i = 0; i < CROWD; i++)
            CHECK(DIBS_UNKNOWN, crowd[i].rc);
        pipe_close(&pd);
    }
}

/* One who has no time ends the connection for all. */
static void a_timeout_takes_its_group_along(void **state)
{
    static member crowd[CROWD_MAX];
    dibsx_nsec start;
    piped pd;

    load_script(*state);
    pipe_open_server(&pd, *state);
    expect(&pd, "PING", "PONG");
    crowd_init(crowd, CROWD_MAX, &pd, "x");
    crowd[CROWD_MAX / 2].ms = 400;
    server_pause(*state);
    start = dibsx_now();
    crowd_start(crowd, CROWD_MAX);
    crowd_join(&crowd[CROWD_MAX / 2], 1);
    server_resume(*state);
    assert_status(crowd[CROWD_MAX / 2].rc, DIBS_UNKNOWN);
    IN_TIME(dibsx_now() < dibsx_after_ms(start, 10000));
    for (int i = 0; i < CROWD_MAX; i++) {
        if (i == CROWD_MAX / 2)
            continue;
        crowd_join(&crowd[i], 1);
        if (crowd[i].rc != DIBS_UNKNOWN)
            assert_answer(&crowd[i], strncmp(crowd[i].text, "one", 3) == 0
                                         ? "one"
                                         : "many");
    }
    CHECK(DIBS_UNKNOWN, crowd[0].rc);
    expect_soon(&pd, "PING", "PONG");
    pipe_close(&pd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_queued_together_is_one_command),
        cmocka_unit_test(one_thread_sends_its_own_command),
        cmocka_unit_test(a_pipeline_may_send_each_for_itself),
        cmocka_unit_test(unlike_commands_are_kept_apart),
        cmocka_unit_test(unlike_commands_may_be_parts_of_one),
        cmocka_unit_test(who_is_not_answered_goes_alone),
        cmocka_unit_test(an_error_sends_each_alone),
        cmocka_unit_test(an_answer_of_another_length_sends_each_alone),
        cmocka_unit_test(a_script_that_is_missing_comes_with_the_next),
        cmocka_unit_test(short_memory_is_survived),
        cmocka_unit_test(an_answer_is_cut_at_every_byte),
        cmocka_unit_test(a_cut_after_an_error_is_unknown),
        cmocka_unit_test(a_server_that_fails_and_quits_is_unknown),
        cmocka_unit_test(a_timeout_takes_its_group_along),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
