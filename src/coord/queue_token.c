/* queue_token.c - deliveries that change hands: detach, adopt, and the settlement of what
 * was adopted.
 *
 * A token has the lane, with its number and stamp, and the delivery, which is all that the
 * lane has. So the process that adopts it sends the next number of the lane, and ends the
 * lane then: a token that was used is lost. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/cond.h"
#include "base/uncancel.h"
#include "coord/queue_lane.h"
#include "core/names.h"
#include "core/reach.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    TRIES_LONG = 2,
    PAUSE_MS = 50,
    LEAVE_MS = 1000,
    KEEP_MIN_MS = 1000,
    KEEP_MAX_MS = 24 * 60 * 60 * 1000
};

static void write_token(const dibs_item *item, char out[DIBS_ITEM_TOKEN_SIZE])
{
    const dibs__consumer *c = &item->q->machine;
    const dibs__token *token = &item->lane.token;

    snprintf(out, DIBS_ITEM_TOKEN_SIZE,
             "%" PRIx64 "-%" PRIx64 "-%" PRIx64 "-%" PRIx64 "-%" PRIx64
             "-%" PRIx32,
             c->lane, c->number, c->stamp, token->id, token->fence,
             token->attempt);
}

static bool read_token(const char *text, dibs_item *item)
{
    dibs__token *token = &item->lane.token;
    int end = 0;

    if (strlen(text) >= DIBS_ITEM_TOKEN_SIZE ||
        strspn(text, "0123456789abcdef-") != strlen(text))
        return false;
    return sscanf(text,
                  "%" SCNx64 "-%" SCNx64 "-%" SCNx64 "-%" SCNx64 "-%" SCNx64
                  "-%" SCNx32 "%n",
                  &item->from_lane, &item->number, &item->stamp, &token->id,
                  &token->fence, &token->attempt, &end) == 6 &&
           text[end] == '\0';
}

/* ---- detach */

/* DIBS_OK: this is all that the lane has; what was reserved ahead goes back. Locks:
 * cl->mutex. */
static dibs_status check_alone(dibs_item *item, dibs_error *err)
{
    dibs_queue *q = item->q;

    if (item->state == DIBS__ITEM_LOST || dibs_item_check(item) != DIBS_OK)
        return item->state == DIBS__ITEM_HELD || item->state == DIBS__ITEM_LOST
                   ? dibsx_fail(err, DIBS_LOST,
                                "the item is not this consumer's any more")
                   : dibsx_fail(err, DIBS_INVALID,
                                "the item is settled already");
    if (q->handed > 1 || q->waiters.first)
        return dibsx_fail(err, DIBS_INVALID,
                          "other items of %s are in hand, or a thread waits "
                          "for one; use a handle for each item to detach",
                          dibs__name_short(q->cl, q->name));
    return DIBS_OK;
}

static void return_ready(dibs_queue *q)
{
    dibsx_fifo_node *node;

    while ((node = dibsx_fifo_pop(&q->ready)) != NULL) {
        dibs_item *ahead = dibs__item_of_node(node);

        ahead->freed = true;
        dibs__hold_want(ahead, DIBS__ITEM_UNBEGUN, NULL);
        (void)dibs__item_unref(ahead);
    }
}

/* Sends one more request, so that the ttl begins, the lane waits for nothing, and the
 * delivery is all that it has. Locks: cl->mutex, let go meanwhile. */
static dibs_status
settle_rest(dibs_item *item, dibsx_nsec deadline, dibs_error *err)
{
    dibs_queue *q = item->q;
    dibs_client *cl = q->cl;
    uint64_t lane = q->machine.lane, number;
    dibs_status rc = check_alone(item, err);

    if (rc != DIBS_OK)
        return rc;
    number = q->machine.number + 1 + q->machine.asking;
    while (rc == DIBS_OK && (q->machine.number < number || q->machine.asking ||
                             q->driving || q->machine.count > 1)) {
        if (dibsx_now() >= deadline)
            return dibsx_fail(err, DIBS_UNKNOWN, "%s",
                              q->away ? q->failure.message
                                      : "no answer in time");
        return_ready(q);
        q->forced = q->machine.number < number;
        if (q->driving)
            pthread_cond_wait(&cl->over, &cl->mutex);
        else
            dibs__ask_go_on(q, &q->calm, deadline);
        if (q->machine.lane != lane)
            rc = dibsx_fail(err, DIBS_LOST,
                            "the item is not this consumer's any more");
        else
            rc = check_alone(item, err);
    }
    return rc;
}

dibs_status dibs_item_detach(dibs_item *item, char out[DIBS_ITEM_TOKEN_SIZE],
                             dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibs_queue *q;
    dibs_status rc;

    out[0] = '\0';
    if (!item || !item->life)
        return dibsx_fail(err, DIBS_INVALID,
                          item ? "the item is detached already"
                               : "the item is NULL");
    q = item->q;
    rc = dibs__ask_begin(q, err);
    if (rc != DIBS_OK)
        return rc;
    rc =
        settle_rest(item,
                    dibsx_after_ms(dibsx_now(), TRIES_LONG * q->cl->timeout_ms),
                    err);
    q->forced = false;
    if (rc == DIBS_OK) {
        write_token(item, out);
        dibs__consumer_drop(&q->machine, &item->lane);
        q->handed--;
        item->state = DIBS__ITEM_SETTLED;
        atomic_store(&item->over, true);
        dibs__consumer_end(&q->machine);
        dibs__hold_lose_all(q);
    } else if (rc == DIBS_UNKNOWN && !q->driving) {
        dibs__ask_leave(q);
        dibs__tend_set(q);
    }
    dibs__ask_end(q);
    return rc;
}

/* ---- adopt */

dibs_status dibs_queue_adopt(dibs_queue *q, const char *token, dibs_item **out,
                             dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibs_item *item;
    dibs_status rc;

    *out = NULL;
    rc = dibs__ask_begin(q, err);
    if (rc != DIBS_OK)
        return rc;
    dibs__ask_end(q);
    item = dibsx_zalloc(sizeof(*item) + 1);
    if (!item)
        return dibsx_nomem(err, "an item");
    if (!token || !read_token(token, item)) {
        dibsx_free(item);
        return dibsx_fail(err, DIBS_INVALID,
                          "that is no token of an item: `%.40s`",
                          token ? token : "");
    }
    item->parts.data = item->bytes;
    item->q = q;
    item->refs = 1;
    item->handed = true;
    atomic_store(&item->limit_until, DIBSX_NEVER);
    pthread_mutex_lock(&q->cl->mutex);
    q->refs++;
    pthread_mutex_unlock(&q->cl->mutex);
    *out = item;
    return DIBS_OK;
}

static void ignore_delivery(const dibs__delivery *delivery, void *arg)
{
    (void)delivery;
    (void)arg;
}

static dibs_status
tend_adopted(dibs_item *item, int64_t keep_ms, dibs_error *err)
{
    dibs_client *cl = item->q->cl;
    dibsx_nsec deadline = dibs__client_deadline(cl, dibsx_now());
    dibs__tend tend = {.queue = item->q->name,
                       .lane = item->from_lane,
                       .span_ms = keep_ms};
    dibs_status rc = dibs__reach_store(cl, deadline, err);

    if (keep_ms < KEEP_MIN_MS || keep_ms > KEEP_MAX_MS)
        return dibsx_fail(err, DIBS_INVALID,
                          "an item is kept for %d to %d ms, and not %" PRId64,
                          (int)KEEP_MIN_MS, (int)KEEP_MAX_MS, keep_ms);
    if (rc == DIBS_OK)
        rc = cl->st->ops->queue->tend(cl->st, &tend, 1, deadline, err);
    if (rc != DIBS_OK || tend.rc == DIBS_OK)
        return rc;
    return dibsx_fail(err, tend.rc, "the token is over");
}

static void pause_a_moment(dibs_queue *q)
{
    pthread_mutex_lock(&q->cl->mutex);
    dibsx_cond_wait(&q->calm, &q->cl->mutex,
                    dibsx_after_ms(dibsx_now(), PAUSE_MS));
    pthread_mutex_unlock(&q->cl->mutex);
}

/* Sends the next number of the lane, again while it has no answer. Locks: none held. */
static dibs_status
send_adopted(dibs_item *item, dibs__settlement *settle, dibs_error *err)
{
    dibs_queue *q = item->q;
    dibs_client *cl = q->cl;
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), TRIES_LONG * cl->timeout_ms);
    bool doubt = false;
    dibs_status rc;

    do {
        dibsx_nsec deadline = dibs__client_deadline(cl, dibsx_now());
        dibs__reserve ask = {.queue = q->name,
                             .lane = item->from_lane,
                             .number = item->number + 1,
                             .seen = item->stamp,
                             .span_ms = q->opts.ttl_ms,
                             .as = "",
                             .settle = settle,
                             .settle_count = 1,
                             .replicas = q->replicas};

        rc = dibs__reach_store(cl, deadline, err);
        if (rc == DIBS_OK)
            rc = cl->st->ops->queue->reserve(cl->st, &ask, deadline,
                                             ignore_delivery, NULL, err);
        if (rc == DIBS_INVALID) {
            /* Another settled with this number: nothing of this was done. */
            doubt = false;
            rc = DIBS_LOST;
        }
        doubt = doubt || rc == DIBS_UNKNOWN;
        if (doubt && rc != DIBS_OK && rc != DIBS_LOST)
            pause_a_moment(q);
    } while (doubt && rc != DIBS_OK && rc != DIBS_LOST && dibsx_now() < end);
    if (rc != DIBS_OK && doubt)
        return dibsx_unanswered(err);
    return rc;
}

dibs_status dibs__token_settle(dibs_item *item, const dibs__settlement *how,
                               dibs_error *err)
{
    dibs_queue *q = item->q;
    dibs__settlement settle = *how;
    dibs_status rc = dibs__ask_begin(q, err);
    bool settled = item->state == DIBS__ITEM_SETTLED;

    if (rc != DIBS_OK)
        return rc;
    rc = dibs__settle_keep_text(item, how, err);
    if (rc != DIBS_OK) {
        dibs__ask_end(q);
        return rc;
    }
    settle.reason = item->reason;
    pthread_mutex_unlock(&q->cl->mutex);
    settle.token = item->lane.token;
    if (settled)
        rc = dibsx_fail(err, DIBS_INVALID, "the item is settled already");
    else if (how->verb == DIBS__ITEM_EXTEND)
        rc = tend_adopted(item, how->ms, err);
    else
        rc = send_adopted(item, &settle, err);
    if (rc == DIBS_OK && !settled && how->verb != DIBS__ITEM_EXTEND) {
        rc = settle.rc == DIBS_UNKNOWN ? dibs__settle_unconfirmed(item, err)
                                       : settle.rc;
        (void)q->cl->st->ops->queue->leave(q->cl->st, q->name, item->from_lane,
                                           dibsx_after_ms(dibsx_now(),
                                                          LEAVE_MS),
                                           NULL);
        settled = true;
    }
    if (rc == DIBS_LOST)
        rc = dibsx_fail(err, DIBS_LOST,
                        "the token is over: the item was settled, or another "
                        "has it now");
    pthread_mutex_lock(&q->cl->mutex);
    if (settled || rc == DIBS_LOST) {
        item->state = DIBS__ITEM_SETTLED;
        atomic_store(&item->over, true);
    }
    dibs__ask_end(q);
    return rc;
}
