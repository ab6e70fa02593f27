/* api.c - GET /, /status, /ads, /health and /events, POST /update.
 *
 * Owns nothing: the worker is lent to the server. Runs on its threads; routes that
 * ask no store run on its loop, so that they answer when all others wait. */
/* SPDX-License-Identifier: MIT */
#include "demo/api.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/sha1.h"
#include "demo/operation.h"
#include "demo/page.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    DURATION_MAX_MS = 60000,
    BODY_MAX = 16 * 1024,
    PAGE_MAX = 256 * 1024,
    RECEIVE_MS = 5000,
    THREADS_MAX = 64 /* most of them wait for the lock */
};

static void
shape(dibsx_json *js, const void *arg, int status, const char *message)
{
    (void)arg;
    (void)status;
    dibsx_json_pair_bool(js, "success", false);
    dibsx_json_pair_text(js, "message", message);
}

/* The answer to a failure that is not the client's. */
static void refuse(dibs__http_exchange *ex, const dibs_error *err)
{
    if (err->status == DIBS_BUSY || err->status == DIBS_TIMEOUT)
        dibs__http_refuse(ex, 409,
                          "Could not acquire lock. Please try again later.");
    else if (err->status == DIBS_CANCELLED)
        dibs__http_refuse(
            ex, 503, "The worker is shutting down. Please try again later.");
    else if (err->status == DIBS_LOST || err->status == DIBS_STALE)
        dibs__http_refuse(ex, 503,
                          "The lock was lost; nothing was written. Please try "
                          "again later.");
    else if (err->retriable)
        dibs__http_refuse(ex, 503, "The store is away: %s", err->message);
    else
        dibs__http_refuse(ex, 500, "%s", err->message);
}

static void get_status(dibs__http_exchange *ex)
{
    const dibs__demo_work *work = dibs__http_arg(ex);
    dibsx_json *js = dibs__http_answer(ex, 200);
    char time[40];

    dibsx_wall_text(dibsx_wall_us(), time, sizeof(time));
    dibsx_json_pair_int(js, "workerId", work->id);
    dibsx_json_pair_int(js, "processId", getpid());
    dibsx_json_pair_text(js, "status", "running");
    dibsx_json_pair_text(js, "timestamp", time);
}

static void
answer_ad(dibs__http_exchange *ex, const char *message, const dibs__demo_ad *ad)
{
    dibsx_json *js = dibs__http_answer(ex, 200);

    dibsx_json_pair_bool(js, "success", true);
    if (message)
        dibsx_json_pair_text(js, "message", message);
    dibsx_json_key(js, "data");
    dibs__demo_ad_json(js, ad);
}

static void get_ads(dibs__http_exchange *ex)
{
    const dibs__demo_work *work = dibs__http_arg(ex);
    dibs_error err = {0};
    uint64_t version;
    dibs__demo_ad ad;
    dibs_status rc = dibs__demo_ad_get(work->data, &ad, &version, &err);

    if (rc == DIBS_OK)
        answer_ad(ex, NULL, &ad);
    else if (rc == DIBS_NOTFOUND)
        dibs__http_refuse(ex, 404, DIBS__DEMO_VALUE " does not exist");
    else
        refuse(ex, &err);
}

/* The fields of the body; both have defaults. False: it was refused. */
static bool read_name(dibs__http_exchange *ex, const dibsx_json_node *body,
                      const char **name)
{
    const dibsx_json_node *node = dibsx_json_get(body, "operationName");

    *name = "Cache Update Operation";
    if (!node)
        return true;
    if (node->kind == DIBSX_JSON_TEXT && node->len > 0 &&
        node->len <= DIBS__DEMO_NAME_MAX && strlen(node->text) == node->len) {
        *name = node->text;
        return true;
    }
    dibs__http_refuse(ex, 400, "operationName must be a text of 1 to %d bytes",
                      DIBS__DEMO_NAME_MAX);
    return false;
}

static bool read_duration(dibs__http_exchange *ex, const dibsx_json_node *body,
                          int64_t *duration_ms)
{
    const dibsx_json_node *node = dibsx_json_get(body, "duration");

    *duration_ms = 2000;
    if (!node)
        return true;
    if (node->kind == DIBSX_JSON_NUMBER && node->whole && node->integer >= 0 &&
        node->integer <= DURATION_MAX_MS) {
        *duration_ms = node->integer;
        return true;
    }
    dibs__http_refuse(ex, 400,
                      "duration must be a whole number of milliseconds from 0 "
                      "to %d",
                      DURATION_MAX_MS);
    return false;
}

static void post_update(dibs__http_exchange *ex)
{
    dibs__demo_work *work = dibs__http_arg(ex);
    const dibsx_json_node *body;
    dibs_error err = {0};
    int64_t duration_ms;
    dibs__demo_ad ad;
    const char *name;

    if (!dibs__http_body_json(ex, &body))
        return;
    if (body && body->kind != DIBSX_JSON_MAP) {
        dibs__http_refuse(ex, 400, "The body must be a JSON object");
        return;
    }
    if (!read_name(ex, body, &name) || !read_duration(ex, body, &duration_ms))
        return;
    if (dibs__demo_operate(work, name, duration_ms, work->opts->wait_ms, &ad,
                           &err) == DIBS_OK)
        answer_ad(ex, "Operation completed successfully", &ad);
    else
        refuse(ex, &err);
}

static void get_health(dibs__http_exchange *ex)
{
    const dibs__demo_work *work = dibs__http_arg(ex);
    bool fine = dibs_ping(work->locks, NULL, NULL) == DIBS_OK &&
                (work->data == work->locks ||
                 dibs_ping(work->data, NULL, NULL) == DIBS_OK);
    dibsx_json *js = dibs__http_answer(ex, fine ? 200 : 503);

    dibsx_json_pair_text(js, "status", fine ? "healthy" : "unhealthy");
    dibsx_json_pair_int(js, "workerId", work->id);
    dibsx_json_pair_text(js, "redis", fine ? "connected" : "disconnected");
}

/* Nothing but its own script may run in the page, and no page may frame it. */
static void get_page(dibs__http_exchange *ex)
{
    const dibs__demo_work *work = dibs__http_arg(ex);
    dibsx_buf page;
    size_t len;

    dibsx_buf_init(&page, PAGE_MAX);
    dibs__demo_page_put(work, &page);
    len = page.len;
    dibs__http_set(ex, "Content-Security-Policy",
                   "default-src 'none'; script-src 'self'; connect-src 'self'; "
                   "base-uri 'none'; form-action 'none'; frame-ancestors "
                   "'none'");
    if (dibsx_buf_ok(&page))
        dibs__http_answer_bytes(ex, 200, DIBS__DEMO_PAGE_TYPE,
                                dibsx_buf_take(&page), len, dibsx_free);
    else
        dibs__http_refuse(ex, 503, "There is no memory for the page.");
    dibsx_buf_fini(&page);
}

static void get_script(dibs__http_exchange *ex)
{
    char sum[DIBSX_SHA1_TEXT], etag[DIBSX_SHA1_TEXT + 2];

    dibsx_sha1(dibs__demo_script, dibs__demo_script_len, sum);
    snprintf(etag, sizeof(etag), "\"%s\"", sum);
    if (!dibs__http_not_modified(ex, etag))
        dibs__http_answer_bytes(ex, 200, DIBS__DEMO_SCRIPT_TYPE,
                                dibs__demo_script, dibs__demo_script_len, NULL);
}

static void get_events(dibs__http_exchange *ex)
{
    dibs__demo_work *work = dibs__http_arg(ex);

    dibs__demo_feed_answer(&work->feed, ex);
}

static const dibs__http_route routes[] = {
    {"GET", "/", get_page, .quick = false},
    {"GET", "/events", get_events, .quick = true},
    {"GET", "/events.js", get_script, .quick = true},
    {"GET", "/status", get_status, .quick = true},
    {"GET", "/ads", get_ads, .quick = false},
    {"POST", "/update", post_update, .quick = false},
    {"GET", "/health", get_health, .quick = false},
};

dibs_status dibs__demo_api_start(dibs__demo_work *work, dibs__http_server **out,
                                 dibs_error *err)
{
    int port = work->opts->port + work->id;
    dibs__http_opts opts = {.routes = routes,
                            .route_count = sizeof(routes) / sizeof(routes[0]),
                            .arg = work,
                            .shape = shape,
                            .threads_max = THREADS_MAX,
                            .receive_ms = RECEIVE_MS,
                            .body_max = BODY_MAX};
    dibs_status rc = dibs__http_listen("127.0.0.1", port, &opts.fd, err);

    if (rc == DIBS_OK)
        rc = dibs__http_start(&opts, out, err);
    if (rc != DIBS_OK)
        return rc;
    dibs__demo_feed_serve(&work->feed, *out);
    dibs__demo_say(&work->log, DIBS__DEMO_PLAIN, "http_started",
                   DIBS__DEMO_FACTS({"port", NULL, port}),
                   "HTTP server listening on http://localhost:%d", port);
    return DIBS_OK;
}

void dibs__demo_api_stop(dibs__demo_work *work, dibs__http_server *server,
                         int64_t grace_ms)
{
    dibs__demo_feed_serve(&work->feed, NULL);
    dibs__http_stop(server, grace_ms);
}
