/* test_http_server.c - requests and answers, in order, at once, and at the end. */
/* SPDX-License-Identifier: MIT */
#include "http_world.h"

#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HOST      "Host: localhost\r\n"
#define JSON      "Content-Type: application/json\r\n"
#define GET(path) "GET " path " HTTP/1.1\r\n" HOST "\r\n"

static void
check(const http_world *wd, const char *request, int status, const char *body)
{
    reply rp;

    ask(wd, request, &rp);
    if (rp.status != status || strcmp(rp.body, body) != 0)
        fail_msg("%s: %d %s", request, rp.status, rp.body);
}

static void test_answers(void **state)
{
    http_world wd;
    char value[64];
    reply rp;

    (void)state;
    world_start(&wd, (dibs__http_opts){0});
    check(&wd, GET("/quick"), 200, "{\"kind\":\"quick\"}\n");
    check(&wd,
          "GET /params/a%2Fb/%C3%A9?q=1+2 HTTP/1.1\r\n" HOST
          "X-Test: yes\r\n\r\n",
          200,
          "{\"a\":\"a/b\",\"b\":\"\xC3\xA9\",\"q\":\"1 2\",\"h\":\"yes\"}\n");
    check(&wd, "HEAD /quick HTTP/1.0\r\n\r\n", 200, "");
    check(&wd, GET("/none"), 404,
          "{\"status\":404,\"message\":\"Nothing has this path\"}\n");
    check(&wd, GET("/%"), 400,
          "{\"status\":400,\"message\":\"The request is not valid: the path is "
          "badly "
          "encoded\"}\n");
    check(&wd, GET("/nothing"), 500,
          "{\"status\":500,\"message\":\"Nothing answers this request\"}\n");
    ask(&wd, GET("/json"), &rp);
    assert_int_equal(rp.status, 405);
    assert_true(reply_header(&rp, "Allow", value, sizeof(value)));
    assert_string_equal(value, "POST");
    assert_true(reply_header(&rp, "Content-Type", value, sizeof(value)));
    assert_string_equal(value, "application/json");
    world_stop(&wd, 1000);
}

static void test_bodies(void **state)
{
    http_world wd;
    char value[64];
    reply rp;

    (void)state;
    world_start(&wd, (dibs__http_opts){0});
    check(&wd,
          "POST /json HTTP/1.1\r\n" HOST JSON
          "Content-Length: 8\r\n\r\n{\"n\": 7}",
          200, "{\"n\":7}\n");
    check(&wd,
          "POST /json HTTP/1.1\r\n" HOST JSON
          "Transfer-Encoding: chunked\r\n\r\n3\r\n{\"n\r\n5\r\n\": "
          "8}\r\n0\r\n\r\n",
          200, "{\"n\":8}\n");
    ask(&wd, "POST /json HTTP/1.1\r\n" HOST JSON "Content-Length: 0\r\n\r\n",
        &rp);
    assert_string_equal(rp.body, "{\"n\":-1}\n");
    assert_true(reply_header(&rp, "X-Length", value, sizeof(value)));
    assert_string_equal(value, "none");
    ask(&wd, "POST /json HTTP/1.1\r\n" HOST JSON "Content-Length: 2\r\n\r\n{]",
        &rp);
    assert_int_equal(rp.status, 400);
    assert_non_null(strstr(rp.body, "not valid JSON: byte 1"));
    world_stop(&wd, 1000);
}

static void test_who_expects_to_be_asked(void **state)
{
    http_world wd;
    reply rp;
    int fd;

    (void)state;
    world_start(&wd, (dibs__http_opts){0});
    fd = client_open(&wd);
    client_send(fd, "POST /json HTTP/1.1\r\n" HOST JSON
                    "Content-Length: 8\r\nExpect: 100-continue\r\n\r\n");
    client_read(fd, &rp);
    assert_int_equal(rp.status, 100);
    client_send(fd, "{\"n\": 9}");
    client_read(fd, &rp);
    assert_int_equal(rp.status, 200);
    close(fd);
    /* No body is asked for that would only be thrown away. */
    ask(&wd,
        "POST /json HTTP/1.1\r\n" HOST JSON
        "Content-Length: 900000\r\nExpect: 100-continue\r\n\r\n",
        &rp);
    assert_int_equal(rp.status, 413);
    world_stop(&wd, 1000);
}

static void test_one_connection_for_many(void **state)
{
    http_world wd;
    reply rp;
    int fd;

    (void)state;
    world_start(&wd, (dibs__http_opts){0});
    fd = client_open(&wd);
    for (int i = 0; i < 20; i++) {
        client_send(fd, i % 2 ? GET("/quick") : GET("/params/1/2"));
        client_read(fd, &rp);
        assert_int_equal(rp.status, 200);
    }
    /* A refusal does not end it, with a body or without. */
    client_send(fd, "POST /none HTTP/1.1\r\n" HOST
                    "Content-Length: 5\r\n\r\nhello");
    client_read(fd, &rp);
    assert_int_equal(rp.status, 404);
    /* Several at once are answered one after the other. */
    client_send(fd,
                GET("/quick") GET("/params/1/2") GET("/none") GET("/quick"));
    for (int i = 0; i < 4; i++) {
        client_read(fd, &rp);
        assert_int_equal(rp.status, i == 2 ? 404 : 200);
    }
    client_send(fd, "GET /quick HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n");
    client_read(fd, &rp);
    assert_int_equal(rp.status, 200);
    assert_true(client_at_end(fd));
    close(fd);
    world_stop(&wd, 1000);
}

static void test_who_waits_is_in_nobodys_way(void **state)
{
    http_world wd;
    int fds[8];
    reply rp;

    (void)state;
    world_start(&wd, (dibs__http_opts){.threads_max = 4});
    for (int i = 0; i < 8; i++) {
        fds[i] = client_open(&wd);
        client_send(fds[i], GET("/wait"));
    }
    world_await_inside(&wd, 4);
    check(&wd, GET("/quick"), 200, "{\"kind\":\"quick\"}\n");
    world_let_go(&wd);
    for (int i = 0; i < 8; i++) {
        client_read(fds[i], &rp);
        assert_int_equal(rp.status, 200);
        close(fds[i]);
    }
    world_stop(&wd, 1000);
}

static void test_who_goes_away_meanwhile(void **state)
{
    http_world wd;
    int fd;

    (void)state;
    world_start(&wd, (dibs__http_opts){0});
    fd = client_open(&wd);
    client_send(fd, GET("/wait"));
    world_await_inside(&wd, 1);
    close(fd);
    fd = client_open(&wd);
    client_send(fd, "POST /json HTTP/1.1\r\n" HOST JSON
                    "Content-Length: 100\r\n\r\nhalf");
    close(fd);
    fd = client_open(&wd);
    client_send(fd, "GET /qui");
    close(fd);
    world_let_go(&wd);
    check(&wd, GET("/quick"), 200, "{\"kind\":\"quick\"}\n");
    world_stop(&wd, 1000);
}

/* A copy of the other end of a connection, as a process that is being forked has
 * of everything. Straight by the kernel: a sanitizer that knows of a copy takes the
 * server's close for a race. */
static int copy_of_other_end(int fd)
{
    struct sockaddr_in mine = {0};
    socklen_t len = sizeof(mine);

    assert_int_equal(getsockname(fd, (struct sockaddr *)&mine, &len), 0);
    for (int i = 0; i < 1024; i++) {
        struct sockaddr_in peer = {0};

        len = sizeof(peer);
        if (getpeername(i, (struct sockaddr *)&peer, &len) == 0 &&
            peer.sin_port == mine.sin_port)
            return (int)syscall(SYS_dup, i);
    }
    fail_msg("the server has no end of the connection");
    return -1;
}

static void test_a_copy_of_a_connection_is_none(void **state)
{
    http_world wd;
    reply rp;
    int fd, copy;

    (void)state;
    world_start(&wd, (dibs__http_opts){0});
    fd = client_open(&wd);
    client_send(fd, GET("/quick"));
    client_read(fd, &rp);
    copy = copy_of_other_end(fd);
    assert_true(copy >= 0);
    close(fd);
    for (int i = 0; i < 3; i++)
        check(&wd, GET("/quick"), 200, "{\"kind\":\"quick\"}\n");
    syscall(SYS_close, copy);
    world_stop(&wd, 1000);
}

typedef struct crowd {
    const http_world *wd;
    int wrong;
} crowd;

static void *crowd_main(void *arg)
{
    crowd *cr = arg;
    char request[256], expected[64];
    reply rp;
    int fd = client_open(cr->wd);

    for (int i = 0; i < 50; i++) {
        int len = snprintf(expected, sizeof(expected), "{\"n\":%d}", i);

        snprintf(request, sizeof(request),
                 "POST /json HTTP/1.1\r\n" HOST JSON
                 "Content-Length: %d\r\n\r\n%s",
                 len, expected);
        client_send(fd, i % 5 == 4 ? GET("/quick") : request);
        client_read(fd, &rp);
        if (rp.status != 200 ||
            (i % 5 != 4 && strncmp(rp.body, expected, (size_t)len) != 0))
            cr->wrong++;
    }
    close(fd);
    return NULL;
}

static void test_a_crowd(void **state)
{
    http_world wd;
    pthread_t threads[12];
    crowd crowds[12];

    (void)state;
    world_start(&wd, (dibs__http_opts){.threads_max = 3});
    for (int i = 0; i < 12; i++) {
        crowds[i] = (crowd){&wd, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, crowd_main,
                                        &crowds[i]),
                         0);
    }
    for (int i = 0; i < 12; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(crowds[i].wrong, 0);
    }
    world_stop(&wd, 1000);
}

static void *stop_main(void *arg)
{
    world_stop(arg, 30000);
    return NULL;
}

/* An answer that comes later needs no thread: more wait than there are threads. */
static void test_answers_later(void **state)
{
    http_world wd;
    int fds[6];
    reply rp;

    (void)state;
    world_start(&wd, (dibs__http_opts){.threads_max = 1});
    for (size_t i = 0; i < COUNT_OF(fds); i++) {
        fds[i] = client_open(&wd);
        client_send(fds[i], i % 2 ? GET("/later?wait_ms=600000")
                                  : GET("/slow-later?wait_ms=600000"));
    }
    world_await_open(&wd, COUNT_OF(fds));
    /* A client that leaves is noticed. */
    close(fds[0]);
    world_await_open(&wd, COUNT_OF(fds) - 1);
    world_tick(&wd, 1);
    for (size_t i = 1; i < COUNT_OF(fds); i++) {
        client_read(fds[i], &rp);
        assert_non_null(strstr(rp.body, "\"ticked\":true"));
    }
    world_await_open(&wd, 0);
    /* The connection goes on. */
    client_send(fds[1], GET("/quick"));
    client_read(fds[1], &rp);
    assert_int_equal(rp.status, 200);
    for (size_t i = 1; i < COUNT_OF(fds); i++)
        close(fds[i]);
    world_stop(&wd, 1000);
}

static void test_answers_at_the_end_of_the_wait(void **state)
{
    pthread_t thread;
    http_world wd;
    reply rp;
    int fd;

    (void)state;
    world_start(&wd, (dibs__http_opts){0});
    ask(&wd, GET("/later?wait_ms=1"), &rp);
    assert_non_null(strstr(rp.body, "\"ticked\":false"));
    /* A stop does not wait for it. */
    fd = client_open(&wd);
    client_send(fd, GET("/slow-later?wait_ms=600000"));
    world_await_open(&wd, 1);
    assert_int_equal(pthread_create(&thread, NULL, stop_main, &wd), 0);
    client_read(fd, &rp);
    assert_non_null(strstr(rp.body, "\"ticked\":false"));
    pthread_join(thread, NULL);
    close(fd);
}

static bool pass_some(dibs__http_exchange *ex)
{
    if (dibs__http_need(ex) == 0 && dibs__http_header(ex, "X-Pass"))
        return true;
    dibs__http_refuse(ex, 401, "%s needs X-Pass", dibs__http_route_path(ex));
    return false;
}

static void mark_answer(dibs__http_exchange *ex, int status)
{
    char text[16];

    snprintf(text, sizeof(text), "%d", status);
    dibs__http_set(ex, "X-Sent", text);
}

/* As a gate: the loop stands still until it is let go. */
static bool hold_loop(dibs__http_exchange *ex)
{
    http_world *wd = dibs__http_arg(ex);

    pthread_mutex_lock(&wd->mutex);
    wd->inside++;
    pthread_cond_broadcast(&wd->cond);
    while (!wd->let_go)
        pthread_cond_wait(&wd->cond, &wd->mutex);
    pthread_mutex_unlock(&wd->mutex);
    return true;
}

static void test_a_loop_that_stands_still_is_seen(void **state)
{
    http_world wd;
    reply rp;
    int fd;

    (void)state;
    world_start(&wd, (dibs__http_opts){.gate = hold_loop});
    assert_int_equal(dibs__http_lag(wd.server, DIBSX_SEC), 0);
    /* One that is idle answers too. */
    while (dibs__http_lag(wd.server, 2 * DIBSX_SEC) != 0)
        poll(NULL, 0, 1);
    fd = client_open(&wd);
    client_send(fd, GET("/quick"));
    world_await_inside(&wd, 1);
    (void)dibs__http_lag(wd.server, 3 * DIBSX_SEC);
    assert_true(dibs__http_lag(wd.server, 13 * DIBSX_SEC) >= 10 * DIBSX_SEC);
    world_let_go(&wd);
    client_read(fd, &rp);
    assert_int_equal(rp.status, 200);
    while (dibs__http_lag(wd.server, 14 * DIBSX_SEC) != 0)
        poll(NULL, 0, 1);
    close(fd);
    world_stop(&wd, 1000);
}

static void test_gate_and_base_path(void **state)
{
    static const struct {
        const char *request;
        int status;
    } cases[] = {{"GET /quick HTTP/1.1\r\n" HOST "\r\n", 401},
                 {"GET /quick HTTP/1.1\r\n" HOST "X-Pass: 1\r\n\r\n", 200},
                 {"GET /a/b/quick HTTP/1.1\r\n" HOST "X-Pass: 1\r\n\r\n", 200},
                 {"GET /a/quick HTTP/1.1\r\n" HOST "X-Pass: 1\r\n\r\n", 404},
                 {"GET /a/b HTTP/1.1\r\n" HOST "X-Pass: 1\r\n\r\n", 404},
                 {"POST /json HTTP/1.1\r\n" HOST JSON
                  "Content-Length: 8\r\n\r\n{\"n\": 1}",
                  401}};
    char value[32], wanted[16];
    http_world wd;
    reply rp;

    (void)state;
    world_start(&wd, (dibs__http_opts){.gate = pass_some,
                                       .sent = mark_answer,
                                       .base_path = "/a/b",
                                       .error_type = "application/x-error"});
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        ask(&wd, cases[i].request, &rp);
        if (rp.status != cases[i].status)
            fail_msg("%s: %d", cases[i].request, rp.status);
        snprintf(wanted, sizeof(wanted), "%d", rp.status);
        assert_true(reply_header(&rp, "X-Sent", value, sizeof(value)));
        assert_string_equal(value, wanted);
        assert_true(reply_header(&rp, "Content-Type", value, sizeof(value)));
        assert_string_equal(value, rp.status == 200 ? "application/json"
                                                    : "application/x-error");
    }
    assert_int_equal(world_posts(&wd), 0);
    world_stop(&wd, 1000);
}

/* Requests that were begun are answered, idle connections are closed, new ones
 * refused. */
static void test_stop(void **state)
{
    http_world wd;
    int busy, idle, part, late;
    pthread_t thread;
    char value[32];
    reply rp;

    (void)state;
    world_start(&wd, (dibs__http_opts){0});
    idle = client_open(&wd);
    client_send(idle, GET("/quick"));
    client_read(idle, &rp);
    part = client_open(&wd);
    client_send(part, "GET /qui");
    busy = client_open(&wd);
    client_send(busy, GET("/wait"));
    world_await_inside(&wd, 1);
    assert_int_equal(pthread_create(&thread, NULL, stop_main, &wd), 0);
    while ((late = client_try(&wd)) >= 0)
        close(late);
    world_let_go(&wd);
    client_read(busy, &rp);
    assert_int_equal(rp.status, 200);
    assert_true(reply_header(&rp, "Connection", value, sizeof(value)));
    assert_string_equal(value, "close");
    assert_true(client_at_end(busy));
    assert_true(client_at_end(idle));
    assert_true(client_at_end(part));
    pthread_join(thread, NULL);
    close(busy);
    close(idle);
    close(part);
}

static void *stop_soon_main(void *arg)
{
    world_stop(arg, 100);
    return NULL;
}

/* A function that runs is waited for, however long. Requests behind it are answered
 * before it has ended. */
static void test_stop_with_requests_in_the_queue(void **state)
{
    int running, queued[6];
    pthread_t thread;
    http_world wd;
    reply rp;

    (void)state;
    world_start(&wd,
                (dibs__http_opts){.threads_max = 1, .gate = world_count_in});
    running = client_open(&wd);
    client_send(running, GET("/wait"));
    world_await_inside(&wd, 1);
    for (size_t i = 0; i < COUNT_OF(queued); i++) {
        queued[i] = client_open(&wd);
        client_send(queued[i], GET("/wait"));
    }
    world_await_asked(&wd, 1 + (int)COUNT_OF(queued));
    assert_int_equal(pthread_create(&thread, NULL, stop_soon_main, &wd), 0);
    for (size_t i = 0; i < COUNT_OF(queued); i++) {
        client_read(queued[i], &rp);
        assert_int_equal(rp.status, 503);
        assert_non_null(strstr(rp.body, "has not begun this request"));
        close(queued[i]);
    }
    assert_int_equal(wd.inside, 1);
    world_let_go(&wd);
    client_read(running, &rp);
    assert_int_equal(rp.status, 200);
    pthread_join(thread, NULL);
    close(running);
}

static void test_stop_without_patience(void **state)
{
    http_world wd;
    int fd;

    (void)state;
    world_start(&wd, (dibs__http_opts){0});
    fd = client_open(&wd);
    client_send(fd, GET("/big"));
    world_stop(&wd, 0);
    close(fd);
    dibs__http_stop(NULL, 0);
}

static void test_a_port_that_is_taken(void **state)
{
    dibs_error err = {0};
    http_world wd;
    int fd;

    (void)state;
    world_start(&wd, (dibs__http_opts){0});
    assert_int_equal(dibs__http_listen("127.0.0.1", wd.port, &fd, &err),
                     DIBS_BUSY);
    assert_int_equal(fd, -1);
    world_stop(&wd, 1000);
    assert_int_equal(dibs__http_listen("127.0.0.1", wd.port, &fd, &err),
                     DIBS_OK);
    close(fd);
    assert_int_equal(dibs__http_listen("localhost", 0, &fd, &err),
                     DIBS_INVALID);
    assert_int_equal(dibs__http_listen("127.0.0.1", 70000, &fd, &err),
                     DIBS_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_bodies),
        cmocka_unit_test(test_who_expects_to_be_asked),
        cmocka_unit_test(test_one_connection_for_many),
        cmocka_unit_test(test_a_copy_of_a_connection_is_none),
        cmocka_unit_test(test_who_waits_is_in_nobodys_way),
        cmocka_unit_test(test_who_goes_away_meanwhile),
        cmocka_unit_test(test_a_crowd),
        cmocka_unit_test(test_answers_later),
        cmocka_unit_test(test_answers_at_the_end_of_the_wait),
        cmocka_unit_test(test_a_loop_that_stands_still_is_seen),
        cmocka_unit_test(test_gate_and_base_path),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_stop_with_requests_in_the_queue),
        cmocka_unit_test(test_stop_without_patience),
        cmocka_unit_test(test_a_port_that_is_taken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
