/* pipeline_parts.h - the state of a pipeline, for the files that drive it:
 *
 *     pipeline_post.c > pipeline.c > pipeline_receive.c > pipeline_send.c
 *
 * pipeline.c has the invariants. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_PIPE_PIPELINE_PARTS_H
#define DIBS_STORE_REDIS_PIPE_PIPELINE_PARTS_H

#include "base/buf.h"
#include "base/park.h"
#include "store/redis/pipe/connect.h"
#include "store/redis/pipe/pending.h"
#include "store/redis/pipe/pipeline.h"
#include "store/redis/wire/backoff.h"
#include "store/redis/wire/conn.h"
#include <pthread.h>

enum {
    DIBS__PIPELINE_CHUNK = 64 << 10, /* bytes given to the kernel at once */
    DIBS__PIPELINE_REPLIES_MAX = 64, /* replies handed out at once */
    DIBS__PIPELINE_ASLEEP_MAX = 512, /* threads woken after the next send */
    DIBS__PIPELINE_FEW = 4,          /* in flight: a follower sends at once */
    DIBS__PIPELINE_MANY = 16         /* queued: a follower sends */
};

/* Posts to a waiter. */
enum { DIBS__PIPELINE_DONE = 1, DIBS__PIPELINE_LEAD = 2 };

struct dibs__pipeline {
    dibs__connect connect; /* the leader's */

    pthread_mutex_t mutex;
    pthread_cond_t written; /* `writing` has ended on a broken connection */
    bool led;
    bool writing;
    bool broken;
    bool demoted; /* the server has shown that it is a replica */
    dibs__conn *cn;
    uint64_t cn_number; /* of the latest connection, from 1 on */
    dibsx_fifo queue;
    dibsx_fifo flight;
    bool text_due;      /* the server lacks the script of the batch */
    uint64_t out_total; /* bytes that were put into `out` on this connection */
    uint64_t given;
    dibsx_nsec used_at;
    dibs_error why;     /* the reason why it broke, or could not be made */
    dibs_status away;   /* the status until the next attempt is due */
    dibsx_nsec lost_at; /* since when there is no connection; 0: there is one */
    dibs__backoff backoff;

    /* For the thread that is `writing`; when none is, for the holder of the
     * mutex. */
    dibsx_buf out;
    size_t out_at; /* bytes before it are given */

    /* The leader's. */
    dibsx_park *asleep[DIBS__PIPELINE_ASLEEP_MAX];
    size_t asleep_count;
};

/* A command has ended. Returns the park to wake, if it was the last that a sleeping
 * thread waits for. With the last of its waiter its memory may be gone. Locks:
 * pl->mutex. */
static inline dibsx_park *dibs__pending_end(dibs__pending *pd)
{
    dibs__waiter *wt = pd->waiter;

    pd->over = true;
    if (!wt)
        return NULL;
    return --wt->left == 0 && dibsx_park_post(&wt->park, DIBS__PIPELINE_DONE)
               ? &wt->park
               : NULL;
}

/* Whether bytes of `out` are left. */
static inline bool dibs__pipeline_has_unsent(const dibs__pipeline *pl)
{
    return pl->out_at < pl->out.len;
}

/* Whether a follower sends. If not, the leader does after its next receive:
 * enough is in flight. Locks: pl->mutex. */
static inline bool dibs__pipeline_is_worth_sending(const dibs__pipeline *pl)
{
    return pl->flight.count < DIBS__PIPELINE_FEW ||
           pl->queue.count >= DIBS__PIPELINE_MANY;
}

/* Ends a command with a status and the reason in `why`. Its memory may be gone
 * then. Locks: pl->mutex. */
void dibs__pipeline_fail_pending(dibs__pending *pd, dibs_status rc,
                                 const dibs_error *why);

/* Ends the use of the connection; the leader closes it. Locks: pl->mutex. */
void dibs__pipeline_break_off(dibs__pipeline *pl, const dibs_error *why);

/* Sends queued commands, if no other thread does. A follower, which is `wt`, waits
 * for room if it has commands; the leader (NULL) must not, as it has to receive.
 * Locks: pl->mutex, which it may drop. */
void dibs__pipeline_flush(dibs__pipeline *pl, dibs__waiter *wt);

/* Closes the connection, which is broken. Commands of which nothing was sent are queued
 * again for the next one; the others are DIBS_UNKNOWN. Runs on the leader. Locks:
 * pl->mutex. */
void dibs__pipeline_hang_up(dibs__pipeline *pl);

/* Receives once and hands out the replies; a deadline of 0: only what has come. Sends newly queued commands before
 * it wakes a thread, so that the server has work while the threads start. Runs
 * on the leader. Locks: pl->mutex, which it drops. */
void dibs__pipeline_receive(dibs__pipeline *pl, dibsx_nsec deadline);

/* The other side may have closed a connection that was idle for a while. It is
 * better to see that now than after a command was sent. Locks: pl->mutex. */
void dibs__pipeline_look_at_idle(dibs__pipeline *pl, dibsx_nsec now);

/* Passes the role of the leader on. If no thread waits, what was posted is sent first.
 * Returns the park to wake once the mutex is free. Locks: pl->mutex, which it may
 * drop. */
dibsx_park *dibs__pipeline_pass_lead(dibs__pipeline *pl);

/* Ends the lead of the calling thread, and a connection that is broken. Locks: pl->mutex,
 * which it drops and does not take again. */
void dibs__pipeline_step_down(dibs__pipeline *pl);

/* Leads, or follows the leader, until the commands of this thread are over. Locks:
 * pl->mutex, which it drops and does not take again. */
void dibs__pipeline_drive(dibs__pipeline *pl, dibs__waiter *wt);

#endif
