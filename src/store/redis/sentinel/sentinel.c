/* sentinel.c - the sentinels, which know the primary.
 *
 * Owns the watch and the attempts to connect. Any thread; find.c asks.
 *
 * As soon as a sentinel names another primary, an attempt to connect to the old
 * one is aborted: that may be a machine that does not answer at all. */
/* SPDX-License-Identifier: MIT */
#include "store/redis/sentinel/sentinel.h"
#include "base/alloc.h"
#include "base/cond.h"
#include "base/fail.h"
#include "store/redis/sentinel/find.h"
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* The limit of one attempt to connect to the primary. */
enum { ATTEMPT_MS = 3000 };

uint64_t dibs__sentinel_moves(const dibs__sentinel *sn)
{
    return atomic_load(&sn->moves);
}

dibs__sentinel *dibs__sentinel_new(const dibs__redis_conf *conf,
                                   dibs__moved_fn *moved, void *arg)
{
    dibs__sentinel *sn = dibsx_zalloc(sizeof(*sn));

    if (!sn)
        return NULL;
    sn->conf = conf;
    sn->moved = moved;
    sn->moved_arg = arg;
    sn->watch.stop_fd = -1;
    sn->patience_ms = DIBS__SENTINEL_PATIENCE_MS;
    pthread_mutex_init(&sn->mutex, NULL);
    (void)dibsx_cond_init(&sn->asked);
    for (size_t i = 0; i < conf->seed_count; i++) {
        dibs__endpoint *endpoint = &sn->list[sn->count++];

        snprintf(endpoint->host, sizeof(endpoint->host), "%s",
                 conf->seeds[i].name);
        endpoint->port = conf->seeds[i].port;
    }
    return sn;
}

void dibs__sentinel_stop(dibs__sentinel *sn)
{
    if (!sn)
        return;
    pthread_mutex_lock(&sn->mutex);
    sn->stopped = true;
    pthread_mutex_unlock(&sn->mutex);
    dibs__sentinel_watch_stop(&sn->watch);
}

void dibs__sentinel_free(dibs__sentinel *sn)
{
    if (!sn)
        return;
    dibs__sentinel_stop(sn);
    dibs__conn_close(sn->cn);
    pthread_cond_destroy(&sn->asked);
    pthread_mutex_destroy(&sn->mutex);
    dibsx_free(sn);
}

/* The watch runs from the first connection on. */
static void start_watch(dibs__sentinel *sn)
{
    pthread_mutex_lock(&sn->mutex);
    if (!sn->stopped && sn->watch.stop_fd < 0)
        (void)dibs__sentinel_watch_start(&sn->watch, sn);
    pthread_mutex_unlock(&sn->mutex);
}

static void doubt_primary(dibs__sentinel *sn)
{
    pthread_mutex_lock(&sn->mutex);
    sn->doubted = true;
    pthread_mutex_unlock(&sn->mutex);
}

/* False when another server has become the primary since this one was found: a
 * notice of a move before this call did not reach this attempt. */
static bool begin_attempt(dibs__sentinel *sn, const dibs__endpoint *primary,
                          dibs__attempt *at)
{
    bool current;

    at->abort_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_lock(&sn->mutex);
    at->next = sn->attempts;
    sn->attempts = at;
    at->moves = atomic_load(&sn->moves);
    current = dibs__endpoint_is(&sn->primary, primary);
    pthread_mutex_unlock(&sn->mutex);
    return current;
}

static void end_attempt(dibs__sentinel *sn, dibs__attempt *at)
{
    dibs__attempt **next = &sn->attempts;

    pthread_mutex_lock(&sn->mutex);
    while (*next != at)
        next = &(*next)->next;
    *next = at->next;
    pthread_mutex_unlock(&sn->mutex);
    if (at->abort_fd >= 0)
        close(at->abort_fd);
}

dibs_status
dibs__sentinel_connect(dibs__sentinel *sn, bool demoted, dibsx_nsec deadline,
                       uint64_t *moves, dibs__conn **out, dibs_error *err)
{
    dibs__endpoint endpoint = {.port = 0};
    dibsx_nsec limit;
    dibs_status rc;
    dibs__attempt at;

    *out = NULL;
    if (demoted)
        dibs__sentinel_tell_moved(sn);
    rc = dibs__sentinel_find(sn, deadline, &endpoint, err);
    if (rc != DIBS_OK)
        return rc;
    limit = dibsx_after_ms(dibsx_now(), ATTEMPT_MS);
    if (begin_attempt(sn, &endpoint, &at))
        rc = dibs__conn_open_at(sn->conf, &endpoint, at.abort_fd,
                                limit < deadline ? limit : deadline, out, err);
    else
        rc = dibsx_fail(err, DIBS_UNAVAIL, "another has become the primary");
    *moves = at.moves;
    end_attempt(sn, &at);
    if (rc == DIBS_OK)
        start_watch(sn);
    else
        doubt_primary(sn);
    return rc;
}
