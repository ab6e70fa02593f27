/* doorbell.c - the doorbell: a connection that listens to a channel of its own.
 *
 * Owns the connection of the thread, also while it is lent:
 *
 *     connect -> listen  --> (lost) --> wait a while -> connect
 *
 * Every failure leads to another attempt, until fini; except behind a pooler, through
 * which no notice comes. */
/* SPDX-License-Identifier: MIT */
#include "store/postgres/doorbell.h"
#include "base/event.h"
#include "base/fail.h"
#include "base/rand.h"
#include "base/thread.h"
#include "store/postgres/exchange.h"
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

/* How long an attempt to connect may take, and how long the server may be silent
 * before the thread asks whether it is there. */
enum { CONNECT_MS = 2000, QUIET_MS = 15000, REST_MS = 50 };

enum { CATCH_UP_MAX = 8 };

/* By the lock, other sessions see that a session listens (hears in sql/grant.sql). */
#define LISTEN                                                                 \
    "LISTEN \"dibs_%s\"; SET dibs.bell = '%s'; "                               \
    "SELECT pg_advisory_lock_shared(hashtextextended('dibs_%s', 0))"

void dibs__pg_doorbell_init(dibs__pg_doorbell *doorbell,
                            const dibs__pg_conf *conf, dibs__pg_pool *steps)
{
    dibs__doorbell_init(&doorbell->base);
    doorbell->conf = conf;
    doorbell->steps = steps;
    doorbell->watch_fd = doorbell->lost_fd = -1;
    atomic_init(&doorbell->listens, false);
    pthread_mutex_init(&doorbell->mutex, NULL);
    pthread_cond_init(&doorbell->changed, NULL);
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void dibs__pg_doorbell_fini(dibs__pg_doorbell *doorbell)
{
    dibs__doorbell_stop(&doorbell->base);
    if (doorbell->base.open)
        pthread_join(doorbell->thread, NULL);
    close_fd(&doorbell->watch_fd);
    close_fd(&doorbell->lost_fd);
    dibs__doorbell_fini(&doorbell->base);
    pthread_cond_destroy(&doorbell->changed);
    pthread_mutex_destroy(&doorbell->mutex);
}

/* Reads what has come: notices, or a farewell. False when the connection is lost. */
static bool catch_up(dibs__pg_conn *cn)
{
    for (int i = 0; i < CATCH_UP_MAX; i++) {
        struct pollfd at = {.fd = dibs__pg_conn_fd(cn), .events = POLLIN};
        size_t room = DIBS__PG_ROOM_ROWS;

        if (cn->dead || at.fd < 0)
            return false;
        if (poll(&at, 1, 0) == 0)
            return true;
        if (!dibs__pg_take_in(cn, &room))
            return false;
    }
    return false;
}

/* Chooses whether data of the server wakes the thread. */
static void
watch_conn(const dibs__pg_doorbell *doorbell, const dibs__pg_conn *cn, bool on)
{
    struct epoll_event at = {.events = on ? EPOLLIN : 0};

    (void)epoll_ctl(doorbell->watch_fd, EPOLL_CTL_MOD, dibs__pg_conn_fd(cn),
                    &at);
}

/* One behind a gate is not lent: its descriptor is not the one that is watched. */
dibs__pg_conn *dibs__pg_doorbell_borrow(dibs__pg_doorbell *doorbell)
{
    dibs__pg_conn *cn;

    pthread_mutex_lock(&doorbell->mutex);
    while (doorbell->hearing)
        pthread_cond_wait(&doorbell->changed, &doorbell->mutex);
    cn = doorbell->lent ? NULL : doorbell->cn;
    if (cn && cn->gate.set)
        cn = NULL;
    doorbell->lent = doorbell->lent || cn;
    if (cn)
        watch_conn(doorbell, cn, false);
    pthread_mutex_unlock(&doorbell->mutex);
    if (cn && !catch_up(cn)) {
        cn->dead = true;
        dibs__pg_doorbell_return(doorbell, cn);
        cn = NULL;
    }
    return cn;
}

/* A long answer has put a gate before it, which is lifted. Wakes the sleeping thread when
 * the connection is dead, or still behind the gate, where it cannot be watched any more.
 * libpq closes the socket of a connection that a server has ended, and a closed socket
 * wakes no thread. */
void dibs__pg_doorbell_return(dibs__pg_doorbell *doorbell, dibs__pg_conn *cn)
{
    pthread_mutex_lock(&doorbell->mutex);
    if (!cn->dead)
        dibs__pg_gate_lift(&cn->gate, dibs__pq.PQsocket(cn->pq));
    if (dibs__pg_conn_is_worn(cn) || cn->gate.set) {
        doorbell->cn = NULL;
        (void)shutdown(dibs__pg_conn_fd(cn), SHUT_RDWR);
        dibsx_event_set(doorbell->lost_fd);
    } else {
        watch_conn(doorbell, cn, true);
    }
    doorbell->lent = false;
    pthread_cond_broadcast(&doorbell->changed);
    pthread_mutex_unlock(&doorbell->mutex);
}

void dibs__pg_doorbell_distrust(dibs__pg_doorbell *doorbell)
{
    pthread_mutex_lock(&doorbell->mutex);
    doorbell->cn = NULL;
    pthread_mutex_unlock(&doorbell->mutex);
}

/* Steps may borrow it from now on. With NULL no more: on return no step has it. */
static void lend_conn(dibs__pg_doorbell *doorbell, dibs__pg_conn *cn)
{
    pthread_mutex_lock(&doorbell->mutex);
    doorbell->cn = cn;
    while (!cn && doorbell->lent)
        pthread_cond_wait(&doorbell->changed, &doorbell->mutex);
    pthread_mutex_unlock(&doorbell->mutex);
}

/* The thread has the connection to itself: to read what has come, while steps wait;
 * or to ask the server, as a step does. */
static void begin_use(dibs__pg_doorbell *doorbell, bool hearing)
{
    pthread_mutex_lock(&doorbell->mutex);
    while (doorbell->lent)
        pthread_cond_wait(&doorbell->changed, &doorbell->mutex);
    doorbell->hearing = hearing;
    doorbell->lent = !hearing;
    pthread_mutex_unlock(&doorbell->mutex);
}

static void end_use(dibs__pg_doorbell *doorbell)
{
    pthread_mutex_lock(&doorbell->mutex);
    doorbell->hearing = doorbell->lent = false;
    pthread_cond_broadcast(&doorbell->changed);
    pthread_mutex_unlock(&doorbell->mutex);
}

static int digit_of(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
}

/* Reads "OWNER said DATA", the data in hex: anyone may have written to the channel. A
 * message for which there is no memory is read as the news that some were lost. */
static bool read_said(const char *text, dibs__notice *notice)
{
    enum { OWNER = DIBS_OWNER_SIZE - 1 };
    static const char word[] = " said ";
    const char *hex = text + OWNER + sizeof(word) - 1;
    size_t len;

    if (strspn(text, "0123456789abcdef") != OWNER ||
        strncmp(text + OWNER, word, sizeof(word) - 1) != 0)
        return false;
    len = strspn(hex, "0123456789abcdef");
    *notice = (dibs__notice){.kind = DIBS__NOTICE_SAID};
    memcpy(notice->owner, text, OWNER);
    if (hex[len] || len % 2 || len / 2 > DIBS__SAY_MAX)
        return false;
    notice->said = dibs__said_new(len / 2);
    if (!notice->said) {
        *notice = (dibs__notice){.kind = DIBS__NOTICE_MISSED};
        return true;
    }
    for (size_t i = 0; i < len / 2; i++)
        notice->said->data[i] =
            (char)(digit_of(hex[2 * i]) << 4 | digit_of(hex[2 * i + 1]));
    return true;
}

static void on_notice(void *arg, const char *text)
{
    dibs__pg_doorbell *doorbell = arg;
    dibs__notice notice;

    if (read_said(text, &notice) || dibs__notice_read(text, &notice))
        dibs__doorbell_put(&doorbell->base, &notice);
}

static dibs_status
open_channel(dibs__pg_doorbell *doorbell, dibs__pg_conn *cn, dibs_error *err)
{
    const char *address = doorbell->base.address;
    char sql[sizeof(LISTEN) + 3 * DIBS__DOORBELL_ADDRESS];
    dibsx_nsec deadline = dibsx_after_ms(dibsx_now(), CONNECT_MS);

    if (cn->pooled)
        return dibsx_fail(err, DIBS_UNSUPPORTED,
                          "a pooler is in between, through which nothing can "
                          "be listened to; name the server itself with "
                          "listen_host= and listen_port=");
    cn->on_notice = on_notice;
    cn->notice_arg = doorbell;
    snprintf(sql, sizeof(sql), LISTEN, address, address, address);
    return dibs__pg_conn_run(cn, sql, deadline, NULL, err);
}

/* Waits for data of the server, for a step to lose the connection, or for the end:
 * DIBS_CANCELLED. DIBS_TIMEOUT: none of these. */
static dibs_status await_server(const dibs__pg_doorbell *doorbell)
{
    struct epoll_event at[3];
    int ready = epoll_wait(doorbell->watch_fd, at, 3, QUIET_MS);

    dibsx_event_clear(doorbell->lost_fd);
    for (int i = 0; i < ready; i++)
        if (at[i].data.ptr == &doorbell->base)
            return DIBS_CANCELLED;
    return ready == 0 ? DIBS_TIMEOUT : DIBS_OK;
}

/* Reads data of the server, or asks whether it is there. The thread has the
 * connection. */
static dibs_status
hear_server(dibs__pg_conn *cn, dibs_status woken, dibs_error *err)
{
    size_t room = DIBS__PG_ROOM_ROWS;

    if (woken == DIBS_TIMEOUT)
        return dibs__pg_conn_run(cn, "SELECT 1",
                                 dibsx_after_ms(dibsx_now(), CONNECT_MS), NULL,
                                 err);
    if (cn->dead || !dibs__pg_take_in(cn, &room) || dibs__pg_conn_is_worn(cn))
        return dibsx_fail(err, DIBS_UNAVAIL, "the connection was lost");
    return DIBS_OK;
}

/* Listens until the connection is lost, or the thread must end: DIBS_CANCELLED. */
static dibs_status
listen_on(dibs__pg_doorbell *doorbell, dibs__pg_conn *cn, dibs_error *err)
{
    struct epoll_event at = {.events = EPOLLIN};
    dibs_status rc;

    if (epoll_ctl(doorbell->watch_fd, EPOLL_CTL_ADD, dibs__pg_conn_fd(cn),
                  &at) != 0)
        return dibsx_fail(err, DIBS_UNAVAIL,
                          "the connection cannot be watched");
    if (!doorbell->conf->listens_apart)
        lend_conn(doorbell, cn);
    do {
        rc = await_server(doorbell);
        if (rc == DIBS_CANCELLED)
            break;
        begin_use(doorbell, rc == DIBS_OK);
        rc = hear_server(cn, rc, err);
        end_use(doorbell);
    } while (rc == DIBS_OK);
    lend_conn(doorbell, NULL);
    return rc;
}

/* An idle connection, so that a waiting client has no more than before; or NULL. */
static dibs__pg_conn *take_over(dibs__pg_doorbell *doorbell)
{
    return doorbell->conf->listens_apart ? NULL
                                         : dibs__pg_pool_part(doorbell->steps);
}

/* One connection from its beginning to its end. */
static dibs_status serve_conn(dibs__pg_doorbell *doorbell, int *failures)
{
    dibsx_nsec deadline = dibsx_after_ms(dibsx_now(), CONNECT_MS);
    dibs_error err = {0};
    dibs__pg_conn *cn = take_over(doorbell);
    dibs_status rc = DIBS_OK;

    if (!cn)
        rc = dibs__pg_conn_open(doorbell->conf, DIBS__PG_FOR_LISTEN, deadline,
                                &cn, &err);

    if (rc == DIBS_OK)
        rc = open_channel(doorbell, cn, &err);
    atomic_store(&doorbell->listens, rc == DIBS_OK);
    dibs__doorbell_report(&doorbell->base, rc == DIBS_OK ? NULL : &err);
    if (rc == DIBS_OK) {
        *failures = 0;
        rc = listen_on(doorbell, cn, &err);
        atomic_store(&doorbell->listens, false);
    }
    dibs__pg_conn_close(cn);
    return rc;
}

/* Waits before the next attempt, evenly up to a bound that doubles with each
 * failure, so that clients cut off together do not come back together. True when
 * the thread must end. */
static bool
wait_to_retry(const dibs__pg_doorbell *doorbell, dibsx_prng *prng, int failures)
{
    uint64_t bound_ms = (uint64_t)REST_MS << (failures < 6 ? failures : 6);
    int64_t span_ms = (int64_t)dibsx_prng_below(prng, bound_ms) + 1;

    return dibs__doorbell_rest(&doorbell->base,
                               dibsx_after_ms(dibsx_now(), span_ms));
}

static void *doorbell_main(void *arg)
{
    dibs__pg_doorbell *doorbell = arg;
    dibsx_prng prng = {.state = (uint64_t)dibsx_now()};
    int failures = 0;

    do {
        dibs_status rc = serve_conn(doorbell, &failures);

        if (rc == DIBS_CANCELLED || rc == DIBS_UNSUPPORTED)
            break;
        failures++;
    } while (!wait_to_retry(doorbell, &prng, failures));
    return NULL;
}

/* Both descriptors, or none; 0, or an errno. */
static int make_watch(dibs__pg_doorbell *doorbell)
{
    struct epoll_event lost = {.events = EPOLLIN};
    int failed = 0;

    doorbell->watch_fd = epoll_create1(EPOLL_CLOEXEC);
    doorbell->lost_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (doorbell->watch_fd < 0 || doorbell->lost_fd < 0 ||
        epoll_ctl(doorbell->watch_fd, EPOLL_CTL_ADD, doorbell->lost_fd,
                  &lost) != 0) {
        failed = errno;
        close_fd(&doorbell->watch_fd);
        close_fd(&doorbell->lost_fd);
    }
    return failed;
}

static int start_thread(void *arg)
{
    dibs__pg_doorbell *doorbell = arg;
    struct epoll_event stop = {.events = EPOLLIN, .data.ptr = &doorbell->base};
    int failed = doorbell->watch_fd < 0 ? make_watch(doorbell) : 0;

    if (failed)
        return failed;
    if (epoll_ctl(doorbell->watch_fd, EPOLL_CTL_ADD, doorbell->base.stop_fd,
                  &stop) != 0)
        return errno;
    return dibsx_thread_start(&doorbell->thread, doorbell_main, doorbell);
}

dibs_status
dibs__pg_doorbell_open(dibs__pg_doorbell *doorbell, dibsx_nsec deadline,
                       int *fd, dibs_error *err)
{
    return dibs__doorbell_open(&doorbell->base, start_thread, doorbell,
                               deadline, fd, err);
}

const char *dibs__pg_doorbell_address(const dibs__pg_doorbell *doorbell)
{
    return doorbell->base.open && doorbell->listens ? doorbell->base.address
                                                    : "";
}

size_t dibs__pg_doorbell_read(dibs__pg_doorbell *doorbell,
                              dibs__notice *notices, size_t max)
{
    return dibs__doorbell_read(&doorbell->base, notices, max);
}
