/* ears.c - how a doorbell is listened to in a cluster: which ear listens to which
 * slot, and what becomes of that when servers answer.
 *
 * Owns the ears and the list of slots that are listened to. Any thread may attend;
 * the rest runs on the threads of the ears (ear.c). A server that cannot be reached
 * holds up its own ear and no other. */
/* SPDX-License-Identifier: MIT */
#include "store/redis/ears.h"
#include "base/alloc.h"
#include "base/event.h"
#include "base/rand.h"
#include "base/thread.h"
#include "store/redis/ear.h"
#include "store/redis/reply.h"
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* A slot that nobody asked for for this long is not listened to any more. */
#define IDLE (600 * DIBSX_SEC)

/* Locks: mutex. */
static void wake(dibs__ear *er)
{
    er->changed = true;
    dibsx_event_set(er->wake_fd);
}

/* The channel of a slot at this ear and stage; NULL: none. Locks: mutex. */
static dibs__channel *find(dibs__ear *er, int slot, dibs__stage stage)
{
    dibs__channel *ch = dibs__channels_find(&er->all->channels, slot);

    return ch && ch->ear == dibs__ear_number(er) && ch->stage == stage ? ch
                                                                       : NULL;
}

/* Locks: mutex. */
static void give_up(dibs__ears *es, dibs__channel *ch)
{
    dibs__channel_give_up(ch);
    wake(&es->ears[ch->ear]);
}

/* Locks: mutex. */
static bool start(dibs__ear *er)
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
    er->started = dibsx_thread_start(&er->thread, dibs__ear_main, er) == 0;
    if (!er->started)
        close(er->wake_fd);
    return er->started;
}

/* The ear at a place, or one that has nothing to do. NULL: none can be had, or the
 * server was just tried in vain. Locks: mutex. */
static dibs__ear *
ear_at(dibs__ears *es, const dibs__place *place, dibsx_nsec now)
{
    dibs__ear *idle = NULL;

    for (size_t i = 0; i < DIBS__EARS_MAX; i++) {
        dibs__ear *er = &es->ears[i];
        bool rests = now < er->bo.due_at;

        if (er->started && dibs__place_is(&er->place, place))
            return rests ? NULL : er;
        if (!idle && !dibs__ear_is_plain(er) && !er->busy && !rests &&
            !dibs__ear_has_channels(er))
            idle = er;
    }
    if (!idle || !start(idle))
        return NULL;
    idle->place = *place;
    dibs__backoff_worked(&idle->bo);
    return idle;
}

/* Locks: mutex. */
static void want(dibs__ears *es, dibs__ear *er, int slot, dibsx_nsec now)
{
    dibs__channel *surplus = dibs__channels_surplus(&es->channels, now, IDLE);

    if (surplus)
        give_up(es, surplus);
    if (dibs__channels_add(&es->channels, dibs__ear_number(er), slot, now))
        wake(er);
}

void dibs__ears_attend(dibs__ears *es, int slot)
{
    dibsx_nsec now = dibsx_now();
    dibs__place home;
    dibs__channel *ch;
    dibs__ear *er;

    if (!dibs__cluster_home(es->bell->cluster, slot, &home))
        return;
    pthread_mutex_lock(&es->mutex);
    ch = dibs__channels_find(&es->channels, slot);
    if (es->refused) {
        /* There is no other way than the ordinary one. */
    } else if (ch && dibs__place_is(&es->ears[ch->ear].place, &home)) {
        ch->used_at = now;
    } else {
        if (ch)
            give_up(es, ch);
        er = ear_at(es, &home, now);
        if (er)
            want(es, er, slot, now);
    }
    pthread_mutex_unlock(&es->mutex);
}

void dibs__ears_offer(dibs__ears *es)
{
    pthread_mutex_lock(&es->mutex);
    for (int i = 0; i < DIBS__EARS_MAX && !es->heir; i++)
        if (dibs__channels_at(&es->channels, i, DIBS__HEARD)) {
            es->heir = &es->ears[i];
            wake(es->heir);
        }
    pthread_mutex_unlock(&es->mutex);
}

/* The ordinary channel has a new ear. The old one hears on for a while, so that
 * nothing is lost unless it had been lost before. */
static void inherited(dibs__ear *er)
{
    dibs__ears *es = er->all;
    bool missed = false;

    pthread_mutex_lock(&es->mutex);
    if (es->heir == er) {
        wake(es->plain);
        es->heir = NULL;
        es->plain = er;
        missed = !es->plain_heard;
        es->plain_heard = true;
    }
    pthread_mutex_unlock(&es->mutex);
    if (missed)
        dibs__listener_report(&es->bell->listener, NULL);
}

/* What was rung while a connection was lost and the server did not know of it is
 * missed for good, so that who waits asks once it is listened to again. */
static void subscribed(dibs__ear *er, int slot)
{
    dibs__ears *es = er->all;
    bool missed = false;
    dibs__channel *ch;

    pthread_mutex_lock(&es->mutex);
    dibs__backoff_worked(&er->bo);
    ch = find(er, slot, DIBS__SENT);
    if (ch) {
        ch->stage = DIBS__HEARD;
        missed =
            es->missed &&
            !dibs__channels_at(&es->channels, dibs__ear_number(er), DIBS__SENT);
        es->missed = es->missed && !missed;
        if (!dibs__ear_has_channels(es->plain))
            wake(es->plain);
    }
    pthread_mutex_unlock(&es->mutex);
    if (missed)
        dibs__listener_missed(&es->bell->listener);
}

/* By the server: the slot has been moved. Who is served next is rung the ordinary
 * way, so nothing is lost. */
static void unsubscribed(dibs__ear *er, int slot)
{
    dibs__ears *es = er->all;
    dibs__channel *ch;

    pthread_mutex_lock(&es->mutex);
    ch = find(er, slot, DIBS__HEARD);
    if (ch) {
        ch->stage = DIBS__UNUSED;
        wake(er);
    }
    pthread_mutex_unlock(&es->mutex);
    if (ch)
        dibs__cluster_doubt(es->bell->cluster);
}

/* Whether it is of no use to try another slot or to try again. */
static bool is_for_good(const char *error)
{
    return strncmp(error, "NOPERM ", 7) == 0 ||
           strstr(error, "unknown command") != NULL;
}

/* Which of the commands was refused is not said; who asks again for a slot has it
 * subscribed to again. */
static void refused(dibs__ear *er, const char *error)
{
    dibs__ears *es = er->all;
    dibs__place to;
    int slot;

    if (strncmp(error, "MOVED ", 6) == 0 &&
        dibs__redirect_read(error, &er->place, &slot, &to))
        dibs__cluster_moved(es->bell->cluster, slot, &to);
    else
        dibs__cluster_doubt(es->bell->cluster);
    pthread_mutex_lock(&es->mutex);
    if (dibs__channels_drop(&es->channels, dibs__ear_number(er), DIBS__SENT)) {
        es->refused = es->refused || is_for_good(error);
        wake(er);
    }
    for (int i = 0; es->refused && i < DIBS__EARS_MAX; i++)
        if (dibs__channels_drop(&es->channels, i, DIBS__UNUSED))
            wake(&es->ears[i]);
    pthread_mutex_unlock(&es->mutex);
}

static bool is_text(const redisReply *reply)
{
    return reply && reply->type == REDIS_REPLY_STRING;
}

void dibs__ear_take(dibs__ear *er, const redisReply *reply)
{
    const redisReply *kind = dibs__reply_item(reply, 0);
    const redisReply *name = dibs__reply_item(reply, 1);

    if (reply->type == REDIS_REPLY_ERROR)
        refused(er, reply->str);
    else if (!is_text(kind) || !is_text(name))
        return;
    else if (strcmp(kind->str, "subscribe") == 0)
        inherited(er);
    else if (strcmp(kind->str, "ssubscribe") == 0)
        subscribed(er, dibs__slot_of(name->str, name->len));
    else if (strcmp(kind->str, "sunsubscribe") == 0)
        unsubscribed(er, dibs__slot_of(name->str, name->len));
    else
        dibs__redis_bell_heed(er->all->bell, reply);
}

/* Nothing was heard for a while. */
void dibs__ears_forget_idle(dibs__ears *es)
{
    dibsx_nsec now = dibsx_now();
    dibs__channel *ch;

    pthread_mutex_lock(&es->mutex);
    while ((ch = dibs__channels_surplus(&es->channels, now, IDLE)) != NULL)
        give_up(es, ch);
    pthread_mutex_unlock(&es->mutex);
}

dibs__ears *dibs__ears_new(dibs__redis_bell *bell)
{
    dibs__ears *es = dibsx_zalloc(sizeof(*es));
    bool started;

    if (!es)
        return NULL;
    es->bell = bell;
    atomic_init(&es->stopping, false);
    atomic_init(&es->plain, es->ears);
    pthread_mutex_init(&es->mutex, NULL);
    for (size_t i = 0; i < DIBS__EARS_MAX; i++)
        es->ears[i].all = es;
    pthread_mutex_lock(&es->mutex);
    started = start(&es->ears[0]);
    pthread_mutex_unlock(&es->mutex);
    if (started)
        return es;
    pthread_mutex_destroy(&es->mutex);
    dibsx_free(es);
    return NULL;
}

void dibs__ears_free(dibs__ears *es)
{
    es->stopping = true;
    for (size_t i = 0; i < DIBS__EARS_MAX; i++)
        if (es->ears[i].started)
            dibsx_event_set(es->ears[i].wake_fd);
    for (size_t i = 0; i < DIBS__EARS_MAX; i++)
        if (es->ears[i].started)
            pthread_join(es->ears[i].thread, NULL);
    /* Not before: an ear may wake another. */
    for (size_t i = 0; i < DIBS__EARS_MAX; i++)
        if (es->ears[i].started)
            close(es->ears[i].wake_fd);
    pthread_mutex_destroy(&es->mutex);
    dibsx_free(es);
}
