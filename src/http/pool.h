/* pool.h - threads that work off a queue. They are started as they are needed. Urgent
 * jobs have a queue and threads of their own besides.
 *
 * Jobs live inside what they belong to, so that adding one cannot fail. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_HTTP_POOL_H
#define DIBS_HTTP_POOL_H

#include "base/fifo.h"
#include <pthread.h>

typedef dibsx_fifo_node dibs__http_job;

typedef void dibs__http_job_fn(dibs__http_job *job);

typedef struct dibs__http_pool {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    dibsx_fifo urgent; /* before those of the queue */
    dibsx_fifo queue;
    size_t running; /* jobs of the queue that threads run */
    size_t max;     /* ... at most */
    size_t idle;    /* threads that wait for a job */
    size_t count;   /* threads */
    pthread_t *threads;
    dibs__http_job_fn *run;
    bool stopping;
} dibs__http_pool;

/* False when memory is short. End with dibs__http_pool_fini(). */
bool dibs__http_pool_init(dibs__http_pool *pool, size_t max,
                          dibs__http_job_fn *run);

/* Takes no more jobs, and returns those that no thread has begun: a list by `next`, for
 * the caller to end. */
dibs__http_job *dibs__http_pool_close(dibs__http_pool *pool);

/* Ends the threads when the jobs that they run have ended. */
void dibs__http_pool_fini(dibs__http_pool *pool);

/* Runs the job on some thread, later. False: too many wait, there is no thread and none
 * can be started, or the pool has ended. */
bool dibs__http_pool_put(dibs__http_pool *pool, dibs__http_job *job,
                         bool urgent);

#endif
