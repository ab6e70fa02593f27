/* combine.c - acquires and releases of many threads, sent together.
 *
 * Owns the queue; an item lives on the stack of its thread.
 *
 *      combine            taken along             answered
 *   ------------> queued -------------> under way ----------> DONE or ALONE
 *        |           |                      |
 *        |           | LEAD                 '-- deadline: its element is emptied,
 *        '-----------+--> leads                 DIBS_UNKNOWN
 *
 *  1. While an item is queued, there is a leader, who posts LEAD to the first of
 *     the queue when it has ended.
 *  2. A leader reads items of others and writes to them under the mutex only, and
 *     not to one whose element is empty.
 *  3. A batch that failed and has certainly changed nothing is asked again by each
 *     item alone, so that one does not fail for another's reasons.
 *
 * A leader has two statements: one does the short way for all items that allow it
 * (`few` in sql/batch.sql), the other applies the rule to the items that are left.
 */
/* SPDX-License-Identifier: MIT */
#include "store/postgres/combine.h"
#include "base/fail.h"
#include "store/postgres/array.h"
#include "store/postgres/step.h"
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEADERS = 2 };

enum { LEAD = 1, DONE, ALONE }; /* posts */

enum { ARRAYS = 10, FEW_ARRAYS = 4 };

/* Its answers have room for smaller numbers of items. */
enum { FEW_MAX = 64 };
_Static_assert((int)DIBS__PG_BATCH < (int)FEW_MAX,
               "every item of a batch has a number");

typedef struct batch {
    dibs__pg_item *items[DIBS__PG_BATCH];
    size_t count;
    dibs__pg_array arrays[ARRAYS];
    bool lazily; /* nothing but releases */
} batch;

/* The items of a leader. */
typedef struct dispatch {
    batch few;
    batch rest;
    dibsx_park *asleep[2 * DIBS__PG_BATCH]; /* posted to, and to be woken */
    size_t asleep_count;
} dispatch;

void dibs__pg_combiner_init(dibs__pg_combiner *cb)
{
    *cb = (dibs__pg_combiner){.leaders = 0};
    pthread_mutex_init(&cb->mutex, NULL);
}

void dibs__pg_combiner_fini(dibs__pg_combiner *cb)
{
    pthread_mutex_destroy(&cb->mutex);
}

/* The first of the queue; NULL when it is empty. Locks: cb->mutex. */
static dibs__pg_item *pop_item(dibs__pg_combiner *cb)
{
    return (dibs__pg_item *)dibsx_fifo_pop(&cb->queue);
}

/* It may be gone afterwards. Locks: cb->mutex. */
static void post_item(dispatch *ds, dibs__pg_item *item, int what)
{
    if (dibsx_park_post(&item->park, what))
        ds->asleep[ds->asleep_count++] = &item->park;
}

static const char *name_of(const dibs__pg_item *item)
{
    return item->ask ? item->ask->name : item->leave->name;
}

static const char *owner_of(const dibs__pg_item *item)
{
    return item->ask ? item->ask->owner : item->leave->owner;
}

/* How long the lease lasts, or a released one still excludes others. */
static int64_t span_of(const dibs__pg_item *item)
{
    if (item->ask)
        return dibs__pg_span(item->ask->ttl_ms);
    return item->leave->keep_ms > 0 ? dibs__pg_span(item->leave->keep_ms) : 0;
}

static int64_t permits_of(const dibs__ask *ask)
{
    return ask->mode == DIBS__PERMITS ? ask->permits : 1;
}

/* A lock as most are. */
static bool is_plain(const dibs__ask *ask)
{
    return ask->mode == DIBS__EXCLUSIVE && !(ask->flags & DIBS__ASK_TELL) &&
           ask->priority == 0;
}

/* One that `few` may be able to do. */
static bool is_short(const dibs__pg_item *item)
{
    return item->ask ? is_plain(item->ask)
                     : !item->leave->unanswered && span_of(item) == 0;
}

static dibs__pg_query
write_alone(const dibs__pg_item *item, dibs__pg_args *args, const char *bell)
{
    const dibs__ask *ask = item->ask;

    dibs__pg_arg_text(args, name_of(item));
    dibs__pg_arg_text(args, owner_of(item));
    if (!ask && is_short(item))
        return DIBS__PG_RELEASE_PLAIN;
    if (!ask) {
        dibs__pg_arg_flag(args, item->leave->unanswered);
        dibs__pg_arg_int(args, span_of(item));
        return DIBS__PG_RELEASE;
    }
    dibs__pg_arg_int(args, ask->flags);
    dibs__pg_arg_int(args, span_of(item));
    dibs__pg_arg_text(args, item->who);
    dibs__pg_arg_text(args, bell);
    if (is_plain(ask))
        return DIBS__PG_ACQUIRE_PLAIN;
    dibs__pg_arg_text(args, dibs__pg_mode(ask->mode));
    dibs__pg_arg_int(args, permits_of(ask));
    dibs__pg_arg_int(args, dibs__ask_capacity(ask));
    dibs__pg_arg_int(args, ask->priority);
    return DIBS__PG_ACQUIRE;
}

/* By itself, as its own function. */
static dibs_status
send_alone(dibs__pg *pg, dibs__pg_item *item, dibsx_nsec deadline)
{
    dibs__pg_args args = {.count = 0};
    dibs__pg_query query =
        write_alone(item, &args, dibs__pg_doorbell_address(&pg->doorbell));
    PGresult *rows = NULL;
    dibs_status rc =
        dibs__pg_step(pg, pg->steps, query, &args, deadline, &rows, item->err);

    if (rc == DIBS_OK && dibs__pq.PQntuples(rows) == 1)
        snprintf(item->answer, sizeof(item->answer), "%s",
                 dibs__pg_text(rows, 0, 0));
    dibs__pq.PQclear(rows);
    return rc;
}

static void batch_init(batch *bt, size_t arrays)
{
    bt->count = 0;
    bt->lazily = true;
    for (size_t i = 0; i < arrays; i++)
        dibs__pg_array_init(&bt->arrays[i]);
}

static void batch_fini(batch *bt, size_t arrays)
{
    for (size_t i = 0; i < arrays; i++)
        dibs__pg_array_fini(&bt->arrays[i]);
}

static void write_few(batch *bt, const dibs__pg_item *item)
{
    dibs__pg_array *at = bt->arrays;

    bt->lazily = bt->lazily && !item->ask;
    dibs__pg_array_text(&at[0], name_of(item));
    dibs__pg_array_text(&at[1], owner_of(item));
    dibs__pg_array_int(&at[2], item->ask ? span_of(item) : 0);
    dibs__pg_array_text(&at[3], item->ask ? item->who : "");
}

static void write_rest(batch *bt, const dibs__pg_item *item)
{
    dibs__pg_array *at = bt->arrays;
    const dibs__ask *ask = item->ask;

    dibs__pg_array_int(&at[0], !ask);
    dibs__pg_array_text(&at[1], name_of(item));
    dibs__pg_array_text(&at[2], owner_of(item));
    dibs__pg_array_text(&at[3], ask ? dibs__pg_mode(ask->mode) : "exclusive");
    dibs__pg_array_int(&at[4], ask ? permits_of(ask) : 0);
    dibs__pg_array_int(&at[5], ask ? dibs__ask_capacity(ask) : 0);
    dibs__pg_array_int(&at[6], ask ? ask->flags : item->leave->unanswered);
    dibs__pg_array_int(&at[7], ask ? ask->priority : 0);
    dibs__pg_array_int(&at[8], span_of(item));
    dibs__pg_array_text(&at[9], ask ? item->who : "");
}

/* Locks: cb->mutex. */
static void add_item(batch *bt, dibs__pg_item *item)
{
    item->in_batch = &bt->items[bt->count];
    bt->items[bt->count++] = item;
}

/* Writes the arguments of all items whose deadline has not passed. Locks:
 * cb->mutex. */
static void
write_down(batch *bt, void (*write)(batch *bt, const dibs__pg_item *item))
{
    size_t count = bt->count;

    bt->count = 0;
    for (size_t i = 0; i < count; i++)
        if (bt->items[i]) {
            add_item(bt, bt->items[i]);
            write(bt, bt->items[bt->count - 1]);
        }
}

/* By name, as `few` wants it: its column is ordered by bytes. */
static int by_name(const void *a, const void *b)
{
    return strcmp(name_of(*(dibs__pg_item *const *)a),
                  name_of(*(dibs__pg_item *const *)b));
}

/* Takes the queued items along with `own`. Locks: cb->mutex. */
static void
fill_batches(dibs__pg_combiner *cb, dispatch *ds, dibs__pg_item *own)
{
    dibs__pg_item *item = own;

    batch_init(&ds->few, FEW_ARRAYS);
    batch_init(&ds->rest, ARRAYS);
    for (size_t count = 0; item && count < DIBS__PG_BATCH; count++) {
        add_item(is_short(item) ? &ds->few : &ds->rest, item);
        item = count + 1 < DIBS__PG_BATCH ? pop_item(cb) : NULL;
    }
    cb->crowd = ds->few.count + ds->rest.count;
    qsort(ds->few.items, ds->few.count, sizeof(dibs__pg_item *), by_name);
    write_down(&ds->few, write_few);
}

static dibs_status send_few(dibs__pg *pg, batch *bt, dibsx_nsec deadline,
                            PGresult **rows, dibs_error *err)
{
    dibs__pg_args args = {.count = 0};

    if (!dibs__pg_array_end(bt->arrays, FEW_ARRAYS, &args))
        return dibsx_nomem(err, "a batch of steps");
    dibs__pg_arg_text(&args, dibs__pg_doorbell_address(&pg->doorbell));
    dibs__pg_arg_flag(&args, bt->lazily);
    return dibs__pg_step(pg, pg->steps, DIBS__PG_FEW, &args, deadline, rows,
                         err);
}

static dibs_status send_rest(dibs__pg *pg, batch *bt, dibsx_nsec deadline,
                             PGresult **rows, dibs_error *err)
{
    dibs__pg_args args = {.count = 0};
    dibs_status rc;

    if (!dibs__pg_array_end(bt->arrays, ARRAYS, &args))
        return dibsx_nomem(err, "a batch of steps");
    dibs__pg_arg_text(&args, dibs__pg_doorbell_address(&pg->doorbell));
    rc = dibs__pg_step(pg, pg->steps, DIBS__PG_BATCHED, &args, deadline, rows,
                       err);
    if (rc == DIBS_OK && dibs__pq.PQntuples(*rows) != (int)bt->count)
        return dibsx_fail(err, DIBS_UNKNOWN, "not every step was answered");
    return rc;
}

/* No answer to any of them. Locks: cb->mutex. */
static void
fail_all(dispatch *ds, batch *bt, dibs_status rc, const dibs_error *why)
{
    for (size_t i = 0; i < bt->count; i++) {
        dibs__pg_item *item = bt->items[i];

        if (!item)
            continue;
        item->in_batch = NULL;
        item->rc = rc;
        if (rc == DIBS_UNKNOWN)
            (void)dibsx_fail_at(item->err, rc, why->origin, "%s", why->message);
        post_item(ds, item, rc == DIBS_UNKNOWN ? DONE : ALONE);
    }
}

/* Locks: cb->mutex. */
static void answer_item(dispatch *ds, dibs__pg_item **at)
{
    dibs__pg_item *item = *at;

    *at = NULL;
    item->in_batch = NULL;
    item->rc = DIBS_OK;
    post_item(ds, item, DONE);
}

/* Reads the answer of `few` for one item that it has done. Locks: cb->mutex. */
static void answer_short(dispatch *ds, int64_t said)
{
    int64_t fence = said / FEW_MAX;
    size_t which = (size_t)(said % FEW_MAX);
    dibs__pg_item *item;

    if (said <= 0 || which < 1 || which > ds->few.count)
        return;
    item = ds->few.items[which - 1];
    if (!item)
        return;
    if (!item->ask)
        snprintf(item->answer, sizeof(item->answer), "0");
    else
        snprintf(item->answer, sizeof(item->answer), "0 %" PRId64, fence);
    answer_item(ds, &ds->few.items[which - 1]);
}

/* Answers the items that were done and adds the others to the rest.
 * Locks: cb->mutex. */
static void hand_out_few(dispatch *ds, const PGresult *rows)
{
    batch *bt = &ds->few;

    for (int row = 0; row < dibs__pq.PQntuples(rows); row++)
        answer_short(ds, dibs__pg_int(rows, row, 0));
    for (size_t i = 0; i < bt->count; i++)
        if (bt->items[i])
            add_item(&ds->rest, bt->items[i]);
}

/* Locks: cb->mutex. */
static void hand_out_rest(dispatch *ds, const PGresult *rows)
{
    batch *bt = &ds->rest;

    for (size_t i = 0; i < bt->count; i++) {
        if (!bt->items[i])
            continue;
        snprintf(bt->items[i]->answer, DIBS__PG_ANSWER_MAX, "%s",
                 dibs__pg_text(rows, (int)i, 0));
        answer_item(ds, &bt->items[i]);
    }
}

/* Locks: cb->mutex, let go meanwhile. */
static void do_few(dibs__pg *pg, dispatch *ds, dibsx_nsec deadline)
{
    PGresult *rows = NULL;
    dibs_error why = {0};
    dibs_status rc;

    pthread_mutex_unlock(&pg->combiner.mutex);
    rc = send_few(pg, &ds->few, deadline, &rows, &why);
    pthread_mutex_lock(&pg->combiner.mutex);
    if (rc == DIBS_OK)
        hand_out_few(ds, rows);
    else
        fail_all(ds, &ds->few, rc, &why);
    dibs__pq.PQclear(rows);
}

/* Locks: cb->mutex, let go meanwhile. */
static void do_rest(dibs__pg *pg, dispatch *ds, dibsx_nsec deadline)
{
    PGresult *rows = NULL;
    dibs_error why = {0};
    dibs_status rc;

    write_down(&ds->rest, write_rest);
    if (ds->rest.count == 0)
        return;
    pthread_mutex_unlock(&pg->combiner.mutex);
    rc = send_rest(pg, &ds->rest, deadline, &rows, &why);
    pthread_mutex_lock(&pg->combiner.mutex);
    if (rc == DIBS_OK)
        hand_out_rest(ds, rows);
    else
        fail_all(ds, &ds->rest, rc, &why);
    dibs__pq.PQclear(rows);
}

/* Locks: cb->mutex, which it drops. */
static void wake_posted(dibs__pg_combiner *cb, dispatch *ds)
{
    pthread_mutex_unlock(&cb->mutex);
    for (size_t i = 0; i < ds->asleep_count; i++)
        dibsx_park_wake(ds->asleep[i]);
    ds->asleep_count = 0;
}

/* Sends its own item and the queued items of other threads. Locks: cb->mutex, which
 * it drops. */
static void lead_all(dibs__pg *pg, dibs__pg_item *own, dibsx_nsec deadline)
{
    dibs__pg_combiner *cb = &pg->combiner;
    dispatch ds;

    ds.asleep_count = 0;
    fill_batches(cb, &ds, own);
    if (ds.few.count > 0)
        do_few(pg, &ds, deadline);
    if (ds.rest.count > 0) {
        if (ds.asleep_count > 0) {
            wake_posted(cb, &ds);
            pthread_mutex_lock(&cb->mutex);
        }
        do_rest(pg, &ds, deadline);
    }
    cb->leaders--;
    if (cb->queue.first) {
        cb->leaders++;
        post_item(&ds, pop_item(cb), LEAD);
    }
    wake_posted(cb, &ds);
    batch_fini(&ds.few, FEW_ARRAYS);
    batch_fini(&ds.rest, ARRAYS);
}

/* No other item is queued. Locks: cb->mutex, which it drops. */
static void lead_alone(dibs__pg *pg, dibs__pg_item *own, dibsx_nsec deadline)
{
    dibs__pg_combiner *cb = &pg->combiner;
    dibs__pg_item *next;

    cb->crowd = 1;
    pthread_mutex_unlock(&cb->mutex);
    own->rc = send_alone(pg, own, deadline);
    (void)dibsx_park_post(&own->park, DONE);
    pthread_mutex_lock(&cb->mutex);
    next = pop_item(cb);
    if (!next)
        cb->leaders--;
    if (next && !dibsx_park_post(&next->park, LEAD))
        next = NULL;
    pthread_mutex_unlock(&cb->mutex);
    if (next)
        dibsx_park_wake(&next->park);
}

/* Where there were others a moment ago, lets them queue first: they have been woken
 * and will ask again. Locks: cb->mutex, which it drops. */
static void lead_queue(dibs__pg *pg, dibs__pg_item *own, dibsx_nsec deadline)
{
    dibs__pg_combiner *cb = &pg->combiner;

    if (cb->crowd > 1) {
        pthread_mutex_unlock(&cb->mutex);
        sched_yield();
        pthread_mutex_lock(&cb->mutex);
    }
    if (cb->queue.first)
        lead_all(pg, own, deadline);
    else
        lead_alone(pg, own, deadline);
}

/* The deadline has passed; the item may have been posted to in the last moment. */
static void expire_item(dibs__pg_combiner *cb, dibs__pg_item *item)
{
    pthread_mutex_lock(&cb->mutex);
    if (dibsx_park_look(&item->park)) {
        pthread_mutex_unlock(&cb->mutex);
        return;
    }
    if (item->in_batch) {
        *item->in_batch = NULL;
        item->rc = dibsx_fail(item->err, DIBS_UNKNOWN,
                              "the server did not answer in time");
    } else {
        (void)dibsx_fifo_remove(&cb->queue, &item->queued);
        item->rc = dibsx_fail(item->err, DIBS_UNAVAIL,
                              "the deadline passed before it was sent");
    }
    (void)dibsx_park_post(&item->park, DONE);
    pthread_mutex_unlock(&cb->mutex);
}

/* Queues it behind those under way. Locks: cb->mutex, which it drops. */
static void wait_along(dibs__pg *pg, dibs__pg_item *item, dibsx_nsec deadline)
{
    dibs__pg_combiner *cb = &pg->combiner;

    dibsx_fifo_push(&cb->queue, &item->queued);
    pthread_mutex_unlock(&cb->mutex);
    if (dibsx_park_wait(&item->park, deadline) == 0)
        expire_item(cb, item);
    if (dibsx_park_look(&item->park) != LEAD)
        return;
    dibsx_park_clear(&item->park);
    pthread_mutex_lock(&cb->mutex);
    lead_queue(pg, item, deadline);
}

dibs_status dibs__pg_combine(dibs__pg *pg, dibs__pg_item *item,
                             dibsx_nsec deadline, dibs_error *err)
{
    dibs__pg_combiner *cb = &pg->combiner;

    item->err = err;
    dibsx_park_clear(&item->park);
    item->in_batch = NULL;
    item->answer[0] = '\0';
    if (dibsx_now() >= deadline)
        return dibsx_fail(err, DIBS_UNAVAIL, "the deadline has passed");
    pthread_mutex_lock(&cb->mutex);
    if (cb->leaders < LEADERS) {
        cb->leaders++;
        lead_queue(pg, item, deadline);
    } else {
        wait_along(pg, item, deadline);
    }
    return dibsx_park_look(&item->park) == ALONE
               ? send_alone(pg, item, deadline)
               : item->rc;
}
