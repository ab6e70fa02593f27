/* queue_reserve.c - the calls of a consumer: reserve, settle, free.
 *
 * A call adds what it wants to the handle and waits; one of the threads that wait sends
 * the request for all (queue_ask.c). Locks: cl->mutex, let go while waiting. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/cond.h"
#include "base/uncancel.h"
#include "coord/queue_lane.h"
#include "core/names.h"
#include <stdio.h>
#include <string.h>

enum { TRIES_LONG = 2, BACKOFF_MAX_MS = 600000, SECOND_MS = 1000 };

/* ---- reserve */

void dibs__reserve_add(dibs_queue *q, dibs__waiter *w)
{
    if (q->cancelled) {
        w->rc = dibsx_fail(&w->err, DIBS_CANCELLED, "the queue was cancelled");
        dibs__hold_end_wait(w);
        return;
    }
    /* A look for those before says nothing of now. */
    if (!q->placed && !q->waiters.first)
        q->dry = false;
    dibsx_fifo_push(&q->waiters, &w->node);
    dibs__hold_serve(q);
}

/* Waits for the items of a waiter. */
static dibs_status await_items(dibs_queue *q, dibs__waiter *w,
                               dibsx_nsec deadline, dibs_error *err)
{
    while (!w->over) {
        if (w->waits && dibsx_now() >= deadline) {
            dibs__hold_leave(q, w);
            return dibs__hold_fail_late(q, err);
        }
        dibs__ask_go_on(q, &w->cond, w->waits ? deadline : DIBSX_NEVER);
    }
    if (w->rc != DIBS_OK && err)
        *err = w->err;
    return w->rc;
}

static dibsx_nsec deadline_of(int64_t wait_ms)
{
    return wait_ms < 0 ? DIBSX_NEVER : dibsx_after_ms(dibsx_now(), wait_ms);
}

dibs_status
dibs_queue_reserve_many(dibs_queue *q, int64_t wait_ms, dibs_item **out,
                        size_t max, size_t *count, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibsx_nsec deadline = deadline_of(wait_ms);
    dibs__waiter w = {.out = out, .want = max, .waits = wait_ms != 0};
    dibs_status rc;

    *count = 0;
    if (max == 0 || max > DIBS_QUEUE_BATCH)
        return dibsx_fail(err, DIBS_INVALID,
                          "cannot reserve %zu items: one call has 1 to %d", max,
                          DIBS_QUEUE_BATCH);
    memset(out, 0, max * sizeof(*out));
    if (!dibsx_cond_init(&w.cond))
        return dibsx_nomem(err, "a wait");
    rc = dibs__ask_begin(q, err);
    if (rc == DIBS_OK) {
        dibs__reserve_add(q, &w);
        rc = await_items(q, &w, deadline, err);
        dibs__ask_end(q);
    }
    pthread_cond_destroy(&w.cond);
    *count = w.got;
    return rc;
}

dibs_status dibs_queue_reserve(dibs_queue *q, int64_t wait_ms, dibs_item **out,
                               dibs_error *err)
{
    size_t count;

    return dibs_queue_reserve_many(q, wait_ms, out, 1, &count, err);
}

/* ---- settle */

static dibsx_nsec settle_deadline(const dibs_queue *q)
{
    return dibsx_after_ms(dibsx_now(), TRIES_LONG * q->cl->timeout_ms);
}

static bool is_extended(const dibs_item *item)
{
    return item->verb == DIBS__ITEM_EXTEND &&
           (item->state == DIBS__ITEM_WANTED ||
            item->state == DIBS__ITEM_ASKED);
}

dibs_status dibs__settle_check(dibs_item *item, dibs_error *err)
{
    dibs_client *cl = item->q->cl;

    if (item->state == DIBS__ITEM_LOST ||
        (item->state == DIBS__ITEM_HELD && dibs_item_check(item) != DIBS_OK))
        return dibsx_fail(err, DIBS_LOST,
                          "item %llu of %s is not this consumer's any more",
                          (unsigned long long)item->lane.token.id,
                          dibs__name_short(cl, item->q->name));
    if (item->state != DIBS__ITEM_HELD)
        return dibsx_fail(err, DIBS_INVALID,
                          is_extended(item) ? "an extension is under way"
                                            : "the item is settled already");
    return DIBS_OK;
}

/* An extension that is under way ends first. It may have no thread of its own any more, so
 * that this one sends it. Locks: cl->mutex, let go meanwhile. */
static dibs_status await_held(dibs_item *item, dibs_error *err)
{
    dibs_queue *q = item->q;
    dibsx_nsec deadline = settle_deadline(q);

    while (is_extended(item)) {
        if (dibsx_now() >= deadline)
            return dibsx_fail(err, DIBS_UNAVAIL,
                              "the extension of item %llu of %s has no answer",
                              (unsigned long long)item->lane.token.id,
                              dibs__name_short(q->cl, q->name));
        dibs__ask_go_on(q, &q->cl->over, deadline);
    }
    return dibs__settle_check(item, err);
}

/* Ends the wait for a settlement without its outcome. One that was not sent yet was not
 * done. */
static dibs_status
give_up(dibs_item *item, dibs__settler *settler, dibs_error *err)
{
    dibs_queue *q = item->q;

    item->settler = NULL;
    if (item->state == DIBS__ITEM_WANTED) {
        (void)dibsx_fifo_remove(&q->wanted, &item->node);
        (void)dibsx_fail(&settler->err, DIBS_UNAVAIL, "%s",
                         q->away ? q->failure.message : "no turn in time");
        item->settler = NULL;
        dibs__hold_settled(item, DIBS_UNAVAIL, NULL);
        if (err)
            *err = settler->err;
        return DIBS_UNAVAIL;
    }
    return dibsx_fail(
        err, DIBS_UNKNOWN,
        "the store did not answer in time; the client goes on asking");
}

static dibs_status
await_settled(dibs_item *item, dibs__settler *settler, dibs_error *err)
{
    dibs_queue *q = item->q;
    dibsx_nsec deadline = settle_deadline(q);

    while (!settler->over) {
        if (dibsx_now() >= deadline)
            return give_up(item, settler, err);
        dibs__ask_go_on(q, settler->cond, deadline);
    }
    if (settler->rc != DIBS_OK && err)
        *err = settler->err;
    return settler->rc;
}

dibs_status dibs__settle_want(dibs_item *item, const dibs__settlement *how,
                              dibs__settler *settler, dibs_error *err)
{
    dibs_status rc = dibs__settle_keep_text(item, how, err);

    if (rc != DIBS_OK)
        return rc;
    item->ms = how->ms;
    dibs__hold_want(item, how->verb, settler);
    return DIBS_OK;
}

/* Settles an item in hand. Locks: cl->mutex, let go meanwhile. */
static dibs_status settle_held(dibs_item *item, const dibs__settlement *how,
                               pthread_cond_t *cond, dibs_error *err)
{
    dibs__settler settler = {.cond = cond};
    dibs_status rc = dibs__settle_want(item, how, &settler, err);

    return rc == DIBS_OK ? await_settled(item, &settler, err) : rc;
}

static dibs_status
settle_item(dibs_item *item, const dibs__settlement *how, dibs_error *err)
{
    pthread_cond_t cond;
    dibs_status rc;

    if (!item)
        return dibsx_fail(err, DIBS_INVALID, "the item is NULL");
    if (!item->life)
        return dibs__token_settle(item, how, err);
    if (!dibsx_cond_init(&cond))
        return dibsx_nomem(err, "a settlement");
    rc = dibs__ask_begin(item->q, err);
    if (rc == DIBS_OK) {
        rc = await_held(item, err);
        if (rc == DIBS_OK)
            rc = settle_held(item, how, &cond, err);
        dibs__ask_end(item->q);
    }
    pthread_cond_destroy(&cond);
    return rc;
}

dibs_status dibs_item_ack(dibs_item *item, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibs__settlement how = {.verb = DIBS__ITEM_ACK};

    return settle_item(item, &how, err);
}

dibs_status
dibs_item_ack_result(dibs_item *item, const char *result, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibs__settlement how = {.verb = DIBS__ITEM_ACK, .reason = result};

    return settle_item(item, &how, err);
}

/* 2^attempt s, of which the second half is drawn. */
static int64_t draw_backoff(dibs_item *item)
{
    uint32_t attempt = item->lane.token.attempt;
    int64_t span_ms =
        attempt < 10 ? (int64_t)SECOND_MS << attempt : BACKOFF_MAX_MS;
    int64_t half_ms;
    dibs_client *cl = item->q->cl;

    if (span_ms > BACKOFF_MAX_MS)
        span_ms = BACKOFF_MAX_MS;
    half_ms = span_ms / 2;
    pthread_mutex_lock(&cl->mutex);
    span_ms =
        half_ms + (int64_t)dibsx_prng_below(&cl->jitter, (uint64_t)half_ms + 1);
    pthread_mutex_unlock(&cl->mutex);
    return span_ms;
}

int64_t dibs__settle_delay(dibs_item *item, int64_t delay_ms)
{
    return !item || delay_ms >= 0 || dibs__forked(item->q->cl->fork_number)
               ? delay_ms
               : draw_backoff(item);
}

dibs_status dibs_item_nack(dibs_item *item, int64_t delay_ms,
                           const char *reason, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibs__settlement how = {.verb = DIBS__ITEM_NACK, .reason = reason};

    how.ms = dibs__settle_delay(item, delay_ms);
    return settle_item(item, &how, err);
}

dibs_status dibs_item_dead(dibs_item *item, const char *reason, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibs__settlement how = {.verb = DIBS__ITEM_DEAD, .reason = reason};

    return settle_item(item, &how, err);
}

dibs_status dibs_item_extend(dibs_item *item, int64_t limit_ms, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibs__settlement how = {.verb = DIBS__ITEM_EXTEND, .ms = limit_ms};

    if (limit_ms < 0)
        return dibsx_fail(err, DIBS_INVALID, "limit_ms is negative");
    return settle_item(item, &how, err);
}

/* The ack and the next item in one request. An item that came although the ack failed
 * goes back. Locks: cl->mutex, let go meanwhile. */
static dibs_status
ack_and_wait(dibs_item *item, dibs__waiter *w, dibsx_nsec deadline, bool *acked,
             dibs_error *err)
{
    dibs_queue *q = item->q;
    dibs_status rc = await_held(item, err);
    dibs__settlement how = {.verb = DIBS__ITEM_ACK};

    if (rc != DIBS_OK)
        return rc;
    dibs__reserve_add(q, w);
    rc = settle_held(item, &how, &w->cond, err);
    *acked = rc == DIBS_OK;
    if (*acked)
        return await_items(q, w, deadline, err);
    dibs__hold_leave(q, w);
    return rc;
}

dibs_status
dibs_item_ack_next(dibs_item **item, int64_t wait_ms, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibsx_nsec deadline = deadline_of(wait_ms);
    dibs_item *next = NULL, *last = *item;
    dibs__waiter w = {.out = &next, .want = 1, .waits = wait_ms != 0};
    bool acked = false;
    dibs_status rc;

    if (!last || !last->life)
        return dibsx_fail(err, DIBS_INVALID,
                          last ? "an adopted item has no next one"
                               : "the item is NULL");
    if (!dibsx_cond_init(&w.cond))
        return dibsx_nomem(err, "a wait");
    rc = dibs__ask_begin(last->q, err);
    if (rc == DIBS_OK) {
        rc = ack_and_wait(last, &w, deadline, &acked, err);
        dibs__ask_end(last->q);
    }
    pthread_cond_destroy(&w.cond);
    if (!acked) {
        dibs_item_free(next);
        return rc;
    }
    dibs_item_free(last);
    *item = next;
    return rc;
}

void dibs_item_free(dibs_item *item)
{
    DIBSX_UNCANCEL;
    dibs_client *cl;
    bool last;

    if (!item || dibs__forked(item->q->cl->fork_number))
        return;
    cl = item->q->cl;
    pthread_mutex_lock(&cl->mutex);
    item->freed = true;
    dibs__hold_let_go(item);
    if (item->state == DIBS__ITEM_WANTED)
        dibs__ask_pass_on(item->q);
    last = dibs__item_unref(item);
    pthread_mutex_unlock(&cl->mutex);
    if (last)
        dibs__client_free(cl);
}
