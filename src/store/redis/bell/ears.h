/* ears.h - the subscriptions of a bell to topics (store/topic.h), at one server or
 * at the masters of a cluster.
 *
 * Callers want a channel and wait for it; the thread of a listener subscribes and
 * passes the replies on. A connection that is lost loses its channels: the handle
 * hears DIBS__NOTICE_MISSED, and its listeners ask again.
 *
 * Owns the list of channels. Any thread; its mutex comes after those of the bell. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_BELL_EARS_H
#define DIBS_STORE_REDIS_BELL_EARS_H

#include "store/redis/bell/topic_channels.h"
#include "store/redis/wire/conn.h"
#include <pthread.h>

typedef struct dibs__ears {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    dibs__topic_channels channels;
    dibs_error refusal; /* of the last that was refused */
} dibs__ears;

void dibs__ears_init(dibs__ears *ears);
void dibs__ears_fini(dibs__ears *ears);

/* Wants a channel at a listener, which must be woken then. False when there is no
 * room. */
bool dibs__ears_want(dibs__ears *ears, const char *name, int listener);

/* Wants it no more. The listener to wake, -1 for none. */
int dibs__ears_unwant(dibs__ears *ears, const char *name);

/* Waits until the channel is subscribed to, a second at most. DIBS_UNAVAIL: not by
 * then, or the connection was lost. DIBS_DENIED: the server refuses it. */
DIBS_MUST_CHECK dibs_status dibs__ears_await(dibs__ears *ears, const char *name,
                                             dibsx_nsec deadline,
                                             dibs_error *err);

/* For the thread of a listener, as all below. Subscribes and unsubscribes as
 * callers want it; in a cluster to sharded channels. */
DIBS_MUST_CHECK dibs_status dibs__ears_catch_up(dibs__ears *ears, int listener,
                                                bool sharded, dibs__conn *cn,
                                                dibs_error *err);

/* The server has subscribed to a channel; it has unsubscribed from one by itself,
 * which is true when it was heard; it has refused a command, which is true when a
 * topic waited for the reply. */
void dibs__ears_subscribed(dibs__ears *ears, int listener, const char *name);
bool dibs__ears_unsubscribed(dibs__ears *ears, int listener, const char *name);
bool dibs__ears_refused(dibs__ears *ears, int listener, const char *error);

/* The connection is lost: true when it had channels that were heard. */
bool dibs__ears_drop(dibs__ears *ears, int listener);

bool dibs__ears_any(dibs__ears *ears, int listener);

#endif
