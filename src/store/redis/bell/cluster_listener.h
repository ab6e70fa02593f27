/* cluster_listener.h - one listener of a doorbell in a cluster, and the state
 * that listeners share (cluster_doorbell.h).
 *
 * A listener is a thread with a connection to one server, the master of its
 * slots. Without slots it sleeps, and has no connection:
 *
 *     sleep --> (slots) connect -> subscribe -> listen --> (lost, idle) --> sleep
 *
 * One of them has the ordinary channel as well and never sleeps. It begins at
 * any server. When it has no slots and hears nothing, it hands the ordinary
 * channel to a listener that has slots: a client that waits long at one master
 * then needs one connection. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_BELL_CLUSTER_LISTENER_H
#define DIBS_STORE_REDIS_BELL_CLUSTER_LISTENER_H

#include "store/redis/bell/cluster_doorbell.h"
#include "store/redis/bell/slot_channels.h"
#include "store/redis/wire/backoff.h"

enum {
    DIBS__CLUSTER_LISTENERS_MAX = 32
}; /* masters beyond these use the ordinary channel */

/* A slot for which no caller asked for this long is unsubscribed from. */
#define DIBS__CLUSTER_LISTENER_IDLE (600 * DIBSX_SEC)

typedef struct dibs__cluster_listener {
    dibs__cluster_doorbell *all;
    pthread_t thread;
    bool started;
    int wake_fd;
    dibs__endpoint
        endpoint; /* written by attend while idle, else by the thread */
    bool busy;    /* connecting or connected */
    bool changed; /* its list of channels has, since it last looked */
    dibsx_nsec
        until; /* it has no channels and disconnects then; 0: it has some */
    dibsx_nsec
        offer_at; /* it offers the ordinary channel to another then; 0: never */
    dibs__backoff bo;
} dibs__cluster_listener;

/* One mutex guards all of it. No thread holds it while it talks to a server. */
struct dibs__cluster_doorbell {
    dibs__redis_doorbell *bell;
    pthread_mutex_t mutex;
    atomic_bool stopping;
    bool refused; /* the servers lack sharded channels, or forbid them */
    bool missed;  /* a connection with subscribed slots was lost */
    _Atomic(dibs__cluster_listener *)
        plain; /* has the ordinary channel, or will subscribe to it */
    dibs__cluster_listener
        *heir;        /* takes it over once it has subscribed; NULL: none */
    bool plain_heard; /* the subscription to the ordinary channel is in force */
    dibs__cluster_listener listeners[DIBS__CLUSTER_LISTENERS_MAX];
    dibs__slot_channels channels;
};

/* The thread; `arg` is the listener. Ends when `stopping` is set, and wake_fd and the
 * stop_fd of the bell are readable. */
void *dibs__cluster_listener_main(void *arg);

/* The functions below are in cluster_replies.c. Handles a reply: */
void dibs__cluster_listener_handle(dibs__cluster_listener *ls,
                                   const redisReply *reply);

/* Its list of channels has changed. Locks: mutex. */
void dibs__cluster_listener_wake(dibs__cluster_listener *ls);

/* Unsubscribes from a slot. Locks: mutex. */
void dibs__cluster_doorbell_give_up(dibs__cluster_doorbell *cd,
                                    dibs__channel *ch);

/* Offers the ordinary channel to a listener with slots, if there is one. */
void dibs__cluster_doorbell_offer(dibs__cluster_doorbell *cd);

/* Unsubscribes from slots for which no caller asked for long. */
void dibs__cluster_doorbell_forget_idle(dibs__cluster_doorbell *cd);

static inline bool
dibs__cluster_listener_is_plain(const dibs__cluster_listener *ls)
{
    return ls->all->plain == ls;
}

/* Its number in the list of channels. */
static inline int
dibs__cluster_listener_number(const dibs__cluster_listener *ls)
{
    return (int)(ls - ls->all->listeners);
}

/* Locks: mutex. */
static inline bool
dibs__cluster_listener_has_channels(const dibs__cluster_listener *ls)
{
    int number = dibs__cluster_listener_number(ls);

    return dibs__slot_channels_any(&ls->all->channels, number) ||
           dibs__ears_any(&ls->all->bell->ears, number);
}

#endif
