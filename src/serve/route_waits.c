/* route_waits.c - waiters with their circles, and statistics by name. Threads of the
 * server. */
/* SPDX-License-Identifier: MIT */
#include "serve/ask.h"
#include "serve/daemon.h"
#include "serve/problem.h"
#include "serve/routes.h"
#include "serve/row.h"
#include "show/monitor_json.h"
#include <string.h>

enum { STATS_KEEP_MS = 1000 };

static bool put_circle(const dibs_wait_link *links, size_t count, void *arg)
{
    dibs__json_links(arg, links, count);
    return true;
}

static dibs_status put_circles(dibs_client *cl, const char *prefix, void *arg,
                               dibsx_json *js, dibs_error *err)
{
    dibs_status rc;

    (void)arg;
    dibsx_json_open(js, '[');
    rc = dibs_deadlocks(cl, prefix, put_circle, js, err);
    dibsx_json_close(js, ']');
    return rc;
}

static const char *query_prefix(const dibs__http_exchange *ex)
{
    const char *prefix = dibs__http_query(ex, "prefix");

    return prefix ? prefix : "";
}

/* True when there was somebody who waits. */
static bool put_waits(dibsx_json *js, const dibs__serve_picture *picture,
                      const char *prefix, uint64_t limit)
{
    const int64_t since_ms = (dibsx_now() - picture->seen_at) / DIBSX_MS;
    uint64_t total = 0;

    dibsx_json_key(js, "items");
    dibsx_json_open(js, '[');
    for (size_t i = 0; i < picture->count; i++) {
        const dibs_lease_info *row = picture->rows[i];

        if (row->waiter_count == 0 ||
            strncmp(row->name, prefix, strlen(prefix)) != 0)
            continue;
        if (total++ >= limit)
            continue;
        dibsx_json_open(js, '{');
        dibs__serve_row_json(js, row, since_ms, DIBS__SERVE_PARTIES_MAX);
        dibsx_json_close(js, '}');
    }
    dibsx_json_close(js, ']');
    dibsx_json_pair_uint(js, "total", total);
    dibsx_json_pair_int(js, "as_of_ms", since_ms);
    return total > 0;
}

void dibs__serve_get_waits(dibs__http_exchange *ex)
{
    dibs__serve *sv = dibs__http_arg(ex);
    const char *prefix = query_prefix(ex);
    int64_t limit = DIBS__SERVE_NAMES_MAX;
    dibs__serve_picture *picture;
    dibs_status rc = DIBS_OK;
    dibs_error err = {0};
    dibsx_json *js;

    if (!dibs__serve_ask_query(ex, "limit", 1, DIBS__SERVE_NAMES_MAX, &limit))
        return;
    picture = dibs__serve_take_picture(ex);
    if (!picture)
        return;
    js = dibs__http_answer(ex, 200);
    if (put_waits(js, picture, prefix, (uint64_t)limit)) {
        dibsx_json_key(js, "circles");
        rc = dibs__serve_memo_put(&sv->circles, sv->cl, prefix,
                                  sv->opts->look_every_ms, put_circles, NULL,
                                  js, &err);
    } else {
        dibsx_json_key(js, "circles");
        dibsx_json_open(js, '[');
        dibsx_json_close(js, ']');
    }
    if (rc != DIBS_OK)
        (void)dibs__serve_fail(ex, &err);
    dibs__serve_picture_drop(picture);
}

static bool put_stats(const dibs_name_stats *stats, void *arg)
{
    dibs__json_stats(arg, stats);
    return true;
}

static dibs_status list_stats(dibs_client *cl, const char *prefix, void *arg,
                              dibsx_json *js, dibs_error *err)
{
    dibs_status rc;

    (void)arg;
    dibsx_json_open(js, '[');
    rc = dibs_name_stats_shared(cl, prefix, put_stats, js, err);
    dibsx_json_close(js, ']');
    return rc;
}

/* All clients that share their statistics. */
void dibs__serve_get_stats(dibs__http_exchange *ex)
{
    dibs__serve *sv = dibs__http_arg(ex);
    dibsx_json *js = dibs__http_answer(ex, 200);
    dibs_error err = {0};

    dibsx_json_key(js, "items");
    if (dibs__serve_memo_put(&sv->stats, sv->cl, query_prefix(ex),
                             STATS_KEEP_MS, list_stats, NULL, js,
                             &err) != DIBS_OK)
        (void)dibs__serve_fail(ex, &err);
}
