/* cluster_doorbell.h - a doorbell in a cluster.
 *
 * The servers pass a message on an ordinary channel to every server of the
 * cluster; a message on a sharded channel (Redis 7.0) stays with the servers of
 * its slot. So a bell subscribes to its ordinary channel at one server, and for
 * each slot in which it waits to a sharded channel at the master of that slot:
 *
 *     dibs:bell:ADDRESS          dibs:bell:{TAG}:ADDRESS
 *
 * A script publishes to the second, and to the first when the second has no
 * subscriber. Therefore nothing waits for a subscription or depends on one:
 * while a slot has no subscription, its notices come on the ordinary channel.
 * If a subscription ends, for whatever reason, the next ask for a name in that
 * slot subscribes again; waiters ask once a second.
 *
 * Topics (ears.h) have sharded channels of their own, at the same listeners. They
 * have no second channel: a handle that does not hear one looks by itself. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_BELL_CLUSTER_DOORBELL_H
#define DIBS_STORE_REDIS_BELL_CLUSTER_DOORBELL_H

#include "store/redis/bell/doorbell.h"

typedef struct dibs__cluster_doorbell dibs__cluster_doorbell;

/* Begins to listen. The bell, with its address, its fds and its cluster, is
 * borrowed until dibs__cluster_doorbell_free(). NULL: a thread cannot be
 * started, or memory is short. */
dibs__cluster_doorbell *dibs__cluster_doorbell_new(dibs__redis_doorbell *bell);

/* Waits for the threads, which end once the stop_fd of the bell is readable. */
void dibs__cluster_doorbell_free(dibs__cluster_doorbell *cd);

/* A caller asks for a name in this slot and may get notices about it. Does not
 * block. Any thread. */
void dibs__cluster_doorbell_attend(dibs__cluster_doorbell *cd, int slot);

/* As dibs__redis_doorbell_ear(), at the master of the channel's slot. */
DIBS_MUST_CHECK dibs_status
dibs__cluster_doorbell_ear(dibs__cluster_doorbell *cd, const char *channel,
                           bool on, dibsx_nsec deadline, dibs_error *err);

#endif
