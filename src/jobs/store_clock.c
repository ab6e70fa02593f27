/* store_clock.c - see store_clock.h. */
/* SPDX-License-Identifier: MIT */
#include "jobs/store_clock.h"

enum { FRESH_MS = 1000, UNDER_WAY_MS = 100, STEADY_US = 1000000 };

void dibs__store_clock_note(dibs__store_clock *clock, int64_t store_us,
                            dibsx_nsec asked_at, dibsx_nsec at)
{
    if (at > dibsx_after_ms(asked_at, UNDER_WAY_MS))
        return;
    clock->store_us = store_us;
    clock->at = at;
}

int64_t dibs__store_clock_us(dibs__store_clock *clock, dibsx_nsec now)
{
    int64_t us = clock->store_us + (now - clock->at) / 1000;

    if (clock->store_us == 0 || now > dibsx_after_ms(clock->at, FRESH_MS))
        return 0;
    if (us < clock->told_us && clock->told_us - us <= STEADY_US)
        us = clock->told_us;
    clock->told_us = us;
    return us;
}
