/* client.h - the inside of a client, shared by the files of the core.
 *
 * One mutex guards every lock handle of the client, the deadlines and the list
 * of renewals that are due. No store step and no callback runs while it is held.
 * Lock order: the client's mutex is the only lock of the core; the locks of a
 * store come after it and are never held when it is locked.
 *
 * Owns the store, the fallback store, and the state that the threads of keeper.h,
 * async.h and worker.h work on. Any thread may call. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_CLIENT_H
#define DIBS_CORE_CLIENT_H

#include "base/clock.h"
#include "base/fail.h"
#include "base/heap.h"
#include "base/host.h"
#include "base/lag.h"
#include "base/rand.h"
#include "base/table.h"
#include "core/fork.h"
#include "core/notices.h"
#include "core/stats/counters.h"
#include "core/timer.h"
#include "store/store.h"
#include <dibs/client.h>
#include <dibs/lock.h>
#include <pthread.h>
#include <stdatomic.h>

enum { DIBS__OWNERS_AHEAD = 32 };

/* The name of a thread, or what a caller calls itself, with its NUL. */
enum { DIBS__IDENTITY_MAX = 32 };

/* The background threads; see keeper.h. */
typedef struct dibs__keeper {
    void *(*body)(void *client); /* of the keeper's thread */
    pthread_t thread;
    pthread_t renewer;
    atomic_bool running;
    dibsx_lag lag; /* of its thread */
    bool renewing; /* the renewer has been started */
    bool stopping;
    bool bell_failed;      /* the doorbell could not be opened; said once */
    int wake_fd;           /* eventfd: look again at what to poll */
    int timer_fd;          /* timerfd: the earliest deadline */
    dibs__store *bells[2]; /* whose doorbells are heard: store, fallback */
    int bell_fds[2];       /* ... -1 until someone waits */
    bool listening[2];     /* ... and it need not be opened again */
    dibsx_nsec armed_at;   /* what the kernel's timer is set to */
    dibsx_heap timers;
    size_t timer_count;        /* there is room for */
    dibs__timer_fn *lease_due; /* called for the deadline of a lease */
    struct dibs_lock *lost;    /* whose loss is to be announced, in order */
    struct dibs_lock **lost_end;
    struct dibs_lock *due; /* renewals for the renewer, oldest first */
    struct dibs_lock *due_last;
    pthread_cond_t due_cond;
} dibs__keeper;

struct dibs_client {
    dibs__store *st;
    dibs_away on_unavailable;
    char *local_url; /* NULL: the default place */
    uint64_t fork_number;
    char *url;    /* redacted */
    char *prefix; /* "" when there is none */
    char *label;
    char host[DIBSX_HOST_SIZE];
    pid_t pid;
    int64_t ttl_ms;
    int64_t renew_every_ms; /* 0: a part of the ttl */
    int64_t timeout_ms;
    uint32_t replicas; /* that must have a lease, where a lock does not say */
    dibs_log_fn *log;
    void *log_arg;
    atomic_int log_level;      /* dibs_log_level */
    atomic_bool closed;        /* no call begins any more */
    atomic_uint skips_printed; /* statuses that with_lock.c printed, as bits */
    atomic_bool reached;       /* there was a first contact; see reach.h */
    bool lazy;                 /* dibs_open() made none, as its caller asked */
    dibs__stats stats;

    pthread_mutex_t mutex; /* guards all that follows, and the locks */
    dibs__store *fallback; /* used while the store is away; NULL: not yet */
    bool away;             /* the log knows that the store is; see away.h */
    dibsx_nsec failing_at; /* since when the store fails; 0: it does not */
    dibsx_nsec silent_at;  /* an ask of then has no answer yet; 0: none */
    dibs__keeper keeper;
    dibs__notice_handler *notice_handlers; /* the first registered first */
    dibs__notice_handler lock_notices;     /* finds its locks by owner: */
    dibsx_table by_owner;                  /* see handle.h */
    dibsx_table by_name;                   /* see reentry.h */
    dibsx_table partings;                  /* by name; see parting.h */
    uint64_t parted_late; /* partings that were sent a second time */
    dibsx_table traits;   /* of the handles; see traits.h */

    /* Asynchronous calls; see async.h. */
    struct dibs__async *async;  /* NULL until needed */
    struct dibs_lock *acquires; /* acquires under way, blocking ones as well */
    pthread_cond_t over; /* a call, an acquire, a callback, a renewal or a
                            conversion has ended; or a pause is to end */

    size_t handle_count; /* of locks and watches that are not freed */
    size_t calls;        /* of locks and sets under way; see handle.h */
    bool closing; /* no acquire begins any more, and those under way end */
    bool ended;   /* closed, and all has stopped: the last handle frees it */
    dibsx_prng jitter;
    /* Owners of leases to come, drawn together, as each draw is a system call. A
     * child cannot use them: the client is its parent's. */
    unsigned char owner_bits[DIBS__OWNERS_AHEAD][(DIBS_OWNER_SIZE - 1) / 2];
    unsigned int owner_bits_left;
    struct dibs__name_table *name_table; /* NULL until needed */
    struct dibs__sharing *shared_stats;  /* NULL until needed */
    bool share_stats;                    /* dibs_client_opts.share_stats */
    struct dibs__shared_events *shared_events; /* NULL until needed */
    bool share_events;               /* dibs_client_opts.share_events */
    struct dibs__worker *worker;     /* NULL until needed */
    struct dibs__attached *attached; /* the last first; see attach.h */
};

/* DIBS_FORKED in a child process, DIBS_INVALID when the client is NULL or closed,
 * else DIBS_OK. Every public call begins so. */
static inline dibs_status
dibs__client_usable(const dibs_client *cl, dibs_error *err)
{
    if (!cl)
        return dibsx_fail(err, DIBS_INVALID, "the client is NULL");
    if (dibs__forked(cl->fork_number))
        return dibsx_fail(err, DIBS_FORKED,
                          "the client was opened by the parent process; open "
                          "one in this process");
    if (atomic_load(&cl->closed))
        return dibsx_fail(err, DIBS_INVALID, "the client is closed");
    return DIBS_OK;
}

/* When a store step that starts now must end at the latest. */
static inline dibsx_nsec
dibs__client_deadline(const dibs_client *cl, dibsx_nsec now)
{
    return dibsx_after_ms(now, cl->timeout_ms);
}

/* Frees a client whose threads have ended and whose locks are gone. */
void dibs__client_free(dibs_client *cl);

#endif
