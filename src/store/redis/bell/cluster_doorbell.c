/* cluster_doorbell.c - how a doorbell is listened to in a cluster: which ear listens to which
 * slot. What becomes of that when servers answer is in cluster_replies.c.
 *
 * Owns the ears and the list of slots that are listened to. Any thread may attend.
 * A server that cannot be reached holds up its own ear and no other. */
/* SPDX-License-Identifier: MIT */
#include "store/redis/bell/cluster_doorbell.h"
#include "base/alloc.h"
#include "base/event.h"
#include "base/rand.h"
#include "base/thread.h"
#include "store/redis/bell/cluster_listener.h"
#include <sys/eventfd.h>
#include <unistd.h>

/* Locks: mutex. */
static bool start_listener(dibs__cluster_listener *er)
{
    uint64_t seed = 0;

    if (er->started)
        return true;
    if (!dibsx_random(&seed, sizeof(seed)))
        seed = (uint64_t)dibsx_now();
    dibs__backoff_init(&er->bo, seed);
    er->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (er->wake_fd < 0)
        return false;
    er->started =
        dibsx_thread_start(&er->thread, dibs__cluster_listener_main, er) == 0;
    if (!er->started)
        close(er->wake_fd);
    return er->started;
}

/* The ear at a place, or one that has nothing to do. NULL: none can be had, or the
 * server was just tried in vain. Locks: mutex. */
static dibs__cluster_listener *
ear_at(dibs__cluster_doorbell *es, const dibs__endpoint *place, dibsx_nsec now)
{
    dibs__cluster_listener *idle = NULL;

    for (size_t i = 0; i < DIBS__CLUSTER_LISTENERS_MAX; i++) {
        dibs__cluster_listener *er = &es->ears[i];
        bool rests = now < er->bo.due_at;

        if (er->started && dibs__endpoint_is(&er->place, place))
            return rests ? NULL : er;
        if (!idle && !dibs__cluster_listener_is_plain(er) && !er->busy &&
            !rests && !dibs__cluster_listener_has_channels(er))
            idle = er;
    }
    if (!idle || !start_listener(idle))
        return NULL;
    idle->place = *place;
    dibs__backoff_worked(&idle->bo);
    return idle;
}

/* Locks: mutex. */
static void want_slot(dibs__cluster_doorbell *es, dibs__cluster_listener *er,
                      int slot, dibsx_nsec now)
{
    dibs__channel *surplus =
        dibs__slot_channels_surplus(&es->channels, now, DIBS__EARS_IDLE);

    if (surplus)
        dibs__cluster_doorbell_give_up(es, surplus);
    if (dibs__slot_channels_add(&es->channels,
                                dibs__cluster_listener_number(er), slot, now))
        dibs__cluster_listener_wake(er);
}

void dibs__cluster_doorbell_attend(dibs__cluster_doorbell *es, int slot)
{
    dibsx_nsec now = dibsx_now();
    dibs__endpoint home;
    dibs__channel *ch;
    dibs__cluster_listener *er;

    if (!dibs__cluster_home(es->bell->cluster, slot, &home))
        return;
    pthread_mutex_lock(&es->mutex);
    ch = dibs__slot_channels_find(&es->channels, slot);
    if (es->refused) {
        /* There is no other way than the ordinary one. */
    } else if (ch && dibs__endpoint_is(&es->ears[ch->ear].place, &home)) {
        ch->used_at = now;
    } else {
        if (ch)
            dibs__cluster_doorbell_give_up(es, ch);
        er = ear_at(es, &home, now);
        if (er)
            want_slot(es, er, slot, now);
    }
    pthread_mutex_unlock(&es->mutex);
}

dibs__cluster_doorbell *dibs__cluster_doorbell_new(dibs__redis_doorbell *bell)
{
    dibs__cluster_doorbell *es = dibsx_zalloc(sizeof(*es));
    bool started;

    if (!es)
        return NULL;
    es->bell = bell;
    atomic_init(&es->stopping, false);
    atomic_init(&es->plain, es->ears);
    pthread_mutex_init(&es->mutex, NULL);
    for (size_t i = 0; i < DIBS__CLUSTER_LISTENERS_MAX; i++)
        es->ears[i].all = es;
    pthread_mutex_lock(&es->mutex);
    started = start_listener(&es->ears[0]);
    pthread_mutex_unlock(&es->mutex);
    if (started)
        return es;
    pthread_mutex_destroy(&es->mutex);
    dibsx_free(es);
    return NULL;
}

void dibs__cluster_doorbell_free(dibs__cluster_doorbell *es)
{
    es->stopping = true;
    for (size_t i = 0; i < DIBS__CLUSTER_LISTENERS_MAX; i++)
        if (es->ears[i].started)
            dibsx_event_set(es->ears[i].wake_fd);
    for (size_t i = 0; i < DIBS__CLUSTER_LISTENERS_MAX; i++)
        if (es->ears[i].started)
            pthread_join(es->ears[i].thread, NULL);
    /* Not before: an ear may wake another. */
    for (size_t i = 0; i < DIBS__CLUSTER_LISTENERS_MAX; i++)
        if (es->ears[i].started)
            close(es->ears[i].wake_fd);
    pthread_mutex_destroy(&es->mutex);
    dibsx_free(es);
}
