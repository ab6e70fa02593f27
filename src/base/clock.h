/* clock.h - time: the clock of leases, the clock of people, durations.
 *
 * A dibsx_nsec is a moment or a span in nanoseconds. Moments are on
 * CLOCK_BOOTTIME, which counts suspend and never jumps; names that end in _at
 * or _until hold them. Wall time, for people and for fences, is microseconds
 * since 1970 and its names say wall. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_BASE_CLOCK_H
#define DIBS_BASE_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int64_t dibsx_nsec;

#define DIBSX_NEVER INT64_MAX /* a moment that does not come */
#define DIBSX_MS    ((dibsx_nsec)1000000)
#define DIBSX_SEC   ((dibsx_nsec)1000000000)

dibsx_nsec dibsx_now(void);
int64_t dibsx_wall_us(void);

/* A clock that is cheap to read, and coarse: for what every call looks at. It stands
 * still in a suspend, so no lease is counted on it, and it has moments of its own. */
dibsx_nsec dibsx_coarse_now(void);

/* Saturating: past the ends it stays at 0, or at DIBSX_NEVER. `span_ms`
 * negative means without limit. */
dibsx_nsec dibsx_after_ms(dibsx_nsec from_at, int64_t span_ms);

/* The time left until a moment, in whole milliseconds: rounded up for a wait (so
 * that a wait is never a spin), rounded down for a validity; 0 when past, -1
 * (wait only) for DIBSX_NEVER. */
int64_t dibsx_wait_ms(dibsx_nsec until, dibsx_nsec now);
int64_t dibsx_valid_ms(dibsx_nsec until, dibsx_nsec now);

/* Reads "500ms", "30s", "2m", "1h", "1d", "1.5s", "1h30m", or a bare number of
 * seconds. False when it is none of these, negative, finer than a millisecond or
 * out of range; *out_ms is then left alone. */
bool dibsx_duration_parse(const char *text, int64_t *out_ms);

/* Writes a duration as people read it: "250ms", "4.2s", "4m10s", "3h02m". */
void dibsx_duration_text(int64_t span_ms, char *out, size_t size);

/* Wall time as "2025-01-31T12:00:00.250Z". */
void dibsx_wall_text(int64_t wall_us, char *out, size_t size);

#endif
