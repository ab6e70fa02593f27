/* doorbell.c - the doorbell: a connection that listens to a channel of its own.
 *
 * Owns the thread and its connection:
 *
 *     connect -> subscribe -> listen --> (lost) --> wait a while -> connect
 *
 * After every failure the thread tries again, until fini. In a cluster there is
 * no such thread: the listeners (cluster_doorbell.c) listen. */
/* SPDX-License-Identifier: MIT */
#include "store/redis/bell/doorbell.h"
#include "base/event.h"
#include "base/fail.h"
#include "base/rand.h"
#include "base/thread.h"
#include "store/redis/bell/cluster_doorbell.h"
#include "store/redis/bell/subscription.h"
#include "store/redis/wire/backoff.h"
#include "store/redis/wire/reply.h"
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

void dibs__redis_doorbell_init(dibs__redis_doorbell *bell,
                               const dibs__redis_conf *conf)
{
    memset(bell, 0, sizeof(*bell));
    bell->connect.conf = conf;
    pthread_mutex_init(&bell->mutex, NULL);
    dibs__doorbell_init(&bell->base);
    dibs__ears_init(&bell->ears);
    bell->wake_fd = -1;
    atomic_init(&bell->heard, false);
}

void dibs__redis_doorbell_fini(dibs__redis_doorbell *bell)
{
    dibs__doorbell_stop(&bell->base);
    if (bell->wake_fd >= 0)
        dibsx_event_set(bell->wake_fd);
    if (bell->cluster_doorbell)
        dibs__cluster_doorbell_free(bell->cluster_doorbell);
    else if (bell->base.open)
        pthread_join(bell->thread, NULL);
    if (bell->wake_fd >= 0)
        close(bell->wake_fd);
    dibs__ears_fini(&bell->ears);
    dibs__doorbell_fini(&bell->base);
    dibs__connect_fini(&bell->connect);
    pthread_mutex_destroy(&bell->mutex);
}

static bool is_text(const redisReply *reply)
{
    return reply && reply->type == REDIS_REPLY_STRING;
}

static void handle_reply(dibs__redis_doorbell *bell, const redisReply *reply)
{
    const redisReply *kind = dibs__reply_item(reply, 0);
    const redisReply *name = dibs__reply_item(reply, 1);

    if (reply->type == REDIS_REPLY_ERROR)
        (void)dibs__ears_refused(&bell->ears, 0, reply->str);
    else if (is_text(kind) && is_text(name) &&
             strcmp(kind->str, "subscribe") == 0)
        dibs__ears_subscribed(&bell->ears, 0, name->str);
    else
        dibs__subscription_handle(&bell->base, reply);
}

/* The event may stand for both: it is cleared before the thread looks. */
static dibs_status handle_wake(dibs__redis_doorbell *bell)
{
    dibsx_event_clear(bell->wake_fd);
    return dibs__doorbell_stopping(&bell->base) ? DIBS_CANCELLED : DIBS_OK;
}

/* Listens until the connection is lost. DIBS_CANCELLED: the thread must end. */
static dibs_status
listen_on(dibs__redis_doorbell *bell, dibs__conn *cn, dibs_error *err)
{
    bool asked = false;
    dibs_status rc;

    do {
        dibsx_nsec until = dibsx_after_ms(dibsx_now(), DIBS__BELL_QUIET_MS);
        redisReply *reply = NULL;

        rc = dibs__ears_catch_up(&bell->ears, 0, false, cn, err);
        if (rc == DIBS_OK)
            rc = dibs__conn_hear(cn, bell->wake_fd, until, &reply, err);
        if (rc == DIBS_OK) {
            handle_reply(bell, reply);
            asked = false;
        } else if (rc == DIBS_CANCELLED) {
            rc = handle_wake(bell);
        } else if (rc == DIBS_TIMEOUT && !asked) {
            rc = dibs__subscription_ping(cn, err);
            asked = true;
        }
        dibs__reply_free(reply);
    } while (rc == DIBS_OK);
    return rc;
}

static void set_conn(dibs__redis_doorbell *bell, dibs__conn *cn)
{
    pthread_mutex_lock(&bell->mutex);
    bell->cn = cn;
    pthread_mutex_unlock(&bell->mutex);
}

void dibs__redis_doorbell_drop(dibs__redis_doorbell *bell)
{
    pthread_mutex_lock(&bell->mutex);
    if (bell->cn)
        dibs__conn_sever(bell->cn);
    pthread_mutex_unlock(&bell->mutex);
}

/* One connection from its beginning to its end. */
static dibs_status
serve_connection(dibs__redis_doorbell *bell, dibs__backoff *bo)
{
    dibsx_nsec deadline = dibsx_after_ms(dibsx_now(), DIBS__BELL_CONNECT_MS);
    dibs_error err = {0};
    dibs__conn *cn = NULL;
    dibs_status rc =
        dibs__connect_open(&bell->connect, false, deadline, &cn, &err);

    set_conn(bell, cn);
    if (rc == DIBS_OK && dibs__connect_has_moved(&bell->connect))
        dibs__conn_sever(cn);
    if (rc == DIBS_OK)
        rc = dibs__subscription_ask(bell->base.address, cn, &err);
    /* In this order: the report makes listeners ask for their topics again. */
    atomic_store(&bell->heard, rc == DIBS_OK);
    dibs__doorbell_report(&bell->base, rc == DIBS_OK ? NULL : &err);
    if (rc == DIBS_OK) {
        dibs__backoff_worked(bo);
        rc = listen_on(bell, cn, &err);
        atomic_store(&bell->heard, false);
    }
    (void)dibs__ears_drop(&bell->ears, 0);
    set_conn(bell, NULL);
    dibs__conn_close(cn);
    return rc;
}

static void *bell_main(void *arg)
{
    dibs__redis_doorbell *bell = arg;
    dibs__backoff bo;
    uint64_t seed = 0;

    if (!dibsx_random(&seed, sizeof(seed)))
        seed = (uint64_t)dibsx_now();
    dibs__backoff_init(&bo, seed);
    bo.cap = bell->connect.sentinel ? DIBS__SENTINEL_PAUSE : 0;
    do {
        if (serve_connection(bell, &bo) == DIBS_CANCELLED)
            break;
        dibs__backoff_failed(&bo, dibsx_now());
    } while (!dibs__doorbell_rest(&bell->base, bo.due_at));
    return NULL;
}

/* Starts the thread, or in a cluster the listeners. */
static int start_listening(void *arg)
{
    dibs__redis_doorbell *bell = arg;

    if (!bell->cluster && bell->wake_fd < 0)
        bell->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (!bell->cluster)
        return bell->wake_fd < 0
                   ? errno
                   : dibsx_thread_start(&bell->thread, bell_main, bell);
    bell->cluster_doorbell = dibs__cluster_doorbell_new(bell);
    return bell->cluster_doorbell ? 0 : EAGAIN;
}

dibs_status
dibs__redis_doorbell_open(dibs__redis_doorbell *bell, dibsx_nsec deadline,
                          int *fd, dibs_error *err)
{
    return dibs__doorbell_open(&bell->base, start_listening, bell, deadline, fd,
                               err);
}

void dibs__redis_doorbell_attend(dibs__redis_doorbell *bell, int slot)
{
    if (bell->base.open)
        dibs__cluster_doorbell_attend(bell->cluster_doorbell, slot);
}

/* At one server. A channel that comes too late for a connection is lost with it. */
static dibs_status listen_here(dibs__redis_doorbell *bell, const char *channel,
                               dibsx_nsec deadline, dibs_error *err)
{
    if (!bell->heard)
        return dibsx_fail(err, DIBS_UNAVAIL,
                          "the doorbell has no connection now, so nothing is "
                          "heard");
    if (!dibs__ears_want(&bell->ears, channel, 0))
        return dibsx_fail(err, DIBS_UNAVAIL,
                          "cannot listen to more than %d topics; open another "
                          "client",
                          DIBS__TOPIC_CHANNELS_MAX);
    dibsx_event_set(bell->wake_fd);
    return dibs__ears_await(&bell->ears, channel, deadline, err);
}

dibs_status
dibs__redis_doorbell_ear(dibs__redis_doorbell *bell, const char *channel,
                         bool on, dibsx_nsec deadline, dibs_error *err)
{
    if (!bell->base.open)
        return dibsx_fail(err, DIBS_UNAVAIL,
                          "the doorbell is not open, so nothing is heard");
    if (bell->cluster)
        return dibs__cluster_doorbell_ear(bell->cluster_doorbell, channel, on,
                                          deadline, err);
    if (on)
        return listen_here(bell, channel, deadline, err);
    (void)dibs__ears_unwant(&bell->ears, channel);
    dibsx_event_set(bell->wake_fd);
    return DIBS_OK;
}

const char *dibs__redis_doorbell_address(dibs__redis_doorbell *bell)
{
    return bell->base.open ? bell->base.address : "-";
}

size_t dibs__redis_doorbell_read(dibs__redis_doorbell *bell,
                                 dibs__notice *notices, size_t max)
{
    return dibs__doorbell_read(&bell->base, notices, max);
}
