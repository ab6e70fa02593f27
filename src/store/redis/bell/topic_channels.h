/* topic_channels.h - the channels of topics that a bell subscribes to, and by which
 * of its listeners; one server has a single listener, number 0. Pure.
 *
 *     (wanted) --> WANTED -> SENT --> HEARD --> UNWANTED --> (gone)
 *                              \--> REFUSED --> (gone, once the caller knows)
 *
 *   (1) HEARD: the server has confirmed the subscription, and the connection was
 *       not seen lost since.
 *   (2) Replies of a server to subscriptions come in their order: a refusal is
 *       for the channel that was sent first. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_BELL_TOPIC_CHANNELS_H
#define DIBS_STORE_REDIS_BELL_TOPIC_CHANNELS_H

#include "base/clock.h"
#include <dibs/types.h>

enum { DIBS__TOPIC_CHANNELS_MAX = 4096 };

typedef enum dibs__topic_stage {
    DIBS__TOPIC_WANTED, /* to be subscribed to */
    DIBS__TOPIC_SENT,   /* the reply has not come yet */
    DIBS__TOPIC_HEARD,
    DIBS__TOPIC_UNWANTED, /* to be unsubscribed from */
    DIBS__TOPIC_REFUSED
} dibs__topic_stage;

typedef struct dibs__topic_channel {
    char *name;
    int listener;
    dibs__topic_stage stage;
    uint64_t order; /* of those that were sent */
} dibs__topic_channel;

/* Zeroed storage is an empty list; end with fini. */
typedef struct dibs__topic_channels {
    dibs__topic_channel *list;
    size_t count;
    size_t room;
    uint64_t sent; /* so far */
} dibs__topic_channels;

void dibs__topic_channels_fini(dibs__topic_channels *chs);

/* A pointer into the list is good until the list changes. NULL: none; of add: no
 * room. */
dibs__topic_channel *
dibs__topic_channels_find(dibs__topic_channels *chs, const char *name);
dibs__topic_channel *dibs__topic_channels_add(dibs__topic_channels *chs,
                                              const char *name, int listener);

/* One of a listener at a stage, of those that were sent the first. */
dibs__topic_channel *
dibs__topic_channels_at(dibs__topic_channels *chs, int listener,
                        dibs__topic_stage stage);
bool dibs__topic_channels_any(const dibs__topic_channels *chs, int listener);

void dibs__topic_channel_sent(dibs__topic_channels *chs,
                              dibs__topic_channel *ch);
void dibs__topic_channels_remove(dibs__topic_channels *chs,
                                 dibs__topic_channel *ch);

/* Removes all of a listener; true when it heard some. */
bool dibs__topic_channels_drop(dibs__topic_channels *chs, int listener);

#endif
