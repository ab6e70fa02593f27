/* test_replica_wait.c - a step that waits for replicas, after one that failed: it gets an
 * answer of its own.
 *
 * A thread plays a server and its replica, and fails once. What it owes it says
 * before the next answer on the same connection, as a server does that was slow. */
/* SPDX-License-Identifier: MIT */
#include "stage.h"

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#define OWNER "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

enum { TTL_MS = 20000, SHORT_MS = 200, CONNS = 8, REPLY = 64 };

/* How it fails: the first script or the first WAIT has no answer, or the first
 * connection is to a server that may not be written to. */
typedef enum failing { SILENT_SCRIPT, SILENT_WAIT, READ_ONLY } failing;

typedef struct slow {
    failing how;
    pthread_t thread;
    struct pollfd at[1 + CONNS]; /* the listener, then connections */
    size_t count;
    bool greeted[1 + CONNS];
    bool failed;
    char owed[1 + CONNS][REPLY];
    int scripts; /* how many it has run; each is granted that as its fence */
} slow;

static void accept_one(slow *sw)
{
    size_t i = sw->count;

    if (i > CONNS)
        return;
    sw->at[i] = (struct pollfd){.fd = accept(sw->at[0].fd, NULL, NULL),
                                .events = POLLIN};
    sw->count += sw->at[i].fd >= 0;
}

/* What it answers, if in time. */
static void make_reply(slow *sw, size_t conn, bool waits, char out[REPLY])
{
    if (!sw->greeted[conn])
        snprintf(out, REPLY, "+OK\r\n");
    else if (waits)
        snprintf(out, REPLY, ":1\r\n");
    else if (sw->how == READ_ONLY && conn == 1)
        snprintf(out, REPLY, "-READONLY it may not be written to\r\n");
    else
        snprintf(out, REPLY, "$1\r\n%d\r\n", ++sw->scripts);
}

static void answer(slow *sw, size_t conn)
{
    char bytes[16384], reply[REPLY], all[2 * REPLY];
    ssize_t len = recv(sw->at[conn].fd, bytes, sizeof(bytes), 0);
    bool waits = len > 0 && memmem(bytes, (size_t)len, "WAIT", 4);
    bool greeted = sw->greeted[conn];

    if (len <= 0) {
        close(sw->at[conn].fd);
        sw->at[conn].fd = -1;
        return;
    }
    make_reply(sw, conn, waits, reply);
    sw->greeted[conn] = true;
    if (greeted && !sw->failed && sw->how != READ_ONLY &&
        waits == (sw->how == SILENT_WAIT)) {
        sw->failed = true;
        memcpy(sw->owed[conn], reply, sizeof(reply));
        return;
    }
    snprintf(all, sizeof(all), "%s%s", sw->owed[conn], reply);
    sw->owed[conn][0] = '\0';
    (void)send(sw->at[conn].fd, all, strlen(all), MSG_NOSIGNAL);
}

/* Until the listener is shut down. */
static void *serve_main(void *arg)
{
    slow *sw = arg;

    while (poll(sw->at, sw->count, -1) > 0 && !(sw->at[0].revents & POLLHUP)) {
        for (size_t i = 1; i < sw->count; i++)
            if (sw->at[i].revents)
                answer(sw, i);
        if (sw->at[0].revents)
            accept_one(sw);
    }
    for (size_t i = 0; i < sw->count; i++)
        if (sw->at[i].fd >= 0)
            close(sw->at[i].fd);
    return NULL;
}

static dibs__store *start(slow *sw, failing how)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    dibs__store *st = NULL;
    char url[64];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    *sw = (slow){.how = how, .count = 1};
    sw->at[0] = (struct pollfd){.fd = fd, .events = POLLIN};
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(fd, CONNS), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    assert_int_equal(pthread_create(&sw->thread, NULL, serve_main, sw), 0);
    snprintf(url, sizeof(url), "redis://127.0.0.1:%d", ntohs(at.sin_port));
    CHECK(DIBS_OK, dibs__store_make(url, stage_soon(), &st, err));
    return st;
}

static void stop(slow *sw, dibs__store *st)
{
    dibs__store_close(st);
    shutdown(sw->at[0].fd, SHUT_RDWR);
    pthread_join(sw->thread, NULL);
}

static dibs_status acquire(dibs__store *st, dibsx_nsec deadline,
                           dibs__answer *ans, dibs_error *err)
{
    const dibs__ask ask = {.name = "k",
                           .owner = OWNER,
                           .permits = 1,
                           .ttl_ms = TTL_MS,
                           .most_ms = TTL_MS,
                           .replicas = 1,
                           .who = "host:1"};

    return st->ops->lease->acquire(st, &ask, deadline, ans, err);
}

/* The first step fails so; the second is granted the fence of its own script. */
static void expect_own_answer(failing how, dibs_status status, uint64_t fence)
{
    bool silent = how != READ_ONLY;
    dibs__answer ans;
    dibs__store *st;
    slow sw;

    st = start(&sw, how);
    assert_status(acquire(st,
                          silent
                              ? dibsx_after_ms(dibsx_now(), pace_ms(SHORT_MS))
                              : stage_soon(),
                          &ans, NULL),
                  status);
    CHECK(DIBS_OK, acquire(st, stage_soon(), &ans, err));
    assert_int_equal(ans.fence, fence);
    assert_int_equal(ans.acked, 1);
    stop(&sw, st);
}

static void after_a_script_without_an_answer(void **state)
{
    (void)state;
    expect_own_answer(SILENT_SCRIPT, DIBS_UNKNOWN, 2);
}

static void after_a_wait_without_an_answer(void **state)
{
    (void)state;
    expect_own_answer(SILENT_WAIT, DIBS_UNKNOWN, 2);
}

static void after_a_server_that_is_read_only(void **state)
{
    (void)state;
    expect_own_answer(READ_ONLY, DIBS_UNAVAIL, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(after_a_script_without_an_answer),
        cmocka_unit_test(after_a_wait_without_an_answer),
        cmocka_unit_test(after_a_server_that_is_read_only),
    };

    return cmocka_run_group_tests_name("redis durable", tests, NULL, NULL);
}
