/* worker.c - jobs of a client that block; see worker.h.
 *
 * Owns the queues and the threads. Attached to the client with the first job. */
/* SPDX-License-Identifier: MIT */
#include "core/worker.h"

#include "base/alloc.h"
#include "base/thread.h"
#include "core/attach.h"
#include "core/client.h"

enum { WORKERS_MAX = 4 };

/* The threads of one kind of jobs, and its queue. */
typedef struct crew {
    dibs_client *cl;
    pthread_t threads[WORKERS_MAX];
    size_t thread_count;
    size_t idle_count;
    size_t job_count; /* in the queue */
    dibs__job *first;
    dibs__job **end;
    pthread_cond_t cond;
} crew;

struct dibs__worker {
    dibs__attached attached; /* first, so that one is the other */
    crew crews[DIBS__JOB_KINDS];
    bool stopping;
};

typedef struct dibs__worker worker;

static dibs__job *pop_job(crew *cw)
{
    dibs__job *job = cw->first;

    if (job) {
        cw->first = job->next;
        if (!cw->first)
            cw->end = &cw->first;
        job->queued = false;
        cw->job_count--;
    }
    return job;
}

/* Thread: a worker. */
static void *worker_main(void *arg)
{
    crew *cw = arg;
    dibs_client *cl = cw->cl;
    dibs__job *job;

    pthread_mutex_lock(&cl->mutex);
    while ((job = pop_job(cw)) != NULL || !cl->worker->stopping) {
        if (job) {
            job->run(cl, job);
            continue;
        }
        cw->idle_count++;
        pthread_cond_wait(&cw->cond, &cl->mutex);
        cw->idle_count--;
    }
    pthread_mutex_unlock(&cl->mutex);
    return NULL;
}

static void stop_workers(dibs_client *cl, dibs__attached *at)
{
    worker *wk = (worker *)(void *)at;

    pthread_mutex_lock(&cl->mutex);
    wk->stopping = true;
    for (size_t kind = 0; kind < DIBS__JOB_KINDS; kind++)
        pthread_cond_broadcast(&wk->crews[kind].cond);
    pthread_mutex_unlock(&cl->mutex);
    for (size_t kind = 0; kind < DIBS__JOB_KINDS; kind++)
        for (size_t i = 0; i < wk->crews[kind].thread_count; i++)
            pthread_join(wk->crews[kind].threads[i], NULL);
}

static void free_workers(dibs_client *cl, dibs__attached *at)
{
    worker *wk = (worker *)(void *)at;

    cl->worker = NULL;
    for (size_t kind = 0; kind < DIBS__JOB_KINDS; kind++)
        pthread_cond_destroy(&wk->crews[kind].cond);
    dibsx_free(wk);
}

/* The client's workers, made when they are first needed; NULL: no memory, or the client
 * has stopped without any. */
static worker *workers_of(dibs_client *cl)
{
    worker *wk = cl->worker;

    if (wk || atomic_load(&cl->closed) ||
        (wk = dibsx_zalloc(sizeof(*wk))) == NULL)
        return wk;
    for (size_t kind = 0; kind < DIBS__JOB_KINDS; kind++) {
        crew *cw = &wk->crews[kind];

        cw->cl = cl;
        cw->end = &cw->first;
        pthread_cond_init(&cw->cond, NULL);
    }
    wk->attached.stop = stop_workers;
    wk->attached.free = free_workers;
    dibs__attach(cl, &wk->attached);
    cl->worker = wk;
    return wk;
}

/* Whether there is a thread that will come to a job that is added now. */
static bool have_thread(crew *cw)
{
    if (cw->idle_count <= cw->job_count && cw->thread_count < WORKERS_MAX &&
        dibsx_thread_start(&cw->threads[cw->thread_count], worker_main, cw) ==
            0)
        cw->thread_count++;
    return cw->thread_count > 0;
}

bool dibs__worker_add(dibs_client *cl, dibs__job *job)
{
    worker *wk = workers_of(cl);
    crew *cw = wk ? &wk->crews[job->kind] : NULL;

    if (job->queued)
        return true;
    if (!cw || wk->stopping || !have_thread(cw))
        return false;
    job->next = NULL;
    job->queued = true;
    cw->job_count++;
    *cw->end = job;
    cw->end = &job->next;
    pthread_cond_signal(&cw->cond);
    return true;
}
