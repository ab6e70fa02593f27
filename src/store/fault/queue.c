/* queue.c - the queue steps of the fault store. */
/* SPDX-License-Identifier: MIT */
#include "store/fault/step.h"
#include <string.h>

/* Drops what reserve delivers, for an answer that is lost. */
static void drop_delivery(const dibs__delivery *delivery, void *arg)
{
    (void)delivery;
    (void)arg;
}

static dibs_status fault_push(dibs__store *st, const dibs__push *push,
                              dibsx_nsec deadline, dibs_error *err)
{
    dibs__fault_store *fs = dibs__fault_of(st);
    bool after;
    dibs_status rc =
        dibs__fault_begin(fs, DIBS__STEP_PUSH, deadline, &after, err);

    for (size_t i = 0; i < push->count; i++)
        push->items[i].id = 0;
    if (rc == DIBS_OK)
        rc = fs->within->ops->queue->push(fs->within, push, deadline, err);
    if (!after)
        return rc;
    for (size_t i = 0; i < push->count; i++)
        push->items[i].id = 0;
    return dibs__fault_lose_answer(err);
}

static dibs_status
fault_reserve(dibs__store *st, dibs__reserve *ask, dibsx_nsec deadline,
              dibs__delivery_fn *each, void *arg, dibs_error *err)
{
    dibs__fault_store *fs = dibs__fault_of(st);
    bool after;
    dibs_status rc =
        dibs__fault_begin(fs, DIBS__STEP_RESERVE, deadline, &after, err);

    ask->stamp = 0;
    ask->due_ms = -1;
    if (rc == DIBS_OK)
        rc = fs->within->ops->queue->reserve(fs->within, ask, deadline,
                                             after ? drop_delivery : each, arg,
                                             err);
    if (!after)
        return rc;
    ask->stamp = 0;
    ask->due_ms = -1;
    for (size_t i = 0; i < ask->settle_count; i++)
        ask->settle[i].rc = DIBS_UNKNOWN;
    return dibs__fault_lose_answer(err);
}

static dibs_status fault_tend(dibs__store *st, dibs__tend *items, size_t count,
                              dibsx_nsec deadline, dibs_error *err)
{
    dibs__fault_store *fs = dibs__fault_of(st);
    bool after;
    dibs_status rc =
        dibs__fault_begin(fs, DIBS__STEP_TEND, deadline, &after, err);

    if (rc == DIBS_OK)
        rc = fs->within->ops->queue->tend(fs->within, items, count, deadline,
                                          err);
    for (size_t i = 0; i < count && after; i++)
        items[i] = (dibs__tend){.queue = items[i].queue,
                                .lane = items[i].lane,
                                .span_ms = items[i].span_ms,
                                .rc = DIBS_UNKNOWN};
    return after ? dibs__fault_lose_answer(err) : rc;
}

static dibs_status
fault_leave(dibs__store *st, const char *queue, uint64_t lane,
            dibsx_nsec deadline, dibs_error *err)
{
    dibs__fault_store *fs = dibs__fault_of(st);
    bool after;
    dibs_status rc =
        dibs__fault_begin(fs, DIBS__STEP_LEAVE, deadline, &after, err);

    if (rc == DIBS_OK)
        rc = fs->within->ops->queue->leave(fs->within, queue, lane, deadline,
                                           err);
    return after ? dibs__fault_lose_answer(err) : rc;
}

static dibs_status
fault_set(dibs__store *st, const char *queue, uint32_t fields,
          const dibs__queue_conf *conf, dibsx_nsec deadline, dibs_error *err)
{
    dibs__fault_store *fs = dibs__fault_of(st);
    bool after;
    dibs_status rc =
        dibs__fault_begin(fs, DIBS__STEP_SET, deadline, &after, err);

    if (rc == DIBS_OK)
        rc = fs->within->ops->queue_admin->set(fs->within, queue, fields, conf,
                                               deadline, err);
    return after ? dibs__fault_lose_answer(err) : rc;
}

static dibs_status
fault_stats(dibs__store *st, const char *queue, dibsx_nsec deadline,
            dibs__queue_stats *out, dibs_error *err)
{
    dibs__fault_store *fs = dibs__fault_of(st);
    dibs_status rc =
        dibs__fault_begin_read(fs, DIBS__STEP_STATS, deadline, err);

    memset(out, 0, sizeof(*out));
    if (rc != DIBS_OK)
        return rc;
    return fs->within->ops->queue_admin->stats(fs->within, queue, deadline, out,
                                               err);
}

static dibs_status
fault_peek(dibs__store *st, const char *queue, dibs__item_place place,
           size_t skip, size_t max, dibsx_nsec deadline, dibs__item_fn *each,
           void *arg, dibs_error *err)
{
    dibs__fault_store *fs = dibs__fault_of(st);
    dibs_status rc = dibs__fault_begin_read(fs, DIBS__STEP_PEEK, deadline, err);

    if (rc != DIBS_OK)
        return rc;
    return fs->within->ops->queue_admin->peek(fs->within, queue, place, skip,
                                              max, deadline, each, arg, err);
}

static dibs_status
fault_purge(dibs__store *st, const char *queue, uint32_t places, size_t max,
            dibsx_nsec deadline, size_t *purged, dibs_error *err)
{
    dibs__fault_store *fs = dibs__fault_of(st);
    bool after;
    dibs_status rc =
        dibs__fault_begin(fs, DIBS__STEP_PURGE, deadline, &after, err);

    *purged = 0;
    if (rc == DIBS_OK)
        rc = fs->within->ops->queue_admin->purge(fs->within, queue, places, max,
                                                 deadline, purged, err);
    if (!after)
        return rc;
    *purged = 0;
    return dibs__fault_lose_answer(err);
}

static dibs_status
fault_redrive(dibs__store *st, const char *queue, uint64_t id, size_t max,
              dibsx_nsec deadline, size_t *redriven, dibs_error *err)
{
    dibs__fault_store *fs = dibs__fault_of(st);
    bool after;
    dibs_status rc =
        dibs__fault_begin(fs, DIBS__STEP_REDRIVE, deadline, &after, err);

    *redriven = 0;
    if (rc == DIBS_OK)
        rc = fs->within->ops->queue_admin->redrive(fs->within, queue, id, max,
                                                   deadline, redriven, err);
    if (!after)
        return rc;
    *redriven = 0;
    return dibs__fault_lose_answer(err);
}

static dibs_status fault_remove(dibs__store *st, const char *queue,
                                dibsx_nsec deadline, dibs_error *err)
{
    dibs__fault_store *fs = dibs__fault_of(st);
    bool after;
    dibs_status rc =
        dibs__fault_begin(fs, DIBS__STEP_REMOVE, deadline, &after, err);

    if (rc == DIBS_OK)
        rc = fs->within->ops->queue_admin->remove(fs->within, queue, deadline,
                                                  err);
    return after ? dibs__fault_lose_answer(err) : rc;
}

static dibs_status
fault_queues(dibs__store *st, const char *begins, const char *after, size_t max,
             dibsx_nsec deadline, dibs__queue_fn *each, void *arg,
             dibs_error *err)
{
    dibs__fault_store *fs = dibs__fault_of(st);
    dibs_status rc =
        dibs__fault_begin_read(fs, DIBS__STEP_QUEUES, deadline, err);

    if (rc != DIBS_OK)
        return rc;
    return fs->within->ops->queue_admin->list(fs->within, begins, after, max,
                                              deadline, each, arg, err);
}

#define MEMBER(step, STEP) .step = fault_##step,

const dibs__queue_ops dibs__fault_queue_ops = {DIBS__QUEUE_STEPS(MEMBER)};
const dibs__queue_admin_ops dibs__fault_queue_admin_ops = {
    .set = fault_set,
    .stats = fault_stats,
    .peek = fault_peek,
    .purge = fault_purge,
    .redrive = fault_redrive,
    .remove = fault_remove,
    .list = fault_queues,
};
