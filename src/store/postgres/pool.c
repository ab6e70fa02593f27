/* pool.c - see pool.h. */
/* SPDX-License-Identifier: MIT */
#include "store/postgres/pool.h"
#include "base/fail.h"
#include <time.h>

/* How long one that may not be needed is kept. */
#define IDLE_MAX (5 * DIBSX_SEC)

void dibs__pg_pool_init(dibs__pg_pool *pool, const dibs__pg_conf *conf,
                        int most, dibs__pg_pool *spare)
{
    pthread_condattr_t attr;

    *pool = (dibs__pg_pool){.conf = conf, .most = most, .spare = spare};
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&pool->freed, &attr);
    pthread_condattr_destroy(&attr);
}

void dibs__pg_pool_fini(dibs__pg_pool *pool)
{
    while (pool->idle) {
        dibs__pg_conn *cn = pool->idle;

        pool->idle = cn->next;
        dibs__pg_conn_close(cn);
    }
    pthread_cond_destroy(&pool->freed);
    pthread_mutex_destroy(&pool->mutex);
}

/* Waits until a connection may be free. False when the deadline passed.
 * Locks: pool->mutex, let go while waiting. */
static bool wait_freed(dibs__pg_pool *pool, dibsx_nsec deadline)
{
    int64_t span_ms = dibsx_wait_ms(deadline, dibsx_now());
    struct timespec until;

    if (span_ms < 0 || span_ms > 1000)
        span_ms = 1000;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)span_ms * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    (void)pthread_cond_timedwait(&pool->freed, &pool->mutex, &until);
    return dibsx_now() < deadline;
}

/* An idle connection, or NULL with leave to make one. False when the deadline
 * passed. */
static bool
reserve_conn(dibs__pg_pool *pool, dibsx_nsec deadline, dibs__pg_conn **out)
{
    bool in_time = dibsx_now() < deadline;

    pthread_mutex_lock(&pool->mutex);
    while (in_time && !pool->idle && pool->count >= pool->most)
        in_time = wait_freed(pool, deadline);
    /* A thread that is too late may have taken the signal of another. */
    if (!in_time && (pool->idle || pool->count < pool->most))
        pthread_cond_signal(&pool->freed);
    *out = in_time ? pool->idle : NULL;
    if (*out)
        pool->idle = (*out)->next;
    else if (in_time)
        pool->count++;
    pthread_mutex_unlock(&pool->mutex);
    return in_time;
}

void dibs__pg_pool_widen(dibs__pg_pool *pool, int most)
{
    pthread_mutex_lock(&pool->mutex);
    if (most > pool->most) {
        pool->most = most;
        pthread_cond_broadcast(&pool->freed);
    }
    pthread_mutex_unlock(&pool->mutex);
}

static void uncount_conn(dibs__pg_pool *pool)
{
    pthread_mutex_lock(&pool->mutex);
    pool->count--;
    pthread_cond_signal(&pool->freed);
    pthread_mutex_unlock(&pool->mutex);
}

void dibs__pg_pool_distrust(dibs__pg_pool *pool)
{
    pthread_mutex_lock(&pool->mutex);
    pool->era++;
    pthread_mutex_unlock(&pool->mutex);
}

static bool is_trusted(dibs__pg_pool *pool, const dibs__pg_conn *cn)
{
    bool trusted;

    pthread_mutex_lock(&pool->mutex);
    trusted = cn->era == pool->era;
    pthread_mutex_unlock(&pool->mutex);
    return trusted;
}

/* An idle connection that can be used; or NULL. */
static dibs__pg_conn *take_idle(dibs__pg_pool *pool)
{
    dibs__pg_conn *cn;

    pthread_mutex_lock(&pool->mutex);
    cn = pool->idle;
    if (cn)
        pool->idle = cn->next;
    pthread_mutex_unlock(&pool->mutex);
    if (cn && (!dibs__pg_conn_lives(cn) || !is_trusted(pool, cn))) {
        dibs__pg_conn_close(cn);
        uncount_conn(pool);
        return NULL;
    }
    return cn;
}

dibs__pg_conn *dibs__pg_pool_part(dibs__pg_pool *pool)
{
    dibs__pg_conn *cn = take_idle(pool);

    if (cn) {
        cn->home = NULL;
        uncount_conn(pool);
    }
    return cn;
}

void dibs__pg_pool_trim(dibs__pg_pool *pool)
{
    dibsx_nsec since = dibsx_now() - IDLE_MAX;
    dibs__pg_conn **at = &pool->idle;
    dibs__pg_conn *old;

    pthread_mutex_lock(&pool->mutex);
    while (*at && (*at)->used_at >= since)
        at = &(*at)->next;
    /* Connections come back in front, so that all behind it are older. */
    old = *at;
    *at = NULL;
    for (const dibs__pg_conn *cn = old; cn; cn = cn->next)
        pool->count--;
    pthread_mutex_unlock(&pool->mutex);
    while (old) {
        dibs__pg_conn *next = old->next;

        dibs__pg_conn_close(old);
        old = next;
    }
}

dibs_status dibs__pg_pool_take(dibs__pg_pool *pool, dibsx_nsec deadline,
                               dibs__pg_conn **out, dibs_error *err)
{
    dibs_status rc;
    unsigned era;

    *out =
        pool->spare && dibsx_now() < deadline ? take_idle(pool->spare) : NULL;
    if (*out)
        return DIBS_OK;
    for (;;) {
        if (!reserve_conn(pool, deadline, out))
            return dibsx_fail(err, DIBS_UNAVAIL,
                              "the deadline passed before it was sent");
        if (!*out)
            break;
        if (is_trusted(pool, *out) && dibs__pg_conn_lives(*out))
            return DIBS_OK;
        dibs__pg_conn_close(*out);
        uncount_conn(pool);
    }
    pthread_mutex_lock(&pool->mutex);
    era = pool->era;
    pthread_mutex_unlock(&pool->mutex);
    rc = dibs__pg_conn_open(pool->conf, DIBS__PG_FOR_STEPS, deadline, out, err);
    if (rc == DIBS_OK) {
        (*out)->era = era;
        (*out)->home = pool;
    } else {
        uncount_conn(pool);
    }
    return rc;
}

void dibs__pg_pool_give(dibs__pg_conn *cn)
{
    dibs__pg_pool *pool = cn->home;

    if (dibs__pg_conn_is_worn(cn)) {
        dibs__pg_conn_close(cn);
        uncount_conn(pool);
        return;
    }
    pthread_mutex_lock(&pool->mutex);
    cn->next = pool->idle;
    pool->idle = cn;
    pthread_cond_signal(&pool->freed);
    pthread_mutex_unlock(&pool->mutex);
}
