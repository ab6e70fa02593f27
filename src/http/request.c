/* request.c - the way of a request, from its head to its answer.
 *
 * Loop thread; dibs__http_work() runs on the pool. */
/* SPDX-License-Identifier: MIT */
#include "http/request.h"
#include "base/alloc.h"
#include "http/inside.h"
#include "http/later.h"
#include "http/origin.h"
#include "http/stream.h"
#include "http/wire.h"
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

/* A body that nobody wants is read all the same, up to this: closing with bytes
 * unread would take the answer away from a client that still sends. */
enum { DISCARD_MAX = 16 * 1024 * 1024 };

static void refuse_method(dibs__http_exchange *ex)
{
    const dibs__http_opts *opts = &ex->server->opts;
    dibsx_buf allow;

    dibsx_buf_init(&allow, DIBS__HTTP_VALUE_MAX - 1);
    dibs__http_route_allow(opts->routes, opts->route_count, &ex->target,
                           &allow);
    dibs__http_set(ex, "Allow", dibsx_buf_text(&allow));
    dibs__http_refuse(ex, 405, "Method %.20s is not allowed here; it takes %s",
                      ex->head.method, dibsx_buf_text(&allow));
    dibsx_buf_fini(&allow);
}

/* Refuses what is badly written or not for us to answer. */
static void look_at_origin(dibs__http_exchange *ex)
{
    const dibs__http_opts *opts = &ex->server->opts;
    struct sockaddr *here = (struct sockaddr *)&ex->link->here;
    socklen_t len = sizeof(ex->link->here);
    dibs_error err = {0};
    const char *why;
    int status;

    if (dibs__http_target_read(ex->head.target, &ex->target, &err) != DIBS_OK) {
        dibs__http_refuse(ex, err.status == DIBS_NOMEM ? 503 : 400,
                          "The request is not valid: %s", err.message);
        return;
    }
    if (opts->base_path)
        dibs__http_target_drop(&ex->target, opts->base_path);
    if (here->sa_family == AF_UNSPEC)
        (void)getsockname(ex->link->fd, here, &len);
    status = dibs__http_origin_judge(&ex->head, here, opts->hosts,
                                     ex->link->seal != NULL, &why);
    if (status)
        dibs__http_refuse(ex, status, "%s", why);
}

/* Refuses what has no route, or is too long. */
static void look_at_route(dibs__http_exchange *ex)
{
    const dibs__http_opts *opts = &ex->server->opts;
    bool known;

    ex->route = dibs__http_route_find(opts->routes, opts->route_count,
                                      ex->head.method, &ex->target, &known);
    if (!ex->route && known)
        refuse_method(ex);
    else if (!ex->route)
        dibs__http_refuse(ex, 404, "Nothing has this path");
    else if (opts->gate && !opts->gate(ex))
        return;
    else if (ex->route->body_max)
        ex->body.max = ex->route->body_max;
    if (!ex->status && ex->head.length > ex->body.max)
        dibs__http_refuse(ex, 413, "The body is longer than %zu bytes",
                          ex->body.max);
}

void dibs__http_engage(dibs__http_exchange *ex, dibs__http_phase phase,
                       int64_t span_ms)
{
    ex->server->under_way += !ex->engaged;
    ex->engaged = true;
    dibs__http_link_set(ex->link, phase, span_ms);
}

static void refuse_stream(dibs__http_exchange *ex)
{
    dibs__http_set(ex, "Retry-After", "5");
    dibs__http_refuse(
        ex, 503,
        "%u streams are open, and no more are allowed; close one, "
        "or try again later.",
        ex->server->opts.streams_max);
    dibs__http_answer_end(ex);
}

void dibs__http_send(dibs__http_exchange *ex)
{
    bool head_only = strcmp(ex->head.method, "HEAD") == 0;

    if (ex->stream.pull && !head_only && !dibs__http_stream_admit(ex))
        refuse_stream(ex);
    ex->last =
        ex->last || ex->server->stopping || (ex->stream.pull && ex->head.old);
    if (ex->server->opts.sent)
        ex->server->opts.sent(ex, ex->status);
    dibs__http_answer_head(ex);
    if (head_only)
        dibs__http_answer_drop(ex);
    dibs__http_engage(ex, DIBS__HTTP_SENDING, ex->server->opts.send_ms);
    if (ex->stream.pull)
        dibs__http_stream_fill(ex);
    if (!dibsx_buf_ok(&ex->answer) || !dibsx_buf_ok(&ex->out))
        dibs__http_link_set(ex->link, DIBS__HTTP_GONE, -1);
}

void dibs__http_answer_now(dibs__http_exchange *ex)
{
    dibs__http_answer_end(ex);
    dibs__http_send(ex);
}

void dibs__http_cut_short(dibs__http_exchange *ex, int status,
                          const char *message)
{
    ex->last = true;
    dibs__http_refuse(ex, status, "%s", message);
    dibs__http_answer_now(ex);
}

void dibs__http_work(dibs__http_job *job)
{
    dibs__http_exchange *ex = (dibs__http_exchange *)job;
    dibs__http_server *server = ex->server;

    ex->route->answer(ex);
    if (!ex->later.ask || ex->status)
        dibs__http_answer_end(ex);
    pthread_mutex_lock(&server->mutex);
    job->next = server->done;
    server->done = job;
    pthread_mutex_unlock(&server->mutex);
    (void)eventfd_write(server->wake_fd, 1);
}

/* The request is whole. */
static void dispatch(dibs__http_exchange *ex)
{
    if (!ex->status && !ex->route->quick) {
        dibs__http_engage(ex, DIBS__HTTP_WORKING, -1);
        if (dibs__http_pool_put(&ex->server->pool, &ex->job, ex->route->urgent))
            return;
        dibs__http_set(ex, "Retry-After", "1");
        dibs__http_refuse(ex, 503,
                          "The server is too busy; please try again later.");
    }
    if (!ex->status)
        ex->route->answer(ex);
    if (!dibs__http_later_begin(ex))
        dibs__http_answer_now(ex);
}

/* There is nothing else on its way to the client, so that this fits. */
static bool ask_for_body(dibs__http_exchange *ex)
{
    static const char text[] = "HTTP/1.1 100 Continue\r\n\r\n";
    const size_t len = sizeof(text) - 1;

    const struct iovec part = {.iov_base = (void *)text, .iov_len = len};

    return dibs__http_wire_write(ex->link, &part, 1) == (ssize_t)len;
}

/* A client that waits to be asked for the body, or has one that cannot be read, is
 * answered before it. */
static void begin_body(dibs__http_exchange *ex)
{
    bool body = ex->head.chunked || ex->head.length > 0;

    ex->left = ex->head.length;
    dibs__http_link_set(ex->link, DIBS__HTTP_BODY, 0);
    if (ex->status && (ex->left > DISCARD_MAX || (body && ex->head.expects))) {
        ex->last = true;
        dibs__http_answer_now(ex);
    } else if (body && ex->head.expects && !ask_for_body(ex)) {
        dibs__http_link_set(ex->link, DIBS__HTTP_GONE, -1);
    }
}

void dibs__http_begin(dibs__http_exchange *ex, const char *bytes, size_t len)
{
    char message[128];
    const char *why;
    int status;

    ex->text = dibsx_zalloc(len + 1);
    if (!ex->text) {
        dibs__http_link_set(ex->link, DIBS__HTTP_GONE, -1);
        return;
    }
    memcpy(ex->text, bytes, len);
    status = dibs__http_head_read(ex->text, len, &ex->head, &why);
    if (status) {
        snprintf(message, sizeof(message), "The request is not valid: %s", why);
        dibs__http_cut_short(ex, status, message);
        return;
    }
    ex->last = ex->head.last;
    ex->begun_at = dibsx_now();
    if (ex->link->crowded) {
        dibs__http_set(ex, "Retry-After", "5");
        dibs__http_cut_short(ex, 429,
                             "This address has too many connections open; "
                             "close some, or use them again");
        return;
    }
    look_at_origin(ex);
    if (!ex->status)
        look_at_route(ex);
    begin_body(ex);
}

/* Some of the body itself. */
static void add_body(dibs__http_exchange *ex, const char *bytes, size_t len)
{
    dibs__http_link *link = ex->link;

    if (!ex->status) {
        dibsx_buf_add(&ex->body, bytes, len);
        if (!dibsx_buf_ok(&ex->body))
            dibs__http_refuse(ex, 413, "The body is longer than %zu bytes",
                              ex->body.max);
        return;
    }
    link->dropped += len;
    if (link->dropped > DISCARD_MAX) {
        ex->last = true;
        dibs__http_answer_now(ex);
    }
}

static size_t
take_chunks(dibs__http_exchange *ex, const char *bytes, size_t len)
{
    const char *at = bytes, *data;
    size_t data_len;

    while (ex->link->phase == DIBS__HTTP_BODY) {
        switch (
            dibs__http_chunks_take(&ex->chunks, &at, &len, &data, &data_len)) {
        case DIBS__HTTP_CHUNKS_DATA:
            add_body(ex, data, data_len);
            break;
        case DIBS__HTTP_CHUNKS_END:
            dispatch(ex);
            break;
        case DIBS__HTTP_CHUNKS_BAD:
            dibs__http_cut_short(
                ex, 400,
                "The request is not valid: a chunk of its body does not "
                "say clearly where it ends");
            break;
        case DIBS__HTTP_CHUNKS_MORE:
            return (size_t)(at - bytes);
        }
    }
    return (size_t)(at - bytes);
}

size_t dibs__http_take(dibs__http_exchange *ex, const char *bytes, size_t len)
{
    if (ex->head.chunked)
        return take_chunks(ex, bytes, len);
    if (len > ex->left)
        len = (size_t)ex->left;
    ex->left -= len;
    if (len > 0)
        add_body(ex, bytes, len);
    if (ex->left == 0 && ex->link->phase == DIBS__HTTP_BODY)
        dispatch(ex);
    return len;
}
