/* cluster_replies.c - what becomes of the channels of a doorbell in a cluster when
 * servers answer, and when nothing is heard.
 *
 * Owns nothing. Runs on the threads of the ears (cluster_listener.c). */
/* SPDX-License-Identifier: MIT */
#include "base/event.h"
#include "store/redis/bell/cluster_listener.h"
#include "store/redis/bell/subscription.h"
#include "store/redis/wire/reply.h"
#include <string.h>

void dibs__cluster_listener_wake(dibs__cluster_listener *er)
{
    er->changed = true;
    dibsx_event_set(er->wake_fd);
}

void dibs__cluster_doorbell_give_up(dibs__cluster_doorbell *es,
                                    dibs__channel *ch)
{
    dibs__channel_give_up(ch);
    dibs__cluster_listener_wake(&es->ears[ch->ear]);
}

/* The channel of a slot at this ear and stage; NULL: none. Locks: mutex. */
static dibs__channel *
find_channel(dibs__cluster_listener *er, int slot, dibs__stage stage)
{
    dibs__channel *ch = dibs__slot_channels_find(&er->all->channels, slot);

    return ch && ch->ear == dibs__cluster_listener_number(er) &&
                   ch->stage == stage
               ? ch
               : NULL;
}

void dibs__cluster_doorbell_offer(dibs__cluster_doorbell *es)
{
    pthread_mutex_lock(&es->mutex);
    for (int i = 0; i < DIBS__CLUSTER_LISTENERS_MAX && !es->heir; i++)
        if (dibs__slot_channels_at(&es->channels, i, DIBS__HEARD)) {
            es->heir = &es->ears[i];
            dibs__cluster_listener_wake(es->heir);
        }
    pthread_mutex_unlock(&es->mutex);
}

/* The ordinary channel has a new ear. The old one hears on for a while, so that
 * nothing is lost unless it had been lost before. */
static void take_over_plain(dibs__cluster_listener *er)
{
    dibs__cluster_doorbell *es = er->all;
    bool missed = false;

    pthread_mutex_lock(&es->mutex);
    if (es->heir == er) {
        dibs__cluster_listener_wake(es->plain);
        es->heir = NULL;
        es->plain = er;
        missed = !es->plain_heard;
        es->plain_heard = true;
    }
    pthread_mutex_unlock(&es->mutex);
    if (missed)
        dibs__doorbell_report(&es->bell->listener, NULL);
}

/* What was rung while a connection was lost and the server did not know of it is
 * missed for good, so that who waits asks once it is listened to again. */
static void note_subscribed(dibs__cluster_listener *er, int slot)
{
    dibs__cluster_doorbell *es = er->all;
    bool missed = false;
    dibs__channel *ch;

    pthread_mutex_lock(&es->mutex);
    dibs__backoff_worked(&er->bo);
    ch = find_channel(er, slot, DIBS__SENT);
    if (ch) {
        ch->stage = DIBS__HEARD;
        missed = es->missed &&
                 !dibs__slot_channels_at(&es->channels,
                                         dibs__cluster_listener_number(er),
                                         DIBS__SENT);
        es->missed = es->missed && !missed;
        if (!dibs__cluster_listener_has_channels(es->plain))
            dibs__cluster_listener_wake(es->plain);
    }
    pthread_mutex_unlock(&es->mutex);
    if (missed)
        dibs__doorbell_missed(&es->bell->listener);
}

/* By the server: the slot has been moved. Who is served next is rung the ordinary
 * way, so nothing is lost. */
static void note_unsubscribed(dibs__cluster_listener *er, int slot)
{
    dibs__cluster_doorbell *es = er->all;
    dibs__channel *ch;

    pthread_mutex_lock(&es->mutex);
    ch = find_channel(er, slot, DIBS__HEARD);
    if (ch) {
        ch->stage = DIBS__UNUSED;
        dibs__cluster_listener_wake(er);
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
static void note_refused(dibs__cluster_listener *er, const char *error)
{
    dibs__cluster_doorbell *es = er->all;
    dibs__endpoint to;
    int slot;

    if (strncmp(error, "MOVED ", 6) == 0 &&
        dibs__redirect_read(error, &er->place, &slot, &to))
        dibs__cluster_moved(es->bell->cluster, slot, &to);
    else
        dibs__cluster_doubt(es->bell->cluster);
    pthread_mutex_lock(&es->mutex);
    if (dibs__slot_channels_drop(&es->channels,
                                 dibs__cluster_listener_number(er),
                                 DIBS__SENT)) {
        es->refused = es->refused || is_for_good(error);
        dibs__cluster_listener_wake(er);
    }
    for (int i = 0; es->refused && i < DIBS__CLUSTER_LISTENERS_MAX; i++)
        if (dibs__slot_channels_drop(&es->channels, i, DIBS__UNUSED))
            dibs__cluster_listener_wake(&es->ears[i]);
    pthread_mutex_unlock(&es->mutex);
}

static bool is_text(const redisReply *reply)
{
    return reply && reply->type == REDIS_REPLY_STRING;
}

void dibs__cluster_listener_take(dibs__cluster_listener *er,
                                 const redisReply *reply)
{
    const redisReply *kind = dibs__reply_item(reply, 0);
    const redisReply *name = dibs__reply_item(reply, 1);

    if (reply->type == REDIS_REPLY_ERROR)
        note_refused(er, reply->str);
    else if (!is_text(kind) || !is_text(name))
        return;
    else if (strcmp(kind->str, "subscribe") == 0)
        take_over_plain(er);
    else if (strcmp(kind->str, "ssubscribe") == 0)
        note_subscribed(er, dibs__slot_of(name->str, name->len));
    else if (strcmp(kind->str, "sunsubscribe") == 0)
        note_unsubscribed(er, dibs__slot_of(name->str, name->len));
    else
        dibs__subscription_heed(&er->all->bell->listener, reply);
}

/* Nothing was heard for a while. */
void dibs__cluster_doorbell_forget_idle(dibs__cluster_doorbell *es)
{
    dibsx_nsec now = dibsx_now();
    dibs__channel *ch;

    pthread_mutex_lock(&es->mutex);
    while ((ch = dibs__slot_channels_surplus(&es->channels, now,
                                             DIBS__EARS_IDLE)) != NULL)
        dibs__cluster_doorbell_give_up(es, ch);
    pthread_mutex_unlock(&es->mutex);
}
