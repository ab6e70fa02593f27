/* fuzz_zone.c - zone files: bad ones are refused, and the segments of all others
 * follow each other. */
/* SPDX-License-Identifier: MIT */
#include "fuzz.h"
#include "jobs/zone.h"

enum { DAY_S = 86400, STEPS = 64 };

/* From 1900 to 2200, spread over the years. */
static int64_t draw_moment(unsigned i)
{
    return (int64_t)-2208988800 + (int64_t)i * 107 * DAY_S + i * 4321u;
}

static void check_segment(const dibs__zone *zone, int64_t at)
{
    dibs__segment seg, next;

    dibs__zone_find(zone, at, &seg);
    REQUIRE(seg.begin <= at && (at < seg.end || seg.end == INT64_MAX));
    if (seg.end == INT64_MAX)
        return;
    dibs__zone_find(zone, seg.end, &next);
    REQUIRE(next.begin == seg.end);
    REQUIRE(next.before_s == seg.offset_s);
    REQUIRE(next.offset_s != seg.offset_s);
}

/* The moment of a local time has that local time, but in a gap. */
static void check_local(const dibs__zone *zone, int64_t local)
{
    int64_t at = dibs__zone_moment(zone, local);
    dibs__segment seg;

    dibs__zone_find(zone, at, &seg);
    if (at + seg.offset_s != local)
        REQUIRE(seg.begin == at && seg.offset_s > seg.before_s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dibs__zone *zone = NULL;
    dibs_error err = {0};
    dibs_status rc = dibs__zone_read("Fuzz", data, size, &zone, &err);

    if (rc != DIBS_OK) {
        REQUIRE(rc == DIBS_INVALID && err.message[0]);
        return 0;
    }
    for (unsigned i = 0; i < 1024; i += 1024 / STEPS) {
        check_segment(zone, draw_moment(i));
        check_local(zone, draw_moment(i) + (int64_t)i % DAY_S);
    }
    check_segment(zone, INT64_MIN);
    check_segment(zone, INT64_MAX);
    dibs__zone_free(zone);
    return 0;
}
