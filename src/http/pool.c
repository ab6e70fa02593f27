/* pool.c - threads that work off a queue.
 *
 * Owns the threads. Everything is under the pool's mutex, which is not held while
 * a job runs. put comes from one thread, as does fini, after it. */
/* SPDX-License-Identifier: MIT */
#include "http/pool.h"
#include "base/alloc.h"
#include "base/thread.h"

static void *pool_main(void *arg)
{
    dibs__http_pool *pool = arg;

    pthread_mutex_lock(&pool->mutex);
    while (!pool->stopping) {
        dibs__http_job *job = dibsx_fifo_pop(&pool->queue);

        if (!job) {
            pool->idle++;
            pthread_cond_wait(&pool->cond, &pool->mutex);
            pool->idle--;
            continue;
        }
        pthread_mutex_unlock(&pool->mutex);
        pool->run(job);
        pthread_mutex_lock(&pool->mutex);
    }
    pthread_mutex_unlock(&pool->mutex);
    return NULL;
}

bool dibs__http_pool_init(dibs__http_pool *pool, size_t max,
                          dibs__http_job_fn *run)
{
    *pool = (dibs__http_pool){.max = max, .run = run};
    pool->threads = dibsx_zalloc_n(max, sizeof(*pool->threads));
    if (!pool->threads)
        return false;
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->cond, NULL);
    return true;
}

dibs__http_job *dibs__http_pool_close(dibs__http_pool *pool)
{
    dibs__http_job *waiting;

    pthread_mutex_lock(&pool->mutex);
    pool->stopping = true;
    waiting = pool->queue.first;
    pool->queue = (dibsx_fifo){.count = 0};
    pthread_mutex_unlock(&pool->mutex);
    return waiting;
}

void dibs__http_pool_fini(dibs__http_pool *pool)
{
    if (!pool->threads)
        return;
    pthread_mutex_lock(&pool->mutex);
    pool->stopping = true;
    pthread_cond_broadcast(&pool->cond);
    pthread_mutex_unlock(&pool->mutex);
    for (size_t i = 0; i < pool->count; i++)
        pthread_join(pool->threads[i], NULL);
    pthread_cond_destroy(&pool->cond);
    pthread_mutex_destroy(&pool->mutex);
    dibsx_free(pool->threads);
    pool->threads = NULL;
}

bool dibs__http_pool_put(dibs__http_pool *pool, dibs__http_job *job)
{
    bool taken;

    if (pool->stopping || !pool->threads)
        return false;
    pthread_mutex_lock(&pool->mutex);
    if (pool->queue.count >= pool->idle && pool->count < pool->max &&
        dibsx_thread_start(&pool->threads[pool->count], pool_main, pool) == 0)
        pool->count++;
    taken = pool->count > 0;
    if (taken) {
        dibsx_fifo_push(&pool->queue, job);
        pthread_cond_signal(&pool->cond);
    }
    pthread_mutex_unlock(&pool->mutex);
    return taken;
}
