/* cluster_doorbell.c - a doorbell in a cluster: which listener subscribes to
 * which slot. cluster_replies.c handles the replies of the servers.
 *
 * Owns the listeners and the list of slots that they subscribe to. Any thread
 * may attend. A server that does not answer delays its own listener and no
 * other. */
/* SPDX-License-Identifier: MIT */
#include "store/redis/bell/cluster_doorbell.h"
#include "base/alloc.h"
#include "base/event.h"
#include "base/fail.h"
#include "base/rand.h"
#include "base/thread.h"
#include "store/redis/bell/cluster_listener.h"
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Locks: mutex. */
static bool start_listener(dibs__cluster_listener *ls)
{
    uint64_t seed = 0;

    if (ls->started)
        return true;
    if (!dibsx_random(&seed, sizeof(seed)))
        seed = (uint64_t)dibsx_now();
    dibs__backoff_init(&ls->bo, seed);
    ls->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (ls->wake_fd < 0)
        return false;
    ls->started =
        dibsx_thread_start(&ls->thread, dibs__cluster_listener_main, ls) == 0;
    if (!ls->started)
        close(ls->wake_fd);
    return ls->started;
}

/* The listener at an endpoint, or an idle one. NULL: no listener is free, or
 * the last attempt to reach the server failed just now. Locks: mutex. */
static dibs__cluster_listener *
listener_at(dibs__cluster_doorbell *cd, const dibs__endpoint *endpoint,
            dibsx_nsec now)
{
    dibs__cluster_listener *idle = NULL;

    for (size_t i = 0; i < DIBS__CLUSTER_LISTENERS_MAX; i++) {
        dibs__cluster_listener *ls = &cd->listeners[i];
        bool rests = now < ls->bo.due_at;

        if (ls->started && dibs__endpoint_is(&ls->endpoint, endpoint))
            return rests ? NULL : ls;
        if (!idle && !dibs__cluster_listener_is_plain(ls) && !ls->busy &&
            !rests && !dibs__cluster_listener_has_channels(ls))
            idle = ls;
    }
    if (!idle || !start_listener(idle))
        return NULL;
    idle->endpoint = *endpoint;
    dibs__backoff_worked(&idle->bo);
    return idle;
}

/* Locks: mutex. */
static void want_slot(dibs__cluster_doorbell *cd, dibs__cluster_listener *ls,
                      int slot, dibsx_nsec now)
{
    dibs__channel *surplus =
        dibs__slot_channels_surplus(&cd->channels, now,
                                    DIBS__CLUSTER_LISTENER_IDLE);

    if (surplus)
        dibs__cluster_doorbell_give_up(cd, surplus);
    if (dibs__slot_channels_add(&cd->channels,
                                dibs__cluster_listener_number(ls), slot, now))
        dibs__cluster_listener_wake(ls);
}

void dibs__cluster_doorbell_attend(dibs__cluster_doorbell *cd, int slot)
{
    dibsx_nsec now = dibsx_now();
    dibs__endpoint home;
    dibs__channel *ch;
    dibs__cluster_listener *ls;

    if (!dibs__cluster_home(cd->bell->cluster, slot, &home))
        return;
    pthread_mutex_lock(&cd->mutex);
    ch = dibs__slot_channels_find(&cd->channels, slot);
    if (cd->refused) {
        /* Only the ordinary channel is left. */
    } else if (ch && dibs__endpoint_is(&cd->listeners[ch->listener].endpoint,
                                       &home)) {
        ch->used_at = now;
    } else {
        if (ch)
            dibs__cluster_doorbell_give_up(cd, ch);
        ls = listener_at(cd, &home, now);
        if (ls)
            want_slot(cd, ls, slot, now);
    }
    pthread_mutex_unlock(&cd->mutex);
}

static void wake_listener(dibs__cluster_doorbell *cd, int listener)
{
    pthread_mutex_lock(&cd->mutex);
    dibs__cluster_listener_wake(&cd->listeners[listener]);
    pthread_mutex_unlock(&cd->mutex);
}

/* Has the listener at the master of the slot subscribe. */
static dibs_status want_topic(dibs__cluster_doorbell *cd, const char *channel,
                              const dibs__endpoint *home, dibs_error *err)
{
    dibs__cluster_listener *ls = NULL;
    bool wanted = false, refused;

    pthread_mutex_lock(&cd->mutex);
    refused = cd->refused;
    if (!refused)
        ls = listener_at(cd, home, dibsx_now());
    if (ls)
        wanted = dibs__ears_want(&cd->bell->ears, channel,
                                 dibs__cluster_listener_number(ls));
    if (wanted)
        dibs__cluster_listener_wake(ls);
    pthread_mutex_unlock(&cd->mutex);
    if (refused)
        return dibsx_fail(err, DIBS_DENIED,
                          "the servers have no sharded channels, or forbid "
                          "them; use Redis 7.0 or later, with the privileges "
                          "of docs/redis-acl.md");
    return wanted ? DIBS_OK
                  : dibsx_fail(err, DIBS_UNAVAIL,
                               "no listener is free at the master of the slot, "
                               "or the last attempt to reach it failed");
}

dibs_status
dibs__cluster_doorbell_ear(dibs__cluster_doorbell *cd, const char *channel,
                           bool on, dibsx_nsec deadline, dibs_error *err)
{
    int slot = dibs__slot_of(channel, strlen(channel));
    dibs_status rc = DIBS_OK;
    dibs__endpoint home;

    if (!on) {
        int listener = dibs__ears_unwant(&cd->bell->ears, channel);

        if (listener >= 0)
            wake_listener(cd, listener);
        return DIBS_OK;
    }
    if (!dibs__cluster_home(cd->bell->cluster, slot, &home)) {
        rc = dibs__cluster_learn(cd->bell->cluster, deadline, err);
        if (rc == DIBS_OK &&
            !dibs__cluster_home(cd->bell->cluster, slot, &home))
            rc = dibsx_fail(err, DIBS_UNAVAIL, "no server has slot %d", slot);
    }
    if (rc == DIBS_OK)
        rc = want_topic(cd, channel, &home, err);
    return rc == DIBS_OK
               ? dibs__ears_await(&cd->bell->ears, channel, deadline, err)
               : rc;
}

dibs__cluster_doorbell *dibs__cluster_doorbell_new(dibs__redis_doorbell *bell)
{
    dibs__cluster_doorbell *cd = dibsx_zalloc(sizeof(*cd));
    bool started;

    if (!cd)
        return NULL;
    cd->bell = bell;
    atomic_init(&cd->stopping, false);
    atomic_init(&cd->plain, cd->listeners);
    pthread_mutex_init(&cd->mutex, NULL);
    for (size_t i = 0; i < DIBS__CLUSTER_LISTENERS_MAX; i++)
        cd->listeners[i].all = cd;
    pthread_mutex_lock(&cd->mutex);
    started = start_listener(&cd->listeners[0]);
    pthread_mutex_unlock(&cd->mutex);
    if (started)
        return cd;
    pthread_mutex_destroy(&cd->mutex);
    dibsx_free(cd);
    return NULL;
}

void dibs__cluster_doorbell_free(dibs__cluster_doorbell *cd)
{
    cd->stopping = true;
    for (size_t i = 0; i < DIBS__CLUSTER_LISTENERS_MAX; i++)
        if (cd->listeners[i].started)
            dibsx_event_set(cd->listeners[i].wake_fd);
    for (size_t i = 0; i < DIBS__CLUSTER_LISTENERS_MAX; i++)
        if (cd->listeners[i].started)
            pthread_join(cd->listeners[i].thread, NULL);
    /* Not before: a listener may wake another. */
    for (size_t i = 0; i < DIBS__CLUSTER_LISTENERS_MAX; i++)
        if (cd->listeners[i].started)
            close(cd->listeners[i].wake_fd);
    pthread_mutex_destroy(&cd->mutex);
    dibsx_free(cd);
}
