/* chunks.c - a body that comes in chunks. Pure; any thread.
 *
 *     LINE --> DATA --> AFTER (CR LF) --> LINE
 *      +-- length 0 --> TRAILER, lines up to an empty one */
/* SPDX-License-Identifier: MIT */
#include "http/chunks.h"
#include "base/text.h"

/* A length has so many digits at most; then what nobody reads may follow, and
 * after the last chunk some headers that nobody reads. */
enum { DIGITS_MAX = 8, LINE_MAX_LEN = 256, TRAILERS_MAX = 4096 };

/* A byte of a line, which ends in CR LF and has neither of them before, nor other
 * control characters. */
static bool take_line_byte(dibs__http_chunks *ck, char c, bool *ended)
{
    *ended = c == '\n' && ck->after_cr;
    if (ck->after_cr != (c == '\n') || ck->line_len == LINE_MAX_LEN)
        return false;
    ck->after_cr = c == '\r';
    ck->line_len++;
    return (unsigned char)c >= ' ' || c == '\t' || c == '\r' || c == '\n';
}

static void begin_line(dibs__http_chunks *ck)
{
    ck->line_len = ck->digits = 0;
    ck->after_cr = ck->extended = false;
    ck->left = 0;
}

/* A byte of the line before a chunk: "1f" or "1f;name=value". */
static bool take_size_byte(dibs__http_chunks *ck, char c)
{
    int digit = dibsx_hex_value(c);
    bool ended;

    if (!take_line_byte(ck, c, &ended))
        return false;
    if (ended) {
        ck->state = ck->left ? CHUNKS_DATA : CHUNKS_TRAILER;
        ck->line_len = 0;
        return true;
    }
    if (ck->extended || c == '\r')
        return ck->digits > 0;
    if (digit >= 0) {
        ck->left = ck->left * 16 + (uint64_t)digit;
        return ++ck->digits <= DIGITS_MAX;
    }
    ck->extended = true;
    return c == ';' && ck->digits > 0;
}

static bool take_after_byte(dibs__http_chunks *ck, char c)
{
    bool ended;

    if (!take_line_byte(ck, c, &ended) || (!ended && c != '\r'))
        return false;
    if (ended) {
        ck->state = CHUNKS_LINE;
        begin_line(ck);
    }
    return true;
}

static bool take_trailer_byte(dibs__http_chunks *ck, char c)
{
    bool ended;

    if (!take_line_byte(ck, c, &ended) || ++ck->spent > TRAILERS_MAX)
        return false;
    if (ended) {
        ck->last = ck->line_len == 2;
        ck->line_len = 0;
    }
    return true;
}

static bool take_byte(dibs__http_chunks *ck, char c)
{
    if (ck->state == CHUNKS_LINE)
        return take_size_byte(ck, c);
    if (ck->state == CHUNKS_AFTER)
        return take_after_byte(ck, c);
    return take_trailer_byte(ck, c);
}

dibs__http_chunks_found
dibs__http_chunks_take(dibs__http_chunks *ck, const char **bytes, size_t *len,
                       const char **data, size_t *data_len)
{
    while (*len > 0) {
        if (ck->state == CHUNKS_DATA) {
            *data = *bytes;
            *data_len = ck->left < *len ? (size_t)ck->left : *len;
            ck->left -= *data_len;
            *bytes += *data_len;
            *len -= *data_len;
            if (ck->left == 0) {
                ck->state = CHUNKS_AFTER;
                begin_line(ck);
            }
            return DIBS__HTTP_CHUNKS_DATA;
        }
        if (!take_byte(ck, **bytes))
            return DIBS__HTTP_CHUNKS_BAD;
        ++*bytes;
        --*len;
        if (ck->last)
            return DIBS__HTTP_CHUNKS_END;
    }
    return DIBS__HTTP_CHUNKS_MORE;
}
