/* class.c - the class of a lock's name. Pure. */
/* SPDX-License-Identifier: MIT */
#include "serve/class.h"
#include <string.h>

#define DIGITS "0123456789"
#define HEX    DIGITS "abcdefABCDEF"
#define UPPER  "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define LOWER  "abcdefghijklmnopqrstuvwxyz"

/* How many bytes from here on are of these characters, `len` at most. */
static size_t span_of(const char *text, size_t len, const char *accepted)
{
    size_t span = 0;

    while (span < len && text[span] && strchr(accepted, text[span]))
        span++;
    return span;
}

static bool has_digit(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (text[i] >= '0' && text[i] <= '9')
            return true;
    }
    return false;
}

static bool is_uuid(const char *text, size_t len)
{
    static const size_t groups[] = {8, 4, 4, 4, 12};

    if (len != 36)
        return false;
    for (size_t i = 0; i < 5; i++) {
        if (span_of(text, groups[i], HEX) != groups[i] ||
            (i < 4 && text[groups[i]] != '-'))
            return false;
        text += groups[i] + 1;
    }
    return true;
}

static bool is_id(const char *text, size_t len)
{
    if (len == 0)
        return false;
    if (span_of(text, len, DIGITS) == len)
        return true;
    if (len >= 8 && span_of(text, len, HEX) == len && has_digit(text, len))
        return true;
    return len == 26 && span_of(text, len, DIGITS UPPER) == len &&
           *text <= '7' && has_digit(text, len);
}

/* Appends a word, which has dashes at most: as a whole, or part by part. */
static char *put_word(char *out, const char *word, size_t len)
{
    if (is_uuid(word, len)) {
        *out++ = '*';
        return out;
    }
    while (len > 0) {
        const char *dash = memchr(word, '-', len);
        const size_t part = dash ? (size_t)(dash - word) : len;

        if (is_id(word, part)) {
            *out++ = '*';
        } else {
            memcpy(out, word, part);
            out += part;
        }
        if (dash)
            *out++ = '-';
        word += part + (dash != NULL);
        len -= part + (dash != NULL);
    }
    return out;
}

void dibs__serve_class(const char *name, char out[DIBS__SERVE_CLASS_MAX])
{
    const char *const end = name + strnlen(name, DIBS__SERVE_CLASS_MAX - 1);

    while (name < end) {
        const size_t len =
            span_of(name, (size_t)(end - name), DIGITS UPPER LOWER "-");

        out = put_word(out, name, len);
        name += len;
        if (name < end)
            *out++ = *name++;
    }
    *out = '\0';
}
