/* queue_work.c - a pool of threads that work on the items of a queue.
 *
 * The calling thread is one of them. Each settles its item and reserves the next one in
 * one request. Owns the threads, for the call. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/cond.h"
#include "base/thread.h"
#include "base/uncancel.h"
#include "coord/queue.h"
#include "core/log.h"
#include "core/names.h"

enum { THREADS_MAX = 1024, PAUSE_MS = 500 };

typedef struct pool {
    dibs_queue *q;
    dibs_item_fn *work;
    void *arg;
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    bool started; /* every thread is there */
    bool stops;   /* ... or one is missing */
} pool;

static bool is_stopped(pool *po)
{
    dibs_client *cl = po->q->cl;
    bool stopped;

    pthread_mutex_lock(&cl->mutex);
    stopped = po->q->cancelled || po->q->freed || cl->closing;
    pthread_mutex_unlock(&cl->mutex);
    return stopped;
}

/* The store refuses: says so, and tries again later. */
static void pause_work(pool *po, const dibs_error *err)
{
    dibs_queue *q = po->q;

    dibs__log(q->cl, DIBS_LOG_WARN, "queue",
              "cannot reserve an item of %s, and will try again: %s",
              dibs__name_short(q->cl, q->name), err->message);
    pthread_mutex_lock(&q->cl->mutex);
    dibsx_cond_wait(&q->calm, &q->cl->mutex,
                    dibsx_after_ms(dibsx_now(), PAUSE_MS));
    pthread_mutex_unlock(&q->cl->mutex);
}

static bool is_settled(dibs_item *item)
{
    dibs_client *cl = item->q->cl;
    bool settled;

    pthread_mutex_lock(&cl->mutex);
    settled = item->state != DIBS__ITEM_HELD;
    pthread_mutex_unlock(&cl->mutex);
    return settled;
}

/* A settlement that fails is over: the item comes back. */
static void end_item(pool *po, dibs_item *item, dibs_status outcome)
{
    dibs_error err = {.status = DIBS_OK};
    dibs_status rc = DIBS_OK;

    if (outcome == DIBS_OK)
        rc = dibs_item_ack(item, &err);
    else if (outcome == DIBS_INVALID)
        rc = dibs_item_dead(item, dibs_status_text(outcome), &err);
    else
        rc = dibs_item_nack(item, -1, dibs_status_text(outcome), &err);
    if (rc != DIBS_OK)
        dibs__log(po->q->cl, DIBS_LOG_WARN, "queue",
                  "cannot settle item %llu of %s: %s",
                  (unsigned long long)dibs_item_id(item),
                  dibs__name_short(po->q->cl, po->q->name), err.message);
    dibs_item_free(item);
}

/* Works on an item; the next one, if it came with the ack. */
static dibs_item *work_on(pool *po, dibs_item *item)
{
    dibs_status outcome = po->work(item, po->arg), rc;

    if (outcome == DIBS_LOST || is_settled(item)) {
        dibs_item_free(item);
        return NULL;
    }
    if (outcome == DIBS_OK) {
        rc = dibs_item_ack_next(&item, -1, NULL);
        if (rc == DIBS_OK || !item)
            return item;
        if (rc != DIBS_UNAVAIL) {
            dibs_item_free(item);
            return NULL;
        }
    }
    end_item(po, item, outcome);
    return NULL;
}

static void *run_thread(void *arg)
{
    pool *po = arg;
    dibs_item *item = NULL;

    pthread_mutex_lock(&po->mutex);
    while (!po->started && !po->stops)
        pthread_cond_wait(&po->cond, &po->mutex);
    pthread_mutex_unlock(&po->mutex);
    while (!po->stops && (item || !is_stopped(po))) {
        dibs_error err = {.status = DIBS_OK};
        dibs_status rc = DIBS_OK;

        if (!item)
            rc = dibs_queue_reserve(po->q, -1, &item, &err);
        if (item)
            item = work_on(po, item);
        else if (rc != DIBS_CANCELLED)
            pause_work(po, &err);
    }
    return NULL;
}

/* The close of the client waits for the pools of a queue. */
static void count_pool(dibs_queue *q, bool begins)
{
    dibs_client *cl = q->cl;

    pthread_mutex_lock(&cl->mutex);
    if (begins)
        q->pools++;
    else
        q->pools--;
    pthread_cond_broadcast(&cl->over);
    pthread_mutex_unlock(&cl->mutex);
}

static void open_gate(pool *po, bool all)
{
    pthread_mutex_lock(&po->mutex);
    po->started = all;
    po->stops = !all;
    pthread_cond_broadcast(&po->cond);
    pthread_mutex_unlock(&po->mutex);
}

/* `list` has room for the threads beside this one. */
static dibs_status
run_pool(pool *po, pthread_t *list, uint32_t threads, dibs_error *err)
{
    dibs_status rc = DIBS_OK;
    uint32_t count = 0;

    count_pool(po->q, true);
    while (count + 1 < threads &&
           dibsx_thread_start(&list[count], run_thread, po) == 0)
        count++;
    open_gate(po, count + 1 == threads);
    if (po->started)
        (void)run_thread(po);
    else
        rc = dibsx_nomem(err, "a thread of a pool");
    for (uint32_t i = 0; i < count; i++)
        pthread_join(list[i], NULL);
    count_pool(po->q, false);
    return rc;
}

dibs_status dibs_queue_work(dibs_queue *q, uint32_t threads, dibs_item_fn *work,
                            void *arg, dibs_error *err)
{
    DIBSX_UNCANCEL;
    pool po = {.q = q, .work = work, .arg = arg};
    pthread_t *list;
    dibs_status rc;

    if (!q || !work || threads == 0 || threads > THREADS_MAX)
        return dibsx_fail(err, DIBS_INVALID,
                          "a queue is worked on by 1 to %d threads with a "
                          "function",
                          (int)THREADS_MAX);
    rc = dibs__client_usable(q->cl, err);
    list = rc == DIBS_OK ? dibsx_zalloc_n(threads, sizeof(*list)) : NULL;
    if (!list || !dibsx_cond_init(&po.cond)) {
        dibsx_free(list);
        return rc == DIBS_OK ? dibsx_nomem(err, "a pool of threads") : rc;
    }
    pthread_mutex_init(&po.mutex, NULL);
    rc = run_pool(&po, list, threads, err);
    pthread_cond_destroy(&po.cond);
    pthread_mutex_destroy(&po.mutex);
    dibsx_free(list);
    return rc;
}
