/* queue.c - queue handles: new, cancel, free; the close of a client; notices.
 *
 * Owns the list of a client's queues, attached to the client with the first one. Locks:
 * cl->mutex guards all of it. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/cond.h"
#include "base/opts.h"
#include "base/uncancel.h"
#include "coord/queue_lane.h"
#include "core/durability.h"
#include "core/names.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { TTL_MIN_MS = 1000, PREFETCH_MAX = 64, DAY_MS = 24 * 60 * 60 * 1000 };

static dibs__queues *queues_of_handler(dibs__notice_handler *handler)
{
    return (dibs__queues *)(void *)((char *)handler -
                                    offsetof(dibs__queues, handler));
}

/* The answer of a request that is under way may be older, though it comes later. */
static void hear_ring(dibs_queue *q)
{
    q->rung = q->rung || q->driving;
    q->hungry = true;
    q->dry = false;
    dibs__ask_pass_on(q);
}

/* Thread: the keeper. */
static void hear_items(dibs_client *cl, dibs__notice_handler *handler,
                       const dibs__notice *notice)
{
    (void)cl;
    if (notice->kind != DIBS__NOTICE_ITEMS)
        return;
    for (dibs_queue *q = queues_of_handler(handler)->first; q; q = q->next)
        if (strcmp(q->address, notice->owner) == 0)
            hear_ring(q);
}

/* Thread: the keeper. */
static void hear_missed(dibs_client *cl, dibs__notice_handler *handler)
{
    (void)cl;
    for (dibs_queue *q = queues_of_handler(handler)->first; q; q = q->next)
        hear_ring(q);
}

/* Ends every wait for items. Locks: cl->mutex. */
static void cancel_waits(dibs_queue *q)
{
    dibsx_fifo_node *node;

    while ((node = dibsx_fifo_pop(&q->waiters)) != NULL) {
        dibs__waiter *w = (dibs__waiter *)(void *)node;

        w->rc = dibsx_fail(&w->err, DIBS_CANCELLED, "the wait was cancelled");
        dibs__hold_end_wait(w);
    }
}

/* Locks: cl->mutex. */
static void cancel_queue(dibs_queue *q)
{
    q->cancelled = true;
    cancel_waits(q);
    dibs__hold_serve(q);
    dibs__ask_pass_on(q);
}

/* Sends what calls have pushed and settled, as long as the store answers. False: nothing
 * is left. Locks: cl->mutex, let go meanwhile. */
static bool end_calls(dibs_queue *q)
{
    if (q->pushing || q->driving)
        return false;
    if (q->pushes.first)
        dibs__push_drive(q);
    else if (!dibs__hold_has_call(q))
        return false;
    else if (q->away)
        dibs__hold_give_up(q);
    else
        dibs__ask_drive(q);
    return true;
}

static bool is_busy(const dibs_queue *q)
{
    return q->callers > 0 || q->driving || q->calling || q->pushing ||
           q->all->tending;
}

/* Every call ends before the client does; the pools too, if it drains. */
static void end_queues(dibs_client *cl, dibs__queues *all, bool drains)
{
    dibs_queue *q = all->first;

    while (q) {
        if (q->pools > 0 && !q->cancelled)
            cancel_queue(q);
        cancel_waits(q);
        pthread_cond_broadcast(&q->calm);
        dibs__tend_set(q);
        if (end_calls(q)) {
            q = all->first;
        } else if (is_busy(q) || (drains && q->pools > 0)) {
            pthread_cond_wait(&cl->over, &cl->mutex);
            q = all->first;
        } else {
            q = q->next;
        }
    }
}

static void close_queues(dibs_client *cl, dibs__attached *at)
{
    end_queues(cl, (dibs__queues *)(void *)at, false);
}

/* The lane of a pool is kept meanwhile. */
static void drain_queues(dibs_client *cl, dibs__attached *at)
{
    end_queues(cl, (dibs__queues *)(void *)at, true);
}

static dibs_queue *find_open(const dibs__queues *all)
{
    dibs_queue *q = all->first;

    while (q && q->machine.state != DIBS__LANE_OPEN)
        q = q->next;
    return q;
}

/* Gives back all that is in hand. The program may free queues meanwhile. */
static void stop_queues(dibs_client *cl, dibs__attached *at)
{
    dibs__queues *all = (dibs__queues *)(void *)at;
    dibs_queue *q;

    pthread_mutex_lock(&cl->mutex);
    while ((q = find_open(all)) != NULL)
        dibs__ask_leave(q);
    pthread_mutex_unlock(&cl->mutex);
}

static void free_queues(dibs_client *cl, dibs__attached *at)
{
    (void)cl;
    dibsx_free(at);
}

/* The queues of a client, made when first needed; NULL: no memory. Locks: cl->mutex. */
static dibs__queues *queues_of(dibs_client *cl)
{
    dibs__attached *at = cl->attached;
    dibs__queues *all;

    while (at && at->free != free_queues)
        at = at->next;
    if (at)
        return (dibs__queues *)(void *)at;
    all = dibs__runner_attach(cl) ? dibsx_zalloc(sizeof(*all)) : NULL;
    if (!all)
        return NULL;
    all->attached.close = close_queues;
    all->attached.drain = drain_queues;
    all->attached.stop = stop_queues;
    all->attached.free = free_queues;
    all->handler.hear = hear_items;
    all->handler.hear_missed = hear_missed;
    all->tend_job = (dibs__job){.run = dibs__tend_run, .kind = DIBS__JOB_TEND};
    all->lost_job = (dibs__job){.run = dibs__tend_tell, .kind = DIBS__JOB_TELL};
    dibs__attach(cl, &all->attached);
    dibs__notices_register(cl, &all->handler);
    return all;
}

static dibs_status check_opts(const dibs_queue_opts *opts, dibs_error *err)
{
    if (opts->ttl_ms < TTL_MIN_MS || opts->ttl_ms > DAY_MS)
        return dibsx_fail(err, DIBS_INVALID,
                          "ttl_ms of a queue is %d to %d, and not %" PRId64,
                          (int)TTL_MIN_MS, (int)DAY_MS, opts->ttl_ms);
    if (opts->limit_ms < 0 || opts->limit_ms > DAY_MS)
        return dibsx_fail(err, DIBS_INVALID,
                          "limit_ms is 0 to %d, and not %" PRId64, (int)DAY_MS,
                          opts->limit_ms);
    if (opts->prefetch > PREFETCH_MAX)
        return dibsx_fail(err, DIBS_INVALID,
                          "prefetch is at most %d, and not %" PRIu32,
                          (int)PREFETCH_MAX, opts->prefetch);
    if (opts->as && strlen(opts->as) >= DIBS__WORKER_MAX)
        return dibsx_fail(err, DIBS_INVALID,
                          "the name of a worker has at most %d bytes",
                          DIBS__WORKER_MAX - 1);
    return opts->as ? dibs__text_check("a worker's name", opts->as, err)
                    : DIBS_OK;
}

static dibs_status
read_durability(dibs_queue *q, const char *text, dibs_error *err)
{
    const char *why = dibs__store_cannot(q->cl->st, DIBS__CAN_REPLICATE);
    dibs_status rc =
        dibs__durability_read(text, q->cl->replicas, &q->replicas, err);

    if (rc == DIBS_OK && q->replicas > 0 && why)
        rc = dibsx_fail(err, DIBS_UNSUPPORTED, "%s", why);
    return rc;
}

/* A ttl of the client that is too short for queues becomes the shortest. */
static dibs_status
read_opts(dibs_queue *q, const dibs_queue_opts *given, dibs_error *err)
{
    dibs_queue_opts *opts = &q->opts;
    dibs_status rc =
        dibsx_opts_copy(opts, sizeof(*opts), given, "DIBS_QUEUE_OPTS()", err);

    if (rc != DIBS_OK)
        return rc;
    if (opts->ttl_ms == 0)
        opts->ttl_ms = q->cl->ttl_ms > TTL_MIN_MS ? q->cl->ttl_ms : TTL_MIN_MS;
    rc = check_opts(opts, err);
    if (rc == DIBS_OK)
        rc = read_durability(q, opts->durability, err);
    opts->durability = NULL;
    if (rc == DIBS_OK && opts->as)
        snprintf(q->as, sizeof(q->as), "%s", opts->as);
    opts->as = NULL;
    return rc;
}

/* Adds the queue to its client. */
static dibs_status join_client(dibs_queue *q, dibs_error *err)
{
    dibs_client *cl = q->cl;
    dibs_status rc = DIBS_OK;

    pthread_mutex_lock(&cl->mutex);
    q->all = queues_of(cl);
    if (cl->closing)
        rc = dibsx_fail(err, DIBS_INVALID, "the client is closed");
    else if (!q->all || !dibs__timer_reserve(cl, 1))
        rc = dibsx_nomem(err, "a queue");
    else if ((rc = dibs__timer_ready(cl, err)) != DIBS_OK)
        dibs__timer_unreserve(cl, 1);
    if (rc == DIBS_OK) {
        q->next = q->all->first;
        q->all->first = q;
        cl->handle_count++;
    }
    pthread_mutex_unlock(&cl->mutex);
    return rc;
}

dibs_status
dibs_queue_new(dibs_client *cl, const char *name, const dibs_queue_opts *opts,
               dibs_queue **out, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibs_status rc = dibs__client_usable(cl, err);
    const char *why;
    dibs_queue *q;

    *out = NULL;
    if (rc != DIBS_OK)
        return rc;
    why = dibs__store_cannot(cl->st, DIBS__CAN_ITEMS);
    if (why)
        return dibsx_fail(err, DIBS_UNSUPPORTED, "%s", why);
    q = dibsx_zalloc(sizeof(*q));
    if (!q)
        return dibsx_nomem(err, "a queue");
    q->cl = cl;
    q->refs = 1;
    q->timer.fire = dibs__tend_fire;
    q->job.run = dibs__ask_run;
    q->push_job.run = dibs__push_run;
    rc = dibs__name_full(cl, name, q->name, err);
    if (rc == DIBS_OK)
        rc = read_opts(q, opts, err);
    if (rc == DIBS_OK && !dibsx_cond_init(&q->calm))
        rc = dibsx_nomem(err, "a queue");
    if (rc != DIBS_OK) {
        dibsx_free(q);
        return rc;
    }
    dibs__consumer_init(&q->machine, q->opts.ttl_ms);
    rc = join_client(q, err);
    if (rc == DIBS_OK) {
        *out = q;
        return DIBS_OK;
    }
    pthread_cond_destroy(&q->calm);
    dibsx_free(q);
    return rc;
}

void dibs_queue_cancel(dibs_queue *q)
{
    DIBSX_UNCANCEL;

    if (!q || dibs__client_usable(q->cl, NULL) != DIBS_OK)
        return;
    pthread_mutex_lock(&q->cl->mutex);
    cancel_queue(q);
    pthread_mutex_unlock(&q->cl->mutex);
}

static void unlist_queue(dibs_queue *q)
{
    dibs_queue **at = &q->all->first;

    while (*at != q)
        at = &(*at)->next;
    *at = q->next;
}

/* The items of a callback that will not come. Locks: cl->mutex. */
static void drop_lost(dibs_queue *q)
{
    dibsx_fifo_node *node;

    while ((node = dibsx_fifo_pop(&q->lost)) != NULL)
        (void)dibs__item_unref(dibs__item_of_node(node));
}

void dibs_queue_free(dibs_queue *q)
{
    DIBSX_UNCANCEL;
    dibs_client *cl;
    bool last;

    if (!q || dibs__forked(q->cl->fork_number))
        return;
    cl = q->cl;
    pthread_mutex_lock(&cl->mutex);
    q->freed = true;
    dibs__timer_set(cl, &q->timer, DIBSX_NEVER);
    dibs__queue_call_drop_all(q);
    while (q->driving || q->calling || q->pushing)
        pthread_cond_wait(&cl->over, &cl->mutex);
    unlist_queue(q);
    if (!atomic_load(&cl->closed))
        dibs__ask_leave(q);
    else
        dibs__hold_lose_all(q);
    drop_lost(q);
    last = dibs__queue_unref(q);
    pthread_mutex_unlock(&cl->mutex);
    if (last)
        dibs__client_free(cl);
}
