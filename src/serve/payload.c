/* payload.c - the bytes that a request gives. Threads of the server. */
/* SPDX-License-Identifier: MIT */
#include "serve/payload.h"
#include "base/json_data.h"
#include "serve/problem.h"
#include <dibs/queue.h>
#include <string.h>

static bool
refuse_part(dibs__http_exchange *ex, const char *pointer, const char *why)
{
    dibsx_json_pair_text(dibs__serve_refuse(ex, 400, "invalid", "%s", why),
                         "pointer", pointer);
    return false;
}

static bool read_data(dibs__http_exchange *ex, const dibsx_json_node *body,
                      size_t max, dibs__payload *out)
{
    const dibsx_json_node *text = dibsx_json_get(body, "data");
    const dibsx_json_node *base64 = dibsx_json_get(body, "data_base64");

    if (!text == !base64)
        return refuse_part(ex, "/data",
                           "the body must have either \"data\", a text, or "
                           "\"data_base64\"");
    if (text && text->kind != DIBSX_JSON_TEXT)
        return refuse_part(ex, "/data", "data must be a text");
    if (base64 && (base64->kind != DIBSX_JSON_TEXT ||
                   !dibsx_base64_read(base64->text, base64->len, &out->bytes)))
        return refuse_part(ex, "/data_base64",
                           "data_base64 must be base64 with its padding");
    out->data = text ? text->text : dibsx_buf_text(&out->bytes);
    out->len = text ? text->len : out->bytes.len;
    if (out->len <= max)
        return true;
    (void)dibs__serve_refuse(ex, 413, "too-long",
                             "the data is longer than %zu bytes", max);
    return false;
}

/* A header without NULs, and without "=" in its key. */
static bool is_header(const dibsx_json_node *node)
{
    return node->kind == DIBSX_JSON_TEXT && node->key_len > 0 &&
           strlen(node->key) == node->key_len && !strchr(node->key, '=') &&
           strlen(node->text) == node->len;
}

static bool read_headers(dibs__http_exchange *ex, const dibsx_json_node *body,
                         dibs__payload *out)
{
    const dibsx_json_node *map = dibsx_json_get(body, "headers");
    size_t at[DIBS__PAYLOAD_HEADERS_MAX], count = 0;
    bool fits = !map || map->kind == DIBSX_JSON_MAP;

    for (const dibsx_json_node *node = map && fits ? map->child : NULL;
         node && fits; node = node->next) {
        fits = count < DIBS__PAYLOAD_HEADERS_MAX && is_header(node);
        if (!fits)
            break;
        at[count++] = out->texts.len;
        dibsx_buf_printf(&out->texts, "%s=%s", node->key, node->text);
        dibsx_buf_putc(&out->texts, '\0');
    }
    if (!fits || !dibsx_buf_ok(&out->texts))
        return refuse_part(
            ex, "/headers",
            "headers must be an object of at most 64 texts, under "
            "keys without \"=\", of 16 KiB in all");
    for (size_t i = 0; i < count; i++)
        out->headers[i] = dibsx_buf_text(&out->texts) + at[i];
    return true;
}

bool dibs__payload_read(dibs__http_exchange *ex, const dibsx_json_node *body,
                        size_t max, dibs__payload *out)
{
    memset(out, 0, sizeof(*out));
    dibsx_buf_init(&out->bytes, max + 1);
    dibsx_buf_init(&out->texts, DIBS_ITEM_HEADERS_MAX);
    return read_data(ex, body, max, out) && read_headers(ex, body, out);
}

void dibs__payload_fini(dibs__payload *payload)
{
    dibsx_buf_fini(&payload->bytes);
    dibsx_buf_fini(&payload->texts);
}
