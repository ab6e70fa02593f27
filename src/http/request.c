/* request.c - the way of a request, from its first line to its answer.
 *
 * Loop thread, in calls from libmicrohttpd; dibs__http_work() runs on the pool. */
/* SPDX-License-Identifier: MIT */
#include "http/inside.h"
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* A body that nobody wants is read all the same, up to this: closing with bytes
 * unread would take the answer away from the one who still sends. */
enum { DISCARD_MAX = 16 * 1024 * 1024, HEADERS_IN_MAX = 100 };

void *
dibs__http_on_line(void *cls, const char *uri, struct MHD_Connection *conn)
{
    dibs__http_exchange *ex = dibs__http_exchange_new(cls, conn);
    dibs_error err = {0};

    if (!ex)
        return NULL;
    ex->link = dibs__http_link_of(conn);
    if (ex->link)
        ex->link->state = DIBS__HTTP_HEARD;
    if (dibs__http_target_read(uri, &ex->target, &err) != DIBS_OK)
        dibs__http_refuse(ex, err.status == DIBS_NOMEM ? 503 : 400,
                          "Bad request: %s", err.message);
    return ex;
}

/* What the headers say, as far as it bears on where the request ends. */
typedef struct heads {
    size_t count;
    size_t lengths; /* times Content-Length was given */
    size_t codings; /* times Transfer-Encoding was */
    bool chunked;   /* ... as "chunked", alone */
    bool expects;   /* "Expect: 100-continue" */
    uint64_t length;
} heads;

static enum MHD_Result see_header(void *cls, enum MHD_ValueKind kind,
                                  const char *key, const char *value)
{
    heads *hd = cls;

    (void)kind;
    value = value ? value : "";
    hd->count++;
    if (strcasecmp(key, "Content-Length") == 0) {
        hd->lengths++;
        hd->length = strtoull(value, NULL, 10);
    } else if (strcasecmp(key, "Transfer-Encoding") == 0) {
        hd->codings++;
        hd->chunked = strcasecmp(value, "chunked") == 0;
    } else if (strcasecmp(key, "Expect") == 0) {
        hd->expects = true;
    }
    return MHD_YES;
}

/* Two readers could see the end of the request at different places. */
static bool unclear(const heads *hd)
{
    return hd->lengths + hd->codings > 1 || (hd->codings && !hd->chunked);
}

static void refuse_method(dibs__http_exchange *ex, const char *method)
{
    const dibs__http_opts *opts = &ex->server->opts;
    dibsx_buf allow;

    dibsx_buf_init(&allow, DIBS__HTTP_VALUE_MAX);
    dibs__http_route_allow(opts->routes, opts->route_count, &ex->target,
                           &allow);
    dibs__http_set(ex, "Allow", dibsx_buf_text(&allow));
    dibs__http_refuse(ex, 405, "Method %.20s is not allowed here; it takes %s",
                      method, dibsx_buf_text(&allow));
    dibsx_buf_fini(&allow);
}

/* Refuses what is unclear, what breaks a limit, and what has no route. */
static void
look_over(dibs__http_exchange *ex, const char *method, const heads *hd)
{
    const dibs__http_opts *opts = &ex->server->opts;
    bool known;

    if (ex->status)
        return;
    if (unclear(hd)) {
        dibs__http_refuse(ex, 400,
                          "Bad request: it does not say clearly where it ends");
        return;
    }
    if (hd->count > HEADERS_IN_MAX) {
        dibs__http_refuse(ex, 431, "There are more than %d headers",
                          HEADERS_IN_MAX);
        return;
    }
    ex->route = dibs__http_route_find(opts->routes, opts->route_count, method,
                                      &ex->target, &known);
    if (!ex->route && known)
        refuse_method(ex, method);
    else if (!ex->route)
        dibs__http_refuse(ex, 404, "Not found");
    else if (hd->length > opts->body_max)
        dibs__http_refuse(ex, 413, "The body is longer than %zu bytes",
                          opts->body_max);
}

static void add_headers(const dibs__http_exchange *ex, struct MHD_Response *out)
{
    (void)dibs__mhd.MHD_add_response_header(out, "Content-Type",
                                            "application/json");
    (void)dibs__mhd.MHD_add_response_header(out, "Cache-Control", "no-store");
    (void)dibs__mhd.MHD_add_response_header(out, "X-Content-Type-Options",
                                            "nosniff");
    for (size_t i = 0; i < ex->header_count; i++)
        (void)dibs__mhd.MHD_add_response_header(out, ex->headers[i].name,
                                                ex->headers[i].value);
    if (ex->server->stopping)
        (void)dibs__mhd.MHD_add_response_header(out, "Connection", "close");
}

static enum MHD_Result send_answer(dibs__http_exchange *ex)
{
    struct MHD_Response *out;
    enum MHD_Result rc;

    if (!dibsx_buf_ok(&ex->answer))
        return MHD_NO;
    out = dibs__mhd.MHD_create_response_from_buffer(ex->answer.len,
                                                    ex->answer.data,
                                                    MHD_RESPMEM_MUST_COPY);
    if (!out)
        return MHD_NO;
    add_headers(ex, out);
    rc = dibs__mhd.MHD_queue_response(ex->conn, (unsigned)ex->status, out);
    dibs__mhd.MHD_destroy_response(out);
    ex->phase = DIBS__HTTP_SENDING;
    dibs__http_link_set(ex->server, ex->link, DIBS__HTTP_ENGAGED,
                        ex->server->opts.send_ms);
    return rc;
}

/* From here on the exchange is one that a stop waits for. */
static void engage(dibs__http_exchange *ex, dibs__http_phase phase)
{
    ex->phase = phase;
    ex->server->under_way++;
    dibs__http_link_set(ex->server, ex->link, DIBS__HTTP_ENGAGED, -1);
}

static enum MHD_Result answer_now(dibs__http_exchange *ex)
{
    engage(ex, DIBS__HTTP_ANSWERED);
    dibs__http_answer_end(ex);
    return send_answer(ex);
}

/* The headers are in. Who waits to be asked for the body, or has a body that
 * cannot be read, is answered before it. */
static enum MHD_Result begin(dibs__http_exchange *ex, const char *method)
{
    heads hd = {.count = 0};

    ex->phase = DIBS__HTTP_RECEIVING;
    (void)dibs__mhd.MHD_get_connection_values(ex->conn, MHD_HEADER_KIND,
                                              see_header, &hd);
    look_over(ex, method, &hd);
    if (ex->status && (hd.length > DISCARD_MAX || hd.expects || unclear(&hd)))
        return answer_now(ex);
    return MHD_YES;
}

static enum MHD_Result
take_body(dibs__http_exchange *ex, const char *bytes, size_t len)
{
    if (!ex->status) {
        dibsx_buf_add(&ex->body, bytes, len);
        if (!dibsx_buf_ok(&ex->body))
            dibs__http_refuse(ex, 413, "The body is longer than %zu bytes",
                              ex->server->opts.body_max);
        return MHD_YES;
    }
    ex->discarded += len;
    return ex->discarded <= DISCARD_MAX ? MHD_YES : MHD_NO;
}

void dibs__http_work(dibs__http_job *job)
{
    dibs__http_exchange *ex = (dibs__http_exchange *)job;
    dibs__http_server *server = ex->server;

    ex->route->answer(ex);
    dibs__http_answer_end(ex);
    pthread_mutex_lock(&server->mutex);
    job->next = server->done;
    server->done = job;
    pthread_mutex_unlock(&server->mutex);
    (void)eventfd_write(server->wake_fd, 1);
}

/* The request is whole. */
static enum MHD_Result dispatch(dibs__http_exchange *ex)
{
    if (ex->status)
        return answer_now(ex);
    if (ex->route->quick) {
        ex->route->answer(ex);
        return answer_now(ex);
    }
    engage(ex, DIBS__HTTP_WORKING);
    if (!dibs__http_pool_put(&ex->server->pool, &ex->job)) {
        dibs__http_refuse(ex, 503, "Too busy; please try again later.");
        dibs__http_answer_end(ex);
        return send_answer(ex);
    }
    /* Only this thread resumes it, so that cannot come first. */
    dibs__mhd.MHD_suspend_connection(ex->conn);
    return MHD_YES;
}

enum MHD_Result
dibs__http_on_request(void *cls, struct MHD_Connection *conn, const char *url,
                      const char *method, const char *version,
                      const char *upload, size_t *upload_len, void **context)
{
    dibs__http_exchange *ex = *context;
    size_t len = *upload_len;

    (void)cls;
    (void)conn;
    (void)url;
    (void)version;
    if (!ex)
        return MHD_NO;
    if (ex->phase == DIBS__HTTP_HEAD)
        return begin(ex, method);
    *upload_len = 0;
    if (len)
        return take_body(ex, upload, len);
    if (ex->phase == DIBS__HTTP_RECEIVING)
        return dispatch(ex);
    if (ex->phase == DIBS__HTTP_ANSWERED)
        return send_answer(ex);
    return MHD_YES;
}

void dibs__http_on_done(void *cls, struct MHD_Connection *conn, void **context,
                        enum MHD_RequestTerminationCode code)
{
    dibs__http_server *server = cls;
    dibs__http_exchange *ex = *context;

    (void)conn;
    (void)code;
    *context = NULL;
    if (!ex)
        return;
    if (ex->phase >= DIBS__HTTP_WORKING)
        server->under_way--;
    dibs__http_link_set(server, ex->link, DIBS__HTTP_KEPT_OPEN,
                        server->opts.receive_ms);
    dibs__http_exchange_free(ex);
}
