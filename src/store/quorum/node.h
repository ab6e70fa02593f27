/* node.h - one node of a quorum: a store, and the threads that ask it.
 *
 * A node has two queues of jobs, one for renewals alone. Each has a thread, which
 * does the jobs in order. So a round asks all nodes at once, and a slow node delays
 * only callers that need its vote. An asker may also send its request itself (post.h).
 * If it has gone before the answer came, the request is late: the next asker takes the
 * answer, or the node's thread does after a while.
 *
 * Locks: qm->mutex for everything here that does not say otherwise. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_QUORUM_NODE_H
#define DIBS_STORE_QUORUM_NODE_H

#include "base/clock.h"
#include "base/fifo.h"
#include "store/quorum/ballot.h"
#include "store/quorum_steps.h"
#include "store/request_kind.h"
#include <pthread.h>

struct dibs__quorum;
struct dibs__round;
struct dibs__job;

/* The functions of a job, called by the node's thread in this order. Locks:
 * qm->mutex, but for run. */
typedef struct dibs__job_ops {
    void (*begin)(struct dibs__job *job);
    void (*run)(struct dibs__job *job);
    void (*end)(struct dibs__job *job);

    /* For a job that is late: whether its answer is in or never will be, and its end
     * then; and a wait for that. Locks: qm->mutex, but for the wait. */
    bool (*is_over)(struct dibs__job *job);
    void (*settle)(struct dibs__job *job);
    void (*await)(struct dibs__job *job);
} dibs__job_ops;

/* A job of a round at one node; part of the round. */
typedef struct dibs__job {
    dibsx_fifo_node queued; /* the first member: its place in a queue */
    const dibs__job_ops *ops;
    struct dibs__round *round;
    size_t node;
    const char *owner; /* who asks for a lease with it; NULL: nobody does */
    dibsx_nsec deadline;
    dibsx_nsec look_at; /* late: when the node's thread looks after it */
    bool awaited;       /* late: the node's thread does */
    dibs__vote vote; /* what it comes to, the thread's own until it has ended */
    dibs_error err;
    int64_t took_us;
} dibs__job;

enum { DIBS__JOBS_MAX = 256 }; /* in a queue */

typedef struct dibs__node_queue {
    struct dibs__quorum *qm;
    pthread_t thread;
    bool running;
    pthread_cond_t cond;
    dibsx_fifo queue; /* of dibs__job */
    size_t count;     /* with the one that is being done */
    dibsx_fifo late;  /* of dibs__job, in the order in which they were sent */
    bool watched;     /* the thread will look after those that are late */
} dibs__node_queue;

enum { DIBS__ENDPOINT_TEXT = 64 };

typedef struct dibs__node {
    struct dibs__store *st;
    char endpoint[DIBS__ENDPOINT_TEXT]; /* host and port */
    dibs__node_queue queues[DIBS__REQUEST_KINDS];
    dibs__voter voter;
    dibsx_nsec doubt_until; /* a request without an answer may yet arrive */
    int64_t took_us;        /* its latest answer */
    int64_t jump_ms;        /* of its clock, until a caller has read it */
    bool long_way_due; /* the short one did nothing, and the asker had gone */
} dibs__node;

/* The condition variables, once; after the mutex. False when they cannot be. */
bool dibs__node_init(struct dibs__quorum *qm, dibs__node *nd);

/* Waits until the jobs are done, which may be about other nodes too; locks
 * nothing. */
void dibs__node_join(dibs__node *nd);

/* After all have been joined. Closes the store. */
void dibs__node_fini(dibs__node *nd);

/* Appends a job, and starts the thread if it does not run yet; the caller wakes it.
 * False when the queue is full, or the thread cannot be started. */
bool dibs__node_enqueue(dibs__node *nd, dibs__request_kind kind,
                        dibs__job *job);

/* Wakes the thread after it got a job; best without the mutex, for which it waits. */
void dibs__node_wake(dibs__node *nd, dibs__request_kind kind);

/* A request that was sent is late from now on; its answer matters until the deadline.
 * Ends those whose answers are in. */
void dibs__node_add_late(dibs__node_queue *nq, dibs__job *job,
                         dibsx_nsec deadline);
void dibs__node_settle(dibs__node_queue *nq);

/* Waits for the answer to a late request of this owner, in a job. Locks: none held. */
void dibs__node_await_late(struct dibs__quorum *qm, size_t node,
                           const char *owner);

/* Takes out a job that has not been begun; false when it has. */
bool dibs__node_dequeue(dibs__node *nd, dibs__request_kind kind,
                        dibs__job *job);

/* A copy of what is known of the node. Locks: none held. */
void dibs__node_voter(struct dibs__quorum *qm, size_t node, dibs__voter *out);

/* Asks the node what it is, and notes it. Locks: none held. */
DIBS_MUST_CHECK dibs_status dibs__node_meet(struct dibs__quorum *qm,
                                            size_t node, dibsx_nsec deadline,
                                            dibs__voter *out, dibs_error *err);

/* A copy of what is known of the node. If nothing is known, or with `anew`,
 * asks the node first. Locks: none held. */
DIBS_MUST_CHECK dibs_status dibs__node_know(struct dibs__quorum *qm,
                                            size_t node, bool anew,
                                            dibsx_nsec deadline,
                                            dibs__voter *out, dibs_error *err);

/* An answer came: the clock in it, and how long it took. Locks: none held
 * for the second. */
void dibs__node_note(struct dibs__quorum *qm, size_t node,
                     const dibs__node_word *word, dibsx_nsec sent_at);
void dibs__node_heard(struct dibs__quorum *qm, size_t node,
                      const dibs__node_word *word, dibsx_nsec sent_at);

/* Whether a late request of this owner may still reach the node; NULL: whether one may
 * that was sent on another connection than the next one will be. Locks: none held. */
bool dibs__node_doubtful(struct dibs__quorum *qm, size_t node,
                         const char *owner);

/* Whether a request that had no answer may still reach the node, of any; of those
 * after that moment. Locks: none held. */
bool dibs__node_silent(struct dibs__quorum *qm, size_t node);
bool dibs__node_silent_since(struct dibs__quorum *qm, size_t node,
                             dibsx_nsec from_at);

/* Whether its votes count: its clock can be relied on, and it is none of those
 * before it by another name. */
bool dibs__node_counts(const struct dibs__quorum *qm, size_t node,
                       dibsx_nsec now);

#endif
