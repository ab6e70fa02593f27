/* bell.c - the doorbell: a connection that listens to a channel of its own.
 *
 * Owns the thread, its connection and the rings that wait to be heard:
 *
 *     connect -> listen  --> (lost) --> wait a while -> connect
 *
 * Whatever fails leads to another attempt, until fini; but for a pooler, through
 * which nothing can be heard. The thread blocks all signals and holds the mutex only
 * to put a ring down. */
/* SPDX-License-Identifier: MIT */
#include "store/postgres/bell.h"
#include "base/alloc.h"
#include "base/fail.h"
#include "base/rand.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

/* How long opening waits for the channel, an attempt to connect may take, and
 * nothing may be heard before the server is asked whether it is there. */
enum { OPEN_MS = 1000, CONNECT_MS = 2000, QUIET_MS = 15000, REST_MS = 50 };

void dibs__pg_bell_init(dibs__pg_bell *bell, const dibs__pg_conf *conf)
{
    pthread_condattr_t attr;

    memset(bell, 0, sizeof(*bell));
    bell->conf = conf;
    bell->ring_fd = bell->stop_fd = -1;
    pthread_mutex_init(&bell->mutex, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&bell->cond, &attr);
    pthread_condattr_destroy(&attr);
    atomic_init(&bell->open, false);
    atomic_init(&bell->deaf, false);
}

static void fd_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* An eventfd can only refuse when it is full, and is readable then. */
static void signal_fd(int fd)
{
    uint64_t one = 1;
    ssize_t len = write(fd, &one, sizeof(one));

    (void)len;
}

static void quiet_fd(int fd)
{
    uint64_t count;
    ssize_t len = read(fd, &count, sizeof(count));

    (void)len;
}

static void let_go(dibs__pg_bell *bell)
{
    fd_close(&bell->ring_fd);
    fd_close(&bell->stop_fd);
    dibsx_free(bell->rings);
    bell->rings = NULL;
}

void dibs__pg_bell_fini(dibs__pg_bell *bell)
{
    if (bell->open) {
        signal_fd(bell->stop_fd);
        pthread_join(bell->thread, NULL);
    }
    let_go(bell);
    pthread_cond_destroy(&bell->cond);
    pthread_mutex_destroy(&bell->mutex);
}

/* A ring that finds no room is lost. */
static void put_down(dibs__pg_bell *bell, const dibs__ring *ring)
{
    pthread_mutex_lock(&bell->mutex);
    if (bell->count < DIBS__PG_RINGS) {
        bell->rings[(bell->first + bell->count) % DIBS__PG_RINGS] = *ring;
        if (bell->count++ == 0)
            signal_fd(bell->ring_fd);
    }
    pthread_mutex_unlock(&bell->mutex);
}

/* Takes what has been received. */
static void heed(dibs__pg_bell *bell, dibs__pg_conn *cn)
{
    PGnotify *notice;
    dibs__ring ring;

    while ((notice = dibs__pq.PQnotifies(cn->pq)) != NULL) {
        if (dibs__ring_read(notice->extra, &ring))
            put_down(bell, &ring);
        dibs__pq.PQfreemem(notice);
    }
}

/* What came of an attempt, for whoever waits in open. True when one had worked
 * before, or failed so that waits began without a doorbell. */
static bool report(dibs__pg_bell *bell, const dibs_error *failure)
{
    bool again;

    pthread_mutex_lock(&bell->mutex);
    again = bell->heeded || bell->failure.status != DIBS_OK;
    if (failure)
        bell->failure = *failure;
    else
        bell->heeded = true;
    pthread_cond_broadcast(&bell->cond);
    pthread_mutex_unlock(&bell->mutex);
    return again;
}

static dibs_status
subscribe(dibs__pg_bell *bell, dibs__pg_conn *cn, dibs_error *err)
{
    char sql[sizeof("LISTEN \"dibs_\"") + DIBS__PG_ADDRESS];
    dibsx_nsec deadline = dibsx_after_ms(dibsx_now(), CONNECT_MS);

    if (cn->pooled)
        return dibsx_fail(err, DIBS_UNSUPPORTED,
                          "a pooler is in between, through which nothing can "
                          "be listened to; name the server itself with "
                          "listen_host= and listen_port=");
    snprintf(sql, sizeof(sql), "LISTEN \"dibs_%s\"", bell->address);
    return dibs__pg_conn_run(cn, sql, deadline, NULL, err);
}

/* Waits for the server or for the end: DIBS_CANCELLED. DIBS_TIMEOUT: neither. */
static dibs_status await_news(const dibs__pg_bell *bell, dibs__pg_conn *cn)
{
    struct pollfd at[] = {
        {.fd = dibs__pq.PQsocket(cn->pq), .events = POLLIN},
        {.fd = bell->stop_fd, .events = POLLIN},
    };
    int ready = poll(at, 2, QUIET_MS);

    if (ready > 0 && at[1].revents)
        return DIBS_CANCELLED;
    return ready == 0 ? DIBS_TIMEOUT : DIBS_OK;
}

/* Until the connection is lost, or the thread is to end: DIBS_CANCELLED. */
static dibs_status
listen_on(dibs__pg_bell *bell, dibs__pg_conn *cn, dibs_error *err)
{
    dibs_status rc;

    do {
        rc = await_news(bell, cn);
        if (rc == DIBS_OK && !dibs__pq.PQconsumeInput(cn->pq))
            rc = dibsx_fail(err, DIBS_UNAVAIL, "the connection was lost");
        if (rc == DIBS_TIMEOUT)
            rc = dibs__pg_conn_run(cn, "SELECT 1",
                                   dibsx_after_ms(dibsx_now(), CONNECT_MS),
                                   NULL, err);
        heed(bell, cn);
    } while (rc == DIBS_OK);
    return rc;
}

/* One connection from its beginning to its end. */
static dibs_status attend(dibs__pg_bell *bell, int *failures)
{
    dibsx_nsec deadline = dibsx_after_ms(dibsx_now(), CONNECT_MS);
    dibs_error err = {0};
    dibs__pg_conn *cn = NULL;
    dibs_status rc = dibs__pg_conn_open(bell->conf, DIBS__PG_FOR_LISTEN,
                                        deadline, &cn, &err);
    bool again;

    if (rc == DIBS_OK)
        rc = subscribe(bell, cn, &err);
    again = report(bell, rc == DIBS_OK ? NULL : &err);
    if (rc == DIBS_OK) {
        /* What was rung while nobody listened is lost. */
        if (again)
            put_down(bell, &(dibs__ring){.news = DIBS__NEWS_MISSED});
        *failures = 0;
        rc = listen_on(bell, cn, &err);
    }
    dibs__pg_conn_close(cn);
    return rc;
}

/* Waits before the next attempt, evenly up to a bound that doubles with each
 * failure, so that clients cut off together do not come back together. True when
 * the thread is to end. */
static bool rest(const dibs__pg_bell *bell, dibsx_prng *prng, int failures)
{
    struct pollfd stop = {.fd = bell->stop_fd, .events = POLLIN};
    uint64_t bound_ms = (uint64_t)REST_MS << (failures < 6 ? failures : 6);

    return poll(&stop, 1, (int)dibsx_prng_below(prng, bound_ms) + 1) > 0;
}

static void *bell_main(void *arg)
{
    dibs__pg_bell *bell = arg;
    dibsx_prng prng = {.state = (uint64_t)dibsx_now()};
    int failures = 0;

    do {
        dibs_status rc = attend(bell, &failures);

        if (rc == DIBS_UNSUPPORTED)
            atomic_store(&bell->deaf, true);
        if (rc == DIBS_CANCELLED || rc == DIBS_UNSUPPORTED)
            break;
        failures++;
    } while (!rest(bell, &prng, failures));
    return NULL;
}

static dibs_status open_failed(int number, dibs_error *err)
{
    return dibsx_fail_at(err, DIBS_UNAVAIL, dibsx_errno_name(number),
                         "no doorbell can be opened, so waits are polled (%s)",
                         dibsx_errno_name(number));
}

/* Locks: bell->mutex. */
static dibs_status start(dibs__pg_bell *bell, dibs_error *err)
{
    unsigned char id[(DIBS__PG_ADDRESS - 1) / 2];
    sigset_t all, before;
    int failed;

    bell->rings = dibsx_zalloc_n(DIBS__PG_RINGS, sizeof(*bell->rings));
    if (!bell->rings)
        return dibsx_fail(err, DIBS_NOMEM, "room for rings");
    bell->ring_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    bell->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (bell->ring_fd < 0 || bell->stop_fd < 0 || !dibsx_random(id, sizeof(id)))
        return open_failed(errno, err);
    dibsx_hex(id, sizeof(id), bell->address);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    failed = pthread_create(&bell->thread, NULL, bell_main, bell);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed ? open_failed(failed, err) : DIBS_OK;
}

/* Waits for the outcome of the first attempt. Locks: bell->mutex, let go while
 * waiting. */
static void await_outcome(dibs__pg_bell *bell, dibsx_nsec deadline)
{
    int64_t span_ms = dibsx_wait_ms(deadline, dibsx_now());
    struct timespec until;

    if (span_ms < 0 || span_ms > OPEN_MS)
        span_ms = OPEN_MS;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)span_ms * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    while (!bell->heeded && bell->failure.status == DIBS_OK)
        if (pthread_cond_timedwait(&bell->cond, &bell->mutex, &until) != 0)
            return;
}

dibs_status dibs__pg_bell_open(dibs__pg_bell *bell, dibsx_nsec deadline,
                               int *fd, dibs_error *err)
{
    dibs_status rc = DIBS_OK;

    pthread_mutex_lock(&bell->mutex);
    if (!bell->open) {
        rc = start(bell, err);
        bell->open = rc == DIBS_OK;
        if (rc != DIBS_OK)
            let_go(bell);
    }
    if (rc == DIBS_OK)
        await_outcome(bell, deadline);
    if (rc == DIBS_OK && !bell->heeded)
        rc = dibsx_fail_at(err, DIBS_UNAVAIL, bell->failure.origin,
                           "no doorbell yet, so waits are polled: %s",
                           bell->failure.message[0]
                               ? bell->failure.message
                               : "the server takes its time");
    *fd = bell->ring_fd;
    pthread_mutex_unlock(&bell->mutex);
    return rc;
}

const char *dibs__pg_bell_address(const dibs__pg_bell *bell)
{
    return bell->open && !bell->deaf ? bell->address : "";
}

size_t dibs__pg_bell_hear(dibs__pg_bell *bell, dibs__ring *rings, size_t max)
{
    size_t count;

    if (!bell->open)
        return 0;
    pthread_mutex_lock(&bell->mutex);
    for (count = 0; count < max && bell->count > 0; count++) {
        rings[count] = bell->rings[bell->first];
        bell->first = (bell->first + 1) % DIBS__PG_RINGS;
        if (--bell->count == 0)
            quiet_fd(bell->ring_fd);
    }
    pthread_mutex_unlock(&bell->mutex);
    return count;
}
