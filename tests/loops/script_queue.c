/* script_queue.c - the part of the script that works on queues: pushes, settlements of each
 * kind and what an operator does, and what the peer sees of it. See script_part.h. */
/* SPDX-License-Identifier: MIT */
#include "faults.h"
#include "script_part.h"

#include <inttypes.h>
#include <string.h>

enum { BATCH = 3 };

static const char texts[BATCH][2] = {"a", "b", "c"};

#define REASON "on purpose"

/* The peer drops what is in the queue: what an earlier run has left, or this one. */
static void clear_queue(script *sc, const char *called)
{
    dibs_error err = {0};
    dibs_status rc;

    faults_take_part(false);
    rc = dibs_queue_purge(sc->peer, called,
                          DIBS_ITEM_READY | DIBS_ITEM_LATER | DIBS_ITEM_OUT |
                              DIBS_ITEM_DEAD,
                          NULL, &err);
    if (rc != DIBS_OK && rc != DIBS_NOTFOUND)
        script_breach_of(sc, rc, "%s: the peer cannot purge: %s", called,
                         err.message);
    faults_take_part(true);
}

/* What the peer sees in the queue; a queue that is not there has zeros. */
static dibs_queue_info peer_counts(script *sc, const char *called)
{
    dibs_queue_info info = {.size = sizeof(info)};
    dibs_error err = {0};
    dibs_status rc;

    faults_take_part(false);
    rc = dibs_queue_stats(sc->peer, called, &info, &err);
    if (rc != DIBS_OK && rc != DIBS_NOTFOUND)
        script_breach_of(sc, rc, "%s: the peer cannot count: %s", called,
                         err.message);
    faults_take_part(true);
    return info;
}

/* No item is made or lost by what was done to it. */
static void expect_items(script *sc, const char *called, const char *after,
                         uint64_t wanted, uint64_t dead)
{
    dibs_queue_info info = peer_counts(sc, called);
    uint64_t all = info.ready + info.later + info.out + info.dead;

    if (all != wanted || info.dead != dead)
        script_breach(sc,
                      "%s: after %s the peer sees %" PRIu64
                      " items, of which %" PRIu64 " are dead, not %" PRIu64
                      " and %" PRIu64,
                      called, after, all, info.dead, wanted, dead);
}

typedef void
queue_part(script *sc, dibs_client *cl, dibs_queue *queue, const char *called);

/* A queue of this run, which is empty before and after. */
static void
use_one(script *sc, dibs_client *cl, const char *noun, queue_part *part)
{
    dibs_queue *queue = NULL;
    dibs_error err = {0};
    dibs_status rc;
    coord_name called;

    name_thing(sc, noun, called);
    clear_queue(sc, called);
    rc = dibs_queue_new(cl, called, DIBS_QUEUE_OPTS(.ttl_ms = LONG_MS), &queue,
                        &err);
    if (script_told(sc, "queue new", rc, DIBS_OK, &err) == DIBS_OK)
        part(sc, cl, queue, called);
    else if (queue)
        script_breach(sc, "%s: failed, and there is a queue", called);
    dibs_queue_free(queue);
    clear_queue(sc, called);
}

/* NULL when there was none. */
static dibs_item *reserve(script *sc, dibs_queue *queue, const char *called)
{
    dibs_item *item = NULL;
    dibs_error err = {0};
    dibs_status rc = dibs_queue_reserve(queue, BRIEF_MS, &item, &err);

    told_wait(sc, "reserve", rc, &err);
    if ((rc == DIBS_OK) != (item != NULL))
        script_breach(sc, "%s: %s, and there is %s item", called,
                      dibs_status_name(rc), item ? "an" : "no");
    return item;
}

/* ---- push, peek, ack */

static dibs_status push_all(script *sc, dibs_queue *queue, const char *called,
                            dibs_pushed made[BATCH])
{
    dibs_push_item items[BATCH] = {{0}};
    dibs_error err = {0};
    dibs_queue_info info;
    dibs_status rc;
    uint64_t all;

    for (int i = 0; i < BATCH; i++)
        items[i] = (dibs_push_item){.data = texts[i], .len = 1};
    rc = dibs_queue_push_many(queue, items, BATCH, NULL, made, &err);
    script_told(sc, "push many", rc, DIBS_OK, &err);
    info = peer_counts(sc, called);
    all = info.ready + info.out;
    if (all != (rc == DIBS_OK ? BATCH : 0) &&
        (rc != DIBS_UNKNOWN || all != BATCH))
        script_breach(sc, "%s: %s, and the peer sees %" PRIu64 " of %d items",
                      called, dibs_status_name(rc), all, BATCH);
    return rc;
}

typedef struct view {
    const dibs_pushed *made;
    unsigned count;
    bool other; /* one is not what was pushed, or not in its place */
} view;

static bool see_item(const dibs_item_info *info, void *arg)
{
    view *vw = arg;

    vw->other = vw->other || vw->count >= BATCH ||
                info->id != vw->made[vw->count].id || info->attempts != 0 ||
                info->len != 1 || memcmp(info->data, texts[vw->count], 1) != 0;
    vw->count++;
    return true;
}

static void
look_ahead(script *sc, dibs_client *cl, dibs_queue *queue, const char *called)
{
    dibs_pushed made[BATCH] = {{0}};
    view vw = {.made = made};
    dibs_error err = {0};
    dibs_status rc;

    if (push_all(sc, queue, called, made) != DIBS_OK)
        return;
    rc = dibs_queue_peek(cl, called, DIBS_ITEM_READY, 0, 2 * BATCH, see_item,
                         &vw, &err);
    script_told(sc, "peek", rc, DIBS_OK, &err);
    if (vw.other || (rc == DIBS_OK && vw.count != BATCH))
        script_breach(sc, "%s: a peek shows %u items of %d, %s", called,
                      vw.count, BATCH, vw.other ? "another too" : "no other");
    expect_items(sc, called, "a peek", BATCH, 0);
}

void push_batch(script *sc, dibs_client *cl)
{
    use_one(sc, cl, "batch", look_ahead);
}

/* An ack that was accepted leaves nothing out. */
static void is_acked(script *sc, const char *called)
{
    dibs_queue_info info = peer_counts(sc, called);

    if (info.out > 0 || info.acked == 0)
        script_breach(sc,
                      "%s: acked, and the peer sees %" PRIu64 " out, %" PRIu64
                      " acked",
                      called, info.out, info.acked);
}

static void
work_item(script *sc, dibs_client *cl, dibs_queue *queue, const char *called)
{
    dibs_error err = {0};
    dibs_status rc = dibs_queue_push(queue, "x", 1, NULL, NULL, &err);
    dibs_item *item;

    (void)cl;
    script_told(sc, "push", rc, DIBS_OK, &err);
    item = reserve(sc, queue, called);
    if (item) {
        rc = dibs_item_ack(item, &err);
        script_told(sc, "ack", rc, DIBS_LOST, &err);
        if (rc == DIBS_OK)
            is_acked(sc, called);
    }
    dibs_item_free(item);
}

void use_queue(script *sc, dibs_client *cl)
{
    use_one(sc, cl, "items", work_item);
}

/* ---- nack */

static dibs_status
nack(script *sc, dibs_item *item, int64_t delay_ms, const char *called)
{
    dibs_error err = {0};
    dibs_status rc = dibs_item_nack(item, delay_ms, REASON, &err);

    script_told(sc, "nack", rc, DIBS_LOST, &err);
    if (rc == DIBS_OK && dibs_item_check(item) == DIBS_OK)
        script_breach(sc, "%s: nacked, and still in hand", called);
    if (rc == DIBS_OK)
        expect_items(sc, called, "a nack", BATCH, 0);
    return rc;
}

/* It came back without a delay: to its old place, and its attempts count. */
static void expect_again(script *sc, const dibs_item *item, uint64_t id,
                         uint64_t fence, const char *called)
{
    uint32_t begun = dibs_item_attempt(item) - dibs_item_losses(item);

    if (dibs_item_id(item) != id || dibs_item_fence(item) <= fence)
        script_breach(sc, "%s: the item that was nacked is not the next one",
                      called);
    else if (begun != 2)
        script_breach(sc, "%s: its second attempt is the %uth", called,
                      dibs_item_attempt(item));
}

static void
nack_again(script *sc, dibs_client *cl, dibs_queue *queue, const char *called)
{
    dibs_pushed made[BATCH] = {{0}};
    dibs_item *item = NULL;
    uint64_t id = 0, fence = 0;

    (void)cl;
    if (push_all(sc, queue, called, made) == DIBS_OK)
        item = reserve(sc, queue, called);
    if (item && nack(sc, item, 0, called) == DIBS_OK) {
        id = dibs_item_id(item);
        fence = dibs_item_fence(item);
    }
    dibs_item_free(item);
    item = id ? reserve(sc, queue, called) : NULL;
    if (item) {
        expect_again(sc, item, id, fence, called);
        if (nack(sc, item, LONG_MS, called) == DIBS_OK &&
            peer_counts(sc, called).later != 1)
            script_breach(sc, "%s: nacked with a delay, and not delayed",
                          called);
    }
    dibs_item_free(item);
}

void nack_item(script *sc, dibs_client *cl)
{
    use_one(sc, cl, "nacks", nack_again);
}

/* ---- dead and redrive */

static bool see_reason(const dibs_item_info *info, void *arg)
{
    *(bool *)arg = strcmp(info->reason, REASON) == 0;
    return true;
}

static void redrive(script *sc, dibs_client *cl, const char *called)
{
    uint64_t count = 0;
    bool told = false;
    dibs_error err = {0};
    dibs_status rc = dibs_queue_peek(cl, called, DIBS_ITEM_DEAD, 0, BATCH,
                                     see_reason, &told, &err);

    script_told(sc, "peek at the dead", rc, DIBS_OK, &err);
    if (rc == DIBS_OK && !told)
        script_breach(sc, "%s: the dead letter does not say its reason",
                      called);
    rc = dibs_queue_redrive(cl, called, 0, 0, &count, &err);
    script_told(sc, "redrive", rc, DIBS_OK, &err);
    if (rc == DIBS_OK && count != 1)
        script_breach(sc, "%s: redrove %" PRIu64 " of 1", called, count);
    if (rc == DIBS_OK || count > 0)
        expect_items(sc, called, "a redrive", BATCH, 0);
    else if (rc != DIBS_UNKNOWN)
        expect_items(sc, called, "a redrive that failed", BATCH, 1);
}

static void
bury(script *sc, dibs_client *cl, dibs_queue *queue, const char *called)
{
    dibs_pushed made[BATCH] = {{0}};
    dibs_item *item = NULL;
    dibs_error err = {0};
    dibs_status rc;

    if (push_all(sc, queue, called, made) == DIBS_OK)
        item = reserve(sc, queue, called);
    if (item) {
        rc = dibs_item_dead(item, REASON, &err);
        script_told(sc, "dead", rc, DIBS_LOST, &err);
        if (rc == DIBS_OK) {
            expect_items(sc, called, "a death", BATCH, 1);
            redrive(sc, cl, called);
        }
    }
    dibs_item_free(item);
}

void bury_item(script *sc, dibs_client *cl)
{
    use_one(sc, cl, "dead", bury);
}

/* ---- detach */

static void ack_by_token(script *sc, dibs_queue *queue, const char *token,
                         const char *called)
{
    dibs_item *item = NULL;
    dibs_error err = {0};
    dibs_status rc = dibs_queue_adopt(queue, token, &item, &err);

    script_told(sc, "adopt", rc, DIBS_OK, &err);
    if (rc != DIBS_OK)
        return;
    rc = dibs_item_ack(item, &err);
    script_told(sc, "ack by token", rc, DIBS_LOST, &err);
    if (rc == DIBS_OK)
        expect_items(sc, called, "an ack by token", 0, 0);
    dibs_item_free(item);
}

static void
detach(script *sc, dibs_client *cl, dibs_queue *queue, const char *called)
{
    char token[DIBS_ITEM_TOKEN_SIZE] = "";
    dibs_error err = {0};
    dibs_item *item = NULL;
    dibs_status rc = dibs_queue_push(queue, "x", 1, NULL, NULL, &err);

    (void)cl;
    script_told(sc, "push", rc, DIBS_OK, &err);
    if (rc == DIBS_OK)
        item = reserve(sc, queue, called);
    if (item) {
        rc = dibs_item_detach(item, token, &err);
        script_told(sc, "detach", rc, DIBS_LOST, &err);
        if ((rc == DIBS_OK) != (token[0] != '\0'))
            script_breach(sc, "%s: %s, and the token is `%s`", called,
                          dibs_status_name(rc), token);
    }
    dibs_item_free(item);
    if (token[0] != '\0') {
        expect_items(sc, called, "a detach", 1, 0);
        ack_by_token(sc, queue, token, called);
    }
}

void detach_item(script *sc, dibs_client *cl)
{
    use_one(sc, cl, "tokens", detach);
}
