/* worker.h - jobs of a client that block, done by a few threads beside the others.
 *
 * A job lives inside its owner, and is in the queue once at most. Each kind of jobs has
 * a queue and up to four threads of its own, which are started when they are needed.
 * Jobs of a kind are begun in the order in which they came, so that one which waits for
 * the store delays the others of its kind only when all these threads do. Requests that
 * hang delay neither what keeps seats and lanes alive nor the news of a loss. No renewal
 * is ever behind a job.
 *
 *   (1) A job that was accepted is run once, at the latest while the client closes.
 *   (2) After the client has stopped no job is accepted.
 *
 * Locks: cl->mutex for everything here. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_WORKER_H
#define DIBS_CORE_WORKER_H

#include <dibs/client.h>

typedef struct dibs__job dibs__job;

typedef enum dibs__job_kind {
    DIBS__JOB_REQUEST, /* for which the program waits, or nobody */
    DIBS__JOB_TEND,    /* without which the store ends something in time */
    DIBS__JOB_TELL,    /* that calls the program back */
    DIBS__JOB_KINDS
} dibs__job_kind;

struct dibs__job {
    /* Thread: a worker. Lets the mutex go while it blocks. The job may be freed
     * or queued again from here on. */
    void (*run)(dibs_client *cl, dibs__job *job);
    dibs__job_kind kind;
    dibs__job *next;
    bool queued;
};

/* True when the job will be run: it is queued now, or was already. False when the
 * system gives neither memory nor a thread, or the client has stopped. */
bool dibs__worker_add(dibs_client *cl, dibs__job *job);

#endif
