/* fuzz_redis_step.c - steps on a server that answers with the input: whatever it is,
 * the step ends with a status, nothing is read beyond what came, and what is granted
 * has a fence and no more time than it can have.
 *
 * The first byte says which step. A thread plays the server: it greets as one does,
 * answers each command with the bytes, and hangs up. A list goes on while it answers, so
 * that it serves a number of connections only. */
/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "fuzz_step.h"

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

/* What a step may take; and how long the server waits for another command. */
enum { STEP_MS = 100, NEXT_MS = 2, COMMANDS = 4, CONNECTIONS = 16 };

enum { VOTES_FROM = 0xf0 }; /* the first bytes from here on are votes */

/* What the server answers; under the mutex. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static uint8_t answer[65536];
static size_t answer_len;
static int connections; /* since it was set */

/* Whether a command came. */
static bool hear(int fd, int span_ms)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    char bytes[16384];

    return poll(&ready, 1, span_ms) == 1 &&
           recv(fd, bytes, sizeof(bytes), 0) > 0;
}

static void serve(int fd)
{
    static const char hello[] = "+OK\r\n";

    if (!hear(fd, 1000) || send(fd, hello, sizeof(hello) - 1, MSG_NOSIGNAL) < 0)
        return;
    for (int i = 0; i < COMMANDS && hear(fd, i ? NEXT_MS : 1000); i++) {
        pthread_mutex_lock(&mutex);
        (void)!send(fd, answer, answer_len, MSG_NOSIGNAL | MSG_DONTWAIT);
        pthread_mutex_unlock(&mutex);
    }
}

static void *server_main(void *arg)
{
    int listener = *(int *)arg;

    for (;;) {
        int fd = accept(listener, NULL, NULL);

        bool answers;

        if (fd < 0)
            continue;
        pthread_mutex_lock(&mutex);
        answers = ++connections <= CONNECTIONS;
        pthread_mutex_unlock(&mutex);
        if (answers)
            serve(fd);
        close(fd);
    }
    return NULL;
}

/* Serves until the process ends. */
static const char *url_of_server(void)
{
    static char url[64];
    static int listener;
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    pthread_t thread;

    if (url[0])
        return url;
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    REQUIRE(listener >= 0);
    REQUIRE(bind(listener, (struct sockaddr *)&at, sizeof(at)) == 0);
    REQUIRE(listen(listener, 16) == 0);
    REQUIRE(getsockname(listener, (struct sockaddr *)&at, &len) == 0);
    snprintf(url, sizeof(url), "redis://127.0.0.1:%d", ntohs(at.sin_port));
    REQUIRE(pthread_create(&thread, NULL, server_main, &listener) == 0);
    return url;
}

/* As a node of a quorum. */
static void vote_step(dibs__store *st, bool again, dibsx_nsec deadline)
{
    const dibs__voter voter = {.run_id = "0123", .longest_ms = 1000};
    const dibs__ask ask = {.name = "a",
                           .owner = fuzz_owner,
                           .permits = 1,
                           .ttl_ms = 1000,
                           .most_ms = 1000,
                           .who = "host:1"};
    dibs__renewal items[2] = {
        {.name = "a", .owner = fuzz_owner, .fence = 5, .ttl_ms = 1000},
        {.name = "b", .owner = fuzz_owner, .fence = 6, .ttl_ms = 1000}};
    dibs__node_word word = {0};
    dibs_error err = {0};
    dibs__answer ans;
    dibs_status rc;

    if (again) {
        rc = st->ops->vote->renew(st, &voter, items, 2, deadline, &word, &err);
        fuzz_check_renewals(rc, items);
    } else {
        rc = st->ops->vote->grant(st, &voter, &ask, 5, false, deadline, &ans,
                                  &word, &err);
        fuzz_check_grant(rc, &ans, 1000);
    }
    REQUIRE(rc >= DIBS_OK && rc <= DIBS_FORKED);
    REQUIRE(word.wall_us >= 0 && word.wall_us <= INT64_C(1) << 53);
    REQUIRE(word.sits_out_ms >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *url = url_of_server();
    dibsx_nsec deadline = dibsx_after_ms(dibsx_now(), STEP_MS);
    dibs__store *st = NULL;

    if (size == 0 || size > sizeof(answer))
        return 0;
    pthread_mutex_lock(&mutex);
    memcpy(answer, data + 1, size - 1);
    answer_len = size - 1;
    connections = 0;
    pthread_mutex_unlock(&mutex);
    REQUIRE(dibs__store_make(url, deadline, &st, NULL) == DIBS_OK);
    if (data[0] >= VOTES_FROM)
        vote_step(st, data[0] % 2, deadline);
    else
        fuzz_step(st, data[0], deadline);
    dibs__store_close(st);
    return 0;
}
