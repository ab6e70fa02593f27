/* route_feed.c - GET /v1/feed and GET /v1/series. Threads of the server. */
/* SPDX-License-Identifier: MIT */
#include "serve/ask.h"
#include "serve/daemon.h"
#include "serve/problem.h"
#include "serve/routes.h"
#include <stdlib.h>
#include <string.h>

enum { FEED_DEFAULT = 100, LOOK_WAIT_MS = 1000 };

/* As dibs__ring_each_fn: the data is a JSON object. */
static void put_event(void *arg, const char *data, size_t len)
{
    dibsx_json *js = arg;

    if (js->comma)
        dibsx_buf_putc(js->out, ',');
    dibsx_buf_add(js->out, data, len);
    js->comma = true;
}

void dibs__serve_get_feed(dibs__http_exchange *ex)
{
    dibs__serve *sv = dibs__http_arg(ex);
    const char *name = dibs__http_query(ex, "name");
    int64_t limit = FEED_DEFAULT;
    dibsx_json *js;

    if (!dibs__serve_ask_query(ex, "limit", 1, DIBS__SERVE_FEED_MAX, &limit))
        return;
    /* A feed that somebody reads is kept up to date. */
    dibs__serve_picture_drop(dibs__serve_look_take(&sv->look, LOOK_WAIT_MS));
    js = dibs__http_answer(ex, 200);
    dibsx_json_key(js, "items");
    dibsx_json_open(js, '[');
    pthread_mutex_lock(&sv->hub.mutex);
    dibs__ring_latest(&sv->hub.ring, DIBS__HUB_FEED,
                      name && *name ? name : NULL, (size_t)limit, put_event,
                      js);
    pthread_mutex_unlock(&sv->hub.mutex);
    dibsx_json_close(js, ']');
    dibsx_json_pair_text(js, "seen", "look");
}

void dibs__serve_get_series(dibs__http_exchange *ex)
{
    dibs__serve *sv = dibs__http_arg(ex);
    int64_t step_s = DIBS__SERIES_STEP_S;
    uint32_t names;

    if (!dibs__serve_ask_query(ex, "step_s", DIBS__SERIES_STEP_S,
                               DIBS__SERIES_LONG_STEP_S, &step_s))
        return;
    if (step_s != DIBS__SERIES_STEP_S && step_s != DIBS__SERIES_LONG_STEP_S) {
        (void)dibs__serve_refuse(ex, 400, "invalid",
                                 "\"step_s\" is 5, for the last hour, or 60, "
                                 "for the last day");
        return;
    }
    if (!dibs__series_names(dibs__http_query(ex, "names"), &names)) {
        (void)dibs__serve_refuse(ex, 400, "invalid",
                                 "one of the names is not known; leave "
                                 "\"names\" out for all of them");
        return;
    }
    dibs__serve_picture_drop(dibs__serve_look_take(&sv->look, LOOK_WAIT_MS));
    pthread_mutex_lock(&sv->charts.mutex);
    dibs__series_json(&sv->charts.series, step_s, dibsx_wall_us() / 1000000,
                      names, dibs__http_answer(ex, 200));
    pthread_mutex_unlock(&sv->charts.mutex);
}
