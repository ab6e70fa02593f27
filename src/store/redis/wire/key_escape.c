/* key_escape.c - how names are written in keys where they cannot stand as they are.
 * Pure. */
/* SPDX-License-Identifier: MIT */
#include "store/redis/wire/key_escape.h"
#include <string.h>

#define ESCAPED "%{}~" /* the bytes that are escaped, in names that are */

size_t dibs__key_escape(const char *name, char *out)
{
    static const char digits[] = "0123456789ABCDEF";
    char *at = out;

    for (; *name; name++) {
        unsigned char byte = (unsigned char)*name;

        if (strchr(ESCAPED, byte)) {
            *at++ = '%';
            *at++ = digits[byte >> 4];
            *at++ = digits[byte & 15];
        } else
            *at++ = *name;
    }
    *at = '\0';
    return (size_t)(at - out);
}

static int hex_value(char c)
{
    const char *digits = "0123456789ABCDEF";
    const char *at = c ? strchr(digits, c) : NULL;

    return at ? (int)(at - digits) : -1;
}

bool dibs__key_unescape(const char *text, char out[DIBS_NAME_MAX + 1])
{
    size_t len = 0;

    for (; *text; text++, len++) {
        int high, low;

        if (len == DIBS_NAME_MAX)
            return false;
        out[len] = *text;
        if (*text != '%')
            continue;
        high = hex_value(text[1]);
        low = high < 0 ? -1 : hex_value(text[2]);
        if (low < 0)
            return false;
        out[len] = (char)(high << 4 | low);
        text += 2;
    }
    out[len] = '\0';
    return true;
}
