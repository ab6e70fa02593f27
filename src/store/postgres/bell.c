/* bell.c - the doorbell: a connection that listens to a channel of its own.
 *
 * Owns the connection of the thread:
 *
 *     connect -> listen  --> (lost) --> wait a while -> connect
 *
 * Whatever fails leads to another attempt, until fini; but for a pooler, through
 * which nothing can be heard. */
/* SPDX-License-Identifier: MIT */
#include "store/postgres/bell.h"
#include "base/fail.h"
#include "base/rand.h"
#include "base/thread.h"
#include "store/postgres/exchange.h"
#include <poll.h>
#include <stdio.h>

/* How long an attempt to connect may take, and nothing may be heard before the
 * server is asked whether it is there. */
enum { CONNECT_MS = 2000, QUIET_MS = 15000, REST_MS = 50 };

void dibs__pg_bell_init(dibs__pg_bell *bell, const dibs__pg_conf *conf)
{
    dibs__listener_init(&bell->listener);
    bell->conf = conf;
    atomic_init(&bell->deaf, false);
}

void dibs__pg_bell_fini(dibs__pg_bell *bell)
{
    dibs__listener_stop(&bell->listener);
    if (bell->listener.open)
        pthread_join(bell->thread, NULL);
    dibs__listener_fini(&bell->listener);
}

static void on_ring(void *arg, const char *text)
{
    dibs__pg_bell *bell = arg;
    dibs__ring ring;

    if (dibs__ring_read(text, &ring))
        dibs__listener_put(&bell->listener, &ring);
}

static dibs_status
subscribe(dibs__pg_bell *bell, dibs__pg_conn *cn, dibs_error *err)
{
    char sql[sizeof("LISTEN \"dibs_\"") + DIBS__LISTENER_ADDRESS];
    dibsx_nsec deadline = dibsx_after_ms(dibsx_now(), CONNECT_MS);

    if (cn->pooled)
        return dibsx_fail(err, DIBS_UNSUPPORTED,
                          "a pooler is in between, through which nothing can "
                          "be listened to; name the server itself with "
                          "listen_host= and listen_port=");
    cn->on_ring = on_ring;
    cn->ring_arg = bell;
    snprintf(sql, sizeof(sql), "LISTEN \"dibs_%s\"", bell->listener.address);
    return dibs__pg_conn_run(cn, sql, deadline, NULL, err);
}

/* Waits for the server or for the end: DIBS_CANCELLED. DIBS_TIMEOUT: neither. */
static dibs_status await_news(const dibs__pg_bell *bell, dibs__pg_conn *cn)
{
    struct pollfd at[] = {
        {.fd = dibs__pg_conn_fd(cn), .events = POLLIN},
        {.fd = bell->listener.stop_fd, .events = POLLIN},
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
        size_t room = DIBS__PG_ROOM_ROWS;

        rc = await_news(bell, cn);
        if (rc == DIBS_OK &&
            (!dibs__pg_take_in(cn, &room) || dibs__pg_conn_is_worn(cn)))
            rc = dibsx_fail(err, DIBS_UNAVAIL, "the connection was lost");
        if (rc == DIBS_TIMEOUT)
            rc = dibs__pg_conn_run(cn, "SELECT 1",
                                   dibsx_after_ms(dibsx_now(), CONNECT_MS),
                                   NULL, err);
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

    if (rc == DIBS_OK)
        rc = subscribe(bell, cn, &err);
    dibs__listener_report(&bell->listener, rc == DIBS_OK ? NULL : &err);
    if (rc == DIBS_OK) {
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
    uint64_t bound_ms = (uint64_t)REST_MS << (failures < 6 ? failures : 6);
    int64_t span_ms = (int64_t)dibsx_prng_below(prng, bound_ms) + 1;

    return dibs__listener_rest(&bell->listener,
                               dibsx_after_ms(dibsx_now(), span_ms));
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

static int start(void *arg)
{
    dibs__pg_bell *bell = arg;

    return dibsx_thread_start(&bell->thread, bell_main, bell);
}

dibs_status dibs__pg_bell_open(dibs__pg_bell *bell, dibsx_nsec deadline,
                               int *fd, dibs_error *err)
{
    return dibs__listener_open(&bell->listener, start, bell, deadline, fd, err);
}

const char *dibs__pg_bell_address(const dibs__pg_bell *bell)
{
    return bell->listener.open && !bell->deaf ? bell->listener.address : "";
}

size_t dibs__pg_bell_hear(dibs__pg_bell *bell, dibs__ring *rings, size_t max)
{
    return dibs__listener_hear(&bell->listener, rings, max);
}
