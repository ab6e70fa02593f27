/* class.c - the class of a lock's name. Pure. */
/* SPDX-License-Identifier: MIT */
#include "serve/class.h"
#include "base/fail.h"
#include <string.h>

#define DIGITS "0123456789"
#define HEX    DIGITS "abcdefABCDEF"
#define UPPER  "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define LOWER  "abcdefghijklmnopqrstuvwxyz"

/* Between rules. */
#define SEPARATORS ", "

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

/* Whether "*" of the rule can stand for what the name has there. A "*" takes as little as
 * it can, and more when the rest does not match: only the latest one has to be tried. */
static bool fits_rule(const char *rule, size_t len, const char *name)
{
    const char *const end = rule + len;
    const char *star = NULL, *taken = NULL;

    while (*name) {
        if (rule < end && *rule == '*') {
            star = ++rule;
            taken = name;
        } else if (rule < end && *rule == *name) {
            rule++;
            name++;
        } else if (star) {
            rule = star;
            name = ++taken;
        } else {
            return false;
        }
    }
    while (rule < end && *rule == '*')
        rule++;
    return rule == end;
}

/* The next rule of the list, or NULL. */
static const char *next_rule(const char *rules, size_t *len)
{
    rules += strspn(rules, SEPARATORS);
    *len = strcspn(rules, SEPARATORS);
    return *len ? rules : NULL;
}

/* False: the name matches none. */
static bool put_rule(const char *rules, const char *name, char *out)
{
    size_t len;

    for (const char *at = next_rule(rules, &len); at;
         at = next_rule(at + len, &len)) {
        if (len < DIBS__SERVE_CLASS_MAX && fits_rule(at, len, name)) {
            memcpy(out, at, len);
            out[len] = '\0';
            return true;
        }
    }
    return false;
}

dibs_status dibs__serve_class_check(const char *rules, dibs_error *err)
{
    size_t len;

    for (const char *at = next_rule(rules ? rules : "", &len); at;
         at = next_rule(at + len, &len)) {
        if (len >= DIBS__SERVE_CLASS_MAX)
            return dibsx_fail(err, DIBS_REFUSED,
                              "a class of metrics has %zu characters, and a "
                              "name %d at most; shorten %.40s...",
                              len, DIBS_NAME_MAX, at);
    }
    return DIBS_OK;
}

void dibs__serve_class(const char *rules, const char *name,
                       char out[DIBS__SERVE_CLASS_MAX])
{
    const char *const end = name + strnlen(name, DIBS__SERVE_CLASS_MAX - 1);

    if (rules && put_rule(rules, name, out))
        return;
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
