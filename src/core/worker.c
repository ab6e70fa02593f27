/* worker.c - jobs of a client that block; see worker.h.
 *
 * Owns the queue and the threads. Attached to the client with the first job. */
/* SPDX-License-Identifier: MIT */
#include "core/worker.h"

#include "base/alloc.h"
#include "base/thread.h"
#include "core/attach.h"
#include "core/client.h"

enum { WORKERS_MAX = 4 };

struct dibs__worker {
    dibs__attached attached; /* first, so that one is the other */
    pthread_t threads[WORKERS_MAX];
    size_t thread_count;
    size_t idle_count;
    size_t job_count; /* in the queue */
    dibs__job *first;
    dibs__job **end;
    pthread_cond_t cond;
    bool stopping;
};

typedef struct dibs__worker worker;

static dibs__job *pop_job(worker *wk)
{
    dibs__job *job = wk->first;

    if (job) {
        wk->first = job->next;
        if (!wk->first)
            wk->end = &wk->first;
        job->queued = false;
        wk->job_count--;
    }
    return job;
}

/* Thread: a worker. */
static void *worker_main(void *arg)
{
    dibs_client *cl = arg;
    worker *wk;
    dibs__job *job;

    pthread_mutex_lock(&cl->mutex);
    wk = cl->worker;
    while ((job = pop_job(wk)) != NULL || !wk->stopping) {
        if (job) {
            job->run(cl, job);
            continue;
        }
        wk->idle_count++;
        pthread_cond_wait(&wk->cond, &cl->mutex);
        wk->idle_count--;
    }
    pthread_mutex_unlock(&cl->mutex);
    return NULL;
}

static void stop_workers(dibs_client *cl, dibs__attached *at)
{
    worker *wk = (worker *)(void *)at;

    pthread_mutex_lock(&cl->mutex);
    wk->stopping = true;
    pthread_cond_broadcast(&wk->cond);
    pthread_mutex_unlock(&cl->mutex);
    for (size_t i = 0; i < wk->thread_count; i++)
        pthread_join(wk->threads[i], NULL);
}

static void free_workers(dibs_client *cl, dibs__attached *at)
{
    worker *wk = (worker *)(void *)at;

    cl->worker = NULL;
    pthread_cond_destroy(&wk->cond);
    dibsx_free(wk);
}

/* The client's workers, made when they are first needed; NULL: no memory. */
static worker *workers_of(dibs_client *cl)
{
    worker *wk = cl->worker;

    if (wk || (wk = dibsx_zalloc(sizeof(*wk))) == NULL)
        return wk;
    wk->end = &wk->first;
    pthread_cond_init(&wk->cond, NULL);
    wk->attached.stop = stop_workers;
    wk->attached.free = free_workers;
    dibs__attach(cl, &wk->attached);
    cl->worker = wk;
    return wk;
}

/* Whether there is a thread that will come to a job that is added now. */
static bool have_thread(dibs_client *cl, worker *wk)
{
    if (wk->idle_count <= wk->job_count && wk->thread_count < WORKERS_MAX &&
        dibsx_thread_start(&wk->threads[wk->thread_count], worker_main, cl) ==
            0)
        wk->thread_count++;
    return wk->thread_count > 0;
}

bool dibs__worker_add(dibs_client *cl, dibs__job *job)
{
    worker *wk = workers_of(cl);

    if (job->queued)
        return true;
    if (!wk || wk->stopping || !have_thread(cl, wk))
        return false;
    job->next = NULL;
    job->queued = true;
    wk->job_count++;
    *wk->end = job;
    wk->end = &job->next;
    pthread_cond_signal(&wk->cond);
    return true;
}
