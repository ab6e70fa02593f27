/* cluster_doorbell.h - how a doorbell is listened to in a cluster.
 *
 * What is published to an ordinary channel goes to every server of the cluster;
 * what is published to a sharded one (Redis 7.0) stays with those of its slot. So
 * a bell is subscribed to its ordinary channel at one server, and at the master of
 * each slot for which somebody waits to a sharded channel of that slot:
 *
 *     dibs:bell:ADDRESS          dibs:bell:{TAG}:ADDRESS
 *
 * A script rings the second, and the first when nobody hears that. Therefore
 * nothing waits for a subscription or depends on one: a slot that cannot be
 * listened to, or not yet, or no longer, is rung the ordinary way. A slot whose
 * subscription ends, whatever the reason, is subscribed to anew by who next asks
 * for a name in it; waiters do that once a second. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_BELL_CLUSTER_DOORBELL_H
#define DIBS_STORE_REDIS_BELL_CLUSTER_DOORBELL_H

#include "store/redis/bell/doorbell.h"

typedef struct dibs__cluster_doorbell dibs__cluster_doorbell;

/* Begins to listen. The bell, with its address, its fds and its cluster, is borrowed
 * until dibs__cluster_doorbell_free(). NULL: no thread or no memory can be had. */
dibs__cluster_doorbell *dibs__cluster_doorbell_new(dibs__redis_doorbell *bell);

/* Waits for the threads, which the stop_fd of the bell has told to end. */
void dibs__cluster_doorbell_free(dibs__cluster_doorbell *cd);

/* A name in this slot is asked for and may be rung for. Does not block. Any
 * thread. */
void dibs__cluster_doorbell_attend(dibs__cluster_doorbell *cd, int slot);

#endif
