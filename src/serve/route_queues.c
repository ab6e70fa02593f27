/* route_queues.c - queues: a list, one, its messages, pushing, and an operator's part.
 * Threads of the server. */
/* SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "serve/ask.h"
#include "serve/audit.h"
#include "serve/bulk.h"
#include "serve/daemon.h"
#include "serve/noun_json.h"
#include "serve/page.h"
#include "serve/payload.h"
#include "serve/problem.h"
#include "serve/routes.h"
#include "show/data_json.h"
#include "show/queue_json.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LIMIT_MAX = 100,
    SKIP_MAX = 1000000,
    KEY_MAX = 64,     /* of a dedup id */
    BULK_MAX = 1000,  /* of one request */
    SHOWN_MAX = 4096, /* bytes of a message in a list */
    DELAY_MAX_MS = 366 * 24 * 3600
};

void dibs__serve_get_queues(dibs__http_exchange *ex)
{
    dibs__serve_answer_catalog(ex, DIBS__CATALOG_QUEUES, "active paused");
}

/* The settings and counts of the queue in the path. False: it was answered. */
static bool
read_stats(dibs__http_exchange *ex, const char *name, dibs_queue_info *info)
{
    dibs__serve *sv = dibs__http_arg(ex);
    dibs_error err = {0};

    *info = (dibs_queue_info){.size = sizeof(*info)};
    if (dibs_queue_stats(sv->data, name, info, &err) == DIBS_OK)
        return true;
    (void)dibs__serve_fail(ex, &err);
    return false;
}

/* The ETag has all that the answer shows, but for the age of the first item. Totals that
 * it leaves out change with these. */
static bool knows_queue(dibs__http_exchange *ex, const dibs_queue_info *info)
{
    const dibs_queue_settings *set = &info->settings;

    return dibs__serve_known_etag(
        ex,
        "%d-%llu-%llu-%llu-%llu-%llu-%llu-%llu-%llu-%llu-%llu-%d-%u-%u-%u-%u",
        set->paused, (unsigned long long)info->ready,
        (unsigned long long)info->later, (unsigned long long)info->out,
        (unsigned long long)info->dead, (unsigned long long)info->pushed,
        (unsigned long long)info->delivered, (unsigned long long)info->acked,
        (unsigned long long)info->purged, (unsigned long long)info->consumers,
        (unsigned long long)info->waiting, set->serial, set->cap, set->tries,
        set->deads, set->lost_max);
}

void dibs__serve_get_queue(dibs__http_exchange *ex)
{
    const char *name = dibs__serve_ask_name(ex);
    dibs_queue_info info;
    dibsx_json *js;

    if (!name || !read_stats(ex, name, &info) || knows_queue(ex, &info))
        return;
    js = dibs__http_answer(ex, 200);
    dibsx_json_pair_text(js, "name", name);
    dibs__noun_queue(js, &info);
}

/* -- Messages. */

typedef struct messages {
    dibsx_json *js;
    size_t count, limit;
} messages;

/* The beginning of long data: a list is for people, who reserve to get all. */
static bool put_message(const dibs_item_info *item, void *arg)
{
    messages *ms = arg;
    const bool cut = item->len > SHOWN_MAX;

    if (ms->count++ == ms->limit)
        return false;
    dibsx_json_open(ms->js, '{');
    dibs__json_item(ms->js, item, "state",
                    item->place == DIBS_ITEM_DONE ? "done_at" : "dead_at",
                    SHOWN_MAX);
    dibsx_json_pair_bool(ms->js, "cut", cut);
    dibsx_json_close(ms->js, '}');
    return true;
}

void dibs__serve_get_messages(dibs__http_exchange *ex)
{
    dibs__serve *sv = dibs__http_arg(ex);
    const char *name = dibs__serve_ask_name(ex);
    const char *state = dibs__http_query(ex, "state");
    const uint32_t place = dibs__place_find(state ? state : "ready");
    int64_t limit = 50, skip = 0;
    messages ms;
    dibs_error err = {0};
    dibs_status rc;
    char next[24];

    if (!name || !dibs__serve_ask_query(ex, "limit", 1, LIMIT_MAX, &limit) ||
        !dibs__serve_ask_query(ex, "after", 0, SKIP_MAX, &skip))
        return;
    if (!place) {
        (void)dibs__serve_refuse(ex, 400, "invalid",
                                 "There is no such ?state: it is ready, later, "
                                 "out, dead or done");
        return;
    }
    ms = (messages){.js = dibs__http_answer(ex, 200), .limit = (size_t)limit};
    dibsx_json_key(ms.js, "items");
    dibsx_json_open(ms.js, '[');
    rc = dibs_queue_peek(sv->data, name, (dibs_item_place)place, (size_t)skip,
                         ms.limit + 1, put_message, &ms, &err);
    dibsx_json_close(ms.js, ']');
    snprintf(next, sizeof(next), "%lld", (long long)(skip + limit));
    dibsx_json_pair_text(ms.js, "next", ms.count > ms.limit ? next : NULL);
    dibs__serve_link_next(ex, ms.count > ms.limit ? next : NULL);
    if (rc != DIBS_OK)
        (void)dibs__serve_fail(ex, &err);
}

/* -- Pushing. */

/* False: it was refused. */
static bool read_push(dibs__http_exchange *ex, const dibsx_json_node *body,
                      dibs_push_opts *opts)
{
    const char *key = dibs__http_header(ex, "Idempotency-Key");
    int64_t priority = 0, tries = 0;

    if (key && (!*key || strlen(key) > KEY_MAX)) {
        (void)dibs__serve_refuse(ex, 400, "invalid",
                                 "the Idempotency-Key of a push has 1 to %d "
                                 "bytes",
                                 KEY_MAX);
        return false;
    }
    opts->dedup_id = key;
    if (!dibs__serve_ask_int(ex, body, "delay_ms", 0,
                             DELAY_MAX_MS * INT64_C(1000), &opts->delay_ms) ||
        !dibs__serve_ask_int(ex, body, "priority", INT32_MIN, INT32_MAX,
                             &priority) ||
        !dibs__serve_ask_int(ex, body, "tries", 1, 1000000, &tries) ||
        !dibs__serve_ask_int(ex, body, "dedup_ms", 0,
                             DELAY_MAX_MS * INT64_C(1000), &opts->dedup_ms) ||
        !dibs__serve_ask_text(ex, body, "to", 127, &opts->to))
        return false;
    opts->priority = (int32_t)priority;
    opts->tries = (uint32_t)tries;
    return true;
}

static void
push_payload(dibs__http_exchange *ex, const char *name,
             const dibs__payload *payload, const dibs_push_opts *opts)
{
    dibs__serve *sv = dibs__http_arg(ex);
    dibs_queue *queue = NULL;
    dibs_pushed pushed = {0};
    dibs_error err = {0};
    dibs_status rc =
        dibs_queue_new(sv->data, name, DIBS_QUEUE_OPTS(), &queue, &err);

    if (rc == DIBS_OK)
        rc = dibs_queue_push(queue, payload->data, payload->len, opts, &pushed,
                             &err);
    if (rc == DIBS_OK) {
        dibsx_json *js = dibs__http_answer(ex, pushed.duplicate ? 200 : 201);

        dibsx_json_pair_uint(js, "id", pushed.id);
        dibsx_json_pair_bool(js, "duplicate", pushed.duplicate);
    } else {
        (void)dibs__serve_fail(ex, &err);
    }
    dibs_queue_free(queue);
}

void dibs__serve_post_push(dibs__http_exchange *ex)
{
    const char *name = dibs__serve_ask_name(ex);
    dibs_push_opts opts = {.size = sizeof(opts)};
    const dibsx_json_node *body;
    dibs__payload payload;

    if (!name ||
        !dibs__serve_ask_body(ex,
                              "data data_base64 headers delay_ms priority "
                              "tries to dedup_ms",
                              &body) ||
        !read_push(ex, body, &opts))
        return;
    if (dibs__payload_read(ex, body, DIBS_ITEM_MAX, &payload)) {
        opts.headers = payload.headers[0] ? payload.headers : NULL;
        push_payload(ex, name, &payload, &opts);
    }
    dibs__payload_fini(&payload);
}

/* -- An operator's part. */

/* The name, and a body of these fields with a reason. False: it was refused. */
static bool
read_change(dibs__http_exchange *ex, const char *fields, const char **name,
            const dibsx_json_node **body, const char **reason)
{
    *name = dibs__serve_ask_name(ex);
    *reason = NULL;
    return *name && dibs__serve_ask_change(ex, fields, body, reason);
}

/* A typing error must not make a queue. */
static void set_paused(dibs__http_exchange *ex, bool paused)
{
    dibs__serve *sv = dibs__http_arg(ex);
    const char *name, *reason;
    const dibsx_json_node *body;
    dibs_queue_info info;
    dibs_error err = {0};
    dibs_status rc;

    if (!read_change(ex, "reason", &name, &body, &reason) ||
        !read_stats(ex, name, &info))
        return;
    rc = paused ? dibs_queue_pause(sv->data, name, &err)
                : dibs_queue_resume(sv->data, name, &err);
    dibs__serve_audit_note(ex, paused ? "queue-pause" : "queue-resume", name, 0,
                           reason, rc);
    if (rc == DIBS_OK)
        dibs__http_answer_none(ex, 204);
    else
        (void)dibs__serve_fail(ex, &err);
}

void dibs__serve_post_queue_pause(dibs__http_exchange *ex)
{
    set_paused(ex, true);
}

void dibs__serve_post_queue_resume(dibs__http_exchange *ex)
{
    set_paused(ex, false);
}

static uint64_t count_places(const dibs_queue_info *info, uint32_t places)
{
    return (places & DIBS_ITEM_READY ? info->ready : 0) +
           (places & DIBS_ITEM_LATER ? info->later : 0) +
           (places & DIBS_ITEM_OUT ? info->out : 0) +
           (places & DIBS_ITEM_DEAD ? info->dead : 0) +
           (places & DIBS_ITEM_DONE ? info->done : 0);
}

/* Answers with the number that a bulk change did, and how many are left: null where the
 * store does not say. After a change, an error would have it done again. */
static void answer_bulk(dibs__http_exchange *ex, const char *name,
                        const char *what, uint64_t done, uint32_t places)
{
    dibs__serve *sv = dibs__http_arg(ex);
    dibs_queue_info info = {.size = sizeof(info)};
    dibs_error err = {0};
    dibs_status rc = dibs_queue_stats(sv->data, name, &info, &err);
    dibsx_json *js;

    if (rc != DIBS_OK && done == 0) {
        (void)dibs__serve_fail(ex, &err);
        return;
    }
    js = dibs__http_answer(ex, 200);
    dibsx_json_pair_uint(js, what, done);
    dibsx_json_key(js, "left");
    if (rc == DIBS_OK)
        dibsx_json_uint(js, count_places(&info, places));
    else
        dibsx_json_null(js);
}

/* False: it was refused. */
static bool read_places(dibs__http_exchange *ex, const dibsx_json_node *body,
                        uint32_t *places)
{
    const dibsx_json_node *list = dibsx_json_get(body, "states");

    *places = 0;
    for (const dibsx_json_node *at =
             list && list->kind == DIBSX_JSON_LIST ? list->child : NULL;
         at; at = at->next) {
        const uint32_t place =
            at->kind == DIBSX_JSON_TEXT ? dibs__place_find(at->text) : 0;

        *places |= place;
        if (place)
            continue;
        *places = 0;
        break;
    }
    if (*places)
        return true;
    dibsx_json_pair_text(
        dibs__serve_refuse(ex, 400, "invalid",
                           "states must be a list of \"ready\", "
                           "\"later\", \"out\", \"dead\" and \"done\": "
                           "those are dropped"),
        "pointer", "/states");
    return false;
}

/* Drops what was there at the beginning, or what of it there is time for. It asks also when
 * nothing is shown: there may be records of done items that are not. */
static dibs_status
purge_queue(dibs__serve *sv, const char *name, uint32_t places,
            uint64_t *purged, dibs_error *err)
{
    const dibsx_nsec end = dibs__bulk_end();
    dibs_queue_info info = {.size = sizeof(info)};
    uint64_t total, some;
    dibs_status rc = dibs_queue_stats(sv->data, name, &info, err);

    if (rc != DIBS_OK)
        return rc;
    total = count_places(&info, places);
    do {
        const uint64_t rest = total - *purged;

        rc = dibs_queue_purge_some(sv->data, name, places,
                                   rest < BULK_MAX ? rest : BULK_MAX, &some,
                                   err);
        *purged += some;
    } while (rc == DIBS_OK && *purged < total && some > 0 &&
             !dibs__bulk_over(end));
    if (*purged == 0)
        return rc;
    return rc == DIBS_UNAVAIL    ? dibsx_unanswered(err)
           : rc == DIBS_NOTFOUND ? DIBS_OK
                                 : rc;
}

void dibs__serve_post_purge(dibs__http_exchange *ex)
{
    dibs__serve *sv = dibs__http_arg(ex);
    const char *name, *reason;
    const dibsx_json_node *body;
    uint32_t places;
    uint64_t purged = 0;
    dibs_error err = {0};
    dibs_status rc;

    if (!read_change(ex, "states reason", &name, &body, &reason) ||
        !read_places(ex, body, &places))
        return;
    if (!dibs__serve_audit_begin(ex, "queue-purge", name, reason))
        return;
    rc = purge_queue(sv, name, places, &purged, &err);
    dibs__serve_audit_end_items(ex, "queue-purge", name, reason, purged, rc);
    if (rc == DIBS_OK)
        answer_bulk(ex, name, "purged", purged, places);
    else
        dibsx_json_pair_uint(dibs__serve_fail(ex, &err), "purged", purged);
}

/* Dead letters by their ids. One that is gone is none to redrive. */
static dibs_status
redrive_ids(dibs__serve *sv, const char *name, const dibsx_json_node *ids,
            uint64_t *redriven, dibs_error *err)
{
    for (const dibsx_json_node *at = ids->child; at; at = at->next) {
        uint64_t one = 0;
        dibs_status rc =
            dibs_queue_redrive(sv->data, name, (uint64_t)at->integer, 1, &one,
                               err);

        *redriven += one;
        if (rc != DIBS_OK && rc != DIBS_NOTFOUND)
            return rc == DIBS_UNAVAIL && *redriven > 0 ? dibsx_unanswered(err)
                                                       : rc;
    }
    return DIBS_OK;
}

/* A list of 1 to 100 ids. */
static bool is_ids(const dibsx_json_node *ids)
{
    size_t count = 0;

    if (!ids || ids->kind != DIBSX_JSON_LIST)
        return false;
    for (const dibsx_json_node *at = ids->child; at; at = at->next)
        if (++count > LIMIT_MAX || at->kind != DIBSX_JSON_NUMBER ||
            !at->whole || at->integer <= 0)
            return false;
    return count > 0;
}

/* At most 1,000 in one request: the client asks again while some are left. */
void dibs__serve_post_redrive(dibs__http_exchange *ex)
{
    dibs__serve *sv = dibs__http_arg(ex);
    const char *name, *reason;
    const dibsx_json_node *body, *ids;
    uint64_t redriven = 0;
    int64_t max = BULK_MAX;
    bool all = false;
    dibs_error err = {0};
    dibs_status rc;

    if (!read_change(ex, "ids all max reason", &name, &body, &reason) ||
        !dibs__serve_ask_bool(ex, body, "all", &all) ||
        !dibs__serve_ask_int(ex, body, "max", 1, BULK_MAX, &max))
        return;
    ids = dibsx_json_get(body, "ids");
    if (all ? ids != NULL : !is_ids(ids)) {
        (void)dibs__serve_refuse(ex, 400, "invalid",
                                 "the body must have either \"ids\", a list of "
                                 "1 to %d, or \"all\": true",
                                 LIMIT_MAX);
        return;
    }
    if (!dibs__serve_audit_begin(ex, "queue-redrive", name, reason))
        return;
    rc = all ? dibs_queue_redrive(sv->data, name, 0, (uint64_t)max, &redriven,
                                  &err)
             : redrive_ids(sv, name, ids, &redriven, &err);
    dibs__serve_audit_end_items(ex, "queue-redrive", name, reason, redriven,
                                rc);
    if (rc == DIBS_OK)
        answer_bulk(ex, name, "redriven", redriven, DIBS_ITEM_DEAD);
    else
        dibsx_json_pair_uint(dibs__serve_fail(ex, &err), "redriven", redriven);
}
