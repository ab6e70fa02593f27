/* combine.c - acquires and releases of many threads, sent together.
 *
 * Owns the queue; an item lives on the stack of its thread.
 *
 *      combine            taken along             answered
 *   ------------> queued -------------> under way ----------> DONE or ALONE
 *        |           |                      |
 *        |           | LEAD                 '-- deadline: its place is emptied,
 *        '-----------+--> leads                 DIBS_UNKNOWN
 *
 *  1. While an item is queued, there is a leader, who posts LEAD to the first of
 *     the queue when it has ended.
 *  2. A leader reads items of others and writes to them under the mutex only, and
 *     not to one whose place is empty.
 *  3. A batch that failed and has certainly changed nothing is asked again by each
 *     item alone, so that one does not fail for another's reasons.
 */
/* SPDX-License-Identifier: MIT */
#include "store/postgres/combine.h"
#include "base/fail.h"
#include "store/postgres/array.h"
#include "store/postgres/step.h"
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { LEADERS = 2 };

enum { WAITS = 0, LEAD, DONE, ALONE }; /* posts */

enum { ARRAYS = 10 };

typedef struct batch {
    dibs__pg_item *items[DIBS__PG_BATCH];
    size_t count;
    dibs__pg_array arrays[ARRAYS];
} batch;

void dibs__pg_combiner_init(dibs__pg_combiner *cb)
{
    *cb = (dibs__pg_combiner){.leaders = 0};
    pthread_mutex_init(&cb->mutex, NULL);
}

void dibs__pg_combiner_fini(dibs__pg_combiner *cb)
{
    pthread_mutex_destroy(&cb->mutex);
}

/* Locks: cb->mutex. */
static void push(dibs__pg_combiner *cb, dibs__pg_item *item)
{
    item->next = NULL;
    if (cb->last)
        cb->last->next = item;
    else
        cb->first = item;
    cb->last = item;
}

/* Locks: cb->mutex. */
static dibs__pg_item *pop(dibs__pg_combiner *cb)
{
    dibs__pg_item *item = cb->first;

    cb->first = item->next;
    if (!cb->first)
        cb->last = NULL;
    return item;
}

/* Locks: cb->mutex. */
static void remove_item(dibs__pg_combiner *cb, const dibs__pg_item *item)
{
    dibs__pg_item *before = NULL;

    for (dibs__pg_item *at = cb->first; at; before = at, at = at->next) {
        if (at != item)
            continue;
        if (before)
            before->next = item->next;
        else
            cb->first = item->next;
        if (cb->last == item)
            cb->last = before;
        return;
    }
}

/* Locks: cb->mutex. */
static void post(dibs__pg_item *item, int what)
{
    item->post = what;
    pthread_cond_signal(&item->posted);
}

/* By itself, as its own function. */
static dibs_status
send_alone(dibs__pg *pg, dibs__pg_item *item, dibsx_nsec deadline)
{
    dibs__pg_args args = {.count = 0};
    PGresult *rows = NULL;
    dibs_status rc;

    dibs__pg_arg_text(&args, item->name);
    dibs__pg_arg_text(&args, item->owner);
    if (item->release) {
        dibs__pg_arg_flag(&args, (item->flags & DIBS__PG_UNANSWERED) != 0);
        dibs__pg_arg_int(&args, item->ms);
    } else {
        dibs__pg_arg_text(&args, item->mode);
        dibs__pg_arg_int(&args, item->permits);
        dibs__pg_arg_int(&args, item->capacity);
        dibs__pg_arg_flag(&args, (item->flags & DIBS__ASK_QUEUE) != 0);
        dibs__pg_arg_flag(&args, (item->flags & DIBS__ASK_BARGE) != 0);
        dibs__pg_arg_flag(&args, (item->flags & DIBS__ASK_TELL) != 0);
        dibs__pg_arg_int(&args, item->priority);
        dibs__pg_arg_int(&args, item->ms);
        dibs__pg_arg_text(&args, item->who);
        dibs__pg_arg_text(&args, dibs__pg_bell_address(&pg->bell));
    }
    rc = dibs__pg_step(pg, &pg->steps,
                       item->release ? DIBS__PG_RELEASE : DIBS__PG_ACQUIRE,
                       &args, deadline, &rows, item->err);
    if (rc == DIBS_OK && dibs__pq.PQntuples(rows) == 1)
        snprintf(item->answer, sizeof(item->answer), "%s",
                 dibs__pg_text(rows, 0, 0));
    dibs__pq.PQclear(rows);
    return rc;
}

/* Locks: combiner->mutex. */
static void write_item(batch *bt, const dibs__pg_item *item)
{
    dibs__pg_array *at = bt->arrays;

    dibs__pg_array_int(&at[0], item->release);
    dibs__pg_array_text(&at[1], item->name);
    dibs__pg_array_text(&at[2], item->owner);
    dibs__pg_array_text(&at[3], item->release ? "exclusive" : item->mode);
    dibs__pg_array_int(&at[4], item->permits);
    dibs__pg_array_int(&at[5], item->capacity);
    dibs__pg_array_int(&at[6], (int64_t)item->flags);
    dibs__pg_array_int(&at[7], item->priority);
    dibs__pg_array_int(&at[8], item->ms);
    dibs__pg_array_text(&at[9], item->release ? "" : item->who);
}

/* Takes those who are queued along with `own`. Locks: cb->mutex. */
static void fill(dibs__pg_combiner *cb, batch *bt, dibs__pg_item *own)
{
    bt->count = 0;
    bt->items[bt->count++] = own;
    while (cb->first && bt->count < DIBS__PG_BATCH)
        bt->items[bt->count++] = pop(cb);
    if (bt->count == 1)
        return;
    for (size_t i = 0; i < ARRAYS; i++)
        dibs__pg_array_init(&bt->arrays[i]);
    for (size_t i = 0; i < bt->count; i++) {
        bt->items[i]->place = &bt->items[i];
        write_item(bt, bt->items[i]);
    }
}

static dibs_status send_batch(dibs__pg *pg, batch *bt, dibsx_nsec deadline,
                              PGresult **rows, dibs_error *err)
{
    dibs__pg_args args = {.count = 0};

    if (!dibs__pg_array_end(bt->arrays, ARRAYS, &args))
        return dibsx_fail(err, DIBS_NOMEM, "a batch of steps");
    dibs__pg_arg_text(&args, dibs__pg_bell_address(&pg->bell));
    return dibs__pg_step(pg, &pg->steps, DIBS__PG_BATCHED, &args, deadline,
                         rows, err);
}

/* What came of it for one. Locks: cb->mutex. */
static void tell_outcome(dibs__pg_item *item, dibs_status rc,
                         const char *answer, const dibs_error *why)
{
    item->place = NULL;
    item->rc = rc;
    if (rc == DIBS_OK)
        snprintf(item->answer, sizeof(item->answer), "%s", answer);
    else if (rc == DIBS_UNKNOWN)
        (void)dibsx_fail_at(item->err, rc, why->origin, "%s", why->message);
    post(item, rc == DIBS_OK || rc == DIBS_UNKNOWN ? DONE : ALONE);
}

/* Locks: cb->mutex. */
static void
hand_out(batch *bt, const PGresult *rows, dibs_status rc, const dibs_error *why)
{
    for (size_t i = 0; i < bt->count; i++)
        if (bt->items[i])
            tell_outcome(bt->items[i], rc,
                         rc == DIBS_OK ? dibs__pg_text(rows, (int)i, 0) : "",
                         why);
}

/* Sends its own item and those of others who are queued. Locks: cb->mutex, which
 * it drops. */
static void lead(dibs__pg *pg, dibs__pg_item *own, dibsx_nsec deadline)
{
    dibs__pg_combiner *cb = &pg->combiner;
    PGresult *rows = NULL;
    dibs_error why = {0};
    dibs_status rc;
    batch bt;

    fill(cb, &bt, own);
    pthread_mutex_unlock(&cb->mutex);
    if (bt.count == 1) {
        own->rc = send_alone(pg, own, deadline);
        own->post = DONE;
        pthread_mutex_lock(&cb->mutex);
    } else {
        rc = send_batch(pg, &bt, deadline, &rows, &why);
        if (rc == DIBS_OK && dibs__pq.PQntuples(rows) != (int)bt.count)
            rc = DIBS_UNKNOWN;
        pthread_mutex_lock(&cb->mutex);
        hand_out(&bt, rows, rc, &why);
    }
    cb->leaders--;
    if (cb->first) {
        cb->leaders++;
        post(pop(cb), LEAD);
    }
    pthread_mutex_unlock(&cb->mutex);
    for (size_t i = 0; bt.count > 1 && i < ARRAYS; i++)
        dibs__pg_array_fini(&bt.arrays[i]);
    dibs__pq.PQclear(rows);
}

/* The deadline has passed. Locks: cb->mutex. */
static void expire(dibs__pg_combiner *cb, dibs__pg_item *item)
{
    if (item->place) {
        *item->place = NULL;
        item->rc = dibsx_fail(item->err, DIBS_UNKNOWN,
                              "the server did not answer in time");
    } else {
        remove_item(cb, item);
        item->rc = dibsx_fail(item->err, DIBS_UNAVAIL,
                              "the deadline passed before it was sent");
    }
    item->post = DONE;
}

/* Waits for a post until the deadline. Locks: cb->mutex, let go meanwhile. */
static void
follow(dibs__pg_combiner *cb, dibs__pg_item *item, dibsx_nsec deadline)
{
    while (item->post == WAITS) {
        int64_t span_ms = dibsx_wait_ms(deadline, dibsx_now());
        struct timespec until;

        if (span_ms == 0) {
            expire(cb, item);
            return;
        }
        if (span_ms < 0 || span_ms > 1000)
            span_ms = 1000;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += (long)span_ms * 1000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        (void)pthread_cond_timedwait(&item->posted, &cb->mutex, &until);
    }
}

/* Queues it behind those under way. Locks: cb->mutex, which it drops. */
static void wait_along(dibs__pg *pg, dibs__pg_item *item, dibsx_nsec deadline)
{
    dibs__pg_combiner *cb = &pg->combiner;
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&item->posted, &attr);
    pthread_condattr_destroy(&attr);
    push(cb, item);
    follow(cb, item, deadline);
    if (item->post == LEAD) {
        item->post = WAITS;
        lead(pg, item, deadline);
    } else {
        pthread_mutex_unlock(&cb->mutex);
    }
    pthread_cond_destroy(&item->posted);
}

dibs_status dibs__pg_combine(dibs__pg *pg, dibs__pg_item *item,
                             dibsx_nsec deadline, dibs_error *err)
{
    dibs__pg_combiner *cb = &pg->combiner;

    item->err = err;
    item->posted = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    item->post = WAITS;
    item->place = NULL;
    item->answer[0] = '\0';
    if (dibsx_now() >= deadline)
        return dibsx_fail(err, DIBS_UNAVAIL, "the deadline has passed");
    pthread_mutex_lock(&cb->mutex);
    if (cb->leaders < LEADERS) {
        cb->leaders++;
        lead(pg, item, deadline);
    } else {
        wait_along(pg, item, deadline);
    }
    return item->post == ALONE ? send_alone(pg, item, deadline) : item->rc;
}
