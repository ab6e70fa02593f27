/* buf.c - a growable byte buffer with a mandatory maximum.
 *
 * An append is done whole or not at all. Any of them may have had a secret in it,
 * so that what was written to is wiped before it is given back. Runs on the caller's thread. */
/* SPDX-License-Identifier: MIT */
#include "base/buf.h"
#include "base/alloc.h"
#include "base/text.h"
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { FIRST_ROOM = 64 };

void dibsx_buf_init(dibsx_buf *buf, size_t max)
{
    assert(max < SIZE_MAX / 2);
    *buf = (dibsx_buf){.max = max};
}

static void drop_storage(dibsx_buf *buf)
{
    if (buf->data)
        explicit_bzero(buf->data, buf->room);
    dibsx_free(buf->data);
}

void dibsx_buf_fini(dibsx_buf *buf)
{
    drop_storage(buf);
    *buf = (dibsx_buf){.max = buf->max};
}

/* Moves the content to where `more` bytes and the NUL beyond them have room; false, with
 * the failure noted, when the maximum or the memory does not allow it. */
static bool grow(dibsx_buf *buf, size_t more)
{
    size_t need, room;
    char *data;

    if (buf->failed)
        return false;
    if (more > buf->max - buf->len)
        goto fail;
    need = buf->len + more + 1;
    room = buf->room ? buf->room * 2 : FIRST_ROOM;
    if (room > buf->max + 1)
        room = buf->max + 1;
    if (room < need)
        room = need;
    data = dibsx_realloc_n(NULL, room, 1);
    if (!data)
        goto fail;
    if (buf->len)
        memcpy(data, buf->data, buf->len);
    drop_storage(buf);
    buf->data = data;
    buf->room = room;
    return true;

fail:
    buf->failed = true;
    return false;
}

/* There is never more room than for `max` bytes and the NUL. */
static bool make_room(dibsx_buf *buf, size_t more)
{
    return (more < buf->room - buf->len && !buf->failed) || grow(buf, more);
}

void dibsx_buf_add(dibsx_buf *buf, const void *bytes, size_t len)
{
    if (len == 0 || !make_room(buf, len))
        return;
    memcpy(buf->data + buf->len, bytes, len);
    buf->len += len;
    buf->data[buf->len] = '\0';
}

void dibsx_buf_puts(dibsx_buf *buf, const char *text)
{
    dibsx_buf_add(buf, text, strlen(text));
}

void dibsx_buf_putc(dibsx_buf *buf, char c)
{
    if (!make_room(buf, 1))
        return;
    buf->data[buf->len++] = c;
    buf->data[buf->len] = '\0';
}

void dibsx_buf_put_uint(dibsx_buf *buf, uint64_t number)
{
    char digits[DIBSX_DIGITS_SIZE];

    dibsx_buf_add(buf, digits, dibsx_digits(number, digits));
}

void dibsx_buf_expect(dibsx_buf *buf, size_t more)
{
    if (more <= buf->max - buf->len)
        (void)make_room(buf, more);
}

/* Into the room that there is at first, which mostly serves. A text that does not fit there
 * is taken back, and written once more with room for all of it. */
void dibsx_buf_printf(dibsx_buf *buf, const char *format, ...)
{
    const size_t left = buf->failed ? 0 : buf->room - buf->len;
    va_list args;
    int len;

    va_start(args, format);
    len = vsnprintf(left ? buf->data + buf->len : NULL, left, format, args);
    va_end(args);
    if (len < 0)
        buf->failed = true;
    if (len <= 0 || !make_room(buf, (size_t)len)) {
        if (left)
            buf->data[buf->len] = '\0';
        return;
    }
    if ((size_t)len >= left) {
        va_start(args, format);
        (void)vsnprintf(buf->data + buf->len, (size_t)len + 1, format, args);
        va_end(args);
    }
    buf->len += (size_t)len;
}

void dibsx_buf_reset(dibsx_buf *buf)
{
    buf->len = 0;
    buf->failed = false;
    if (buf->data)
        buf->data[0] = '\0';
}

bool dibsx_buf_ok(const dibsx_buf *buf)
{
    return !buf->failed;
}

const char *dibsx_buf_text(const dibsx_buf *buf)
{
    return buf->data && buf->len ? buf->data : "";
}

char *dibsx_buf_take(dibsx_buf *buf)
{
    char *data = NULL;

    if (!buf->failed && buf->len) {
        data = buf->data;
        buf->data = NULL;
    }
    dibsx_buf_fini(buf);
    return data;
}
