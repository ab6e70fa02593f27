/* pool.c - threads that work off a queue.
 *
 * Owns the threads. Everything is under the pool's mutex, which is not held while
 * a job runs. put comes from one thread, as does fini, after it. */
/* SPDX-License-Identifier: MIT */
#include "http/pool.h"
#include "base/alloc.h"
#include "base/thread.h"

/* Threads beyond the most, which urgent jobs have for themselves when all others are
 * busy; jobs of each kind that may wait. */
enum { URGENT_THREADS = 2, WAITING_MAX = 256 };

/* Locks: pool->mutex. How many jobs a thread could begin now. */
static size_t ready_count(const dibs__http_pool *pool)
{
    const size_t room = pool->max - pool->running;

    return pool->urgent.count +
           (pool->queue.count < room ? pool->queue.count : room);
}

/* Locks: pool->mutex, let go meanwhile. */
static void run_next(dibs__http_pool *pool)
{
    dibs__http_job *job = dibsx_fifo_pop(&pool->urgent);
    const bool urgent = job != NULL;

    if (!urgent) {
        job = dibsx_fifo_pop(&pool->queue);
        pool->running++;
    }
    pthread_mutex_unlock(&pool->mutex);
    pool->run(job);
    pthread_mutex_lock(&pool->mutex);
    pool->running -= !urgent;
}

static void *pool_main(void *arg)
{
    dibs__http_pool *pool = arg;

    pthread_mutex_lock(&pool->mutex);
    while (!pool->stopping) {
        if (ready_count(pool) > 0) {
            run_next(pool);
            continue;
        }
        pool->idle++;
        pthread_cond_wait(&pool->cond, &pool->mutex);
        pool->idle--;
    }
    pthread_mutex_unlock(&pool->mutex);
    return NULL;
}

bool dibs__http_pool_init(dibs__http_pool *pool, size_t max,
                          dibs__http_job_fn *run)
{
    *pool = (dibs__http_pool){.max = max, .run = run};
    pool->threads =
        dibsx_zalloc_n(max + URGENT_THREADS, sizeof(*pool->threads));
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
    dibsx_fifo_prepend(&pool->queue, &pool->urgent);
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

/* Locks: pool->mutex. False: there is no thread. */
static bool have_thread(dibs__http_pool *pool)
{
    if (ready_count(pool) >= pool->idle &&
        pool->count < pool->max + URGENT_THREADS &&
        dibsx_thread_start(&pool->threads[pool->count], pool_main, pool) == 0)
        pool->count++;
    return pool->count > 0;
}

bool dibs__http_pool_put(dibs__http_pool *pool, dibs__http_job *job,
                         bool urgent)
{
    dibsx_fifo *queue = urgent ? &pool->urgent : &pool->queue;
    bool taken;

    if (pool->stopping || !pool->threads)
        return false;
    pthread_mutex_lock(&pool->mutex);
    taken = queue->count < WAITING_MAX && have_thread(pool);
    if (taken) {
        dibsx_fifo_push(queue, job);
        pthread_cond_signal(&pool->cond);
    }
    pthread_mutex_unlock(&pool->mutex);
    return taken;
}
