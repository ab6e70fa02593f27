/* fuzz_rate.c - rates: a span is what the same text is as a duration. */
/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "cli/rate_text.h"
#include "fuzz.h"
#include <inttypes.h>
#include <stdio.h>

enum { UNTOUCHED = -77 };

/* Read in another way: a unit alone is one of it. */
static int64_t span_of(const char *text)
{
    const char *slash = strchr(text, '/');
    int64_t ms = UNTOUCHED;
    char *span;

    if (!slash)
        return 1000;
    span = fuzz_text((const uint8_t *)slash, strlen(slash));
    span[0] = '1'; /* in the place of the slash */
    REQUIRE(
        dibsx_duration_parse(span[1] >= '0' && span[1] <= '9' ? span + 1 : span,
                             &ms));
    free(span);
    return ms;
}

/* The plainest way to write a rate loses nothing. */
static void check_exact(int64_t count, int64_t period_ms)
{
    int64_t count_again = UNTOUCHED, period_again = UNTOUCHED;
    char text[64];

    (void)snprintf(text, sizeof(text), "%" PRId64 "/%" PRId64 "ms", count,
                   period_ms);
    REQUIRE(dibs__rate_parse(text, &count_again, &period_again));
    REQUIRE(count_again == count && period_again == period_ms);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    int64_t count = UNTOUCHED, period_ms = UNTOUCHED;

    if (dibs__rate_parse(text, &count, &period_ms)) {
        REQUIRE(count == strtoll(text, NULL, 10) && count > 0);
        REQUIRE(!strstr(text, "/."));
        REQUIRE(period_ms == span_of(text) && period_ms > 0);
        check_exact(count, period_ms);
    } else {
        REQUIRE(count == UNTOUCHED && period_ms == UNTOUCHED);
    }
    free(text);
    return 0;
}
