/* no_queue.c - see no_queue.h. Nothing here speaks to a server. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "store/no_queue.h"
#include "base/fail.h"
#include "store/store.h"
#include <string.h>

static dibs_status refuse_items(struct dibs__store *st, dibs_error *err)
{
    return dibsx_fail(err, DIBS_UNSUPPORTED, "%s",
                      st->ops->cannot(st, DIBS__CAN_ITEMS));
}

static dibs_status refuse_push(struct dibs__store *st, const dibs__push *push,
                               dibsx_nsec deadline, dibs_error *err)
{
    (void)deadline;
    for (size_t i = 0; i < push->count; i++) {
        push->items[i].id = 0;
        push->items[i].duplicate = false;
    }
    return refuse_items(st, err);
}

static dibs_status
refuse_reserve(struct dibs__store *st, dibs__reserve *ask, dibsx_nsec deadline,
               dibs__delivery_fn *each, void *arg, dibs_error *err)
{
    (void)deadline;
    (void)each;
    (void)arg;
    ask->stamp = 0;
    ask->due_ms = -1;
    for (size_t i = 0; i < ask->settle_count; i++)
        ask->settle[i].rc = DIBS_UNSUPPORTED;
    return refuse_items(st, err);
}

static dibs_status
refuse_tend(struct dibs__store *st, dibs__tend *items, size_t count,
            dibsx_nsec deadline, dibs_error *err)
{
    (void)deadline;
    for (size_t i = 0; i < count; i++) {
        items[i].rc = DIBS_UNSUPPORTED;
        items[i].left_ms = 0;
        items[i].ready = false;
    }
    return refuse_items(st, err);
}

static dibs_status
refuse_leave(struct dibs__store *st, const char *queue, uint64_t lane,
             dibsx_nsec deadline, dibs_error *err)
{
    (void)queue;
    (void)lane;
    (void)deadline;
    return refuse_items(st, err);
}

static dibs_status
refuse_set(struct dibs__store *st, const char *queue, uint32_t fields,
           const dibs__queue_conf *conf, dibsx_nsec deadline, dibs_error *err)
{
    (void)queue;
    (void)fields;
    (void)conf;
    (void)deadline;
    return refuse_items(st, err);
}

static dibs_status
refuse_stats(struct dibs__store *st, const char *queue, dibsx_nsec deadline,
             dibs__queue_stats *out, dibs_error *err)
{
    (void)queue;
    (void)deadline;
    memset(out, 0, sizeof(*out));
    return refuse_items(st, err);
}

static dibs_status
refuse_peek(struct dibs__store *st, const char *queue, dibs__item_place place,
            size_t skip, size_t max, dibsx_nsec deadline, dibs__item_fn *each,
            void *arg, dibs_error *err)
{
    (void)queue;
    (void)place;
    (void)skip;
    (void)max;
    (void)deadline;
    (void)each;
    (void)arg;
    return refuse_items(st, err);
}

static dibs_status
refuse_purge(struct dibs__store *st, const char *queue, uint32_t places,
             size_t max, dibsx_nsec deadline, size_t *purged, dibs_error *err)
{
    (void)queue;
    (void)places;
    (void)max;
    (void)deadline;
    *purged = 0;
    return refuse_items(st, err);
}

static dibs_status refuse_redrive(struct dibs__store *st, const char *queue,
                                  uint64_t id, size_t max, dibsx_nsec deadline,
                                  size_t *redriven, dibs_error *err)
{
    (void)queue;
    (void)id;
    (void)max;
    (void)deadline;
    *redriven = 0;
    return refuse_items(st, err);
}

static dibs_status refuse_remove(struct dibs__store *st, const char *queue,
                                 dibsx_nsec deadline, dibs_error *err)
{
    (void)queue;
    (void)deadline;
    return refuse_items(st, err);
}

static dibs_status
refuse_list(struct dibs__store *st, const char *begins, const char *after,
            size_t max, dibsx_nsec deadline, dibs__queue_fn *each, void *arg,
            dibs_error *err)
{
    (void)begins;
    (void)after;
    (void)max;
    (void)deadline;
    (void)each;
    (void)arg;
    return refuse_items(st, err);
}

#define MEMBER(step, STEP) .step = refuse_##step,

const dibs__queue_ops dibs__no_queue_ops = {DIBS__QUEUE_STEPS(MEMBER)};
const dibs__queue_admin_ops dibs__no_queue_admin_ops = {
    DIBS__QUEUE_ADMIN_STEPS(MEMBER)};
