/* text.c - digits, characters of UTF-8, and text that may be shown.
 *
 * Owns nothing; callable from any thread. */
/* SPDX-License-Identifier: MIT */
#include "base/text.h"
#include <string.h>
#include <strings.h>

int dibsx_hex_value(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    if (digit >= 'a' && digit <= 'f')
        return digit - 'a' + 10;
    if (digit >= 'A' && digit <= 'F')
        return digit - 'A' + 10;
    return -1;
}

bool dibsx_flag_read(const char *word, bool *on)
{
    static const char *const words[] = {"no",  "yes", "false", "true",
                                        "off", "on",  "0",     "1"};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcasecmp(word, words[i]) == 0) {
            *on = i % 2 == 1;
            return true;
        }
    }
    return false;
}

/* The bytes that may follow a lead byte: how many in all, and the bounds of the
 * second one, which exclude overlong forms, surrogates and code points beyond
 * U+10FFFF. */
typedef struct form {
    unsigned char first, last; /* lead bytes */
    unsigned char low, high;   /* second byte */
    unsigned char len;
} form;

static const form forms[] = {
    {0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3},
    {0xE1, 0xEC, 0x80, 0xBF, 3}, {0xED, 0xED, 0x80, 0x9F, 3},
    {0xEE, 0xEF, 0x80, 0xBF, 3}, {0xF0, 0xF0, 0x90, 0xBF, 4},
    {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4},
};

static bool follows(const unsigned char *at, size_t len, const form *f)
{
    if (len < f->len || at[1] < f->low || at[1] > f->high)
        return false;
    for (size_t i = 2; i < f->len; i++) {
        if ((at[i] & 0xC0) != 0x80)
            return false;
    }
    return true;
}

size_t dibsx_utf8_len(const unsigned char *at, size_t len)
{
    if (at[0] < 0x80)
        return 1;
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        if (at[0] >= forms[i].first && at[0] <= forms[i].last)
            return follows(at, len, &forms[i]) ? forms[i].len : 0;
    }
    return 0;
}

size_t dibsx_digits(uint64_t number, char out[DIBSX_DIGITS_SIZE])
{
    char digits[DIBSX_DIGITS_SIZE];
    size_t at = sizeof(digits);

    digits[--at] = '\0';
    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number);
    memcpy(out, digits + at, sizeof(digits) - at);
    return sizeof(digits) - at - 1;
}

bool dibsx_has_word(const char *words, const char *word, size_t len)
{
    while (*words) {
        const size_t end = strcspn(words, " ");

        if (end == len && memcmp(words, word, len) == 0)
            return true;
        words += end + (words[end] == ' ');
    }
    return false;
}

bool dibsx_is_control(const unsigned char *at)
{
    return at[0] < 0x20 || at[0] == 0x7F || (at[0] == 0xC2 && at[1] < 0xA0);
}

/* U+2028 to U+202E: the ends of a line and of a paragraph, and what turns the direction
 * of all that follows; U+2066 to U+2069 turn it too. */
static bool ends_or_turns_line(const unsigned char *at)
{
    return at[0] == 0xE2 &&
           ((at[1] == 0x80 && at[2] >= 0xA8 && at[2] <= 0xAE) ||
            (at[1] == 0x81 && at[2] >= 0xA6 && at[2] <= 0xA9));
}

bool dibsx_may_be_shown(const unsigned char *at)
{
    return !dibsx_is_control(at) && !ends_or_turns_line(at);
}

const char *dibsx_text_flaw(const char *text, size_t len)
{
    const unsigned char *at = (const unsigned char *)text;
    size_t step;

    for (; len > 0; at += step, len -= step) {
        step = dibsx_utf8_len(at, len);
        if (step == 0)
            return "is not UTF-8; convert it first, as iconv does";
        if (dibsx_is_control(at))
            return "has a control character in it";
    }
    return NULL;
}

void dibsx_text_clean(dibsx_buf *buf, const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    size_t left = strlen(text);

    while (left) {
        size_t len = dibsx_utf8_len(at, left);

        if (len && dibsx_may_be_shown(at))
            dibsx_buf_add(buf, at, len);
        else
            dibsx_buf_putc(buf, '?');
        len = len ? len : 1;
        at += len;
        left -= len;
    }
}
