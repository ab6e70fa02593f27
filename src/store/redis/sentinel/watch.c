/* watch.c - a thread that listens to one sentinel for a new primary.
 *
 * Owns its connection:
 *
 *     connect -> subscribe -> ask once -> listen --> (lost) --> the next sentinel
 *
 * It asks once because a change may have come before it listened. The thread
 * blocks all signals. */
/* SPDX-License-Identifier: MIT */
#include "store/redis/sentinel/watch.h"
#include "base/event.h"
#include "base/rand.h"
#include "store/redis/sentinel/find.h"
#include "store/redis/sentinel/parse.h"
#include "store/redis/wire/backoff.h"
#include "store/redis/wire/reply.h"
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* The limit of an attempt to connect, and how long the connection may be quiet
 * before a ping. */
enum { CONNECT_MS = 1000, QUIET_MS = 3000 };

#define CHANNEL "+switch-master"

static void handle_message(dibs__sentinel *sn, const redisReply *reply)
{
    const redisReply *kind = dibs__reply_item(reply, 0);
    const redisReply *text = dibs__reply_item(reply, 2);
    dibs__endpoint endpoint;

    if (kind && kind->type == REDIS_REPLY_STRING &&
        strcmp(kind->str, "message") == 0 && text &&
        text->type == REDIS_REPLY_STRING &&
        dibs__sentinel_read_switch(text->str, dibs__sentinel_name(sn),
                                   &endpoint))
        dibs__sentinel_heard(sn, &endpoint);
}

static dibs_status
send_command(dibs__conn *cn, const char *one, const char *two)
{
    dibs__words words = {.count = 0};

    dibs__words_puts(&words, one);
    if (two)
        dibs__words_puts(&words, two);
    return dibs__conn_tell(cn, &words, dibsx_after_ms(dibsx_now(), CONNECT_MS),
                           NULL);
}

/* Listens until the connection is lost. DIBS_CANCELLED: the thread must end. */
static dibs_status listen_on(dibs__sentinel_watch *wt, dibs__conn *cn)
{
    bool asked = false;
    dibs_status rc;

    do {
        dibsx_nsec until = dibsx_after_ms(dibsx_now(), QUIET_MS);
        redisReply *reply = NULL;

        rc = dibs__conn_hear(cn, wt->stop_fd, until, &reply, NULL);
        if (rc == DIBS_OK && reply->type != REDIS_REPLY_ERROR) {
            handle_message(wt->sn, reply);
            asked = false;
        } else if (rc == DIBS_OK) {
            rc = DIBS_REFUSED;
        } else if (rc == DIBS_TIMEOUT && !asked) {
            rc = send_command(cn, "PING", NULL);
            asked = true;
        }
        dibs__reply_free(reply);
    } while (rc == DIBS_OK);
    return rc;
}

/* One connection from its beginning to its end. */
static dibs_status
serve_connection(dibs__sentinel_watch *wt, size_t number, dibs__backoff *bo)
{
    dibsx_nsec deadline = dibsx_after_ms(dibsx_now(), CONNECT_MS);
    dibs__conn *cn = NULL;
    dibs__endpoint endpoint;
    dibs_status rc =
        dibs__sentinel_open(wt->sn, number, wt->stop_fd, deadline, &cn, NULL);

    if (rc != DIBS_OK)
        return rc;
    rc = send_command(cn, "SUBSCRIBE", CHANNEL);
    if (rc == DIBS_OK) {
        /* Finding the primary reports the change, if there is one. */
        (void)!dibs__sentinel_find(wt->sn, deadline, &endpoint, NULL);
        dibs__backoff_worked(bo);
        rc = listen_on(wt, cn);
    }
    dibs__conn_close(cn);
    return rc;
}

/* True when the thread is to end. */
static bool rest_until(const dibs__sentinel_watch *wt, dibsx_nsec until)
{
    struct pollfd stop = {.fd = wt->stop_fd, .events = POLLIN};
    int64_t span_ms = dibsx_wait_ms(until, dibsx_now());

    return poll(&stop, 1, (int)span_ms) > 0;
}

static void *watch_main(void *arg)
{
    dibs__sentinel_watch *wt = arg;
    dibs__backoff bo;
    uint64_t seed = 0;
    size_t number = 0;

    if (!dibsx_random(&seed, sizeof(seed)))
        seed = (uint64_t)dibsx_now();
    dibs__backoff_init(&bo, seed);
    bo.cap = DIBS__SENTINEL_PAUSE;
    do {
        dibs_status rc = serve_connection(wt, number, &bo);

        if (rc == DIBS_CANCELLED)
            break;
        number = rc == DIBS_NOTFOUND ? 0 : number + 1;
        dibs__backoff_failed(&bo, dibsx_now());
    } while (!rest_until(wt, bo.due_at));
    return NULL;
}

bool dibs__sentinel_watch_start(dibs__sentinel_watch *wt, dibs__sentinel *sn)
{
    sigset_t all, before;
    int failed;

    wt->sn = sn;
    wt->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wt->stop_fd < 0)
        return false;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    failed = pthread_create(&wt->thread, NULL, watch_main, wt);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed) {
        close(wt->stop_fd);
        wt->stop_fd = -1;
    }
    return !failed;
}

void dibs__sentinel_watch_stop(dibs__sentinel_watch *wt)
{
    if (wt->stop_fd < 0)
        return;
    dibsx_event_set(wt->stop_fd);
    pthread_join(wt->thread, NULL);
    close(wt->stop_fd);
    wt->stop_fd = -1;
}
