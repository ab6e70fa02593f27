/* cluster_listener.h - one listener of a doorbell in a cluster, and what it shares with the others
 * (cluster_doorbell.h).
 *
 * A listener is a thread with a connection to one server, the master of its slots. It
 * sleeps without a connection when it has none:
 *
 *     sleep --> (slots) connect -> subscribe -> listen --> (lost, idle) --> sleep
 *
 * One of them has the ordinary channel as well and never sleeps. It begins at
 * whatever server; when it has no slots and hears nothing, it leaves that to one who
 * has some, so that one connection is enough for who waits long at one master. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_BELL_CLUSTER_LISTENER_H
#define DIBS_STORE_REDIS_BELL_CLUSTER_LISTENER_H

#include "store/redis/bell/cluster_doorbell.h"
#include "store/redis/bell/slot_channels.h"
#include "store/redis/wire/backoff.h"

enum {
    DIBS__CLUSTER_LISTENERS_MAX = 32
}; /* masters beyond these are rung the ordinary way */

/* A slot that nobody asked for for this long is not listened to any more. */
#define DIBS__CLUSTER_LISTENER_IDLE (600 * DIBSX_SEC)

typedef struct dibs__cluster_listener {
    dibs__cluster_doorbell *all;
    pthread_t thread;
    bool started;
    int wake_fd;
    dibs__endpoint
        endpoint;     /* written by attend while idle, else by the thread */
    bool busy;        /* connecting or connected */
    bool changed;     /* what it is to hear has, since that was looked at */
    dibsx_nsec until; /* it hears on for nothing; 0: for something */
    dibsx_nsec
        offer_at; /* the ordinary channel is offered to another; 0: not */
    dibs__backoff bo;
} dibs__cluster_listener;

/* One mutex guards all of it; it is not held while a server is spoken to. */
struct dibs__cluster_doorbell {
    dibs__redis_doorbell *bell;
    pthread_mutex_t mutex;
    atomic_bool stopping;
    bool refused; /* the servers have no sharded channels, or not for us */
    bool missed;  /* a connection was lost on which slots were listened to */
    _Atomic(dibs__cluster_listener *)
        plain; /* has the ordinary channel, or is to get it */
    dibs__cluster_listener
        *heir;        /* subscribes to it as well, to have it; NULL: none */
    bool plain_heard; /* the ordinary channel is listened to */
    dibs__cluster_listener listeners[DIBS__CLUSTER_LISTENERS_MAX];
    dibs__slot_channels channels;
};

/* The thread; `arg` is the listener. Ends when `stopping` is set, and wake_fd and the
 * stop_fd of the bell are readable. */
void *dibs__cluster_listener_main(void *arg);

/* The rest of it is in cluster_replies.c. It has heard a reply: */
void dibs__cluster_listener_handle(dibs__cluster_listener *ls,
                                   const redisReply *reply);

/* What it is to hear has changed. Locks: mutex. */
void dibs__cluster_listener_wake(dibs__cluster_listener *ls);

/* A slot is not to be listened to any more. Locks: mutex. */
void dibs__cluster_doorbell_give_up(dibs__cluster_doorbell *cd,
                                    dibs__channel *ch);

/* Offers the ordinary channel to a listener with slots, if there is one. */
void dibs__cluster_doorbell_offer(dibs__cluster_doorbell *cd);

/* Gives up slots that nobody asked for for long. */
void dibs__cluster_doorbell_forget_idle(dibs__cluster_doorbell *cd);

static inline bool
dibs__cluster_listener_is_plain(const dibs__cluster_listener *ls)
{
    return ls->all->plain == ls;
}

/* What the list of channels calls it. */
static inline int
dibs__cluster_listener_number(const dibs__cluster_listener *ls)
{
    return (int)(ls - ls->all->listeners);
}

/* Locks: mutex. */
static inline bool
dibs__cluster_listener_has_channels(const dibs__cluster_listener *ls)
{
    return dibs__slot_channels_any(&ls->all->channels,
                                   dibs__cluster_listener_number(ls));
}

#endif
