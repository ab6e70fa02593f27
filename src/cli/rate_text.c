/* rate_text.c - see rate_text.h. */
/* SPDX-License-Identifier: MIT */
#include "cli/rate_text.h"
#include "base/clock.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SPAN_MAX = 32 };

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* "30s", or a unit alone: "s" is "1s". */
static bool parse_span(const char *text, int64_t *period_ms)
{
    bool alone = *text >= 'a' && *text <= 'z';
    char span[SPAN_MAX];
    int64_t ms;

    if ((!alone && !is_digit(*text)) || strlen(text) >= SPAN_MAX - 1)
        return false;
    (void)snprintf(span, sizeof(span), "%s%s", alone ? "1" : "", text);
    if (!dibsx_duration_parse(span, &ms) || ms < 1)
        return false;
    *period_ms = ms;
    return true;
}

bool dibs__rate_parse(const char *text, int64_t *count, int64_t *period_ms)
{
    int64_t span_ms = 1000;
    long long tokens;
    char *end;

    if (!is_digit(*text))
        return false;
    errno = 0;
    tokens = strtoll(text, &end, 10);
    if (errno != 0 || tokens < 1)
        return false;
    if (*end != '\0' && (*end != '/' || !parse_span(end + 1, &span_ms)))
        return false;
    *count = tokens;
    *period_ms = span_ms;
    return true;
}
