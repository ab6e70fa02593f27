/* cluster_replies.c - changes the channels of a doorbell in a cluster when
 * servers answer, and when nothing is heard.
 *
 * Owns nothing. Runs on the threads of the listeners (cluster_listener.c). */
/* SPDX-License-Identifier: MIT */
#include "base/event.h"
#include "store/redis/bell/cluster_listener.h"
#include "store/redis/bell/subscription.h"
#include "store/redis/wire/reply.h"
#include <string.h>

void dibs__cluster_listener_wake(dibs__cluster_listener *ls)
{
    ls->changed = true;
    dibsx_event_set(ls->wake_fd);
}

void dibs__cluster_doorbell_give_up(dibs__cluster_doorbell *cd,
                                    dibs__channel *ch)
{
    dibs__channel_give_up(ch);
    dibs__cluster_listener_wake(&cd->listeners[ch->listener]);
}

/* The channel of a slot at this listener and stage; NULL: none. Locks: mutex. */
static dibs__channel *
find_channel(dibs__cluster_listener *ls, int slot, dibs__stage stage)
{
    dibs__channel *ch = dibs__slot_channels_find(&ls->all->channels, slot);

    return ch && ch->listener == dibs__cluster_listener_number(ls) &&
                   ch->stage == stage
               ? ch
               : NULL;
}

void dibs__cluster_doorbell_offer(dibs__cluster_doorbell *cd)
{
    pthread_mutex_lock(&cd->mutex);
    for (int i = 0; i < DIBS__CLUSTER_LISTENERS_MAX && !cd->heir; i++)
        if (dibs__slot_channels_at(&cd->channels, i, DIBS__HEARD)) {
            cd->heir = &cd->listeners[i];
            dibs__cluster_listener_wake(cd->heir);
        }
    pthread_mutex_unlock(&cd->mutex);
}

/* The ordinary channel has a new listener. The old one stays subscribed for a
 * while, so no further notice is lost. */
static void take_over_plain(dibs__cluster_listener *ls)
{
    dibs__cluster_doorbell *cd = ls->all;
    bool missed = false;

    pthread_mutex_lock(&cd->mutex);
    if (cd->heir == ls) {
        dibs__cluster_listener_wake(cd->plain);
        cd->heir = NULL;
        cd->plain = ls;
        missed = !cd->plain_heard;
        cd->plain_heard = true;
    }
    pthread_mutex_unlock(&cd->mutex);
    if (missed)
        dibs__doorbell_report(&cd->bell->base, NULL);
}

/* Notices are lost if a server publishes them before it notices that the
 * connection is gone. So waiters must ask once the slot is subscribed to
 * again. */
static void note_subscribed(dibs__cluster_listener *ls, int slot)
{
    dibs__cluster_doorbell *cd = ls->all;
    bool missed = false;
    dibs__channel *ch;

    pthread_mutex_lock(&cd->mutex);
    dibs__backoff_worked(&ls->bo);
    ch = find_channel(ls, slot, DIBS__SENT);
    if (ch) {
        ch->stage = DIBS__HEARD;
        missed = cd->missed &&
                 !dibs__slot_channels_at(&cd->channels,
                                         dibs__cluster_listener_number(ls),
                                         DIBS__SENT);
        cd->missed = cd->missed && !missed;
        if (!dibs__cluster_listener_has_channels(cd->plain))
            dibs__cluster_listener_wake(cd->plain);
    }
    pthread_mutex_unlock(&cd->mutex);
    if (missed)
        dibs__doorbell_missed(&cd->bell->base);
}

/* The server unsubscribed, as the slot has moved. Notices come on the ordinary
 * channel meanwhile, so nothing is lost. */
static void note_unsubscribed(dibs__cluster_listener *ls, int slot)
{
    dibs__cluster_doorbell *cd = ls->all;
    dibs__channel *ch;

    pthread_mutex_lock(&cd->mutex);
    ch = find_channel(ls, slot, DIBS__HEARD);
    if (ch) {
        ch->stage = DIBS__UNUSED;
        dibs__cluster_listener_wake(ls);
    }
    pthread_mutex_unlock(&cd->mutex);
    if (ch)
        dibs__cluster_doubt(cd->bell->cluster);
}

static bool is_unknown(const char *error)
{
    return strstr(error, "unknown command") != NULL;
}

/* Whether neither another slot nor another attempt can succeed. */
static bool is_for_good(const char *error)
{
    return strncmp(error, "NOPERM ", 7) == 0 || is_unknown(error);
}

/* The server does not say which command it refused. The next ask for a slot
 * subscribes again; so it is not given up for good because of a topic. */
static void note_refused(dibs__cluster_listener *ls, const char *error)
{
    dibs__cluster_doorbell *cd = ls->all;
    bool topic = dibs__ears_refused(&cd->bell->ears,
                                    dibs__cluster_listener_number(ls), error);
    dibs__endpoint to;
    int slot;

    if (strncmp(error, "MOVED ", 6) == 0 &&
        dibs__redirect_read(error, &ls->endpoint, &slot, &to))
        dibs__cluster_moved(cd->bell->cluster, slot, &to);
    else
        dibs__cluster_doubt(cd->bell->cluster);
    pthread_mutex_lock(&cd->mutex);
    cd->refused = cd->refused || (topic && is_unknown(error));
    if (dibs__slot_channels_drop(&cd->channels,
                                 dibs__cluster_listener_number(ls),
                                 DIBS__SENT)) {
        cd->refused = cd->refused || (!topic && is_for_good(error));
        dibs__cluster_listener_wake(ls);
    }
    for (int i = 0; cd->refused && i < DIBS__CLUSTER_LISTENERS_MAX; i++)
        if (dibs__slot_channels_drop(&cd->channels, i, DIBS__UNUSED))
            dibs__cluster_listener_wake(&cd->listeners[i]);
    pthread_mutex_unlock(&cd->mutex);
}

/* The server unsubscribed from a topic, as its slot has moved. */
static void note_deaf(dibs__cluster_listener *ls, const char *channel)
{
    dibs__cluster_doorbell *cd = ls->all;

    if (!dibs__ears_unsubscribed(&cd->bell->ears,
                                 dibs__cluster_listener_number(ls), channel))
        return;
    dibs__cluster_doubt(cd->bell->cluster);
    dibs__doorbell_missed(&cd->bell->base);
}

static void note_hears(dibs__cluster_listener *ls, const char *channel)
{
    dibs__cluster_doorbell *cd = ls->all;

    pthread_mutex_lock(&cd->mutex);
    dibs__backoff_worked(&ls->bo);
    pthread_mutex_unlock(&cd->mutex);
    dibs__ears_subscribed(&cd->bell->ears, dibs__cluster_listener_number(ls),
                          channel);
}

static bool is_text(const redisReply *reply)
{
    return reply && reply->type == REDIS_REPLY_STRING;
}

void dibs__cluster_listener_handle(dibs__cluster_listener *ls,
                                   const redisReply *reply)
{
    const redisReply *kind = dibs__reply_item(reply, 0);
    const redisReply *name = dibs__reply_item(reply, 1);

    if (reply->type == REDIS_REPLY_ERROR)
        note_refused(ls, reply->str);
    else if (!is_text(kind) || !is_text(name))
        return;
    else if (strcmp(kind->str, "subscribe") == 0)
        take_over_plain(ls);
    else if (!dibs__subscription_is_bell(name->str) &&
             strcmp(kind->str, "ssubscribe") == 0)
        note_hears(ls, name->str);
    else if (!dibs__subscription_is_bell(name->str) &&
             strcmp(kind->str, "sunsubscribe") == 0)
        note_deaf(ls, name->str);
    else if (strcmp(kind->str, "ssubscribe") == 0)
        note_subscribed(ls, dibs__slot_of(name->str, name->len));
    else if (strcmp(kind->str, "sunsubscribe") == 0)
        note_unsubscribed(ls, dibs__slot_of(name->str, name->len));
    else
        dibs__subscription_handle(&ls->all->bell->base, reply);
}

/* Nothing was heard for a while. */
void dibs__cluster_doorbell_forget_idle(dibs__cluster_doorbell *cd)
{
    dibsx_nsec now = dibsx_now();
    dibs__channel *ch;

    pthread_mutex_lock(&cd->mutex);
    while ((ch = dibs__slot_channels_surplus(&cd->channels, now,
                                             DIBS__CLUSTER_LISTENER_IDLE)) !=
           NULL)
        dibs__cluster_doorbell_give_up(cd, ch);
    pthread_mutex_unlock(&cd->mutex);
}
