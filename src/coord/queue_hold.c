/* queue_hold.c - the items in hand of a queue handle, from their delivery to their end.
 *
 * Owns items and the life of lanes. Locks: cl->mutex for everything but the copy. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "coord/queue_lane.h"
#include "core/names.h"
#include <string.h>

enum { DRIFT_PART = 100, DRIFT_MS = 2, LINGER_MS = 20 };

bool dibs__queue_unref(dibs_queue *q)
{
    dibs_client *cl = q->cl;

    if (--q->refs > 0)
        return false;
    dibs__timer_set(cl, &q->timer, DIBSX_NEVER);
    dibs__timer_unreserve(cl, 1);
    pthread_cond_destroy(&q->calm);
    dibsx_free(q);
    cl->handle_count--;
    return cl->ended && cl->handle_count == 0;
}

static void unref_life(dibs__lane_life *life)
{
    if (life && --life->refs == 0)
        dibsx_free(life);
}

dibs_status dibs__settle_unconfirmed(const dibs_item *item, dibs_error *err)
{
    return dibsx_fail(err, DIBS_UNKNOWN,
                      "item %llu of %s is done, but too few replicas "
                      "acknowledged that: a failover may bring it back",
                      (unsigned long long)item->lane.token.id,
                      dibs__name_short(item->q->cl, item->q->name));
}

dibs_status dibs__settle_keep_text(dibs_item *item, const dibs__settlement *how,
                                   dibs_error *err)
{
    const char *reason = how->reason;
    size_t len = dibs__settle_text(how);

    dibsx_free(item->reason);
    item->reason = NULL;
    if (!reason)
        return DIBS_OK;
    item->reason = dibsx_zalloc(len + 1);
    if (!item->reason)
        return dibsx_nomem(err, "a reason");
    memcpy(item->reason, reason, len);
    if (how->verb == DIBS__ITEM_ACK)
        dibs__utf8_clean(item->reason);
    else
        dibs__text_clean(item->reason);
    return DIBS_OK;
}

bool dibs__item_unref(dibs_item *item)
{
    dibs_queue *q = item->q;

    if (--item->refs > 0)
        return false;
    unref_life(item->life);
    dibsx_free(item->reason);
    dibsx_free(item);
    return dibs__queue_unref(q);
}

dibs_item *dibs__hold_copy(const dibs__delivery *delivery)
{
    dibs_item *item = dibsx_zalloc(sizeof(*item) + delivery->len + 1);

    if (!item)
        return NULL;
    item->lane.token = delivery->token;
    item->lost = delivery->lost;
    item->priority = delivery->priority;
    item->ms = delivery->limit_ms;
    if (delivery->len > 0)
        memcpy(item->bytes, delivery->data, delivery->len);
    dibs__item_split(item->bytes, delivery->len, &item->parts);
    return item;
}

void dibs__hold_publish(dibs_queue *q)
{
    if (q->life)
        atomic_store(&q->life->valid_until, q->machine.state == DIBS__LANE_OPEN
                                                ? q->machine.valid_until
                                                : 0);
}

dibsx_nsec dibs__hold_limit(dibsx_nsec sent_at, int64_t limit_ms)
{
    int64_t span_ms = limit_ms - limit_ms / DRIFT_PART - DRIFT_MS;

    if (limit_ms <= 0)
        return DIBSX_NEVER;
    return dibsx_after_ms(sent_at, span_ms > 0 ? span_ms : 0);
}

void dibs__hold_take(dibs_queue *q, dibs_item *item, dibsx_nsec sent_at)
{
    dibs__lane_item *older;

    if (!dibs__consumer_take(&q->machine, &item->lane, dibsx_now(), &older)) {
        dibsx_free(item);
        return;
    }
    if (older)
        dibs__hold_lose((dibs_item *)(void *)older);
    item->q = q;
    item->life = q->life;
    item->life->refs++;
    item->refs = 1;
    q->refs++;
    atomic_store(&item->limit_until, dibs__hold_limit(sent_at, item->ms));
    dibsx_fifo_push(&q->ready, &item->node);
}

/* It is not in hand any more. */
static void end_hold(dibs_item *item, dibs__item_state state)
{
    if (item->handed && item->state < DIBS__ITEM_SETTLED)
        item->q->handed--;
    item->state = state;
    atomic_store(&item->over, true);
}

void dibs__hold_want(dibs_item *item, dibs__settle_verb verb,
                     dibs__settler *settler)
{
    item->verb = verb;
    item->settler = settler;
    item->state = DIBS__ITEM_WANTED;
    item->refs++;
    item->limit_was = atomic_load(&item->limit_until);
    if (verb != DIBS__ITEM_EXTEND)
        atomic_store(&item->over, true);
    dibsx_fifo_push(&item->q->wanted, &item->node);
}

static void tell_settler(dibs_item *item, dibs_status rc, const dibs_error *err)
{
    dibs__settler *settler = item->settler;

    item->settler = NULL;
    if (!settler)
        return;
    settler->rc = rc;
    if (err)
        settler->err = *err;
    settler->over = true;
    if (settler->call)
        dibs__queue_call_end(settler->call);
    else
        pthread_cond_signal(settler->cond);
}

void dibs__hold_let_go(dibs_item *item)
{
    dibs_queue *q = item->q;

    if (!item->life || item->state != DIBS__ITEM_HELD)
        return;
    if (dibs__queue_is_over(q))
        dibs__consumer_drop(&q->machine, &item->lane);
    else
        dibs__hold_want(item, DIBS__ITEM_UNBEGUN, NULL);
}

/* The program learns of it by a callback, if it has the item. */
static void announce_loss(dibs_item *item)
{
    dibs_queue *q = item->q;

    if (!q->opts.on_lost || !item->handed || item->freed || q->freed)
        return;
    item->refs++;
    dibsx_fifo_push(&q->lost, &item->node);
    /* Without a thread for it the timer of the queue tries again. */
    (void)dibs__worker_add(q->cl, &q->all->lost_job);
}

/* UNAVAIL and the like: nothing was done, and it is in hand as before. A call that waits
 * for an extension learns of the loss by its status. */
void dibs__hold_settled(dibs_item *item, dibs_status rc, const dibs_error *err)
{
    if (rc == DIBS_LOST || rc == DIBS_UNKNOWN)
        dibs__consumer_drop(&item->q->machine, &item->lane);
    if (rc == DIBS_OK && item->verb == DIBS__ITEM_EXTEND) {
        item->state = DIBS__ITEM_HELD;
    } else if (rc == DIBS_LOST ||
               (rc == DIBS_UNKNOWN && item->verb == DIBS__ITEM_EXTEND)) {
        end_hold(item, DIBS__ITEM_LOST);
        if (item->verb == DIBS__ITEM_EXTEND && !item->settler)
            announce_loss(item);
    } else if (rc == DIBS_OK || rc == DIBS_UNKNOWN) {
        end_hold(item, DIBS__ITEM_SETTLED);
    } else {
        item->state = DIBS__ITEM_HELD;
        atomic_store(&item->limit_until, item->limit_was);
        atomic_store(&item->over, false);
    }
    tell_settler(item, rc, err);
    if (item->freed)
        dibs__hold_let_go(item);
    pthread_cond_broadcast(&item->q->cl->over);
    (void)dibs__item_unref(item);
}

void dibs__hold_end_settlements(dibs_queue *q, dibs_status rc,
                                const dibs_error *err)
{
    dibs__queue_request *rq = &q->request;

    for (size_t i = 0; i < rq->ask.settle_count; i++) {
        dibs_item *item = rq->items[i];

        if (!item)
            continue;
        if (item->settler || rc == DIBS_LOST || rc == DIBS_UNKNOWN) {
            dibs__hold_settled(item, rc, err);
        } else { /* wanted again: nobody waits for it */
            item->state = DIBS__ITEM_WANTED;
            atomic_store(&item->limit_until, item->limit_was);
            dibsx_fifo_push(&q->wanted, &item->node);
        }
    }
    rq->ask.settle_count = 0;
}

static bool is_call(const dibs_item *item)
{
    return item && item->settler && item->settler->call;
}

bool dibs__hold_has_call(const dibs_queue *q)
{
    for (dibsx_fifo_node *at = q->wanted.first; at; at = at->next)
        if (is_call(dibs__item_of_node(at)))
            return true;
    for (size_t i = 0; i < q->request.ask.settle_count; i++)
        if (is_call(q->request.items[i]))
            return true;
    return false;
}

/* The rest is as it was: a request that the store may have done is sent again with the same
 * settlements, and what no call waits for is of the pools. */
void dibs__hold_give_up(dibs_queue *q)
{
    dibs__queue_request *rq = &q->request;
    dibsx_fifo wanted = q->wanted;
    dibsx_fifo_node *node;
    dibs_error err;

    (void)dibsx_fail(&err, DIBS_UNKNOWN,
                     "the client was closed before the store answered");
    for (size_t i = 0; i < rq->ask.settle_count; i++)
        if (is_call(rq->items[i]))
            tell_settler(rq->items[i], DIBS_UNKNOWN, &err);
    (void)dibsx_fail(&err, DIBS_UNAVAIL,
                     "the client was closed while the store was out of reach");
    q->wanted = (dibsx_fifo){.count = 0};
    while ((node = dibsx_fifo_pop(&wanted)) != NULL)
        if (is_call(dibs__item_of_node(node)))
            dibs__hold_settled(dibs__item_of_node(node), DIBS_UNAVAIL, &err);
        else
            dibsx_fifo_push(&q->wanted, node);
}

void dibs__hold_lose(dibs_item *item)
{
    dibs_queue *q = item->q;
    dibs_error err = {.status = DIBS_OK};

    dibs__consumer_drop(&q->machine, &item->lane);
    if (item->state == DIBS__ITEM_WANTED) {
        (void)dibsx_fifo_remove(&q->wanted, &item->node);
        (void)dibsx_fail(&err, DIBS_LOST, "the delivery was lost");
        dibs__hold_settled(item, DIBS_LOST, &err);
        return;
    }
    if (item->state != DIBS__ITEM_HELD)
        return;
    end_hold(item, DIBS__ITEM_LOST);
    if (!item->handed) {
        (void)dibsx_fifo_remove(&q->ready, &item->node);
        (void)dibs__item_unref(item);
    } else {
        announce_loss(item);
    }
}

void dibs__hold_lose_all(dibs_queue *q)
{
    dibs__lane_life *life = q->life;
    dibs_error err = {.status = DIBS_OK};

    if (!q->driving && q->request.ask.settle_count > 0) {
        (void)dibsx_fail(&err, DIBS_UNKNOWN,
                         "the lane ended before the store answered");
        dibs__hold_end_settlements(q, DIBS_UNKNOWN, &err);
    }
    while (q->machine.first)
        dibs__hold_lose((dibs_item *)(void *)q->machine.first);
    if (life) {
        atomic_store(&life->valid_until, 0);
        q->life = NULL;
        unref_life(life);
    }
    q->placed = false;
}

static void give_item(dibs__waiter *w, dibs_item *item)
{
    item->handed = true;
    item->q->handed++;
    w->out[w->got++] = item;
}

static void give_back(dibs_item *item)
{
    dibs__hold_want(item, DIBS__ITEM_UNBEGUN, NULL);
    item->freed = true;
    (void)dibs__item_unref(item);
}

void dibs__hold_end_wait(dibs__waiter *w)
{
    w->over = true;
    if (w->call)
        dibs__queue_call_end(w->call);
    else
        pthread_cond_signal(&w->cond);
}

dibs_status dibs__hold_fail_late(const dibs_queue *q, dibs_error *err)
{
    if (q->away)
        return dibsx_fail_at(err, q->failure.status, q->failure.origin, "%s",
                             q->failure.message);
    return dibsx_fail(err, DIBS_TIMEOUT, "%s had no item in time",
                      dibs__name_short(q->cl, q->name));
}

/* A place that nobody needs any more is given up soon, unless the next wait comes. */
void dibs__hold_leave(dibs_queue *q, dibs__waiter *w)
{
    if (dibsx_fifo_remove(&q->waiters, &w->node) && q->placed &&
        !q->waiters.first)
        q->look_at = dibsx_after_ms(dibsx_now(), LINGER_MS);
}

void dibs__hold_serve(dibs_queue *q)
{
    size_t keep = q->cancelled ? 0 : q->opts.prefetch;

    while (q->waiters.first && q->ready.first) {
        dibs__waiter *w = (dibs__waiter *)(void *)q->waiters.first;

        while (w->got < w->want && q->ready.first)
            give_item(w, dibs__item_of_node(dibsx_fifo_pop(&q->ready)));
        (void)dibsx_fifo_pop(&q->waiters);
        w->rc = DIBS_OK;
        dibs__hold_end_wait(w);
    }
    while (q->ready.count > keep)
        give_back(dibs__item_of_node(dibsx_fifo_pop(&q->ready)));
}
