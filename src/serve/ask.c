/* ask.c - what a request asks for. Threads of the server. */
/* SPDX-License-Identifier: MIT */
#include "serve/ask.h"
#include "base/text.h"
#include "serve/problem.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINK_MAX = 4 * 1024 };

const char *dibs__serve_ask_name(dibs__http_exchange *ex)
{
    const char *name = dibs__http_param(ex, "name");

    if (!name)
        name = dibs__http_param(ex, "key");
    if (strcmp(name, "~") == 0) {
        name = dibs__http_query(ex, "name");
        if (!name || !*name) {
            (void)dibs__serve_refuse(ex, 400, "invalid",
                                     "The path has ~ for the name, so the "
                                     "query must have it: ?name=NAME");
            return NULL;
        }
    }
    return name;
}

static bool
refuse_field(dibs__http_exchange *ex, const char *field, const char *why)
{
    char pointer[128];
    dibsx_json *js =
        dibs__serve_refuse(ex, 400, "invalid", "%.100s %s", field, why);

    snprintf(pointer, sizeof(pointer), "/%.100s", field);
    dibsx_json_pair_text(js, "pointer", pointer);
    return false;
}

bool dibs__serve_ask_body(dibs__http_exchange *ex, const char *fields,
                          const dibsx_json_node **root)
{
    if (!dibs__http_body_json(ex, root))
        return false;
    if (*root && (*root)->kind != DIBSX_JSON_MAP) {
        (void)dibs__serve_refuse(ex, 400, "invalid",
                                 "The body must be a JSON object");
        return false;
    }
    for (const dibsx_json_node *node = *root ? (*root)->child : NULL; node;
         node = node->next) {
        if (!dibsx_has_word(fields, node->key, node->key_len))
            return refuse_field(ex, node->key,
                                "is not a field of this request");
    }
    return true;
}

bool dibs__serve_ask_int(dibs__http_exchange *ex, const dibsx_json_node *root,
                         const char *field, int64_t min, int64_t max,
                         int64_t *out)
{
    const dibsx_json_node *node = dibsx_json_get(root, field);
    char why[96];

    if (!node || node->kind == DIBSX_JSON_NULL)
        return true;
    if (node->kind == DIBSX_JSON_NUMBER && node->whole &&
        node->integer >= min && node->integer <= max) {
        *out = node->integer;
        return true;
    }
    snprintf(why, sizeof(why), "must be a whole number from %lld to %lld",
             (long long)min, (long long)max);
    return refuse_field(ex, field, why);
}

/* Control characters would be lines of a log, or commands to a terminal that shows it. */
static bool is_line(const char *text, size_t len, size_t max)
{
    return len > 0 && len <= max && !dibsx_text_flaw(text, len);
}

bool dibs__serve_ask_text(dibs__http_exchange *ex, const dibsx_json_node *root,
                          const char *field, size_t max, const char **out)
{
    const dibsx_json_node *node = dibsx_json_get(root, field);
    char why[96];

    if (!node || node->kind == DIBSX_JSON_NULL)
        return true;
    if (node->kind == DIBSX_JSON_TEXT && is_line(node->text, node->len, max)) {
        *out = node->text;
        return true;
    }
    snprintf(why, sizeof(why),
             "must be a text of 1 to %zu bytes without control characters",
             max);
    return refuse_field(ex, field, why);
}

bool dibs__serve_ask_bool(dibs__http_exchange *ex, const dibsx_json_node *root,
                          const char *field, bool *out)
{
    const dibsx_json_node *node = dibsx_json_get(root, field);

    if (!node || node->kind == DIBSX_JSON_NULL)
        return true;
    if (node->kind != DIBSX_JSON_BOOL)
        return refuse_field(ex, field, "must be true or false");
    *out = node->truth;
    return true;
}

const char *dibs__serve_ask_word(const dibs__http_exchange *ex, const char *key)
{
    const char *text = dibs__http_query(ex, key);

    return text ? text : "";
}

bool dibs__serve_ask_query(dibs__http_exchange *ex, const char *key,
                           int64_t min, int64_t max, int64_t *out)
{
    const char *text = dibs__http_query(ex, key);
    long long value;
    char *end;

    if (!text)
        return true;
    errno = 0;
    value = strtoll(text, &end, 10);
    if (errno == 0 && *text && !*end && strchr("-0123456789", *text) &&
        value >= min && value <= max) {
        *out = value;
        return true;
    }
    (void)dibs__serve_refuse(ex, 400, "invalid",
                             "?%s= must be a whole number from %lld to %lld",
                             key, (long long)min, (long long)max);
    return false;
}

bool dibs__serve_ask_line(dibs__http_exchange *ex, const char *key, size_t max,
                          const char **out)
{
    const char *text = dibs__http_query(ex, key);

    if (!text)
        return true;
    if (is_line(text, strlen(text), max)) {
        *out = text;
        return true;
    }
    (void)dibs__serve_refuse(ex, 400, "invalid",
                             "?%s= must be a text of 1 to %zu bytes without "
                             "control characters",
                             key, max);
    return false;
}

/* Bytes that can stand in a query as they are. */
static void put_encoded(dibsx_buf *out, const char *text)
{
    static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRST"
                               "UVWXYZ0123456789-._~";

    for (; *text; text++) {
        if (strchr(safe, *text))
            dibsx_buf_putc(out, *text);
        else
            dibsx_buf_printf(out, "%%%02X", (unsigned)(unsigned char)*text);
    }
}

void dibs__serve_link_next(dibs__http_exchange *ex, const char *cursor)
{
    const char *query = strchr(dibs__http_asked(ex), '?');
    dibsx_buf link;

    if (!cursor)
        return;
    dibsx_buf_init(&link, LINK_MAX);
    dibsx_buf_puts(&link, "<?");
    for (query = query ? query + 1 : ""; *query;) {
        const size_t len = strcspn(query, "&");

        if (len > 0 && strncmp(query, "after=", 6) != 0)
            dibsx_buf_printf(&link, "%.*s&", (int)len, query);
        query += len + (query[len] == '&');
    }
    dibsx_buf_puts(&link, "after=");
    put_encoded(&link, cursor);
    dibsx_buf_puts(&link, ">; rel=\"next\"");
    if (dibsx_buf_ok(&link))
        dibs__http_set(ex, "Link", dibsx_buf_text(&link));
    dibsx_buf_fini(&link);
}
