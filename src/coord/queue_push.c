/* queue_push.c - the calls of a producer: push, and wait while the queue is full.
 *
 * All that the threads of a handle push at the same time goes into one request. One of them
 * sends it, again while it has no answer, and shares out the outcome; the others wait. A
 * request that the store refuses as a whole is sent again one push at a time: one that is
 * too much must not hold up the others. Locks: cl->mutex, let go for the step. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/cond.h"
#include "base/opts.h"
#include "base/uncancel.h"
#include "coord/queue_lane.h"
#include "core/names.h"
#include "core/reach.h"
#include "store/queue_admin.h"
#include <dibs/queue_async.h>
#include <inttypes.h>
#include <string.h>

enum {
    TRIES_LONG = 2,
    LONG_MAX_MS = 40000,
    PAUSE_MS = 50,
    FULL_MIN_MS = 50,
    FULL_MAX_MS = 1000,
    LANE_BITS = 53
};

/* The push of one thread or call. */
typedef struct push_call {
    dibsx_fifo_node node;   /* first; in q->pushes, then in the batch */
    pthread_cond_t cond;    /* of the thread */
    dibs__queue_call *call; /* NULL: a thread waits */
    dibs__push_item *items;
    size_t count, bytes;
    bool alone; /* with no other in one request */
    bool over;
    dibs_status rc;
    dibs_error err;
} push_call;

typedef dibs__push_batch push_batch;

/* ---- the items */

static dibs_status
copy_opts(dibs_push_opts *out, const dibs_push_opts *given, dibs_error *err)
{
    return dibsx_opts_copy(out, sizeof(*out), given, "DIBS_PUSH_OPTS()", err);
}

static dibs_status check_push(const dibs_push_opts *opts, dibs_error *err)
{
    dibs_status rc = DIBS_OK;

    if (opts->delay_ms < 0 || opts->dedup_ms < 0)
        return dibsx_fail(err, DIBS_INVALID,
                          "delay_ms and dedup_ms of a push are not negative");
    if (opts->dedup_id && strlen(opts->dedup_id) > DIBS__DEDUP_MAX)
        return dibsx_fail(err, DIBS_INVALID,
                          "a dedup id has at most %d bytes, and not %zu",
                          DIBS__DEDUP_MAX, strlen(opts->dedup_id));
    if (opts->to && strlen(opts->to) >= DIBS__WORKER_MAX)
        return dibsx_fail(err, DIBS_INVALID,
                          "the name of a worker has at most %d bytes",
                          DIBS__WORKER_MAX - 1);
    if (opts->dedup_id)
        rc = dibs__text_check("a dedup id", opts->dedup_id, err);
    if (rc == DIBS_OK && opts->to)
        rc = dibs__text_check("a worker's name", opts->to, err);
    return rc;
}

/* *data is the caller's to free. */
static dibs_status
write_item(const dibs_push_item *from, const dibs_push_opts *given,
           dibs__push_item *out, char **data, dibs_error *err)
{
    dibs_push_opts opts;
    dibs_status rc = copy_opts(&opts, given, err);

    *data = NULL;
    if (rc == DIBS_OK)
        rc = check_push(&opts, err);
    if (rc != DIBS_OK)
        return rc;
    *out = (dibs__push_item){.delay_ms = opts.delay_ms,
                             .priority = opts.priority,
                             .tries = opts.tries,
                             .to = opts.to ? opts.to : "",
                             .dedup = opts.dedup_id ? opts.dedup_id : "",
                             .dedup_ms = opts.dedup_ms};
    rc = dibs__item_join(from->data, from->len, opts.headers, data, &out->len,
                         err);
    out->data = *data;
    return rc;
}

/* ---- the request */

/* Gathers what waits, in order, as much as one request may have. Locks: cl->mutex. */
static void gather_calls(dibs_queue *q, push_batch *batch)
{
    batch->calls = (dibsx_fifo){.count = 0};
    batch->count = batch->bytes = 0;
    while (q->pushes.first) {
        push_call *call = (push_call *)(void *)q->pushes.first;

        if (batch->count > 0 &&
            (call->alone || batch->count + call->count > DIBS__QUEUE_BATCH ||
             batch->bytes + call->bytes > DIBS__QUEUE_BYTES))
            return;
        (void)dibsx_fifo_pop(&q->pushes);
        dibsx_fifo_push(&batch->calls, &call->node);
        memcpy(&batch->items[batch->count], call->items,
               call->count * sizeof(*call->items));
        batch->count += call->count;
        batch->bytes += call->bytes;
        if (call->alone)
            return;
    }
}

static dibs_status ready_lane(dibs_queue *q, dibs_error *err)
{
    uint64_t lane = 0;

    if (!dibs__producer_needs_lane(&q->producer, dibsx_now()))
        return DIBS_OK;
    while (lane == 0) {
        if (!dibsx_random(&lane, sizeof(lane)))
            return dibsx_fail(err, DIBS_UNAVAIL,
                              "the system has no random numbers now");
        lane >>= 64 - LANE_BITS;
    }
    dibs__producer_open(&q->producer, lane);
    return DIBS_OK;
}

/* One try. Locks: cl->mutex, let go meanwhile. */
static dibs_status try_push(dibs_queue *q, push_batch *batch, dibs_error *err)
{
    dibs_client *cl = q->cl;
    dibs__push push = {.queue = q->name,
                       .lane = q->producer.lane,
                       .number = q->producer.number,
                       .items = batch->items,
                       .count = batch->count,
                       .replicas = q->replicas};
    dibsx_nsec deadline = dibs__client_deadline(cl, dibsx_now());
    dibs_status rc;

    pthread_mutex_unlock(&cl->mutex);
    rc = dibs__reach_store(cl, deadline, err);
    if (rc == DIBS_OK)
        rc = cl->st->ops->queue->push(cl->st, &push, deadline, err);
    pthread_mutex_lock(&cl->mutex);
    return rc;
}

/* Sends a batch until it has an answer, or the time is over. A lane that the store has
 * forgotten costs one more try. Locks: cl->mutex, let go meanwhile. */
static dibs_status send_batch(dibs_queue *q, push_batch *batch, dibs_error *err)
{
    int64_t span_ms = TRIES_LONG * q->cl->timeout_ms;
    dibsx_nsec end =
        dibsx_after_ms(dibsx_now(),
                       span_ms < LONG_MAX_MS ? span_ms : LONG_MAX_MS);
    bool renewed = false;

    for (;;) {
        dibs_status rc = DIBS_OK;
        dibs__asked asked;

        if (!q->producer.asking) {
            rc = ready_lane(q, err);
            if (rc != DIBS_OK)
                return rc;
            (void)dibs__producer_ask(&q->producer, dibsx_now());
        }
        rc = try_push(q, batch, err);
        asked = dibs__producer_answered(&q->producer, dibsx_now(), rc);
        if (asked == DIBS__ASKED_UNSURE)
            return dibsx_unanswered(err);
        if (asked == DIBS__ASKED_LOST && !renewed) {
            renewed = true;
            continue;
        }
        if (asked == DIBS__ASKED_LOST)
            return dibsx_fail(err, DIBS_UNAVAIL,
                              "the store has forgotten the lane again");
        if (asked != DIBS__ASKED_AGAIN)
            return rc;
        if (dibsx_now() >= end || q->cl->closing) {
            dibs__producer_end(&q->producer);
            return dibsx_unanswered(err);
        }
        dibsx_cond_wait(&q->calm, &q->cl->mutex,
                        dibsx_after_ms(dibsx_now(), PAUSE_MS));
    }
}

/* Tells each thread its outcome, or lets it try alone. Locks: cl->mutex. */
static void share_outcome(dibs_queue *q, push_batch *batch, dibs_status rc,
                          const dibs_error *err)
{
    bool refused = batch->calls.count > 1 && rc != DIBS_OK &&
                   rc != DIBS_UNAVAIL && rc != DIBS_UNKNOWN;
    dibsx_fifo again = {.count = 0};
    size_t at = 0;
    dibsx_fifo_node *node;

    while ((node = dibsx_fifo_pop(&batch->calls)) != NULL) {
        push_call *call = (push_call *)(void *)node;

        memcpy(call->items, &batch->items[at],
               call->count * sizeof(*call->items));
        at += call->count;
        if (refused) {
            call->alone = true;
            dibsx_fifo_push(&again, node);
            continue;
        }
        call->rc = rc;
        call->err = *err;
        call->over = true;
        if (call->call)
            dibs__queue_call_end(call->call);
        else
            pthread_cond_signal(&call->cond);
    }
    dibsx_fifo_prepend(&q->pushes, &again);
}

/* Lets another thread send what waits: one that waits with it, or a worker. False: the
 * system has no thread. */
static bool pass_pushes_on(dibs_queue *q)
{
    for (dibsx_fifo_node *at = q->pushes.first; at; at = at->next) {
        push_call *call = (push_call *)(void *)at;

        if (!call->call) {
            pthread_cond_signal(&call->cond);
            return true;
        }
    }
    if (!q->pushes.first || q->push_job.queued)
        return true;
    if (!dibs__worker_add(q->cl, &q->push_job))
        return false;
    q->refs++;
    return true;
}

void dibs__push_drive(dibs_queue *q)
{
    push_batch *batch = &q->batch;
    dibs_error err = {.status = DIBS_OK};
    dibs_status rc;

    q->pushing = true;
    gather_calls(q, batch);
    rc = send_batch(q, batch, &err);
    share_outcome(q, batch, rc, &err);
    q->pushing = false;
    (void)pass_pushes_on(q);
    pthread_cond_broadcast(&q->cl->over);
}

/* Thread: a worker. */
void dibs__push_run(dibs_client *cl, dibs__job *job)
{
    dibs_queue *q =
        (dibs_queue *)(void *)((char *)job - offsetof(dibs_queue, push_job));

    (void)cl;
    while (q->pushes.first && !q->pushing)
        dibs__push_drive(q);
    (void)dibs__queue_unref(q);
}

/* Locks: cl->mutex, let go meanwhile. */
static dibs_status push_once(dibs_queue *q, push_call *call)
{
    call->over = call->alone = false;
    dibsx_fifo_push(&q->pushes, &call->node);
    while (!call->over)
        if (!q->pushing)
            dibs__push_drive(q);
        else
            dibsx_cond_wait(&call->cond, &q->cl->mutex, DIBSX_NEVER);
    return call->rc;
}

/* The items that it makes in an empty queue: one for each dedup id. */
static size_t count_made(const push_call *call)
{
    size_t made = call->count;

    for (size_t i = 1; i < call->count; i++)
        for (size_t j = 0; j < i; j++)
            if (call->items[i].dedup[0] &&
                strcmp(call->items[i].dedup, call->items[j].dedup) == 0) {
                made--;
                break;
            }
    return made;
}

/* A wait for more room than the queue may have would have no end. Items whose dedup ids are
 * taken count too, though they need none: whether they are is not known before the push.
 * Locks: cl->mutex, let go meanwhile. */
static dibs_status check_cap(dibs_queue *q, push_call *call)
{
    dibs_client *cl = q->cl;
    size_t made = count_made(call);
    dibs__queue_stats stats;
    dibs_status rc;

    if (made == 1)
        return DIBS_OK;
    pthread_mutex_unlock(&cl->mutex);
    rc = cl->st->ops->queue_admin->stats(cl->st, q->name,
                                         dibs__client_deadline(cl, dibsx_now()),
                                         &stats, NULL);
    pthread_mutex_lock(&cl->mutex);
    if (rc != DIBS_OK || made <= stats.conf.cap)
        return DIBS_OK;
    return dibsx_fail(&call->err, DIBS_INVALID,
                      "the push has %zu items, and %s may have %" PRIu32
                      "; push them in parts",
                      made, dibs__name_short(cl, q->name), stats.conf.cap);
}

/* Pushes again and again while the queue is full, and looks at the cap, which may be
 * lowered meanwhile: at once, and with each of the longest pauses. Locks: cl->mutex, let go
 * meanwhile. */
static dibs_status push_waiting(dibs_queue *q, push_call *call, int64_t wait_ms)
{
    dibsx_nsec deadline =
        wait_ms < 0 ? DIBSX_NEVER : dibsx_after_ms(dibsx_now(), wait_ms);
    int64_t pause_ms = FULL_MIN_MS;
    dibs_status rc;

    while ((rc = push_once(q, call)) == DIBS_FULL) {
        dibsx_nsec now = dibsx_now(), until;
        bool looks = pause_ms == FULL_MIN_MS || pause_ms == FULL_MAX_MS;

        if (wait_ms != 0 && looks && check_cap(q, call) != DIBS_OK)
            return DIBS_INVALID;
        if (now >= deadline)
            break;
        until =
            dibsx_after_ms(now, pause_ms / 2 + (int64_t)dibsx_prng_below(
                                                   &q->cl->jitter,
                                                   (uint64_t)pause_ms / 2 + 1));
        if (until > deadline)
            until = deadline;
        while (dibsx_now() < until && !q->cl->closing)
            dibsx_cond_wait(&q->calm, &q->cl->mutex, until);
        if (q->cl->closing)
            return dibsx_fail(&call->err, DIBS_CANCELLED,
                              "the wait was cancelled");
        pause_ms = pause_ms * 2 < FULL_MAX_MS ? pause_ms * 2 : FULL_MAX_MS;
    }
    return rc;
}

/* The call, with all of its memory: `data` is an array of call->count. */
static dibs_status push_items(dibs_queue *q, const dibs_push_item *items,
                              size_t count, const dibs_push_opts *opts,
                              push_call *call, char **data, dibs_error *err)
{
    dibs_push_opts common;
    dibs_status rc = copy_opts(&common, opts, err);

    for (size_t i = 0; i < count && rc == DIBS_OK; i++) {
        rc = write_item(&items[i], items[i].opts ? items[i].opts : opts,
                        &call->items[i], &data[i], err);
        call->bytes += call->items[i].len;
    }
    if (rc == DIBS_OK && call->bytes > DIBS__QUEUE_BYTES)
        rc = dibsx_fail(err, DIBS_INVALID,
                        "the items of one call have at most %d bytes, and not "
                        "%zu; push them in parts",
                        DIBS__QUEUE_BYTES, call->bytes);
    if (rc == DIBS_OK)
        rc = dibs__ask_begin(q, err);
    if (rc == DIBS_OK) {
        rc = push_waiting(q, call, common.wait_ms);
        dibs__ask_end(q);
        if (rc != DIBS_OK && err)
            *err = call->err;
    }
    return rc;
}

dibs_status dibs_queue_push_many(dibs_queue *q, const dibs_push_item *items,
                                 size_t count, const dibs_push_opts *opts,
                                 dibs_pushed *out, dibs_error *err)
{
    DIBSX_UNCANCEL;
    push_call call = {.count = count};
    char **data = NULL;
    dibs_status rc = DIBS_OK;

    if (count == 0 || count > DIBS_QUEUE_BATCH)
        return dibsx_fail(err, DIBS_INVALID,
                          "cannot push %zu items: one call has 1 to %d", count,
                          DIBS_QUEUE_BATCH);
    if (out)
        memset(out, 0, count * sizeof(*out));
    if (!dibsx_cond_init(&call.cond))
        return dibsx_nomem(err, "a push");
    call.items = dibsx_zalloc_n(count, sizeof(*call.items));
    data = dibsx_zalloc_n(count, sizeof(*data));
    if (!call.items || !data)
        rc = dibsx_nomem(err, "a push");
    if (rc == DIBS_OK)
        rc = push_items(q, items, count, opts, &call, data, err);
    for (size_t i = 0; rc == DIBS_OK && out && i < count; i++)
        out[i] = (dibs_pushed){.id = call.items[i].id,
                               .duplicate = call.items[i].duplicate};
    for (size_t i = 0; data && i < count; i++)
        dibsx_free(data[i]);
    dibsx_free(data);
    dibsx_free(call.items);
    pthread_cond_destroy(&call.cond);
    return rc;
}

dibs_status
dibs_queue_push(dibs_queue *q, const void *data, size_t len,
                const dibs_push_opts *opts, dibs_pushed *out, dibs_error *err)
{
    dibs_push_item item = {.data = data, .len = len};

    return dibs_queue_push_many(q, &item, 1, opts, out, err);
}

/* ---- without blocking */

typedef struct async_push {
    dibs__queue_call call; /* first, so that one is the other */
    push_call push;
    dibs__push_item item;
    char *data;
    dibs_pushed_fn *done;
    void *arg;
} async_push;

static void tell_pushed(dibs__queue_call *call)
{
    async_push *ap = (async_push *)(void *)call;
    dibs_pushed pushed = {.id = ap->item.id, .duplicate = ap->item.duplicate};

    if (ap->push.rc != DIBS_OK)
        pushed = (dibs_pushed){0};
    ap->done(call->q, &pushed, ap->push.rc, &ap->push.err, ap->arg);
}

/* One that is in a request under way is waited for. */
static void withdraw_push(dibs__queue_call *call)
{
    async_push *ap = (async_push *)(void *)call;
    dibs_queue *q = call->q;

    while (!ap->push.over && !dibsx_fifo_remove(&q->pushes, &ap->push.node))
        pthread_cond_wait(&q->cl->over, &q->cl->mutex);
}

static void free_push(dibs__queue_call *call, bool told)
{
    async_push *ap = (async_push *)(void *)call;

    (void)told;
    dibsx_free(ap->data);
    dibsx_free(ap);
}

static dibs_status read_push(async_push *ap, const dibs_push_item *item,
                             const dibs_push_opts *given, dibs_error *err)
{
    dibs_push_opts opts;
    dibs_status rc = copy_opts(&opts, given, err);

    if (rc == DIBS_OK && opts.wait_ms != 0)
        rc = dibsx_fail(err, DIBS_INVALID,
                        "a push without blocking does not wait while the queue "
                        "is full: wait_ms must be 0");
    if (rc == DIBS_OK)
        rc = write_item(item, given, &ap->item, &ap->data, err);
    if (rc == DIBS_OK && ap->item.len > DIBS__QUEUE_BYTES)
        rc = dibsx_fail(err, DIBS_INVALID,
                        "the items of one call have at most %d bytes, and not "
                        "%zu",
                        DIBS__QUEUE_BYTES, ap->item.len);
    return rc;
}

static dibs_status begin_push(dibs_queue *q, async_push *ap, dibs_error *err)
{
    dibs_status rc = dibs__ask_begin(q, err);

    if (rc != DIBS_OK)
        return rc;
    rc = dibs__queue_call_begin(&ap->call, q, err);
    if (rc == DIBS_OK) {
        dibsx_fifo_push(&q->pushes, &ap->push.node);
        if (!q->pushing && !pass_pushes_on(q)) {
            (void)dibsx_fifo_remove(&q->pushes, &ap->push.node);
            ap->push.rc = dibsx_nomem(&ap->push.err, "a thread");
            dibs__queue_call_end(&ap->call);
        }
    }
    dibs__ask_end(q);
    return rc;
}

dibs_status
dibs_queue_push_async(dibs_queue *q, const void *data, size_t len,
                      const dibs_push_opts *opts, dibs_pushed_fn *done,
                      void *arg, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibs_push_item item = {.data = data, .len = len};
    async_push *ap;
    dibs_status rc;

    if (!done)
        return dibsx_fail(err, DIBS_INVALID, "there is no callback");
    ap = dibsx_zalloc(sizeof(*ap));
    if (!ap)
        return dibsx_nomem(err, "a push");
    ap->call.tell = tell_pushed;
    ap->call.withdraw = withdraw_push;
    ap->call.free = free_push;
    ap->push.call = &ap->call;
    ap->push.items = &ap->item;
    ap->push.count = 1;
    ap->done = done;
    ap->arg = arg;
    rc = read_push(ap, &item, opts, err);
    ap->push.bytes = ap->item.len;
    if (rc == DIBS_OK)
        rc = begin_push(q, ap, err);
    if (rc != DIBS_OK)
        free_push(&ap->call, false);
    return rc;
}
