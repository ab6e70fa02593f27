/* exchange.c - one request and its answer, as the function of a route sees them.
 *
 * Owns the body and the answer. Runs on the thread that has the exchange. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/text.h"
#include "http/inside.h"
#include "http/later.h"
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

/* No answer is longer. */
enum {
    ANSWER_MAX = 16 * 1024 * 1024,
    HEAD_MAX = 8 * 1024,
    HEADERS_MAX = 6 * 1024,
    HEADERS_LEN = 160 /* of most answers */
};

dibs__http_exchange *dibs__http_exchange_new(dibs__http_link *link)
{
    dibs__http_exchange *ex = dibsx_zalloc(sizeof(*ex));

    if (!ex)
        return NULL;
    ex->server = link->server;
    ex->link = link;
    ex->head.method = "";
    ex->tail = "";
    dibsx_buf_init(&ex->body, ex->server->opts.body_max);
    dibsx_buf_init(&ex->answer, ANSWER_MAX);
    dibsx_buf_init(&ex->out, HEAD_MAX);
    dibsx_buf_init(&ex->headers, HEADERS_MAX);
    return ex;
}

void dibs__http_exchange_free(dibs__http_exchange *ex)
{
    if (!ex)
        return;
    dibs__http_later_end(ex);
    dibs__http_answer_drop(ex);
    dibs__http_target_fini(&ex->target);
    dibsx_json_doc_fini(&ex->doc);
    dibsx_buf_fini(&ex->body);
    dibsx_buf_fini(&ex->answer);
    dibsx_buf_fini(&ex->out);
    dibsx_buf_fini(&ex->headers);
    dibsx_free(ex->text);
    dibsx_free(ex);
}

void *dibs__http_arg(const dibs__http_exchange *ex)
{
    return ex->server->opts.arg;
}

const char *dibs__http_param(const dibs__http_exchange *ex, const char *name)
{
    return dibs__http_route_param(ex->route, &ex->target, name);
}

const char *dibs__http_query(const dibs__http_exchange *ex, const char *key)
{
    return dibs__http_target_query(&ex->target, key);
}

const char *dibs__http_reads(const dibs__http_exchange *ex)
{
    return ex->route && ex->route->query ? ex->route->query : "";
}

const char *dibs__http_stray(const dibs__http_exchange *ex)
{
    const char *reads = dibs__http_reads(ex);

    for (size_t i = 0; i < ex->target.query_count; i++) {
        const char *key = ex->target.query[i].key;

        if (!dibsx_has_word(reads, key, strlen(key)))
            return key;
    }
    return NULL;
}

const char *dibs__http_header(const dibs__http_exchange *ex, const char *name)
{
    return dibs__http_head_get(&ex->head, name);
}

bool dibs__http_header_all(const dibs__http_exchange *ex, const char *name,
                           dibsx_buf *out)
{
    size_t count = 0;

    for (size_t i = 0; i < ex->head.field_count; i++) {
        const dibs__http_field *field = &ex->head.fields[i];

        if (strcasecmp(field->name, name) != 0)
            continue;
        dibsx_buf_puts(out, count++ > 0 ? ", " : "");
        dibsx_buf_puts(out, field->value);
    }
    return count > 0;
}

const char *dibs__http_method(const dibs__http_exchange *ex)
{
    return ex->head.method;
}

const char *dibs__http_asked(const dibs__http_exchange *ex)
{
    return ex->head.target;
}

const char *dibs__http_route_path(const dibs__http_exchange *ex)
{
    return ex->route ? ex->route->path : NULL;
}

int dibs__http_need(const dibs__http_exchange *ex)
{
    return ex->route ? ex->route->need : 0;
}

void dibs__http_peer(const dibs__http_exchange *ex,
                     char out[DIBS__HTTP_PEER_MAX])
{
    memcpy(out, ex->link->peer, DIBS__HTTP_PEER_MAX);
}

int dibs__http_kind(const dibs__http_exchange *ex)
{
    return ex->link->kind;
}

void dibs__http_peer_name(const dibs__http_exchange *ex, char *out, size_t size)
{
    *out = '\0';
    if (ex->link->seal)
        dibs__http_seal_name(ex->link->seal, out, size);
}

int64_t dibs__http_took_us(const dibs__http_exchange *ex)
{
    return ex->begun_at ? (dibsx_now() - ex->begun_at) / 1000 : 0;
}

void *dibs__http_note(dibs__http_exchange *ex)
{
    return ex->note;
}

dibs__http_server *dibs__http_server_of(const dibs__http_exchange *ex)
{
    return ex->server;
}

const char *dibs__http_body(const dibs__http_exchange *ex, size_t *len)
{
    *len = ex->body.len;
    return dibsx_buf_text(&ex->body);
}

/* With parameters or without. A web page can send other types than this anywhere
 * without being asked first whether it may. */
static bool is_json(const char *type)
{
    static const char json[] = "application/json";
    const size_t len = sizeof(json) - 1;

    return type && strncasecmp(type, json, len) == 0 &&
           strchr("; \t", type[len]);
}

bool dibs__http_body_json(dibs__http_exchange *ex, const dibsx_json_node **root)
{
    const char *type = dibs__http_header(ex, "Content-Type");
    dibs_error err = {0};
    size_t len;
    const char *body = dibs__http_body(ex, &len);
    dibs_status rc;

    *root = NULL;
    if (len == 0)
        return true;
    if (!is_json(type)) {
        dibs__http_refuse(ex, 415,
                          "The body is %.60s, and must be JSON: send it with "
                          "the header \"Content-Type: application/json\" "
                          "(curl: -H \"Content-Type: application/json\")",
                          type ? type : "of no type");
        return false;
    }
    rc = dibsx_json_read(body, len, &ex->doc, &err);
    if (rc == DIBS_INVALID)
        dibs__http_refuse(ex, 400, "The body is not valid JSON: %s",
                          err.message);
    else if (rc != DIBS_OK)
        dibs__http_refuse(ex, 503, "%s", err.message);
    *root = ex->doc.root;
    return rc == DIBS_OK;
}

void dibs__http_answer_drop(dibs__http_exchange *ex)
{
    if (ex->free_bytes)
        ex->free_bytes((void *)ex->bytes);
    ex->free_bytes = NULL;
    ex->bytes = NULL;
    ex->byte_count = 0;
    ex->json = false;
    if (ex->streaming)
        ex->server->stream_count--;
    ex->streaming = false;
    if (ex->stream.pull)
        ex->stream.gone(ex->stream.arg);
    ex->stream.pull = NULL;
}

static void begin_answer(dibs__http_exchange *ex, int status, const char *type)
{
    dibs__http_answer_drop(ex);
    ex->status = status;
    ex->type = type;
}

void dibs__http_answer_bytes(dibs__http_exchange *ex, int status,
                             const char *type, const void *bytes, size_t len,
                             dibs__http_free_fn *free_bytes)
{
    begin_answer(ex, status, type);
    ex->bytes = bytes;
    ex->byte_count = len;
    ex->free_bytes = free_bytes;
}

void dibs__http_answer_none(dibs__http_exchange *ex, int status)
{
    begin_answer(ex, status, NULL);
}

void dibs__http_answer_later(dibs__http_exchange *ex,
                             const dibs__http_later *later)
{
    ex->later = *later;
}

void dibs__http_answer_stream(dibs__http_exchange *ex,
                              const dibs__http_stream *stream)
{
    begin_answer(ex, 200, stream->type);
    ex->stream = *stream;
}

/* A list of them, each perhaps marked as weak, or "*" for any. */
static bool has_etag(const char *list, const char *etag)
{
    const size_t len = strlen(etag);

    while (list && *list) {
        list += strspn(list, " \t,");
        if (*list == '*')
            return true;
        if (strncmp(list, "W/", 2) == 0)
            list += 2;
        if (strncmp(list, etag, len) == 0 && strchr(" \t,", list[len]))
            return true;
        list = strchr(list, ',');
    }
    return false;
}

bool dibs__http_knows(const dibs__http_exchange *ex, const char *etag)
{
    for (size_t i = 0; i < ex->head.field_count; i++) {
        const dibs__http_field *field = &ex->head.fields[i];

        if (strcasecmp(field->name, "If-None-Match") == 0 &&
            has_etag(field->value, etag))
            return true;
    }
    return false;
}

bool dibs__http_not_modified(dibs__http_exchange *ex, const char *etag)
{
    dibs__http_set(ex, "ETag", etag);
    dibs__http_set(ex, "Cache-Control", "no-cache");
    if (!dibs__http_knows(ex, etag))
        return false;
    begin_answer(ex, 304, NULL);
    return true;
}

dibsx_json *dibs__http_answer(dibs__http_exchange *ex, int status)
{
    return dibs__http_answer_as(ex, status, "application/json");
}

dibsx_json *
dibs__http_answer_as(dibs__http_exchange *ex, int status, const char *type)
{
    begin_answer(ex, status, type);
    ex->json = true;
    dibsx_buf_reset(&ex->answer);
    dibsx_json_init(&ex->js, &ex->answer);
    dibsx_json_open(&ex->js, '{');
    return &ex->js;
}

static void
default_shape(dibsx_json *js, const void *arg, int status, const char *message)
{
    (void)arg;
    dibsx_json_pair_int(js, "status", status);
    dibsx_json_pair_text(js, "message", message);
}

static void shape(const dibs__http_server *server, dibsx_json *js, int status,
                  const char *message)
{
    (server->opts.shape ? server->opts.shape
                        : default_shape)(js, server->opts.arg, status, message);
}

void dibs__http_refuse(dibs__http_exchange *ex, int status, const char *format,
                       ...)
{
    char message[512];
    va_list args;

    va_start(args, format);
    vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    shape(ex->server, dibs__http_answer(ex, status), status, message);
    if (ex->server->opts.error_type)
        ex->type = ex->server->opts.error_type;
}

void dibs__http_set(dibs__http_exchange *ex, const char *name,
                    const char *value)
{
    dibsx_buf_expect(&ex->headers, HEADERS_LEN);
    dibsx_buf_puts(&ex->headers, name);
    dibsx_buf_puts(&ex->headers, ": ");
    dibsx_buf_puts(&ex->headers, value);
    dibsx_buf_puts(&ex->headers, "\r\n");
}

void dibs__http_answer_end(dibs__http_exchange *ex)
{
    if (!ex->status)
        dibs__http_refuse(ex, 500, "Nothing answers this request");
    if (!ex->json)
        return;
    if (!dibsx_buf_ok(&ex->answer))
        dibs__http_refuse(ex, 500, "The answer is too long");
    dibsx_json_close(&ex->js, '}');
    dibsx_buf_putc(&ex->answer, '\n');
    ex->bytes = ex->answer.data;
    ex->byte_count = ex->answer.len;
    ex->json = false;
}
