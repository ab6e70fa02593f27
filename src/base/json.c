/* json.c - a JSON writer onto a buffer.
 *
 * Owns nothing; failures stick to the buffer, which the caller checks once. */
/* SPDX-License-Identifier: MIT */
#include "base/json.h"
#include "base/text.h"
#include <assert.h>
#include <string.h>

void dibsx_json_init(dibsx_json *js, dibsx_buf *out)
{
    *js = (dibsx_json){.out = out};
}

/* Every item starts here: the comma that parts it from the one before. */
static void begin_item(dibsx_json *js)
{
    if (js->comma)
        dibsx_buf_putc(js->out, ',');
    js->comma = true;
}

void dibsx_json_open(dibsx_json *js, char bracket)
{
    assert(bracket == '{' || bracket == '[');
    begin_item(js);
    dibsx_buf_putc(js->out, bracket);
    js->comma = false;
}

void dibsx_json_close(dibsx_json *js, char bracket)
{
    assert(bracket == '}' || bracket == ']');
    dibsx_buf_putc(js->out, bracket);
    js->comma = true;
}

static bool is_plain(unsigned char c)
{
    return c >= 0x20 && c != '"' && c != '\\';
}

/* The code point of a character of at most three bytes. */
static unsigned code_of(const unsigned char *at, size_t len)
{
    if (len == 1)
        return at[0];
    if (len == 2)
        return (at[0] & 0x1FU) << 6 | (at[1] & 0x3FU);
    return (at[0] & 0xFU) << 12 | (at[1] & 0x3FU) << 6 | (at[2] & 0x3FU);
}

static void put_escape(dibsx_buf *out, const unsigned char *at, size_t len)
{
    static const char named[] = "\"\\\b\f\n\r\t";
    static const char letters[] = "\"\\bfnrt";
    const char *found = *at ? strchr(named, *at) : NULL;

    if (found)
        dibsx_buf_printf(out, "\\%c", letters[found - named]);
    else
        dibsx_buf_printf(out, "\\u%04x", code_of(at, len));
}

static void
put_string(const dibsx_json *js, const unsigned char *at, size_t len)
{
    dibsx_buf *out = js->out;
    const unsigned char *end = at + len;
    const unsigned char *run = at; /* what can be copied as it is */

    dibsx_buf_putc(out, '"');
    while (at < end) {
        size_t step;

        if (*at < 0x7F && is_plain(*at)) {
            at++;
            continue;
        }
        step = dibsx_utf8_len(at, (size_t)(end - at));
        if (step > 0 && (step > 1 || is_plain(*at)) &&
            (!js->shown || dibsx_may_be_shown(at))) {
            at += step;
            continue;
        }
        dibsx_buf_add(out, run, (size_t)(at - run));
        if (step)
            put_escape(out, at, step);
        else
            dibsx_buf_puts(out, "\xEF\xBF\xBD");
        run = at += step ? step : 1;
    }
    dibsx_buf_add(out, run, (size_t)(at - run));
    dibsx_buf_putc(out, '"');
}

void dibsx_json_key(dibsx_json *js, const char *key)
{
    dibsx_json_key_bytes(js, key, strlen(key));
}

void dibsx_json_key_bytes(dibsx_json *js, const char *key, size_t len)
{
    dibsx_json_bytes(js, key, len);
    dibsx_buf_putc(js->out, ':');
    js->comma = false;
}

void dibsx_json_text(dibsx_json *js, const char *text)
{
    if (text)
        dibsx_json_bytes(js, text, strlen(text));
    else
        dibsx_json_null(js);
}

void dibsx_json_bytes(dibsx_json *js, const void *bytes, size_t len)
{
    begin_item(js);
    put_string(js, bytes ? bytes : "", len);
}

void dibsx_json_int(dibsx_json *js, int64_t number)
{
    begin_item(js);
    if (number < 0)
        dibsx_buf_putc(js->out, '-');
    dibsx_buf_put_uint(js->out,
                       number < 0 ? 0 - (uint64_t)number : (uint64_t)number);
}

void dibsx_json_uint(dibsx_json *js, uint64_t number)
{
    begin_item(js);
    dibsx_buf_put_uint(js->out, number);
}

void dibsx_json_bool(dibsx_json *js, bool truth)
{
    begin_item(js);
    dibsx_buf_puts(js->out, truth ? "true" : "false");
}

void dibsx_json_null(dibsx_json *js)
{
    begin_item(js);
    dibsx_buf_puts(js->out, "null");
}

void dibsx_json_pair_text(dibsx_json *js, const char *key, const char *text)
{
    dibsx_json_key(js, key);
    dibsx_json_text(js, text);
}

void dibsx_json_pair_int(dibsx_json *js, const char *key, int64_t number)
{
    dibsx_json_key(js, key);
    dibsx_json_int(js, number);
}

void dibsx_json_pair_uint(dibsx_json *js, const char *key, uint64_t number)
{
    dibsx_json_key(js, key);
    dibsx_json_uint(js, number);
}

void dibsx_json_pair_bool(dibsx_json *js, const char *key, bool truth)
{
    dibsx_json_key(js, key);
    dibsx_json_bool(js, truth);
}
