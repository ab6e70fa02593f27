/* test_http_limits.c - what is too long, too slow, too many or no HTTP at all. */
/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "http_world.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define HOST      "Host: localhost\r\n"
#define JSON      "Content-Type: application/json\r\n"
#define GET(path) "GET " path " HTTP/1.1\r\n" HOST "\r\n"

enum { BODY_MAX = 1024 };

static int status_of(const http_world *wd, const char *request)
{
    reply rp;

    ask(wd, request, &rp);
    return rp.status;
}

/* Whatever came before, the server goes on. */
static void stop_in_good_health(http_world *wd)
{
    assert_int_equal(status_of(wd, GET("/quick")), 200);
    world_stop(wd, 1000);
}

static void post(const http_world *wd, size_t len, bool chunked, reply *rp)
{
    char *body = malloc(len);
    char head[256];
    int fd = client_open(wd);

    assert_non_null(body);
    memset(body, ' ', len);
    if (chunked)
        snprintf(head, sizeof(head),
                 "POST /json HTTP/1.1\r\n" HOST JSON
                 "Transfer-Encoding: chunked\r\n\r\n%zx\r\n",
                 len);
    else
        snprintf(head, sizeof(head),
                 "POST /json HTTP/1.1\r\n" HOST JSON
                 "Content-Length: %zu\r\n\r\n",
                 len);
    client_send(fd, head);
    client_send_bytes(fd, body, len);
    if (chunked)
        client_send(fd, "\r\n0\r\n\r\n");
    client_read(fd, rp);
    close(fd);
    free(body);
}

static void test_long_bodies(void **state)
{
    http_world wd;
    reply rp;

    (void)state;
    world_start(&wd, (dibs__http_opts){.body_max = BODY_MAX});
    post(&wd, BODY_MAX, false, &rp);
    assert_int_equal(rp.status, 400); /* spaces are no JSON, but few enough */
    post(&wd, BODY_MAX + 1, false, &rp);
    assert_int_equal(rp.status, 413);
    assert_non_null(strstr(rp.body, "longer than 1024 bytes"));
    post(&wd, BODY_MAX, true, &rp);
    assert_int_equal(rp.status, 400);
    post(&wd, BODY_MAX + 1, true, &rp);
    assert_int_equal(rp.status, 413);
    post(&wd, 4 * 1024 * 1024, false, &rp);
    assert_int_equal(rp.status, 413);
    post(&wd, 4 * 1024 * 1024, true, &rp);
    assert_int_equal(rp.status, 413);
    /* Beyond all measure: answered before it is sent, or cut off. */
    assert_int_equal(status_of(&wd, "POST /json HTTP/1.1\r\n" HOST
                                    "Content-Length: 99999999999\r\n\r\n"),
                     413);
    post(&wd, 20 * 1024 * 1024, true, &rp);
    assert_true(rp.status == 413 || rp.status == 0);
    stop_in_good_health(&wd);
}

static void test_long_heads(void **state)
{
    char request[64 * 1024];
    http_world wd;
    size_t len;
    int status;

    (void)state;
    world_start(&wd, (dibs__http_opts){0});
    snprintf(request, sizeof(request), "GET /quick HTTP/1.1\r\n" HOST "X: ");
    len = strlen(request);
    memset(request + len, 'x', 40 * 1024);
    snprintf(request + len + 40 * 1024, 16, "\r\n\r\n");
    status = status_of(&wd, request);
    assert_true(status == 431 || status == 413);

    snprintf(request, sizeof(request), "GET /");
    memset(request + 5, 'x', 40 * 1024);
    snprintf(request + 5 + 40 * 1024, 64, " HTTP/1.1\r\n" HOST "\r\n");
    status = status_of(&wd, request);
    assert_true(status == 414 || status == 431);

    len = (size_t)snprintf(request, sizeof(request),
                           "GET /quick HTTP/1.1\r\n" HOST);
    for (int i = 0; i < 100; i++)
        len += (size_t)snprintf(request + len, sizeof(request) - len,
                                "X-%d: y\r\n", i);
    snprintf(request + len, sizeof(request) - len, "\r\n");
    assert_int_equal(status_of(&wd, request), 431);
    stop_in_good_health(&wd);
}

/* Requests whose end is not clear, and what is none. */
static void test_what_is_no_request(void **state)
{
    static const char *const cases[] = {
        "POST /json HTTP/1.1\r\n" HOST "Content-Length: 3\r\n"
        "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST /json HTTP/1.1\r\n" HOST "Content-Length: 2\r\n"
        "Content-Length: 2\r\n\r\n{}",
        "POST /json HTTP/1.1\r\n" HOST "Content-Length: x\r\n\r\n",
        "POST /json HTTP/1.1\r\n" HOST "Content-Length: -1\r\n\r\n",
        "POST /json HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip\r\n\r\n",
        "POST /json HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
        "zz\r\n",
        "GET /quick HTTP/1.1\r\n\r\n", /* no Host */
        "nonsense\r\n\r\n",
        "\x16\x03\x01\x02\x01\r\n\r\n", /* the beginning of TLS */
    };
    http_world wd;

    (void)state;
    world_start(&wd, (dibs__http_opts){.receive_ms = 2000});
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        reply rp;

        ask(&wd, cases[i], &rp);
        if (rp.status != 400)
            fail_msg("%s: %d %s", cases[i], rp.status, rp.body);
    }
    stop_in_good_health(&wd);
}

/* A byte now and then keeps nobody connected. */
static void test_drip(void **state)
{
    const char *text =
        "GET /quick HTTP/1.1\r\nHost: localhost\r\nX-Slow: yyyyyy"
        "yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy";
    http_world wd;
    reply rp;
    int fd;

    (void)state;
    world_start(&wd, (dibs__http_opts){.receive_ms = 300});
    fd = client_open(&wd);
    for (size_t i = 0; text[i]; i++) {
        struct pollfd answer = {.fd = fd, .events = POLLIN};

        client_send_bytes(fd, text + i, 1);
        if (poll(&answer, 1, 10) == 1)
            break;
    }
    client_read(fd, &rp);
    assert_int_equal(rp.status, 408);
    assert_non_null(strstr(rp.body, "{\"status\":408,"));
    assert_true(client_at_end(fd));
    close(fd);
    stop_in_good_health(&wd);
}

/* The next request on a connection has as long as the first, however long the connection
 * was idle before. */
static void test_the_time_of_the_next_request(void **state)
{
    const int64_t receive_ms = pace_ms(400);
    dibsx_nsec begun_at;
    http_world wd;
    reply rp;
    int fd;

    (void)state;
    world_start(&wd, (dibs__http_opts){.receive_ms = receive_ms});
    fd = client_open(&wd);
    client_send(fd, "GET /quick HTTP/1.1\r\n" HOST "\r\n");
    client_read(fd, &rp);
    IN_TIME(rp.status != 408 && rp.status != 0);
    assert_int_equal(rp.status, 200);
    (void)poll(NULL, 0, (int)(receive_ms / 2));
    begun_at = dibsx_now();
    client_send(fd, "GET /qui");
    client_read(fd, &rp);
    IN_TIME(rp.status != 0);
    assert_int_equal(rp.status, 408);
    assert_true(dibsx_now() >= dibsx_after_ms(begun_at, receive_ms));
    close(fd);
    stop_in_good_health(&wd);
}

static void test_slowness(void **state)
{
    static const char *const cases[] = {"", "GET /qui",
                                        "GET /quick HTTP/1.1\r\nHost: loc",
                                        "POST /json HTTP/1.1\r\n" HOST
                                        "Content-Length: 10\r\n\r\n{"};
    http_world wd;
    reply rp;
    int fd;

    (void)state;
    world_start(&wd, (dibs__http_opts){.receive_ms = 100});
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        fd = client_open(&wd);
        client_send(fd, cases[i]);
        client_read(fd, &rp);
        assert_int_equal(rp.status, 408);
        assert_true(client_at_end(fd));
        close(fd);
    }
    /* A client that has had an answer and says no more is let go in silence. */
    fd = client_open(&wd);
    client_send(fd, GET("/quick"));
    client_read(fd, &rp);
    assert_int_equal(rp.status, 200);
    assert_true(client_at_end(fd));
    close(fd);
    /* The time that an answer takes does not count. */
    fd = client_open(&wd);
    client_send(fd, GET("/wait"));
    world_await_inside(&wd, 1);
    usleep(250000);
    world_let_go(&wd);
    client_read(fd, &rp);
    assert_int_equal(rp.status, 200);
    close(fd);
    stop_in_good_health(&wd);
}

/* There is room for one, and it does not read: the next one gets in when it was
 * cut off. */
static void test_who_does_not_take_the_answer(void **state)
{
    const int small = 4096;
    http_world wd;
    reply rp;
    int fd, next;

    (void)state;
    world_start(&wd, (dibs__http_opts){.connections_max = 1, .send_ms = 200});
    fd = client_open(&wd);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small,
                                sizeof(small)),
                     0);
    client_send(fd, GET("/big"));
    next = client_open(&wd);
    client_send(next, GET("/quick"));
    client_read(next, &rp);
    assert_int_equal(rp.status, 200);
    close(next);
    close(fd);
    stop_in_good_health(&wd);
}

/* A client beyond the limit waits until another one leaves. */
static void test_many_connections(void **state)
{
    http_world wd;
    int fds[6];
    reply rp;

    (void)state;
    world_start(&wd, (dibs__http_opts){.connections_max = 4});
    for (int i = 0; i < 6; i++) {
        fds[i] = client_open(&wd);
        client_send(fds[i], GET("/quick"));
        if (i < 4) {
            client_read(fds[i], &rp);
            assert_int_equal(rp.status, 200);
        }
    }
    for (int i = 0; i < 2; i++) {
        close(fds[i]);
        client_read(fds[4 + i], &rp);
        assert_int_equal(rp.status, 200);
    }
    for (int i = 2; i < 6; i++)
        close(fds[i]);
    stop_in_good_health(&wd);
}

/* As dibs__http_crowd_fn. */
static unsigned three_each(const void *arg, const char *peer)
{
    (void)arg;
    assert_string_equal(peer, "127.0.0.1");
    return 3;
}

/* An address with too many connections is told so; those it has go on. */
static void test_crowd_of_one_address(void **state)
{
    dibs__http_load load;
    http_world wd;
    int fds[3];
    reply rp;

    (void)state;
    world_start(&wd, (dibs__http_opts){.crowd = three_each});
    for (int i = 0; i < 3; i++) {
        fds[i] = client_open(&wd);
        client_send(fds[i], GET("/quick"));
        client_read(fds[i], &rp);
        assert_int_equal(rp.status, 200);
    }
    ask(&wd, GET("/quick"), &rp);
    assert_int_equal(rp.status, 429);
    client_send(fds[0], GET("/quick"));
    client_read(fds[0], &rp);
    assert_int_equal(rp.status, 200);
    dibs__http_load_get(wd.server, &load);
    assert_int_equal(load.crowded, 1);
    assert_int_equal(load.relieved, 0);
    for (int i = 0; i < 3; i++)
        close(fds[i]);
    /* It learns of these ends in its own time. */
    do
        ask(&wd, GET("/quick"), &rp);
    while (rp.status == 429);
    world_stop(&wd, 1000);
}

/* Of connections that are idle, or begin a request and never finish it, the oldest makes
 * room. With `asked` the server says that it waits for the body. */
static void see_who_makes_room(const char *begun, bool asked)
{
    char text[64];
    int slow[40], idle[4];
    http_world wd;
    reply rp;

    world_start(&wd,
                (dibs__http_opts){.connections_max = 32, .receive_ms = 600000});
    for (size_t i = 0; i < COUNT_OF(slow); i++) {
        slow[i] = client_open(&wd);
        client_send(slow[i], begun);
        if (asked)
            assert_true(client_read_some(slow[i], text, sizeof(text)) > 0);
    }
    for (size_t i = 0; i < COUNT_OF(idle); i++) {
        idle[i] = client_open(&wd);
        client_send(idle[i], GET("/quick"));
        client_read(idle[i], &rp);
        assert_int_equal(rp.status, 200);
    }
    for (int i = 0; i < 40; i++)
        assert_int_equal(status_of(&wd, GET("/quick")), 200);
    for (size_t i = 0; i < COUNT_OF(idle); i++)
        close(idle[i]);
    for (size_t i = 0; i < COUNT_OF(slow); i++)
        close(slow[i]);
    stop_in_good_health(&wd);
}

static void test_slow_head_makes_room(void **state)
{
    (void)state;
    see_who_makes_room("GET /quick HT", false);
}

static void test_slow_body_makes_room(void **state)
{
    (void)state;
    see_who_makes_room("POST /json HTTP/1.1\r\n" HOST JSON
                       "Content-Length: 10\r\nExpect: 100-continue\r\n\r\n",
                       true);
}

/* Requests that wait for a thread have a bound. Urgent ones do not wait for the others. */
static void test_many_requests_at_once(void **state)
{
    enum { THREADS = 3, WAITING = 256, OPEN = THREADS + WAITING };
    char value[16];
    int fds[OPEN];
    http_world wd;
    reply rp;

    (void)state;
    world_start(&wd, (dibs__http_opts){.threads_max = THREADS,
                                       .connections_max = 2 * OPEN,
                                       .gate = world_count_in});
    for (int i = 0; i < OPEN; i++) {
        fds[i] = client_open(&wd);
        client_send(fds[i], GET("/wait"));
        if (i + 1 <= THREADS)
            world_await_inside(&wd, i + 1);
    }
    world_await_asked(&wd, OPEN);
    ask(&wd, GET("/wait"), &rp);
    assert_int_equal(rp.status, 503);
    assert_true(reply_header(&rp, "Retry-After", value, sizeof(value)));
    assert_string_equal(value, "1");
    assert_int_equal(status_of(&wd, GET("/urgent")), 200);
    world_let_go(&wd);
    for (int i = 0; i < OPEN; i++) {
        client_read(fds[i], &rp);
        assert_int_equal(rp.status, 200);
        close(fds[i]);
    }
    stop_in_good_health(&wd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_long_bodies),
        cmocka_unit_test(test_long_heads),
        cmocka_unit_test(test_what_is_no_request),
        cmocka_unit_test(test_drip),
        cmocka_unit_test(test_the_time_of_the_next_request),
        cmocka_unit_test(test_slowness),
        cmocka_unit_test(test_who_does_not_take_the_answer),
        cmocka_unit_test(test_many_connections),
        cmocka_unit_test(test_crowd_of_one_address),
        cmocka_unit_test(test_slow_head_makes_room),
        cmocka_unit_test(test_slow_body_makes_room),
        cmocka_unit_test(test_many_requests_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
