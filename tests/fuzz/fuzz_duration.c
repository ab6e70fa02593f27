/* fuzz_duration.c - durations: what is read can be written and read again. */
/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "fuzz.h"
#include <inttypes.h>
#include <stdio.h>

enum { UNTOUCHED = -77 };

/* What people are shown is at most an hour short, can be read, and is then
 * shown the same. */
static void check_shown(int64_t ms)
{
    int64_t back_ms = UNTOUCHED;
    char shown[32], again[32];

    dibsx_duration_text(ms, shown, sizeof(shown));
    if (ms < 0) {
        REQUIRE(shown[0] == '-');
        REQUIRE(!dibsx_duration_parse(shown, &back_ms));
        return;
    }
    REQUIRE(dibsx_duration_parse(shown, &back_ms));
    REQUIRE(back_ms <= ms && ms - back_ms < 3600000);
    dibsx_duration_text(back_ms, again, sizeof(again));
    REQUIRE(strcmp(shown, again) == 0);
}

/* The plainest way to write a duration loses nothing. */
static void check_exact(int64_t ms)
{
    int64_t back_ms = UNTOUCHED;
    char text[32];

    (void)snprintf(text, sizeof(text), "%" PRId64 "ms", ms);
    REQUIRE(dibsx_duration_parse(text, &back_ms));
    REQUIRE(back_ms == ms);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    int64_t ms = UNTOUCHED;
    int64_t any_ms = 0;

    if (dibsx_duration_parse(text, &ms)) {
        REQUIRE(ms >= 0);
        check_exact(ms);
        check_shown(ms);
    } else {
        REQUIRE(ms == UNTOUCHED);
    }
    free(text);

    memcpy(&any_ms, data, size < sizeof(any_ms) ? size : sizeof(any_ms));
    check_shown(any_ms);
    return 0;
}
