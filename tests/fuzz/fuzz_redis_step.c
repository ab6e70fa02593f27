/* fuzz_redis_step.c - steps on a server that answers with the input: whatever it is,
 * the step ends with a status, nothing is read beyond what came, and what is granted
 * has a fence and no more time than it can have.
 *
 * The first byte says which step. A thread plays the server: it greets as one does,
 * answers each command with the bytes, and hangs up. */
/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "fuzz.h"
#include "store/store.h"

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

/* What a step may take; and how long the server waits for another command. */
enum { STEP_MS = 100, NEXT_MS = 2, COMMANDS = 4 };

/* What the server answers; under the mutex. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static uint8_t answer[65536];
static size_t answer_len;

static const char owner[] = "0123456789abcdef0123456789abcdef";

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

        if (fd < 0)
            continue;
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

static bool each_entry(const char *name, const dibs__entry *entries,
                       size_t count, void *arg)
{
    (void)arg;
    REQUIRE(name && (entries || count == 0));
    return true;
}

static bool each_value(const dibs_state_item *item, void *arg)
{
    (void)arg;
    REQUIRE(item->key);
    return true;
}

static bool each_log(const dibs__log_entry *entry, void *arg)
{
    (void)arg;
    REQUIRE(entry->data || entry->len == 0);
    return true;
}

/* What was granted has a fence, and time: no more than it can have. */
static void
check_grant(dibs_status rc, const dibs__answer *ans, int64_t most_ms)
{
    if (rc == DIBS_OK)
        REQUIRE(ans->fence > 0 && ans->fence <= INT64_MAX && ans->left_ms > 0 &&
                ans->left_ms <= (ans->claim ? DIBS__CLAIM_MS : most_ms));
    if (rc == DIBS_BUSY)
        REQUIRE(ans->fence <= INT64_MAX && ans->left_ms >= 0);
}

static void check_renewals(dibs_status rc, const dibs__renewal *items)
{
    for (int i = 0; i < 2; i++)
        REQUIRE(
            rc != DIBS_OK || items[i].rc != DIBS_OK ||
            (items[i].left_ms > 0 && items[i].left_ms <= DIBS__LEASE_MAX_MS));
}

static dibs_status
lease_step(dibs__store *st, int which, dibsx_nsec deadline, dibs_error *err)
{
    const dibs__lease_ops *ops = st->ops->lease;
    dibs__ask asks[2] = {{.name = "a",
                          .owner = owner,
                          .permits = 1,
                          .ttl_ms = 1000,
                          .most_ms = 1000,
                          .who = "host:1",
                          .alone = which == 1},
                         {.name = "b",
                          .owner = owner,
                          .permits = 1,
                          .ttl_ms = 1000,
                          .most_ms = 1000,
                          .who = "host:1"}};
    dibs__renewal again[2] = {
        {.name = "a", .owner = owner, .fence = 5, .ttl_ms = 1000},
        {.name = "b", .owner = owner, .fence = 6, .ttl_ms = 1000}};
    dibs__answer answers[2] = {{0}};
    size_t blocked;
    uint32_t count;
    dibs_status rc;

    switch (which) {
    case 0:
    case 1:
        rc = ops->acquire(st, asks, deadline, answers, err);
        check_grant(rc, &answers[0], 1000);
        return rc;
    case 2:
        rc = ops->renew(st, again, 2, deadline, err);
        check_renewals(rc, again);
        return rc;
    case 3:
        return ops->release(st, &(dibs__leave){.name = "a", .owner = owner},
                            deadline, err);
    case 4:
        rc = ops->acquire_all(st, asks, 2, deadline, answers, &blocked, err);
        check_grant(rc, &answers[0], 1000);
        check_grant(rc, &answers[1], 1000);
        return rc;
    case 5:
        rc = ops->turn(st,
                       &(dibs__turn){.name = "a",
                                     .owner = owner,
                                     .fence = 5,
                                     .to_owner = owner,
                                     .ttl_ms = 1000},
                       deadline, answers, err);
        check_grant(rc, &answers[0], DIBS__LEASE_MAX_MS);
        REQUIRE(rc != DIBS_OK || answers[0].fence >= 5);
        return rc;
    case 6:
        return ops->yield(st, "a", 5, deadline, &count, err);
    case 7:
        return ops->inspect(st, "a", deadline, each_entry, NULL, err);
    case 8:
        return ops->list(st, "", deadline, each_entry, NULL, err);
    default:
        return ops->take(st, "a", 5, deadline, &count, err);
    }
}

static dibs_status
other_step(dibs__store *st, int which, dibsx_nsec deadline, dibs_error *err)
{
    const dibs__value_ops *ops = st->ops->value;
    dibs_value value = {0};
    uint64_t number;
    int64_t sum;
    dibs_status rc;

    switch (which) {
    case 10:
        rc = ops->get(st, "k", deadline, &value, err);
        dibs_value_free(&value);
        return rc;
    case 11:
        return ops->add(st, "k", 1, deadline, &sum, err);
    case 12:
        return ops->del(st, "k", 5, deadline, err);
    case 13:
        return ops->list(st, "", deadline, each_value, NULL, err);
    case 14:
        return st->ops->log->append(st, "t", "x", 1, 10, deadline, &number,
                                    err);
    case 15:
        return st->ops->log->read(st, "t", 0, 10, deadline, each_log, NULL,
                                  err);
    default:
        return st->ops->now(st, deadline, &sum, err);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *url = url_of_server();
    dibsx_nsec deadline = dibsx_after_ms(dibsx_now(), STEP_MS);
    dibs__store *st = NULL;
    dibs_error err = {0};
    dibs_status rc;
    int which;

    if (size == 0 || size > sizeof(answer))
        return 0;
    which = data[0] % 17;
    pthread_mutex_lock(&mutex);
    memcpy(answer, data + 1, size - 1);
    answer_len = size - 1;
    pthread_mutex_unlock(&mutex);
    REQUIRE(dibs__store_make(url, deadline, &st, &err) == DIBS_OK);
    rc = which < 10 ? lease_step(st, which, deadline, &err)
                    : other_step(st, which, deadline, &err);
    REQUIRE(rc >= DIBS_OK && rc <= DIBS_FORKED);
    REQUIRE(memchr(err.message, '\0', sizeof(err.message)));
    dibs__store_close(st);
    return 0;
}
