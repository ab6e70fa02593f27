/* queue_ask.c - the requests of a lane: gathers what the threads of a handle want, sends it,
 * and shares out the answer.
 *
 * One thread at a time sends: one that wants something, or a worker when no thread
 * waits. A request without an answer stays as it is, and is sent again. Locks: cl->mutex
 * for everything here, let go for the step. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/cond.h"
#include "coord/queue_lane.h"
#include "core/log.h"
#include "core/names.h"
#include "core/reach.h"
#include <string.h>

enum {
    LOOK_MS = 1000, /* a lane that waits asks so often by itself */
    PAUSE_MIN_MS = 20,
    PAUSE_MAX_MS = 1000,
    STEP_MIN_MS = 500,
    LEAVE_MS = 1000,
    LANE_BITS = 53
};

static bool draw_lane(uint64_t *lane)
{
    do {
        if (!dibsx_random(lane, sizeof(*lane)))
            return false;
        *lane >>= 64 - LANE_BITS;
    } while (*lane == 0);
    return true;
}

static dibs_status open_lane(dibs_queue *q, dibs_error *err)
{
    uint64_t lane;

    q->life = dibsx_zalloc(sizeof(*q->life));
    if (!q->life)
        return dibsx_nomem(err, "a lane");
    q->life->refs = 1;
    if (!draw_lane(&lane)) {
        dibsx_free(q->life);
        q->life = NULL;
        return dibsx_fail(err, DIBS_UNAVAIL,
                          "the system has no random numbers now");
    }
    dibs__consumer_open(&q->machine, lane);
    dibs__lane_address(lane, q->address);
    q->placed = false;
    q->request.stray_count = 0;
    return DIBS_OK;
}

/* ---- the request */

/* The store may end the delivery at the new limit as soon as the request is sent, whether
 * an answer comes or not; a longer limit counts with its answer. */
static void shorten_limit(dibs_item *item, dibsx_nsec sent_at)
{
    dibsx_nsec until = dibs__hold_limit(sent_at, item->ms);

    if (until < atomic_load(&item->limit_until))
        atomic_store(&item->limit_until, until);
}

static void add_settlements(dibs_queue *q)
{
    dibs__queue_request *rq = &q->request;

    rq->stray_asked = rq->ask.settle_count = rq->stray_count;
    for (size_t i = 0; i < rq->stray_count; i++) {
        rq->items[i] = NULL;
        rq->settle[i] = (dibs__settlement){.verb = DIBS__ITEM_UNBEGUN,
                                           .token = rq->strays[i]};
    }
    while (q->wanted.first && rq->ask.settle_count < DIBS__QUEUE_BATCH) {
        dibs_item *item = dibs__item_of_node(dibsx_fifo_pop(&q->wanted));
        size_t i = rq->ask.settle_count++;

        item->state = DIBS__ITEM_ASKED;
        rq->items[i] = item;
        rq->settle[i] = (dibs__settlement){.verb = item->verb,
                                           .token = item->lane.token,
                                           .ms = item->ms,
                                           .reason = item->reason};
        if (item->verb == DIBS__ITEM_EXTEND)
            shorten_limit(item, rq->asked_at);
        else
            dibs__consumer_settle(&q->machine, &item->lane);
    }
}

static void add_wants(dibs_queue *q)
{
    dibs__reserve *ask = &q->request.ask;
    size_t want = 0;

    for (dibsx_fifo_node *at = q->waiters.first; at; at = at->next) {
        dibs__waiter *w = (dibs__waiter *)(void *)at;

        want += w->want - w->got;
        w->asked = true;
    }
    if (want > 0 && q->opts.prefetch > q->ready.count)
        want += q->opts.prefetch - q->ready.count;
    ask->want = want < DIBS__QUEUE_BATCH ? (uint32_t)want : DIBS__QUEUE_BATCH;
    if (q->opts.prefetch > 0)
        ask->hands = (uint32_t)(q->handed + q->waiters.count);
    if (q->opts.prefetch > 0 && ask->hands == 0)
        ask->hands = 1;
}

/* With an empty hand the first look takes no place: what it finds then has the whole ttl
 * from the start. */
static bool needs_place(const dibs_queue *q)
{
    if (!q->dry && q->machine.count == 0)
        return false;
    for (dibsx_fifo_node *at = q->waiters.first; at; at = at->next)
        if (((const dibs__waiter *)(const void *)at)->waits)
            return true;
    return false;
}

static void fill_request(dibs_queue *q, dibsx_nsec now)
{
    dibs__queue_request *rq = &q->request;
    dibs__lane_ask ask;
    bool places = needs_place(q);

    dibs__consumer_ask(&q->machine, places, now, &ask);
    rq->ask = (dibs__reserve){.queue = q->name,
                              .lane = ask.lane,
                              .number = ask.number,
                              .seen = ask.seen,
                              .span_ms = ask.span_ms,
                              .wait = !ask.opens && places,
                              .as = q->as,
                              .limit_ms = q->opts.limit_ms,
                              .heard = rq->heard,
                              .settle = rq->settle,
                              .replicas = q->replicas};
    rq->asked_at = now;
    rq->stray_asked = 0;
    if (ask.opens)
        return;
    add_settlements(q);
    add_wants(q);
    rq->ask.heard_count =
        dibs__consumer_heard(&q->machine, rq->heard, DIBS__QUEUE_BATCH);
    q->forced = false;
}

/* Without the mutex. */
static void add_delivery(const dibs__delivery *delivery, void *arg)
{
    dibs__queue_request *rq = arg;
    dibs_item *item = dibs__hold_copy(delivery);

    if (item)
        dibsx_fifo_push(&rq->delivered, &item->node);
    else if (rq->stray_count < DIBS__QUEUE_BATCH)
        rq->strays[rq->stray_count++] = delivery->token;
    else
        rq->starved = true;
}

/* Locks: none held. */
static dibs_status
send_request(dibs_queue *q, dibsx_nsec sent_at, dibs_error *err)
{
    dibs_client *cl = q->cl;
    dibsx_nsec deadline = dibs__client_deadline(cl, sent_at);
    int64_t most_ms = q->machine.ttl_ms / 3;
    dibsx_nsec end =
        dibsx_after_ms(sent_at, most_ms > STEP_MIN_MS ? most_ms : STEP_MIN_MS);
    dibs_status rc;

    if (end < deadline)
        deadline = end;
    rc = dibs__reach_store(cl, deadline, err);
    if (rc != DIBS_OK)
        return rc;
    if (q->request.ask.wait)
        dibs__notices_listen(cl, cl->st, deadline);
    return cl->st->ops->queue->reserve(cl->st, &q->request.ask, deadline,
                                       add_delivery, &q->request, err);
}

/* ---- the answer */

static void drop_delivered(dibs__queue_request *rq)
{
    dibsx_fifo_node *node;

    while ((node = dibsx_fifo_pop(&rq->delivered)) != NULL)
        dibsx_free(dibs__item_of_node(node));
}

static void take_settlements(dibs_queue *q)
{
    dibs__queue_request *rq = &q->request;

    for (size_t i = 0; i < rq->ask.settle_count; i++) {
        dibs_item *item = rq->items[i];
        dibs_error err = {.status = DIBS_OK};

        if (!item)
            continue;
        if (rq->settle[i].rc == DIBS_OK && item->verb == DIBS__ITEM_EXTEND)
            atomic_store(&item->limit_until,
                         dibs__hold_limit(rq->asked_at, item->ms));
        if (rq->settle[i].rc == DIBS_UNKNOWN)
            (void)dibs__settle_unconfirmed(item, &err);
        else if (rq->settle[i].rc != DIBS_OK)
            (void)dibsx_fail(&err, rq->settle[i].rc,
                             "item %llu of %s was not this consumer's any more",
                             (unsigned long long)item->lane.token.id,
                             dibs__name_short(q->cl, q->name));
        dibs__hold_settled(item, rq->settle[i].rc, &err);
    }
    rq->ask.settle_count = 0;
    rq->stray_count -= rq->stray_asked;
    memmove(rq->strays, &rq->strays[rq->stray_asked],
            rq->stray_count * sizeof(rq->strays[0]));
    rq->stray_asked = 0;
}

/* Ends the waits that one look is enough for, or all. */
static void
end_waits(dibs_queue *q, bool all, dibs_status rc, const dibs_error *err)
{
    dibsx_fifo_node *node = q->waiters.first;

    while (node) {
        dibs__waiter *w = (dibs__waiter *)(void *)node;

        node = node->next;
        if (!all && (w->waits || (rc == DIBS_BUSY && !w->asked)))
            continue;
        (void)dibsx_fifo_remove(&q->waiters, &w->node);
        w->rc = rc;
        w->err = *err;
        dibs__hold_end_wait(w);
    }
}

/* An item in hand that was shown again is no stray. */
static void drop_known_strays(dibs_queue *q)
{
    dibs__queue_request *rq = &q->request;

    for (dibs__lane_item *at = q->machine.first; at && rq->stray_count > 0;
         at = at->next)
        for (size_t i = 0; i < rq->stray_count; i++)
            if (rq->strays[i].id == at->token.id &&
                rq->strays[i].fence == at->token.fence)
                rq->strays[i--] = rq->strays[--rq->stray_count];
}

static void take_done(dibs_queue *q, dibsx_nsec sent_at)
{
    dibs__queue_request *rq = &q->request;
    dibsx_nsec now = dibsx_now();
    bool any = rq->delivered.first != NULL;
    dibsx_fifo_node *node;
    dibs_error err = {.status = DIBS_OK};

    dibs__hold_publish(q);
    take_settlements(q);
    while ((node = dibsx_fifo_pop(&rq->delivered)) != NULL)
        dibs__hold_take(q, dibs__item_of_node(node), sent_at);
    drop_known_strays(q);
    q->placed = rq->ask.want > 0 && rq->ask.wait && !any;
    q->dry = rq->ask.want > 0 && !any && !q->rung;
    q->hungry = any || q->rung;
    q->rung = false;
    q->look_at =
        dibsx_after_ms(now, rq->ask.due_ms >= 0 && rq->ask.due_ms < LOOK_MS
                                ? rq->ask.due_ms
                                : LOOK_MS);
    dibs__hold_serve(q);
    if (rq->ask.number > 1) {
        (void)dibsx_fail(&err, DIBS_BUSY, "%s has no item now",
                         dibs__name_short(q->cl, q->name));
        end_waits(q, false, DIBS_BUSY, &err);
    }
    q->away = false;
    q->failures = 0;
    q->ask_at = 0;
}

static bool is_away(dibs_status rc)
{
    return rc == DIBS_UNAVAIL || rc == DIBS_UNKNOWN;
}

/* Says once that the store is out of reach. Locks: cl->mutex, let go for the log. */
static void note_failure(dibs_queue *q, dibs_status rc, const dibs_error *err)
{
    int64_t pause_ms = PAUSE_MIN_MS << (q->failures < 6 ? q->failures : 6);
    bool is_new = !q->away;

    if (pause_ms > PAUSE_MAX_MS)
        pause_ms = PAUSE_MAX_MS;
    pause_ms = pause_ms / 2 +
               (int64_t)dibsx_prng_below(&q->cl->jitter, (uint64_t)pause_ms);
    q->failures++;
    q->ask_at = dibsx_after_ms(dibsx_now(), pause_ms);
    q->away = true;
    q->failure = *err;
    end_waits(q, !is_away(rc), rc, err);
    if (!is_new)
        return;
    pthread_mutex_unlock(&q->cl->mutex);
    dibs__log(q->cl, DIBS_LOG_WARN, "queue",
              "cannot use %s, and will try again: %s",
              dibs__name_short(q->cl, q->name), err->message);
    pthread_mutex_lock(&q->cl->mutex);
}

/* The lane has ended, and with it the request. */
static void end_request(dibs_queue *q, dibs_status rc, const dibs_error *cause)
{
    dibs_error err = {.status = DIBS_OK};

    if (rc == DIBS_LOST)
        (void)dibsx_fail(&err, DIBS_LOST,
                         "the deliveries of %s were not this consumer's any "
                         "more",
                         dibs__name_short(q->cl, q->name));
    else
        (void)dibsx_fail(&err, DIBS_UNKNOWN, "%s",
                         cause && cause->message[0] ? cause->message
                                                    : "no answer in time");
    dibs__hold_end_settlements(q, rc, &err);
    dibs__hold_lose_all(q);
    q->hungry = true;
}

static void take_answer(dibs_queue *q, dibsx_nsec sent_at, dibs_status rc,
                        const dibs_error *err)
{
    dibs__queue_request *rq = &q->request;
    dibs__asked asked = dibs__consumer_answered(&q->machine, sent_at,
                                                dibsx_now(), rc, rq->ask.stamp);

    if (asked == DIBS__ASKED_DONE)
        take_done(q, sent_at);
    drop_delivered(rq);
    if (asked == DIBS__ASKED_NOT)
        dibs__hold_end_settlements(q, rc, err);
    if (asked == DIBS__ASKED_LOST || asked == DIBS__ASKED_UNSURE)
        end_request(q, asked == DIBS__ASKED_LOST ? DIBS_LOST : DIBS_UNKNOWN,
                    err);
    if (rc != DIBS_OK && rc != DIBS_LOST)
        note_failure(q, rc, err);
    if (q->machine.state == DIBS__LANE_ENDED)
        dibs__hold_lose_all(q);
}

/* A lane whose validity is over takes the request with it. */
static dibs_status ready_lane(dibs_queue *q, dibs_error *err)
{
    dibs__consumer_look(&q->machine, dibsx_now());
    if (q->machine.state == DIBS__LANE_OPEN)
        return DIBS_OK;
    if (q->life || q->request.ask.settle_count > 0)
        end_request(q, DIBS_UNKNOWN, &q->failure);
    return open_lane(q, err);
}

void dibs__ask_drive(dibs_queue *q)
{
    dibs_client *cl = q->cl;
    dibs_error err = {.status = DIBS_OK};
    dibs_status rc = ready_lane(q, &err);
    dibsx_nsec sent_at = dibsx_now();

    q->driving = true;
    if (rc != DIBS_OK) {
        note_failure(q, rc, &err);
    } else {
        if (!q->machine.asking)
            fill_request(q, sent_at);
        q->request.starved = false;
        pthread_mutex_unlock(&cl->mutex);
        rc = send_request(q, sent_at, &err);
        pthread_mutex_lock(&cl->mutex);
        take_answer(q, sent_at, rc, &err);
    }
    /* To leave lets the mutex go, and a queue that nobody drives can be freed then. */
    if (q->request.starved)
        dibs__ask_leave(q);
    q->driving = false;
    dibs__tend_set(q);
    pthread_cond_broadcast(&cl->over);
}

/* Thread: a worker. */
void dibs__ask_run(dibs_client *cl, dibs__job *job)
{
    dibs_queue *q =
        (dibs_queue *)(void *)((char *)job - offsetof(dibs_queue, job));
    dibsx_nsec until;

    (void)cl;
    while (!dibs__queue_is_over(q) && dibs__ask_due(q, dibsx_now(), &until))
        dibs__ask_drive(q);
    if (!dibs__queue_is_over(q))
        dibs__tend_set(q);
    (void)dibs__queue_unref(q);
}

/* If the store does not hear of it, what the lane had comes back with its end. */
void dibs__ask_leave(dibs_queue *q)
{
    dibs_client *cl = q->cl;
    uint64_t lane = q->machine.lane;
    bool tells = q->machine.state == DIBS__LANE_OPEN && q->machine.number > 0;
    char name[DIBS_NAME_MAX + 1];

    memcpy(name, q->name, sizeof(name));
    dibs__consumer_end(&q->machine);
    end_request(q, DIBS_UNKNOWN, NULL);
    if (!tells || !atomic_load(&cl->reached))
        return;
    pthread_mutex_unlock(&cl->mutex);
    (void)cl->st->ops->queue->leave(cl->st, name, lane,
                                    dibsx_after_ms(dibsx_now(), LEAVE_MS),
                                    NULL);
    pthread_mutex_lock(&cl->mutex);
}

/* ---- calls */

dibs_status dibs__ask_begin(dibs_queue *q, dibs_error *err)
{
    dibs_status rc;

    if (!q)
        return dibsx_fail(err, DIBS_INVALID, "the queue is NULL");
    rc = dibs__client_usable(q->cl, err);
    if (rc != DIBS_OK)
        return rc;
    pthread_mutex_lock(&q->cl->mutex);
    if (dibs__queue_is_over(q))
        rc = dibsx_fail(err, q->freed ? DIBS_INVALID : DIBS_CANCELLED,
                        q->freed ? "the queue is freed"
                                 : "the client is being closed");
    if (rc != DIBS_OK)
        pthread_mutex_unlock(&q->cl->mutex);
    else
        q->callers++;
    return rc;
}

void dibs__ask_end(dibs_queue *q)
{
    q->callers--;
    dibs__ask_pass_on(q);
    pthread_cond_broadcast(&q->cl->over);
    pthread_mutex_unlock(&q->cl->mutex);
}

void dibs__ask_go_on(dibs_queue *q, pthread_cond_t *cond, dibsx_nsec deadline)
{
    dibsx_nsec until;

    if (dibs__ask_due(q, dibsx_now(), &until)) {
        dibs__ask_drive(q);
        return;
    }
    dibsx_cond_wait(cond, &q->cl->mutex, until < deadline ? until : deadline);
}
