/* slot_channels.h - the slots of a cluster that a bell subscribes to, and by
 * which of its listeners (cluster_doorbell.h). Pure.
 *
 * The list is bounded: past DIBS__CHANNELS_HIGH the channel that was not used
 * the longest makes room. A listener is a number. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_BELL_SLOT_CHANNELS_H
#define DIBS_STORE_REDIS_BELL_SLOT_CHANNELS_H

#include "base/clock.h"

enum { DIBS__CHANNELS_MAX = 256, DIBS__CHANNELS_HIGH = 224 };

typedef enum dibs__stage {
    DIBS__UNUSED,
    DIBS__WANTED,  /* to be subscribed to */
    DIBS__SENT,    /* the reply has not come yet */
    DIBS__HEARD,   /* subscribed to */
    DIBS__UNWANTED /* to be unsubscribed from */
} dibs__stage;

typedef struct dibs__channel {
    int listener;
    int slot;
    dibs__stage stage;
    dibsx_nsec used_at; /* a caller asked for a name in the slot */
} dibs__channel;

/* Zeroed storage is an empty list. */
typedef struct dibs__slot_channels {
    dibs__channel list[DIBS__CHANNELS_MAX];
} dibs__slot_channels;

/* The channel of a slot that is subscribed to or soon will be; NULL: none. */
dibs__channel *dibs__slot_channels_find(dibs__slot_channels *chs, int slot);

/* One of a listener at some stage; NULL: none. And whether it has any at all. */
dibs__channel *dibs__slot_channels_at(dibs__slot_channels *chs, int listener,
                                      dibs__stage stage);
bool dibs__slot_channels_any(const dibs__slot_channels *chs, int listener);

/* Adds one that is wanted; false when there is no room. */
bool dibs__slot_channels_add(dibs__slot_channels *chs, int listener, int slot,
                             dibsx_nsec now);

/* The one that was not used the longest, if there are many or `now` is `idle`
 * after its use; NULL: none. */
dibs__channel *dibs__slot_channels_surplus(dibs__slot_channels *chs,
                                           dibsx_nsec now, dibsx_nsec idle);

/* Gives the channel up. It is unused once the server was asked to unsubscribe,
 * if that is necessary. */
void dibs__channel_give_up(dibs__channel *ch);

/* Drops all of a listener that are at a stage, or at any (DIBS__UNUSED): true when there
 * were some. */
bool dibs__slot_channels_drop(dibs__slot_channels *chs, int listener,
                              dibs__stage stage);

#endif
