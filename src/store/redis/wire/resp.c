/* resp.c - the wire format: commands out, and a guard over what comes in.
 *
 * Owns nothing; any thread. The guard is as strict as the reader behind it, or
 * stricter: where the two could differ about where a line ends, it refuses. */
/* SPDX-License-Identifier: MIT */
#include "store/redis/wire/resp.h"
#include <assert.h>
#include <string.h>

enum {
    DECIMAL_MAX = 20, /* digits of a size */
    LENGTH_DIGITS = 9,
    ITEM_MIN = 3 /* bytes of the shortest item, "+\r\n" */
};

enum { AT_TYPE, IN_LINE, IN_NUMBER, AT_LF, IN_STRING };

void dibs__words_add(dibs__words *words, const void *bytes, size_t len)
{
    assert(words->count < DIBS__WORDS_MAX);
    words->word[words->count] = bytes;
    words->len[words->count++] = len;
}

void dibs__words_puts(dibs__words *words, const char *text)
{
    dibs__words_add(words, text, strlen(text));
}

size_t dibs__words_room(const dibs__words *words)
{
    size_t room = DECIMAL_MAX + 3;

    for (int i = 0; i < words->count; i++)
        room += words->len[i] + DECIMAL_MAX + 5;
    return room;
}

/* Writes "<type><number>\r\n". */
static char *put_head(char *out, char type, size_t number)
{
    char digits[DECIMAL_MAX];
    size_t count = 0;

    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number);
    *out++ = type;
    while (count)
        *out++ = digits[--count];
    *out++ = '\r';
    *out++ = '\n';
    return out;
}

size_t dibs__words_encode(const dibs__words *words, char *out)
{
    char *at = put_head(out, '*', (size_t)words->count);

    for (int i = 0; i < words->count; i++) {
        at = put_head(at, '$', words->len[i]);
        if (words->len[i])
            memcpy(at, words->word[i], words->len[i]);
        at += words->len[i];
        *at++ = '\r';
        *at++ = '\n';
    }
    return (size_t)(at - out);
}

size_t dibs__words_size(const dibs__words *words, int from, int end)
{
    size_t size = 0;

    for (int i = from; i < end; i++) {
        size += words->len[i] + 6;
        for (size_t more = words->len[i] / 10; more; more /= 10)
            size++;
    }
    return size;
}

static const char *begin_item(dibs__guard *guard, char type)
{
    if (guard->pending == 0) {
        guard->pending = 1;
        guard->bytes = 1;
        guard->items = 0;
    }
    if (++guard->items > DIBS__ITEMS_MAX)
        return "a reply has too many items";
    guard->type = type;
    guard->minus = false;
    guard->number = guard->digits = 0;
    switch (type) {
    case '+':
    case '-':
    case ':':
        guard->state = IN_LINE;
        return NULL;
    case '$':
    case '*':
        guard->state = IN_NUMBER;
        return NULL;
    default:
        return "it does not speak the protocol of Redis";
    }
}

/* With it the array that it is the last of ends, and so on. */
static void end_item(dibs__guard *guard)
{
    guard->pending--;
    guard->state = AT_TYPE;
    while (guard->depth > 0 && --guard->owed[guard->depth - 1] == 0)
        guard->depth--;
}

/* The head of an array with items, of which there are not too many. */
static const char *begin_array(dibs__guard *guard)
{
    if (guard->depth == DIBS__DEPTH_MAX)
        return "a reply has arrays in arrays too deep";
    guard->owed[guard->depth++] = guard->number;
    guard->pending += guard->number - 1;
    guard->state = AT_TYPE;
    return guard->pending <= DIBS__ITEMS_MAX &&
                   guard->pending * ITEM_MIN <= DIBS__REPLY_MAX
               ? NULL
               : "a reply has too many items";
}

static const char *in_number(dibs__guard *guard, char c)
{
    if (c >= '0' && c <= '9' && guard->digits < LENGTH_DIGITS) {
        guard->number = guard->number * 10 + (size_t)(c - '0');
        guard->digits++;
    } else if (c == '-' && guard->digits == 0 && !guard->minus) {
        guard->minus = true;
    } else if (c == '\r' && guard->digits > 0) {
        guard->state = AT_LF;
    } else {
        return "a reply has a length that makes no sense";
    }
    return NULL;
}

/* The line of a length is complete. */
static const char *end_number(dibs__guard *guard)
{
    if (guard->minus) {
        end_item(guard);
        return guard->number == 1 ? NULL : "a reply has a negative length";
    }
    if (guard->type == '$') {
        guard->skip = guard->number + 2;
        guard->state = IN_STRING;
        return guard->number <= DIBS__REPLY_MAX ? NULL : "a reply is too large";
    }
    if (guard->number > DIBS__ITEMS_MAX)
        return "a reply has too many items";
    if (guard->number > 0)
        return begin_array(guard);
    end_item(guard);
    return NULL;
}

/* One byte outside of a string. */
static const char *step_byte(dibs__guard *guard, char c)
{
    switch (guard->state) {
    case AT_TYPE:
        return begin_item(guard, c);
    case IN_NUMBER:
        return in_number(guard, c);
    case IN_LINE:
        if (c == '\r')
            guard->state = AT_LF;
        return c == '\n' ? "a line of a reply is broken" : NULL;
    default:
        if (c != '\n')
            return "a line of a reply is broken";
        if (guard->type == '$' || guard->type == '*')
            return end_number(guard);
        end_item(guard);
        return NULL;
    }
}

static size_t skip_string(dibs__guard *guard, size_t len)
{
    size_t taken = len < guard->skip ? len : guard->skip;

    guard->skip -= taken;
    if (guard->skip == 0)
        end_item(guard);
    return taken;
}

const char *dibs__guard_admit(dibs__guard *guard, const char *bytes, size_t len)
{
    for (size_t at = 0; at < len;) {
        const char *why = NULL;
        size_t taken = 1;

        if (guard->state == IN_STRING)
            taken = skip_string(guard, len - at);
        else
            why = step_byte(guard, bytes[at]);
        at += taken;
        guard->bytes += taken;
        if (why)
            return why;
        if (guard->bytes > DIBS__REPLY_MAX)
            return "a reply is too large";
    }
    return NULL;
}
