/* queue_async.c - the calls of a consumer without blocking: reserve and settle.
 *
 * A call adds what it wants to the handle as a blocking one does; no thread waits for the
 * outcome, so that a worker sends the request (queue_ask.c). Locks: cl->mutex. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/uncancel.h"
#include "coord/queue_call.h"
#include "coord/queue_lane.h"
#include <dibs/queue_async.h>

typedef struct reserve_call {
    dibs__queue_call call; /* first, so that one is the other */
    dibs__waiter waiter;
    dibs_item *item;
    dibs_reserved_fn *done;
    void *arg;
} reserve_call;

typedef struct settle_call {
    dibs__queue_call call; /* first, so that one is the other */
    dibs__settler settler;
    dibs_item *item;
    dibs_settled_fn *done;
    void *arg;
} settle_call;

static dibs_status fail_uncalled(dibs_error *err)
{
    return dibsx_fail(err, DIBS_INVALID, "there is no callback");
}

/* ---- reserve */

static void tell_reserved(dibs__queue_call *call)
{
    reserve_call *rv = (reserve_call *)(void *)call;

    rv->done(call->q, rv->item, rv->waiter.rc, &rv->waiter.err, rv->arg);
}

static void withdraw_reserve(dibs__queue_call *call)
{
    reserve_call *rv = (reserve_call *)(void *)call;

    dibs__hold_leave(call->q, &rv->waiter);
}

/* An item that the program was never told of goes back with the lane, which the queue
 * leaves when it is freed. */
static void free_reserve(dibs__queue_call *call, bool told)
{
    reserve_call *rv = (reserve_call *)(void *)call;

    if (rv->item && !told) {
        rv->item->freed = true;
        if (rv->item->state == DIBS__ITEM_HELD)
            dibs__hold_lose(rv->item);
        (void)dibs__item_unref(rv->item);
    }
    dibsx_free(rv);
}

dibs_status
dibs_queue_reserve_async(dibs_queue *q, int64_t wait_ms, dibs_reserved_fn *done,
                         void *arg, dibs_error *err)
{
    DIBSX_UNCANCEL;
    reserve_call *rv = dibsx_zalloc(sizeof(*rv));
    dibs_status rc = done ? DIBS_OK : fail_uncalled(err);

    if (rc == DIBS_OK && !rv)
        rc = dibsx_nomem(err, "a wait");
    if (rc == DIBS_OK)
        rc = dibs__ask_begin(q, err);
    if (rc != DIBS_OK) {
        dibsx_free(rv);
        return rc;
    }
    *rv = (reserve_call){.call = {.tell = tell_reserved,
                                  .withdraw = withdraw_reserve,
                                  .free = free_reserve},
                         .waiter = {.want = 1, .waits = wait_ms != 0},
                         .done = done,
                         .arg = arg};
    rv->waiter.out = &rv->item;
    rv->waiter.call = &rv->call;
    rv->waiter.deadline =
        wait_ms <= 0 ? DIBSX_NEVER : dibsx_after_ms(dibsx_now(), wait_ms);
    rc = dibs__queue_call_begin(&rv->call, q, err);
    if (rc == DIBS_OK)
        dibs__reserve_add(q, &rv->waiter);
    else
        dibsx_free(rv);
    dibs__tend_set(q);
    dibs__ask_end(q);
    return rc;
}

/* ---- settle */

static void tell_settled(dibs__queue_call *call)
{
    settle_call *st = (settle_call *)(void *)call;

    st->done(st->item, st->settler.rc, &st->settler.err, st->arg);
}

/* The settlement itself goes on. */
static void withdraw_settle(dibs__queue_call *call)
{
    settle_call *st = (settle_call *)(void *)call;

    if (st->item->settler == &st->settler)
        st->item->settler = NULL;
}

static void free_settle(dibs__queue_call *call, bool told)
{
    settle_call *st = (settle_call *)(void *)call;

    (void)told;
    (void)dibs__item_unref(st->item);
    dibsx_free(st);
}

/* Locks: cl->mutex. On failure `st` is freed. */
static dibs_status
begin_settle(settle_call *st, const dibs__settlement *how, dibs_error *err)
{
    dibs_queue *q = st->item->q;
    dibs_status rc = dibs__settle_check(st->item, err);

    if (rc == DIBS_OK)
        rc = dibs__queue_call_begin(&st->call, q, err);
    if (rc != DIBS_OK) {
        dibsx_free(st);
        return rc;
    }
    st->item->refs++;
    st->settler.call = &st->call;
    rc = dibs__settle_want(st->item, how, &st->settler, &st->settler.err);
    if (rc != DIBS_OK) { /* no memory for the reason: the callback says so */
        st->settler.rc = rc;
        dibs__queue_call_end(&st->call);
    }
    return DIBS_OK;
}

static dibs_status
settle_async(dibs_item *item, const dibs__settlement *how,
             dibs_settled_fn *done, void *arg, dibs_error *err)
{
    settle_call *st;
    dibs_queue *q;
    dibs_status rc;

    if (!done)
        return fail_uncalled(err);
    if (!item || !item->life)
        return dibsx_fail(err, DIBS_INVALID,
                          item ? "an adopted item is settled by a call that "
                                 "blocks: dibs_item_ack() and the like"
                               : "the item is NULL");
    st = dibsx_zalloc(sizeof(*st));
    if (!st)
        return dibsx_nomem(err, "a settlement");
    q = item->q;
    rc = dibs__ask_begin(q, err);
    if (rc != DIBS_OK) {
        dibsx_free(st);
        return rc;
    }
    *st = (settle_call){.call = {.tell = tell_settled,
                                 .withdraw = withdraw_settle,
                                 .free = free_settle},
                        .item = item,
                        .done = done,
                        .arg = arg};
    rc = begin_settle(st, how, err);
    dibs__tend_set(q);
    dibs__ask_end(q);
    return rc;
}

dibs_status dibs_item_ack_async(dibs_item *item, dibs_settled_fn *done,
                                void *arg, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibs__settlement how = {.verb = DIBS__ITEM_ACK};

    return settle_async(item, &how, done, arg, err);
}

dibs_status
dibs_item_ack_result_async(dibs_item *item, const char *result,
                           dibs_settled_fn *done, void *arg, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibs__settlement how = {.verb = DIBS__ITEM_ACK, .reason = result};

    return settle_async(item, &how, done, arg, err);
}

dibs_status
dibs_item_nack_async(dibs_item *item, int64_t delay_ms, const char *reason,
                     dibs_settled_fn *done, void *arg, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibs__settlement how = {.verb = DIBS__ITEM_NACK, .reason = reason};

    how.ms = dibs__settle_delay(item, delay_ms);
    return settle_async(item, &how, done, arg, err);
}

dibs_status
dibs_item_dead_async(dibs_item *item, const char *reason, dibs_settled_fn *done,
                     void *arg, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibs__settlement how = {.verb = DIBS__ITEM_DEAD, .reason = reason};

    return settle_async(item, &how, done, arg, err);
}

dibs_status
dibs_item_extend_async(dibs_item *item, int64_t limit_ms, dibs_settled_fn *done,
                       void *arg, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibs__settlement how = {.verb = DIBS__ITEM_EXTEND, .ms = limit_ms};

    if (limit_ms < 0)
        return dibsx_fail(err, DIBS_INVALID, "limit_ms is negative");
    return settle_async(item, &how, done, arg, err);
}
