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
#include "base/rand.h"
#include "base/thread.h"
#include "store/redis/bell/cluster_doorbell.h"
#include "store/redis/bell/subscription.h"
#include "store/redis/wire/backoff.h"
#include <errno.h>
#include <string.h>

void dibs__redis_doorbell_init(dibs__redis_doorbell *bell,
                               const dibs__redis_conf *conf)
{
    memset(bell, 0, sizeof(*bell));
    bell->connect.conf = conf;
    pthread_mutex_init(&bell->mutex, NULL);
    dibs__doorbell_init(&bell->base);
}

void dibs__redis_doorbell_fini(dibs__redis_doorbell *bell)
{
    dibs__doorbell_stop(&bell->base);
    if (bell->cluster_doorbell)
        dibs__cluster_doorbell_free(bell->cluster_doorbell);
    else if (bell->base.open)
        pthread_join(bell->thread, NULL);
    dibs__doorbell_fini(&bell->base);
    dibs__connect_fini(&bell->connect);
    pthread_mutex_destroy(&bell->mutex);
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

        rc = dibs__conn_hear(cn, bell->base.stop_fd, until, &reply, err);
        if (rc == DIBS_OK) {
            dibs__subscription_handle(&bell->base, reply);
            asked = false;
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
    dibs__doorbell_report(&bell->base, rc == DIBS_OK ? NULL : &err);
    if (rc == DIBS_OK) {
        dibs__backoff_worked(bo);
        rc = listen_on(bell, cn, &err);
    }
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

    if (!bell->cluster)
        return dibsx_thread_start(&bell->thread, bell_main, bell);
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

const char *dibs__redis_doorbell_address(dibs__redis_doorbell *bell)
{
    return bell->base.open ? bell->base.address : "-";
}

size_t dibs__redis_doorbell_read(dibs__redis_doorbell *bell,
                                 dibs__notice *notices, size_t max)
{
    return dibs__doorbell_read(&bell->base, notices, max);
}
