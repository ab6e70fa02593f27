/* ears.c - the subscriptions of a bell to topics; see ears.h. */
/* SPDX-License-Identifier: MIT */
#include "store/redis/bell/ears.h"
#include "base/cond.h"
#include "base/fail.h"
#include "store/redis/bell/subscription.h"
#include <string.h>

enum { AWAIT_MS = 1000 };

void dibs__ears_init(dibs__ears *ears)
{
    memset(ears, 0, sizeof(*ears));
    pthread_mutex_init(&ears->mutex, NULL);
    (void)dibsx_cond_init(&ears->changed);
}

void dibs__ears_fini(dibs__ears *ears)
{
    dibs__topic_channels_fini(&ears->channels);
    pthread_cond_destroy(&ears->changed);
    pthread_mutex_destroy(&ears->mutex);
}

bool dibs__ears_want(dibs__ears *ears, const char *name, int listener)
{
    dibs__topic_channel *ch;

    pthread_mutex_lock(&ears->mutex);
    ch = dibs__topic_channels_find(&ears->channels, name);
    if (!ch)
        ch = dibs__topic_channels_add(&ears->channels, name, listener);
    else if (ch->listener != listener || ch->stage == DIBS__TOPIC_UNWANTED ||
             ch->stage == DIBS__TOPIC_REFUSED) {
        ch->listener = listener;
        ch->stage = DIBS__TOPIC_WANTED;
    }
    pthread_mutex_unlock(&ears->mutex);
    return ch != NULL;
}

int dibs__ears_unwant(dibs__ears *ears, const char *name)
{
    dibs__topic_channel *ch;
    int listener = -1;

    pthread_mutex_lock(&ears->mutex);
    ch = dibs__topic_channels_find(&ears->channels, name);
    if (ch && (ch->stage == DIBS__TOPIC_SENT || ch->stage == DIBS__TOPIC_HEARD))
        ch->stage = DIBS__TOPIC_UNWANTED;
    if (ch)
        listener = ch->listener;
    if (ch && ch->stage != DIBS__TOPIC_UNWANTED)
        dibs__topic_channels_remove(&ears->channels, ch);
    pthread_cond_broadcast(&ears->changed);
    pthread_mutex_unlock(&ears->mutex);
    return listener;
}

/* Locks: mutex. */
static dibs_status
report_outcome(dibs__ears *ears, dibs__topic_channel *ch, dibs_error *err)
{
    if (ch && ch->stage == DIBS__TOPIC_HEARD)
        return DIBS_OK;
    if (ch && ch->stage == DIBS__TOPIC_REFUSED) {
        dibs__topic_channels_remove(&ears->channels, ch);
        return dibsx_fail(err, ears->refusal.status, "%s",
                          ears->refusal.message);
    }
    return dibsx_fail(err, DIBS_UNAVAIL,
                      "the server has not subscribed to the topic in time");
}

dibs_status dibs__ears_await(dibs__ears *ears, const char *name,
                             dibsx_nsec deadline, dibs_error *err)
{
    dibsx_nsec limit = dibsx_after_ms(dibsx_now(), AWAIT_MS);
    dibs__topic_channel *ch;
    dibs_status rc;

    if (limit > deadline)
        limit = deadline;
    pthread_mutex_lock(&ears->mutex);
    while ((ch = dibs__topic_channels_find(&ears->channels, name)) != NULL &&
           ch->stage != DIBS__TOPIC_HEARD && ch->stage != DIBS__TOPIC_REFUSED &&
           dibsx_now() < limit)
        dibsx_cond_wait(&ears->changed, &ears->mutex, limit);
    rc = report_outcome(ears, ch, err);
    pthread_mutex_unlock(&ears->mutex);
    return rc;
}

/* Adds a command for a channel of the listener that is at a stage; false when there
 * is none. The name is copied, as the list may change. */
static bool next_command(dibs__ears *ears, int listener, dibs__topic_stage from,
                         char name[DIBS__CHANNEL_MAX])
{
    dibs__topic_channel *ch;

    pthread_mutex_lock(&ears->mutex);
    ch = dibs__topic_channels_at(&ears->channels, listener, from);
    if (ch) {
        memcpy(name, ch->name, strlen(ch->name) + 1);
        if (from == DIBS__TOPIC_WANTED)
            dibs__topic_channel_sent(&ears->channels, ch);
        else
            dibs__topic_channels_remove(&ears->channels, ch);
    }
    pthread_mutex_unlock(&ears->mutex);
    return ch != NULL;
}

static dibs_status send_command(dibs__conn *cn, const char *command,
                                const char *name, dibs_error *err)
{
    dibs__words words = {.count = 0};

    dibs__words_puts(&words, command);
    dibs__words_puts(&words, name);
    return dibs__conn_tell(cn, &words,
                           dibsx_after_ms(dibsx_now(), DIBS__BELL_CONNECT_MS),
                           err);
}

dibs_status dibs__ears_catch_up(dibs__ears *ears, int listener, bool sharded,
                                dibs__conn *cn, dibs_error *err)
{
    char name[DIBS__CHANNEL_MAX];
    dibs_status rc = DIBS_OK;

    while (rc == DIBS_OK &&
           next_command(ears, listener, DIBS__TOPIC_UNWANTED, name))
        rc = send_command(cn, sharded ? "SUNSUBSCRIBE" : "UNSUBSCRIBE", name,
                          err);
    while (rc == DIBS_OK &&
           next_command(ears, listener, DIBS__TOPIC_WANTED, name))
        rc = send_command(cn, sharded ? "SSUBSCRIBE" : "SUBSCRIBE", name, err);
    return rc;
}

/* The channel of a name at a listener and a stage; NULL: none. Locks: mutex. */
static dibs__topic_channel *
find_channel(dibs__ears *ears, int listener, const char *name,
             dibs__topic_stage stage)
{
    dibs__topic_channel *ch = dibs__topic_channels_find(&ears->channels, name);

    return ch && ch->listener == listener && ch->stage == stage ? ch : NULL;
}

void dibs__ears_subscribed(dibs__ears *ears, int listener, const char *name)
{
    dibs__topic_channel *ch;

    pthread_mutex_lock(&ears->mutex);
    ch = find_channel(ears, listener, name, DIBS__TOPIC_SENT);
    if (ch)
        ch->stage = DIBS__TOPIC_HEARD;
    pthread_cond_broadcast(&ears->changed);
    pthread_mutex_unlock(&ears->mutex);
}

/* The reply to a command of ours finds the channel gone, or wanted again. */
bool dibs__ears_unsubscribed(dibs__ears *ears, int listener, const char *name)
{
    dibs__topic_channel *ch;

    pthread_mutex_lock(&ears->mutex);
    ch = find_channel(ears, listener, name, DIBS__TOPIC_HEARD);
    if (ch)
        dibs__topic_channels_remove(&ears->channels, ch);
    pthread_cond_broadcast(&ears->changed);
    pthread_mutex_unlock(&ears->mutex);
    return ch != NULL;
}

/* In a cluster the command may have been about a slot of the bell: then a channel is
 * wanted once more for nothing. */
bool dibs__ears_refused(dibs__ears *ears, int listener, const char *error)
{
    bool denied = strncmp(error, "NOPERM", 6) == 0 ||
                  strstr(error, "unknown command") != NULL;
    dibs__topic_channel *ch;

    pthread_mutex_lock(&ears->mutex);
    ch = dibs__topic_channels_at(&ears->channels, listener, DIBS__TOPIC_SENT);
    if (ch) {
        ch->stage = DIBS__TOPIC_REFUSED;
        (void)dibsx_fail(&ears->refusal, denied ? DIBS_DENIED : DIBS_UNAVAIL,
                         "the server does not subscribe to the topic: %.200s",
                         error);
    }
    pthread_cond_broadcast(&ears->changed);
    pthread_mutex_unlock(&ears->mutex);
    return ch != NULL;
}

bool dibs__ears_drop(dibs__ears *ears, int listener)
{
    bool heard;

    pthread_mutex_lock(&ears->mutex);
    heard = dibs__topic_channels_drop(&ears->channels, listener);
    pthread_cond_broadcast(&ears->changed);
    pthread_mutex_unlock(&ears->mutex);
    return heard;
}

bool dibs__ears_any(dibs__ears *ears, int listener)
{
    bool any;

    pthread_mutex_lock(&ears->mutex);
    any = dibs__topic_channels_any(&ears->channels, listener);
    pthread_mutex_unlock(&ears->mutex);
    return any;
}
