/* route_state.c - shared values, by key. The body is the value, whatever its type.
 * Threads of the server. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "serve/ask.h"
#include "serve/daemon.h"
#include "serve/problem.h"
#include "serve/routes.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIMIT_MAX = 1000 };

static void set_version(dibs__http_exchange *ex, uint64_t version)
{
    char etag[32];

    snprintf(etag, sizeof(etag), "\"v%llu\"", (unsigned long long)version);
    dibs__http_set(ex, "ETag", etag);
}

/* `"v12"`. */
static bool read_version(const char *text, uint64_t *version)
{
    char *end;

    if (strncmp(text, "\"v", 2) != 0 || text[2] < '0' || text[2] > '9')
        return false;
    *version = strtoull(text + 2, &end, 10);
    return strcmp(end, "\"") == 0;
}

/* The version that the request expects. False: it was refused. */
static bool read_expected(dibs__http_exchange *ex, uint64_t *expected)
{
    const char *match = dibs__http_header(ex, "If-Match");
    const char *none = dibs__http_header(ex, "If-None-Match");

    *expected = DIBS_VERSION_ANY;
    if (none && strcmp(none, "*") == 0 && !match) {
        *expected = DIBS_VERSION_NONE;
        return true;
    }
    if (!none && (!match || read_version(match, expected)))
        return true;
    (void)dibs__serve_refuse(ex, 400, "invalid",
                             "Send \"If-Match\" with the ETag of an answer, or "
                             "\"If-None-Match: *\" for a value that is not to "
                             "be there");
    return false;
}

/* DIBS_STALE is a precondition that failed here. */
static void fail_value(dibs__http_exchange *ex, const dibs_error *err)
{
    if (err->status == DIBS_STALE)
        (void)dibs__serve_refuse(ex, 412, "precondition", "%s", err->message);
    else
        (void)dibs__serve_fail(ex, err);
}

/* The key of the path, or NULL: it was refused. Keys of the job engine have definitions,
 * with the environment of commands in them, and runs, which only the engine changes. */
static const char *read_key(dibs__http_exchange *ex)
{
    const char *key = dibs__serve_ask_name(ex);

    if (key && strncmp(key, "dibs.", 5) == 0) {
        (void)dibs__serve_refuse(ex, 400, "invalid",
                                 "Keys that begin with \"dibs.\" belong to the "
                                 "library; use /v1/breakers and /v1/elections");
        return NULL;
    }
    if (!key || strncmp(key, "job/{", 5) != 0)
        return key;
    (void)dibs__serve_refuse(ex, 400, "invalid",
                             "Keys that begin with job/{ belong to the job "
                             "engine; use /v1/jobs and /v1/runs");
    return NULL;
}

void dibs__serve_get_value(dibs__http_exchange *ex)
{
    dibs__serve *sv = dibs__http_arg(ex);
    const char *key = read_key(ex);
    dibs_value value = {0};
    dibs_error err = {0};
    char text[32], etag[32];
    void *copy;

    if (!key)
        return;
    if (dibs_state_get(sv->data, key, &value, &err) != DIBS_OK) {
        (void)dibs__serve_fail(ex, &err);
        return;
    }
    copy = dibsx_zalloc(value.len + 1);
    snprintf(etag, sizeof(etag), "\"v%llu\"",
             (unsigned long long)value.version);
    snprintf(text, sizeof(text), "%lld", (long long)value.expires_ms);
    if (value.expires_ms >= 0)
        dibs__http_set(ex, "Dibs-Expires-Ms", text);
    if (!copy) {
        dibs__http_refuse(ex, 503, "There is no memory for the value");
    } else if (dibs__http_not_modified(ex, etag)) {
        dibsx_free(copy);
    } else {
        memcpy(copy, value.data, value.len);
        dibs__http_answer_bytes(ex, 200, "application/octet-stream", copy,
                                value.len, dibsx_free);
    }
    dibs_value_free(&value);
}

void dibs__serve_put_value(dibs__http_exchange *ex)
{
    dibs__serve *sv = dibs__http_arg(ex);
    const char *key = read_key(ex), *body;
    uint64_t expected, version = 0;
    int64_t ttl_ms = 0;
    dibs_error err = {0};
    dibs_status rc;
    size_t len;

    if (!key || !read_expected(ex, &expected) ||
        !dibs__serve_ask_query(ex, "ttl_ms", 1, INT64_C(31622400000), &ttl_ms))
        return;
    body = dibs__http_body(ex, &len);
    if (expected == DIBS_VERSION_ANY)
        rc = dibs_state_set(sv->data, key, body, len, ttl_ms, &version, &err);
    else
        rc = dibs_state_cas(sv->data, key, expected, body, len, ttl_ms,
                            &version, &err);
    if (rc != DIBS_OK) {
        fail_value(ex, &err);
        return;
    }
    dibsx_json_pair_uint(dibs__http_answer(ex, 200), "version", version);
    set_version(ex, version);
}

void dibs__serve_delete_value(dibs__http_exchange *ex)
{
    dibs__serve *sv = dibs__http_arg(ex);
    const char *key = read_key(ex);
    uint64_t expected;
    dibs_error err = {0};

    if (!key || !read_expected(ex, &expected))
        return;
    if (dibs_state_delete(sv->data, key, expected, &err) == DIBS_OK)
        dibs__http_answer_none(ex, 204);
    else
        fail_value(ex, &err);
}

void dibs__serve_post_value_add(dibs__http_exchange *ex)
{
    dibs__serve *sv = dibs__http_arg(ex);
    const char *key = read_key(ex);
    const dibsx_json_node *body;
    int64_t delta = 1, sum = 0;
    dibs_error err = {0};

    if (!key || !dibs__serve_ask_body(ex, "delta", &body) ||
        !dibs__serve_ask_int(ex, body, "delta", INT64_MIN, INT64_MAX, &delta))
        return;
    if (dibs_state_add(sv->data, key, delta, &sum, &err) == DIBS_OK)
        dibsx_json_pair_int(dibs__http_answer(ex, 200), "sum", sum);
    else
        (void)dibs__serve_fail(ex, &err);
}

/* Keys after one of them, up to a limit. */
typedef struct keys {
    dibsx_json *js;
    const char *after;
    int64_t left;
    bool more;
    char last[DIBS_NAME_MAX + 1];
} keys;

static bool put_key(const dibs_state_item *item, void *arg)
{
    keys *ks = arg;

    if (strcmp(item->key, ks->after) <= 0)
        return true;
    if (ks->left-- == 0) {
        ks->more = true;
        return false;
    }
    snprintf(ks->last, sizeof(ks->last), "%s", item->key);
    dibsx_json_open(ks->js, '{');
    dibsx_json_pair_text(ks->js, "key", item->key);
    dibsx_json_pair_uint(ks->js, "size", item->len);
    dibsx_json_pair_uint(ks->js, "version", item->version);
    dibsx_json_key(ks->js, "expires_ms");
    if (item->expires_ms >= 0)
        dibsx_json_int(ks->js, item->expires_ms);
    else
        dibsx_json_null(ks->js);
    dibsx_json_close(ks->js, '}');
    return true;
}

void dibs__serve_get_values(dibs__http_exchange *ex)
{
    dibs__serve *sv = dibs__http_arg(ex);
    const char *after = dibs__http_query(ex, "after");
    keys ks = {.after = after ? after : "", .left = 100};
    dibs_error err = {0};

    if (!dibs__serve_ask_query(ex, "limit", 1, LIMIT_MAX, &ks.left))
        return;
    ks.js = dibs__http_answer(ex, 200);
    dibsx_json_key(ks.js, "items");
    dibsx_json_open(ks.js, '[');
    if (dibs_state_list(sv->data, dibs__http_query(ex, "prefix"), put_key, &ks,
                        &err) != DIBS_OK) {
        (void)dibs__serve_fail(ex, &err);
        return;
    }
    dibsx_json_close(ks.js, ']');
    dibsx_json_pair_text(ks.js, "next", ks.more ? ks.last : NULL);
    dibs__serve_link_next(ex, ks.more ? ks.last : NULL);
}
