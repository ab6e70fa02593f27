/* setback.c - see setback.h. */
/* SPDX-License-Identifier: MIT */
#include "jobs/setback.h"

#define BOUND_US (DIBS__SETBACK_S * INT64_C(1000000))

dibs__clock_news
dibs__setback_note(dibs__setback *b, int64_t store_us, dibsx_nsec now)
{
    int64_t expected_us = b->store_us + (now - b->seen_at) / 1000;
    bool back = b->store_us && store_us < expected_us - BOUND_US;

    b->store_us = store_us;
    b->seen_at = now;
    if (back) {
        if (expected_us > b->until_us)
            b->until_us = expected_us;
        return DIBS__CLOCK_BACK;
    }
    if (b->until_us == 0 || store_us < b->until_us)
        return DIBS__CLOCK_GOES;
    b->until_us = 0;
    return DIBS__CLOCK_AGAIN;
}

int64_t dibs__setback_us(const dibs__setback *b)
{
    return b->until_us ? b->until_us - b->store_us : 0;
}
