/* queue_admin.c - an operator's calls on queues. Owns nothing. Any thread. */
/* SPDX-License-Identifier: MIT */
#include <dibs/queue_admin.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/uncancel.h"
#include "coord/item_data.h"
#include "core/names.h"
#include "core/reach.h"
#include "store/queue_admin.h"
#include <stdio.h>
#include <string.h>

enum {
    ALL_PLACES = DIBS_ITEM_READY | DIBS_ITEM_LATER | DIBS_ITEM_OUT |
                 DIBS_ITEM_DEAD | DIBS_ITEM_DONE,
    ALL_FIELDS = DIBS_QUEUE_SET_PAUSED | DIBS_QUEUE_SET_SERIAL |
                 DIBS_QUEUE_SET_CAP | DIBS_QUEUE_SET_TRIES |
                 DIBS_QUEUE_SET_DEADS | DIBS_QUEUE_SET_LOST_MAX |
                 DIBS_QUEUE_SET_KEEP_DONE,
    PEEK_CHUNK = 128,
    SIZE_MAX_BYTES = 4096 /* a larger size is none */
};

/* The public names are the same bits as those of the contract. */
_Static_assert((int)DIBS_ITEM_READY == DIBS__PLACE_READY &&
                   (int)DIBS_ITEM_LATER == DIBS__PLACE_LATER &&
                   (int)DIBS_ITEM_OUT == DIBS__PLACE_OUT &&
                   (int)DIBS_ITEM_DEAD == DIBS__PLACE_DEAD &&
                   (int)DIBS_ITEM_DONE == DIBS__PLACE_DONE,
               "places differ");
_Static_assert((int)DIBS_QUEUE_SET_PAUSED == DIBS__SET_PAUSED &&
                   (int)DIBS_QUEUE_SET_SERIAL == DIBS__SET_SERIAL &&
                   (int)DIBS_QUEUE_SET_CAP == DIBS__SET_CAP &&
                   (int)DIBS_QUEUE_SET_TRIES == DIBS__SET_TRIES &&
                   (int)DIBS_QUEUE_SET_DEADS == DIBS__SET_DEADS &&
                   (int)DIBS_QUEUE_SET_LOST_MAX == DIBS__SET_LOST_MAX &&
                   (int)DIBS_QUEUE_SET_KEEP_DONE == DIBS__SET_KEEP_DONE,
               "settings differ");

static dibsx_nsec step_deadline(const dibs_client *cl)
{
    return dibs__client_deadline(cl, dibsx_now());
}

static dibs_status
find_ops(dibs_client *cl, const dibs__queue_admin_ops **ops, dibs_error *err)
{
    const char *why = dibs__store_cannot(cl->st, DIBS__CAN_ITEMS);

    if (why)
        return dibsx_fail(err, DIBS_UNSUPPORTED, "%s", why);
    *ops = cl->st->ops->queue_admin;
    return DIBS_OK;
}

/* Every call on one queue begins so: a client, a name, and a store that has queues. */
static dibs_status
begin_call(dibs_client *cl, const char *queue, char full[DIBS_NAME_MAX + 1],
           const dibs__queue_admin_ops **ops, dibs_error *err)
{
    dibs_status rc = dibs__reach_usable(cl, err);

    if (rc == DIBS_OK)
        rc = dibs__name_full(cl, queue, full, err);
    return rc == DIBS_OK ? find_ops(cl, ops, err) : rc;
}

/* The store does not know the name as the caller wrote it. */
static dibs_status fail_none(const char *queue, dibs_error *err)
{
    return dibsx_fail(err, DIBS_NOTFOUND, "there is no queue `%s`", queue);
}

/* A page of names, each with its NUL: a callback may use the client. */
typedef struct page {
    dibsx_buf names;
    size_t count;
    char last[DIBS_NAME_MAX + 1];
} page;

static bool note_name(const char *queue, void *arg)
{
    page *pg = arg;

    dibsx_buf_add(&pg->names, queue, strlen(queue) + 1);
    snprintf(pg->last, sizeof(pg->last), "%s", queue);
    pg->count++;
    return dibsx_buf_ok(&pg->names);
}

/* False: the callback wants no more. */
static bool show_names(const dibs_client *cl, const page *pg,
                       dibs_queue_fn *each, void *arg)
{
    bool more = true;

    for (size_t at = 0; more && at < pg->names.len;
         at += strlen(pg->names.data + at) + 1)
        more = each(dibs__name_short(cl, pg->names.data + at), arg);
    return more;
}

dibs_status dibs_queue_list(dibs_client *cl, const char *begins,
                            dibs_queue_fn *each, void *arg, dibs_error *err)
{
    DIBSX_UNCANCEL;
    char full[DIBS_NAME_MAX + 1];
    const dibs__queue_admin_ops *ops = NULL;
    page pg = {.count = DIBS__QUEUE_LIST_MAX};
    bool more = true;
    dibs_status rc = dibs__reach_usable(cl, err);

    if (rc == DIBS_OK)
        rc = dibs__name_begins(cl, begins, full, err);
    if (rc == DIBS_OK)
        rc = find_ops(cl, &ops, err);
    dibsx_buf_init(&pg.names, DIBS__QUEUE_LIST_MAX * (DIBS_NAME_MAX + 1));
    while (rc == DIBS_OK && more && pg.count == DIBS__QUEUE_LIST_MAX) {
        pg.count = 0;
        dibsx_buf_reset(&pg.names);
        rc = ops->list(cl->st, full, pg.last, DIBS__QUEUE_LIST_MAX,
                       step_deadline(cl), note_name, &pg, err);
        if (rc == DIBS_OK && !dibsx_buf_ok(&pg.names))
            rc = dibsx_nomem(err, "a list of queues");
        if (rc == DIBS_OK)
            more = show_names(cl, &pg, each, arg);
    }
    dibsx_buf_fini(&pg.names);
    return rc;
}

static void copy_info(const dibs__queue_stats *from, dibs_queue_info *to)
{
    *to = (dibs_queue_info){
        .size = sizeof(*to),
        .settings = {.size = sizeof(to->settings),
                     .paused = from->conf.paused,
                     .serial = from->conf.serial,
                     .cap = from->conf.cap,
                     .tries = from->conf.tries,
                     .deads = from->conf.deads,
                     .lost_max = from->conf.lost_max,
                     .keep_done = from->conf.keep_done},
        .ready = from->ready,
        .later = from->later,
        .out = from->out,
        .dead = from->dead,
        .done = from->done,
        .consumers = from->lanes,
        .waiting = from->waiting,
        .oldest_ms = from->oldest_ms,
        .pushed = from->pushed,
        .delivered = from->delivered,
        .acked = from->acked,
        .nacked = from->nacked,
        .lost = from->lost,
        .died = from->died,
        .dropped = from->dropped,
        .purged = from->purged,
    };
}

static bool is_size(size_t size)
{
    return size >= sizeof(size_t) && size <= SIZE_MAX_BYTES;
}

dibs_status dibs_queue_stats(dibs_client *cl, const char *queue,
                             dibs_queue_info *info, dibs_error *err)
{
    DIBSX_UNCANCEL;
    char full[DIBS_NAME_MAX + 1];
    const dibs__queue_admin_ops *ops;
    dibs__queue_stats stats;
    dibs_queue_info whole;
    size_t size;
    dibs_status rc;

    if (!info || !is_size(info->size))
        return dibsx_fail(err, DIBS_INVALID,
                          "the size of the information is not set");
    size = info->size < sizeof(whole) ? info->size : sizeof(whole);
    rc = begin_call(cl, queue, full, &ops, err);
    if (rc == DIBS_OK)
        rc = ops->stats(cl->st, full, step_deadline(cl), &stats, err);
    if (rc == DIBS_NOTFOUND)
        return fail_none(queue, err);
    if (rc != DIBS_OK)
        return rc;
    copy_info(&stats, &whole);
    whole.size = info->size;
    memcpy(info, &whole, size);
    return DIBS_OK;
}

static dibs_status
put_settings(dibs_client *cl, const char *queue, uint32_t fields,
             const dibs__queue_conf *conf, dibs_error *err)
{
    char full[DIBS_NAME_MAX + 1];
    const dibs__queue_admin_ops *ops = NULL;
    dibs_status rc = begin_call(cl, queue, full, &ops, err);

    if (rc == DIBS_OK)
        rc = ops->set(cl->st, full, fields, conf, step_deadline(cl), err);
    return rc;
}

dibs_status dibs_queue_set(dibs_client *cl, const char *queue,
                           const dibs_queue_settings *settings, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibs_queue_settings in = {.fields = 0};
    dibs__queue_conf conf;

    if (!settings || !is_size(settings->size))
        return dibsx_fail(err, DIBS_INVALID,
                          "the size of the settings is not set; use "
                          "DIBS_QUEUE_SETTINGS()");
    memcpy(&in, settings,
           settings->size < sizeof(in) ? settings->size : sizeof(in));
    if (in.fields == 0 || (in.fields & ~(uint32_t)ALL_FIELDS))
        return dibsx_fail(err, DIBS_INVALID,
                          "fields must have DIBS_QUEUE_SET_* of the settings "
                          "to change");
    if (in.keep_done > DIBS_QUEUE_KEEP_MAX)
        return dibsx_fail(err, DIBS_INVALID,
                          "a queue keeps at most %d records of done items",
                          DIBS_QUEUE_KEEP_MAX);
    conf = (dibs__queue_conf){.paused = in.paused,
                              .serial = in.serial,
                              .cap = in.cap,
                              .tries = in.tries,
                              .deads = in.deads,
                              .lost_max = in.lost_max,
                              .keep_done = in.keep_done};
    return put_settings(cl, queue, in.fields, &conf, err);
}

dibs_status
dibs_queue_pause(dibs_client *cl, const char *queue, dibs_error *err)
{
    DIBSX_UNCANCEL;
    static const dibs__queue_conf paused = {.paused = true};

    return put_settings(cl, queue, DIBS__SET_PAUSED, &paused, err);
}

dibs_status
dibs_queue_resume(dibs_client *cl, const char *queue, dibs_error *err)
{
    DIBSX_UNCANCEL;
    static const dibs__queue_conf running = {.paused = false};

    return put_settings(cl, queue, DIBS__SET_PAUSED, &running, err);
}

typedef struct visit {
    dibs_item_info_fn *each;
    void *arg;
    size_t count;   /* of this step */
    bool ended;     /* the callback wants no more */
    bool no_memory; /* for the headers of an item */
} visit;

/* The headers as an array, or NULL. Free with dibsx_free(). */
static const char **list_headers(const dibs__item_parts *parts)
{
    const char **list;
    size_t count = 0;

    while (dibs__item_header_at(parts, count))
        count++;
    list = dibsx_zalloc((count + 1) * sizeof(*list));
    for (size_t i = 0; list && i < count; i++)
        list[i] = dibs__item_header_at(parts, i);
    return list;
}

static bool pass_item(const dibs__item_view *view, void *arg)
{
    visit *vt = arg;
    dibs__item_parts parts;
    const char **headers;
    dibs_item_info info;

    if (view->place == DIBS__PLACE_DONE) /* a result has no headers */
        parts = (dibs__item_parts){.data = view->data, .len = view->len};
    else
        dibs__item_split(view->data, view->len, &parts);
    headers = list_headers(&parts);
    vt->no_memory = !headers;
    if (!headers)
        return false;
    info = (dibs_item_info){.id = view->id,
                            .place = (dibs_item_place)view->place,
                            .priority = view->priority,
                            .attempts = view->attempts,
                            .lost = view->lost,
                            .due_ms = view->due_ms,
                            .fence = view->fence,
                            .to = view->to,
                            .dedup_id = view->dedup,
                            .reason = view->reason,
                            .headers = headers,
                            .data = parts.data,
                            .len = parts.len};
    if (view->place == DIBS__PLACE_DEAD)
        info.dead_wall_us = view->ended_wall_us;
    if (view->place == DIBS__PLACE_DONE)
        info.done_wall_us = view->ended_wall_us;
    vt->count++;
    vt->ended = !vt->each(&info, vt->arg);
    dibsx_free(headers);
    return !vt->ended;
}

/* A step shows fewer items than asked for when they are large; none: there are no
 * more. */
dibs_status dibs_queue_peek(dibs_client *cl, const char *queue,
                            dibs_item_place place, size_t skip, size_t max,
                            dibs_item_info_fn *each, void *arg, dibs_error *err)
{
    DIBSX_UNCANCEL;
    char full[DIBS_NAME_MAX + 1];
    const dibs__queue_admin_ops *ops;
    visit vt = {.each = each, .arg = arg, .count = 1};
    size_t seen = 0;
    dibs_status rc = begin_call(cl, queue, full, &ops, err);

    if (rc == DIBS_OK && place != DIBS_ITEM_READY && place != DIBS_ITEM_LATER &&
        place != DIBS_ITEM_OUT && place != DIBS_ITEM_DEAD &&
        place != DIBS_ITEM_DONE)
        rc = dibsx_fail(err, DIBS_INVALID, "a look is at one place");
    while (rc == DIBS_OK && seen < max && vt.count > 0 && !vt.ended) {
        size_t rest = max - seen;

        vt.count = 0;
        rc = ops->peek(cl->st, full, (dibs__item_place)place, skip + seen,
                       rest < PEEK_CHUNK ? rest : PEEK_CHUNK, step_deadline(cl),
                       pass_item, &vt, err);
        seen += vt.count;
        if (rc == DIBS_OK && vt.no_memory)
            rc = dibsx_nomem(err, "the headers of an item");
    }
    if (rc == DIBS_NOTFOUND)
        return seen > 0 ? DIBS_OK : fail_none(queue, err);
    return rc;
}

/* How many items are in the places now. */
static uint64_t count_places(const dibs__queue_stats *stats, uint32_t places)
{
    return (places & DIBS_ITEM_READY ? stats->ready : 0) +
           (places & DIBS_ITEM_LATER ? stats->later : 0) +
           (places & DIBS_ITEM_OUT ? stats->out : 0) +
           (places & DIBS_ITEM_DEAD ? stats->dead : 0) +
           (places & DIBS_ITEM_DONE ? stats->done : 0);
}

static size_t chunk_of(uint64_t rest)
{
    return rest < DIBS__PURGE_MAX ? (size_t)rest : DIBS__PURGE_MAX;
}

/* Drops the oldest `total` records of done items. Records beyond the bound are not shown
 * and not counted. They are older than the others, so they go first. */
static dibs_status
drop_beyond(dibs_client *cl, const dibs__queue_admin_ops *ops, const char *full,
            uint64_t total, uint64_t *done, dibs_error *err)
{
    dibs_status rc = DIBS_OK;
    size_t step = 1;

    *done = 0;
    while (rc == DIBS_OK && step > 0 && *done < total) {
        step = 0;
        rc = ops->purge(cl->st, full, DIBS__PLACE_DONE, chunk_of(total - *done),
                        step_deadline(cl), &step, err);
        *done += step;
    }
    return rc;
}

/* The call takes no more than what was there when it began: it ends also while others
 * push. */
dibs_status
dibs_queue_purge_some(dibs_client *cl, const char *queue, uint32_t places,
                      uint64_t max, uint64_t *purged, dibs_error *err)
{
    DIBSX_UNCANCEL;
    char full[DIBS_NAME_MAX + 1];
    const dibs__queue_admin_ops *ops;
    dibs__queue_stats stats;
    uint64_t total = 0, done = 0, beyond = 0;
    size_t step = 1;
    dibs_status rc = begin_call(cl, queue, full, &ops, err);

    if (rc == DIBS_OK && (places == 0 || (places & ~(uint32_t)ALL_PLACES)))
        rc = dibsx_fail(err, DIBS_INVALID,
                        "places must have at least one of DIBS_ITEM_READY, "
                        "LATER, OUT, DEAD and DONE");
    if (rc == DIBS_OK)
        rc = ops->stats(cl->st, full, step_deadline(cl), &stats, err);
    if (rc == DIBS_NOTFOUND)
        rc = fail_none(queue, err);
    if (rc == DIBS_OK)
        total = count_places(&stats, places);
    if (total > max)
        total = max;
    if (rc == DIBS_OK && (places & DIBS_ITEM_DONE))
        rc = drop_beyond(cl, ops, full, stats.beyond, &beyond, err);
    while (rc == DIBS_OK && step > 0 && done < total) {
        step = 0;
        rc = ops->purge(cl->st, full, places, chunk_of(total - done),
                        step_deadline(cl), &step, err);
        done += step;
    }
    if (rc == DIBS_UNAVAIL && done + beyond > 0)
        rc = dibsx_unanswered(err);
    if (purged)
        *purged = done;
    /* The queue went with its last item. */
    return rc == DIBS_NOTFOUND && total > 0 ? DIBS_OK : rc;
}

dibs_status dibs_queue_purge(dibs_client *cl, const char *queue,
                             uint32_t places, uint64_t *purged, dibs_error *err)
{
    return dibs_queue_purge_some(cl, queue, places, UINT64_MAX, purged, err);
}

/* An item that dies again at once is not redriven twice: the count is that of the
 * beginning. */
static dibs_status
redrive_all(dibs_client *cl, const dibs__queue_admin_ops *ops, const char *full,
            uint64_t max, uint64_t *done, dibs_error *err)
{
    dibs__queue_stats stats;
    uint64_t total = 0;
    size_t step = 1;
    dibs_status rc = ops->stats(cl->st, full, step_deadline(cl), &stats, err);

    if (rc == DIBS_OK)
        total = max > 0 && max < stats.dead ? max : stats.dead;
    while (rc == DIBS_OK && step > 0 && *done < total) {
        step = 0;
        rc = ops->redrive(cl->st, full, 0, chunk_of(total - *done),
                          step_deadline(cl), &step, err);
        *done += step;
    }
    return rc == DIBS_UNAVAIL && *done > 0 ? dibsx_unanswered(err) : rc;
}

/* DIBS_OK with no letter: there is none with this id. */
static dibs_status
redrive_one(dibs_client *cl, const dibs__queue_admin_ops *ops, const char *full,
            uint64_t id, uint64_t *done, dibs_error *err)
{
    size_t step = 0;
    dibs_status rc =
        ops->redrive(cl->st, full, id, 1, step_deadline(cl), &step, err);

    *done = step;
    return rc;
}

dibs_status
dibs_queue_redrive(dibs_client *cl, const char *queue, uint64_t id,
                   uint64_t max, uint64_t *redriven, dibs_error *err)
{
    DIBSX_UNCANCEL;
    char full[DIBS_NAME_MAX + 1];
    const dibs__queue_admin_ops *ops;
    uint64_t done = 0;
    dibs_status rc = begin_call(cl, queue, full, &ops, err);

    if (rc == DIBS_OK)
        rc = id != 0 ? redrive_one(cl, ops, full, id, &done, err)
                     : redrive_all(cl, ops, full, max, &done, err);
    if (redriven)
        *redriven = done;
    if (rc == DIBS_NOTFOUND)
        return fail_none(queue, err);
    if (rc == DIBS_OK && id != 0 && done == 0)
        return dibsx_fail(err, DIBS_NOTFOUND,
                          "the queue `%s` has no dead letter %llu", queue,
                          (unsigned long long)id);
    return rc;
}

/* Many records of done items go first, in pieces, because one step with all of them would
 * hold up everybody else. A queue that cannot be removed keeps them. */
static dibs_status
drop_records(dibs_client *cl, const dibs__queue_admin_ops *ops,
             const char *full, bool *dropped, dibs_error *err)
{
    dibs__queue_stats stats;
    uint64_t gone;
    dibs_error failure = {0};
    dibs_status rc = ops->stats(cl->st, full, step_deadline(cl), &stats, err);

    *dropped = false;
    if (rc != DIBS_OK || stats.done + stats.beyond <= DIBS__PURGE_MAX ||
        stats.ready + stats.later + stats.out + stats.dead + stats.lanes > 0)
        return rc;
    *dropped = true;
    rc = drop_beyond(cl, ops, full, stats.done + stats.beyond, &gone, &failure);
    if (rc == DIBS_OK || rc == DIBS_NOTFOUND)
        return rc;
    return dibsx_fail_at(err, DIBS_UNKNOWN, failure.origin,
                         "the queue is still there, and the oldest records of "
                         "its done items are gone: %s; repeat the call",
                         failure.message);
}

dibs_status
dibs_queue_remove(dibs_client *cl, const char *queue, dibs_error *err)
{
    DIBSX_UNCANCEL;
    char full[DIBS_NAME_MAX + 1];
    const dibs__queue_admin_ops *ops;
    bool dropped = false;
    dibs_status rc = begin_call(cl, queue, full, &ops, err);

    if (rc == DIBS_OK)
        rc = drop_records(cl, ops, full, &dropped, err);
    if (rc == DIBS_OK)
        rc = ops->remove(cl->st, full, step_deadline(cl), err);
    if (rc != DIBS_NOTFOUND)
        return rc;
    /* A queue without settings went with its last record. */
    return dropped ? DIBS_OK : fail_none(queue, err);
}
