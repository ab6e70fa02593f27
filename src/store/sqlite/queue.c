/* queue.c - the queue steps of clients: push, reserve, tend, leave. Each fetches the head
 * of the queue, lets the rule of store/deliver.h do the step on the shelf, and writes
 * the head back, in one transaction; rings are sent once it is committed.
 *
 * Pushes and settlements use the connection whose commits reach the disk. A take does
 * not: after a crash of the machine its item is ready again. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "store/sqlite/shelf.h"
#include <string.h>

/* One step in so many removes what nobody uses any more. */
enum { SWEEP_EVERY = 16, IDLE_MS = 60000 };

/* Removes pushers, windows, lanes and queues that are over, a few at a time. A lane
 * without items is nothing that a rule looks at. Locks: cn. */
static dibs_status sweep_queues(dibs__sqlite_shelf *shelf)
{
    dibs__sqlite_conn *cn = shelf->cn;
    dibs_error *err = shelf->base.err;
    int64_t now_us = shelf->base.now_us;
    dibs_status rc;

    if (shelf->base.watermark % SWEEP_EVERY != 0)
        return DIBS_OK;
    rc = dibs__sqlite_run(cn, err, DIBS__SQL_PUSHER_SWEEP, "i", now_us);
    if (rc == DIBS_OK)
        rc = dibs__sqlite_run(cn, err, DIBS__SQL_DEDUP_SWEEP, "i",
                              shelf->base.now_wall_us);
    if (rc == DIBS_OK)
        rc = dibs__sqlite_run(cn, err, DIBS__SQL_LANE_SWEEP, "i",
                              now_us - (int64_t)IDLE_MS * 1000);
    return rc == DIBS_OK ? dibs__sqlite_run(cn, err, DIBS__SQL_QUEUE_IDLE, "")
                         : rc;
}

static bool is_outcome(dibs_status rc)
{
    return rc < DIBS_UNAVAIL;
}

/* Writes the head back after an outcome. Locks: cn. */
static dibs_status save_outcome(dibs__sqlite_shelf *shelf, dibs_status rc)
{
    dibs_status saved = DIBS_OK;

    if (is_outcome(rc))
        saved = dibs__sqlite_shelf_save(shelf);
    if (is_outcome(rc) && saved == DIBS_OK)
        saved = sweep_queues(shelf);
    return saved == DIBS_OK ? rc : saved;
}

static void clear_push(const dibs__push *push)
{
    for (size_t i = 0; i < push->count; i++) {
        push->items[i].id = 0;
        push->items[i].duplicate = false;
    }
}

static dibs_status push_items(struct dibs__store *st, const dibs__push *push,
                              dibsx_nsec deadline, dibs_error *err)
{
    dibs__sqlite_shelf shelf;
    dibs__sqlite_conn *cn;
    dibs_status rc = dibs__deliver_check_push(push, err);

    clear_push(push);
    if (rc == DIBS_OK)
        rc =
            dibs__sqlite_step_begin(st, DIBS__SQLITE_VALUE, deadline, &cn, err);
    if (rc != DIBS_OK)
        return rc;
    rc = dibs__sqlite_shelf_init(&shelf, cn, push->queue, push->number == 1,
                                 err);
    if (rc == DIBS_OK && shelf.q == 0)
        rc = dibsx_fail(err, DIBS_LOST, "there is no such lane");
    else if (rc == DIBS_OK)
        rc = save_outcome(&shelf, dibs__deliver_push(&shelf.base, push));
    rc = dibs__sqlite_step_end(st, cn, rc, err);
    dibs__sqlite_shelf_fini(&shelf);
    if (rc != DIBS_OK)
        clear_push(push);
    return rc;
}

/* Shows what a step delivered, with the data behind each. */
static void
show_answer(const dibsx_buf *answer, dibs__delivery_fn *each, void *arg)
{
    for (size_t at = 0; at < answer->len;) {
        dibs__delivery delivery;

        memcpy(&delivery, answer->data + at, sizeof(delivery));
        at += sizeof(delivery);
        delivery.data = answer->data + at;
        at += delivery.len;
        each(&delivery, arg);
    }
}

static void clear_reserve(dibs__reserve *ask, dibs_status rc)
{
    ask->stamp = 0;
    ask->due_ms = -1;
    for (size_t i = 0; i < ask->settle_count; i++)
        ask->settle[i].rc = rc;
}

/* A lane opens with its number 1, which makes the queue. Locks: cn. */
static dibs_status
do_reserve(dibs__sqlite_shelf *shelf, dibs__reserve *ask, dibs_error *err)
{
    if (shelf->q == 0)
        return dibsx_fail(err, DIBS_LOST, "there is no such lane");
    return save_outcome(shelf, dibs__deliver_reserve(&shelf->base, ask));
}

static dibs_status
reserve_items(struct dibs__store *st, dibs__reserve *ask, dibsx_nsec deadline,
              dibs__delivery_fn *each, void *arg, dibs_error *err)
{
    dibs__sqlite_role role =
        ask->settle_count > 0 ? DIBS__SQLITE_VALUE : DIBS__SQLITE_LEASE;
    dibs__sqlite_shelf shelf;
    dibs__sqlite_conn *cn;
    dibs_status rc = dibs__deliver_check_reserve(ask, err);

    clear_reserve(ask, rc);
    if (rc == DIBS_OK)
        rc = dibs__sqlite_step_begin(st, role, deadline, &cn, err);
    if (rc != DIBS_OK) {
        clear_reserve(ask, rc);
        return rc;
    }
    rc = dibs__sqlite_shelf_init(&shelf, cn, ask->queue, ask->number == 1, err);
    shelf.base.bell =
        dibs__sqlite_doorbell_address(&dibs__sqlite_of(st)->doorbell);
    if (rc == DIBS_OK)
        rc = do_reserve(&shelf, ask, err);
    rc = dibs__sqlite_step_end(st, cn, rc, err);
    if (rc == DIBS_OK)
        show_answer(&shelf.answer, each, arg);
    else
        clear_reserve(ask, rc);
    dibs__sqlite_shelf_fini(&shelf);
    return rc;
}

/* Locks: cn. */
static dibs_status
tend_one(dibs__sqlite_conn *cn, dibs__tend *item, dibs_error *err)
{
    dibs__sqlite_shelf shelf;
    dibs_status rc =
        dibs__sqlite_shelf_init(&shelf, cn, item->queue, false, err);

    if (rc == DIBS_OK && shelf.q == 0)
        item->rc = DIBS_LOST;
    else if (rc == DIBS_OK)
        rc = dibs__deliver_tend(&shelf.base, item);
    dibs__sqlite_shelf_fini(&shelf);
    return rc;
}

static void clear_tends(dibs__tend *items, size_t count, dibs_status rc)
{
    for (size_t i = 0; i < count; i++) {
        items[i].rc = rc;
        items[i].left_ms = 0;
        items[i].ready = false;
    }
}

static dibs_status
tend_lanes(struct dibs__store *st, dibs__tend *items, size_t count,
           dibsx_nsec deadline, dibs_error *err)
{
    dibs__sqlite_conn *cn;
    dibs_status rc =
        dibs__sqlite_step_begin(st, DIBS__SQLITE_RENEW, deadline, &cn, err);

    clear_tends(items, count, rc);
    if (rc != DIBS_OK)
        return rc;
    for (size_t i = 0; i < count && rc == DIBS_OK; i++)
        rc = tend_one(cn, &items[i], err);
    rc = dibs__sqlite_step_end(st, cn, rc, err);
    if (rc != DIBS_OK)
        clear_tends(items, count, rc);
    return rc;
}

static dibs_status
leave_queue(struct dibs__store *st, const char *queue, uint64_t lane,
            dibsx_nsec deadline, dibs_error *err)
{
    dibs__sqlite_shelf shelf;
    dibs__sqlite_conn *cn;
    dibs_status rc =
        dibs__sqlite_step_begin(st, DIBS__SQLITE_LEASE, deadline, &cn, err);

    if (rc != DIBS_OK)
        return rc;
    rc = dibs__sqlite_shelf_init(&shelf, cn, queue, false, err);
    if (rc == DIBS_OK && shelf.q != 0)
        rc = save_outcome(&shelf, dibs__deliver_leave(&shelf.base, lane));
    rc = dibs__sqlite_step_end(st, cn, rc, err);
    dibs__sqlite_shelf_fini(&shelf);
    return rc;
}

const dibs__queue_ops dibs__sqlite_queue_ops = {
    .push = push_items,
    .reserve = reserve_items,
    .tend = tend_lanes,
    .leave = leave_queue,
};
