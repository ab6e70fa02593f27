/* catalog_list.c - the listings of the catalogs. Catalog thread. */
/* SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "serve/catalog.h"
#include "serve/noun_json.h"
#include "show/limit_json.h"
#include <string.h>

enum { PAIRS_MAX = 4096 };

/* A listing under way. */
typedef struct listing {
    dibs__serve_catalog *ca;
    dibs__catalog_page *page;
    dibs_error *err;
    dibs_status rc; /* of the first thing that could not be looked at */
} listing;

/* One row: its pairs are written by the caller between these two. */
typedef struct row_pairs {
    dibsx_buf text;
    dibsx_json js;
} row_pairs;

static void begin_row(row_pairs *row, const char *name)
{
    dibsx_buf_init(&row->text, PAIRS_MAX);
    dibsx_json_init(&row->js, &row->text);
    dibsx_json_pair_text(&row->js, "name", name);
}

static bool
end_row(row_pairs *row, listing *li, const char *name, const char *state)
{
    bool added = dibs__catalog_add(li->page, name, state, &row->text);

    dibsx_buf_fini(&row->text);
    return added;
}

static dibs__catalog_row *last_row(const listing *li)
{
    return &li->page->rows[li->page->count - 1];
}

/* A thing that is gone is no row, and no failure. True: go on. */
static bool note_status(listing *li, dibs_status rc)
{
    if (rc == DIBS_NOTFOUND || rc == DIBS_MISMATCH || rc == DIBS_INVALID)
        return true;
    li->rc = rc;
    return false;
}

static bool list_queue(const char *name, void *arg)
{
    listing *li = arg;
    dibs_queue_info info = {.size = sizeof(info)};
    dibs_status rc = dibs_queue_stats(li->ca->cl, name, &info, li->err);
    row_pairs row;

    if (rc != DIBS_OK)
        return note_status(li, rc);
    begin_row(&row, name);
    dibs__noun_queue(&row.js, &info);
    if (!end_row(&row, li, name, info.settings.paused ? "paused" : "active"))
        return false;
    last_row(li)->facts.queue = info;
    return true;
}

static dibs_status
list_queues(dibs__serve_catalog *ca, dibs__catalog_page *page, dibs_error *err)
{
    listing li = {.ca = ca, .page = page, .err = err};
    dibs_status rc = dibs_queue_list(ca->cl, NULL, list_queue, &li, err);

    return rc != DIBS_OK ? rc : li.rc;
}

static bool
list_breaker(const char *name, const dibs_breaker_info *info, void *arg)
{
    listing *li = arg;
    row_pairs row;

    begin_row(&row, name);
    dibs__noun_breaker(&row.js, info);
    if (!end_row(&row, li, name, dibs_breaker_state_name(info->state)))
        return false;
    last_row(li)->facts.breaker = *info;
    return true;
}

static bool has_row(const dibs__catalog_page *page, const char *name)
{
    for (size_t i = 0; i < page->count; i++)
        if (strcmp(page->rows[i].name, name) == 0)
            return true;
    return false;
}

static bool list_known_breaker(const char *name, void *arg)
{
    listing *li = arg;
    dibs_breaker *breaker = NULL;
    dibs_breaker_info info;
    dibs_status rc;

    if (has_row(li->page, name))
        return true;
    rc = dibs_breaker_new(li->ca->cl, name, DIBS_BREAKER_OPTS(), &breaker,
                          li->err);
    if (rc == DIBS_OK)
        rc = dibs_breaker_get(breaker, &info, li->err);
    dibs_breaker_free(breaker);
    return rc == DIBS_OK ? list_breaker(name, &info, li) : note_status(li, rc);
}

/* The store lists a breaker from when it first opened until a day after it has closed.
 * Others are those that requests named. */
static dibs_status list_breakers(dibs__serve_catalog *ca,
                                 dibs__catalog_page *page, dibs_error *err)
{
    listing li = {.ca = ca, .page = page, .err = err};
    dibs_status rc = dibs_breaker_list(ca->cl, NULL, list_breaker, &li, err);

    if (rc == DIBS_OK)
        dibs__catalog_known(ca, DIBS__CATALOG_BREAKERS, list_known_breaker,
                            &li);
    return rc != DIBS_OK ? rc : li.rc;
}

static bool list_group(const dibs_group_info *info, void *arg)
{
    listing *li = arg;
    row_pairs row;

    begin_row(&row, info->group);
    dibsx_json_pair_uint(&row.js, "member_count", info->members);
    dibsx_json_pair_uint(&row.js, "counting", info->counting);
    return end_row(&row, li, info->group, "");
}

static bool
list_barrier(const char *name, const dibs_barrier_state *state, void *arg)
{
    listing *li = arg;
    row_pairs row;

    begin_row(&row, name);
    dibs__noun_barrier(&row.js, state);
    return end_row(&row, li, name, state->arrived ? "gathering" : "");
}

static bool
list_latch(const char *name, const dibs_latch_state *state, void *arg)
{
    listing *li = arg;
    row_pairs row;

    begin_row(&row, name);
    dibs__noun_latch(&row.js, state);
    return end_row(&row, li, name, state->left ? "closed" : "open");
}

static bool list_limit(const dibs_limit_info *info, void *arg)
{
    listing *li = arg;
    row_pairs row;

    begin_row(&row, info->name);
    dibs__show_limit(&row.js, info);
    return end_row(&row, li, info->name, "");
}

static bool
list_topic(const char *topic, const dibs_topic_state *state, void *arg)
{
    listing *li = arg;
    row_pairs row;

    begin_row(&row, topic);
    dibs__noun_topic(&row.js, state);
    return end_row(&row, li, topic, "");
}

static dibs_status
list_groups(dibs__serve_catalog *ca, dibs__catalog_page *page, dibs_error *err)
{
    listing li = {.ca = ca, .page = page, .err = err};

    return dibs_group_list(ca->cl, NULL, list_group, &li, err);
}

static dibs_status list_barriers(dibs__serve_catalog *ca,
                                 dibs__catalog_page *page, dibs_error *err)
{
    listing li = {.ca = ca, .page = page, .err = err};

    return dibs_barrier_list(ca->cl, NULL, list_barrier, &li, err);
}

static dibs_status
list_latches(dibs__serve_catalog *ca, dibs__catalog_page *page, dibs_error *err)
{
    listing li = {.ca = ca, .page = page, .err = err};

    return dibs_latch_list(ca->cl, NULL, list_latch, &li, err);
}

static dibs_status
list_limits(dibs__serve_catalog *ca, dibs__catalog_page *page, dibs_error *err)
{
    listing li = {.ca = ca, .page = page, .err = err};

    return dibs_limit_list(ca->cl, NULL, list_limit, &li, err);
}

static dibs_status
list_topics(dibs__serve_catalog *ca, dibs__catalog_page *page, dibs_error *err)
{
    listing li = {.ca = ca, .page = page, .err = err};

    return dibs_events_list(ca->cl, NULL, list_topic, &li, err);
}

dibs__catalog_list_fn *const dibs__catalog_lists[DIBS__CATALOG_KINDS] = {
    [DIBS__CATALOG_QUEUES] = list_queues,
    [DIBS__CATALOG_BREAKERS] = list_breakers,
    [DIBS__CATALOG_GROUPS] = list_groups,
    [DIBS__CATALOG_BARRIERS] = list_barriers,
    [DIBS__CATALOG_LATCHES] = list_latches,
    [DIBS__CATALOG_LIMITS] = list_limits,
    [DIBS__CATALOG_TOPICS] = list_topics};
