/* bell.c - the doorbell: a connection that listens to a channel of its own.
 *
 * Owns the thread, its connection and the rings that wait to be heard:
 *
 *     connect -> subscribe -> listen --> (lost) --> wait a while -> connect
 *
 * Whatever fails leads to another attempt, until fini. The thread blocks all
 * signals and holds the mutex only to put a ring down. In a cluster there is no
 * such thread: the ears (ears.c) put down what they hear. */
/* SPDX-License-Identifier: MIT */
#include "store/redis/bell.h"
#include "base/alloc.h"
#include "base/cond.h"
#include "base/fail.h"
#include "base/rand.h"
#include "base/thread.h"
#include "store/redis/backoff.h"
#include "store/redis/conn.h"
#include "store/redis/ears.h"
#include "store/redis/error.h"
#include "store/redis/reply.h"
#include "store/redis/sentinel.h"
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* How long opening waits for the channel. */
enum { OPEN_MS = 1000 };

void dibs__redis_bell_init(dibs__redis_bell *bell, const dibs__redis_conf *conf)
{

    memset(bell, 0, sizeof(*bell));
    bell->way.conf = conf;
    bell->ring_fd = bell->stop_fd = -1;
    pthread_mutex_init(&bell->mutex, NULL);
    (void)dibsx_cond_init(&bell->cond);
    atomic_init(&bell->open, false);
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

    while (write(fd, &one, sizeof(one)) < 0 && errno == EINTR)
        continue;
}

static void quiet_fd(int fd)
{
    uint64_t count;

    while (read(fd, &count, sizeof(count)) < 0 && errno == EINTR)
        continue;
}

static void let_go(dibs__redis_bell *bell)
{
    fd_close(&bell->ring_fd);
    fd_close(&bell->stop_fd);
    dibsx_free(bell->rings);
    bell->rings = NULL;
}

void dibs__redis_bell_fini(dibs__redis_bell *bell)
{
    if (bell->open) {
        signal_fd(bell->stop_fd);
        if (bell->ears)
            dibs__ears_free(bell->ears);
        else
            pthread_join(bell->thread, NULL);
    }
    let_go(bell);
    dibs__way_fini(&bell->way);
    pthread_cond_destroy(&bell->cond);
    pthread_mutex_destroy(&bell->mutex);
}

/* A ring that finds no room is lost. */
static void put_down(dibs__redis_bell *bell, const dibs__ring *ring)
{
    pthread_mutex_lock(&bell->mutex);
    if (bell->count < DIBS__BELL_RINGS) {
        bell->rings[(bell->first + bell->count) % DIBS__BELL_RINGS] = *ring;
        if (bell->count++ == 0)
            signal_fd(bell->ring_fd);
    }
    pthread_mutex_unlock(&bell->mutex);
}

void dibs__redis_bell_missed(dibs__redis_bell *bell)
{
    put_down(bell, &(dibs__ring){.news = DIBS__NEWS_MISSED});
}

static bool is_message(const redisReply *kind)
{
    return kind && kind->type == REDIS_REPLY_STRING &&
           (strcmp(kind->str, "message") == 0 ||
            strcmp(kind->str, "smessage") == 0);
}

void dibs__redis_bell_heed(dibs__redis_bell *bell, const redisReply *reply)
{
    const redisReply *kind = dibs__reply_item(reply, 0);
    const redisReply *text = dibs__reply_item(reply, 2);
    dibs__ring ring;

    if (is_message(kind) && text && text->type == REDIS_REPLY_STRING &&
        dibs__ring_read(text->str, &ring))
        put_down(bell, &ring);
}

bool dibs__redis_bell_report(dibs__redis_bell *bell, const dibs_error *failure)
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

typedef char channel_name[sizeof(DIBS__BELL_CHANNEL) + DIBS__BELL_ADDRESS];

static void begin_subscribe(const dibs__redis_bell *bell, channel_name name,
                            dibs__words *words)
{
    snprintf(name, sizeof(channel_name), DIBS__BELL_CHANNEL "%s",
             bell->address);
    words->count = 0;
    dibs__words_puts(words, "SUBSCRIBE");
    dibs__words_puts(words, name);
}

dibs_status dibs__redis_bell_subscribe(dibs__redis_bell *bell, dibs__conn *cn,
                                       dibs_error *err)
{
    dibsx_nsec deadline = dibsx_after_ms(dibsx_now(), DIBS__BELL_CONNECT_MS);
    redisReply *reply = NULL;
    channel_name name;
    dibs__words words;
    dibs_status rc;

    begin_subscribe(bell, name, &words);
    rc = dibs__conn_ask(cn, &words, deadline, &reply, err);
    if (rc == DIBS_OK && reply->type == REDIS_REPLY_ERROR)
        rc = dibs__redis_fail(reply->str, err);
    dibs__reply_free(reply);
    return rc;
}

dibs_status
dibs__redis_bell_tell(dibs__redis_bell *bell, dibs__conn *cn, dibs_error *err)
{
    channel_name name;
    dibs__words words;

    begin_subscribe(bell, name, &words);
    return dibs__conn_tell(cn, &words,
                           dibsx_after_ms(dibsx_now(), DIBS__BELL_CONNECT_MS),
                           err);
}

dibs_status dibs__redis_bell_ping(dibs__conn *cn, dibs_error *err)
{
    dibs__words words = {.count = 0};

    dibs__words_puts(&words, "PING");
    return dibs__conn_tell(cn, &words,
                           dibsx_after_ms(dibsx_now(), DIBS__BELL_CONNECT_MS),
                           err);
}

/* Until the connection is lost, or the thread is to end: DIBS_CANCELLED. */
static dibs_status
listen_on(dibs__redis_bell *bell, dibs__conn *cn, dibs_error *err)
{
    bool asked = false;
    dibs_status rc;

    do {
        dibsx_nsec until = dibsx_after_ms(dibsx_now(), DIBS__BELL_QUIET_MS);
        redisReply *reply = NULL;

        rc = dibs__conn_hear(cn, bell->stop_fd, until, &reply, err);
        if (rc == DIBS_OK) {
            dibs__redis_bell_heed(bell, reply);
            asked = false;
        } else if (rc == DIBS_TIMEOUT && !asked) {
            rc = dibs__redis_bell_ping(cn, err);
            asked = true;
        }
        dibs__reply_free(reply);
    } while (rc == DIBS_OK);
    return rc;
}

static void set_conn(dibs__redis_bell *bell, dibs__conn *cn)
{
    pthread_mutex_lock(&bell->mutex);
    bell->cn = cn;
    pthread_mutex_unlock(&bell->mutex);
}

void dibs__redis_bell_drop(dibs__redis_bell *bell)
{
    pthread_mutex_lock(&bell->mutex);
    if (bell->cn)
        dibs__conn_sever(bell->cn);
    pthread_mutex_unlock(&bell->mutex);
}

/* One connection from its beginning to its end. */
static dibs_status attend(dibs__redis_bell *bell, dibs__backoff *bo)
{
    dibsx_nsec deadline = dibsx_after_ms(dibsx_now(), DIBS__BELL_CONNECT_MS);
    dibs_error err = {0};
    dibs__conn *cn = NULL;
    dibs_status rc = dibs__way_open(&bell->way, false, deadline, &cn, &err);
    bool again;

    set_conn(bell, cn);
    if (rc == DIBS_OK)
        rc = dibs__redis_bell_subscribe(bell, cn, &err);
    again = dibs__redis_bell_report(bell, rc == DIBS_OK ? NULL : &err);
    if (rc == DIBS_OK) {
        /* What was rung while nobody listened is lost. */
        if (again)
            dibs__redis_bell_missed(bell);
        dibs__backoff_worked(bo);
        rc = listen_on(bell, cn, &err);
    }
    set_conn(bell, NULL);
    dibs__conn_close(cn);
    return rc;
}

/* True when the thread is to end. */
static bool rest(const dibs__redis_bell *bell, dibsx_nsec until)
{
    struct pollfd stop = {.fd = bell->stop_fd, .events = POLLIN};
    int64_t span_ms = dibsx_wait_ms(until, dibsx_now());

    return poll(&stop, 1, (int)span_ms) > 0;
}

static void *bell_main(void *arg)
{
    dibs__redis_bell *bell = arg;
    dibs__backoff bo;
    uint64_t seed = 0;

    if (!dibsx_random(&seed, sizeof(seed)))
        seed = (uint64_t)dibsx_now();
    dibs__backoff_init(&bo, seed);
    bo.cap = bell->way.sentinel ? DIBS__SENTINEL_PAUSE : 0;
    do {
        if (attend(bell, &bo) == DIBS_CANCELLED)
            break;
        dibs__backoff_failed(&bo, dibsx_now());
    } while (!rest(bell, bo.due_at));
    return NULL;
}

static dibs_status open_failed(int number, dibs_error *err)
{
    return dibsx_fail_at(err, DIBS_UNAVAIL, dibsx_errno_name(number),
                         "no doorbell can be opened, so waits are polled (%s)",
                         dibsx_errno_name(number));
}

/* Whoever is to listen; an errno number, or 0. */
static int start_listening(dibs__redis_bell *bell)
{
    if (!bell->cluster)
        return dibsx_thread_start(&bell->thread, bell_main, bell);
    bell->ears = dibs__ears_new(bell);
    return bell->ears ? 0 : EAGAIN;
}

/* Locks: bell->mutex. */
static dibs_status start(dibs__redis_bell *bell, dibs_error *err)
{
    unsigned char id[(DIBS__BELL_ADDRESS - 1) / 2];
    int failed;

    bell->rings = dibsx_zalloc_n(DIBS__BELL_RINGS, sizeof(*bell->rings));
    if (!bell->rings)
        return dibsx_fail(err, DIBS_NOMEM, "room for rings");
    bell->ring_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    bell->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (bell->ring_fd < 0 || bell->stop_fd < 0 || !dibsx_random(id, sizeof(id)))
        return open_failed(errno, err);
    dibsx_hex(id, sizeof(id), bell->address);
    failed = start_listening(bell);
    return failed ? open_failed(failed, err) : DIBS_OK;
}

/* Waits for the outcome of the first attempt. Locks: bell->mutex, let go while
 * waiting. */
static void await_outcome(dibs__redis_bell *bell, dibsx_nsec deadline)
{
    dibsx_nsec limit = dibsx_after_ms(dibsx_now(), OPEN_MS);

    if (limit > deadline)
        limit = deadline;
    while (!bell->heeded && bell->failure.status == DIBS_OK &&
           dibsx_now() < limit)
        dibsx_cond_wait(&bell->cond, &bell->mutex, limit);
}

dibs_status dibs__redis_bell_open(dibs__redis_bell *bell, dibsx_nsec deadline,
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

void dibs__redis_bell_attend(dibs__redis_bell *bell, int slot)
{
    if (bell->open)
        dibs__ears_attend(bell->ears, slot);
}

const char *dibs__redis_bell_address(dibs__redis_bell *bell)
{
    return bell->open ? bell->address : "-";
}

size_t
dibs__redis_bell_hear(dibs__redis_bell *bell, dibs__ring *rings, size_t max)
{
    size_t count;

    if (!bell->open)
        return 0;
    pthread_mutex_lock(&bell->mutex);
    for (count = 0; count < max && bell->count > 0; count++) {
        rings[count] = bell->rings[bell->first];
        bell->first = (bell->first + 1) % DIBS__BELL_RINGS;
        if (--bell->count == 0)
            quiet_fd(bell->ring_fd);
    }
    pthread_mutex_unlock(&bell->mutex);
    return count;
}
