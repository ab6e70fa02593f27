/* clock.c - the clocks, and durations as people write and read them.
 *
 * Owns nothing; callable from any thread. */
/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

dibsx_nsec dibsx_now(void)
{
    struct timespec ts;

    /* Without this clock no lease could be trusted, and there is no other that
     * counts suspend: going on with a wrong time would break exclusion. */
    if (clock_gettime(CLOCK_BOOTTIME, &ts) != 0)
        abort();
    return (dibsx_nsec)ts.tv_sec * DIBSX_SEC + ts.tv_nsec;
}

dibsx_nsec dibsx_coarse_now(void)
{
    struct timespec ts;

    if (clock_gettime(CLOCK_MONOTONIC_COARSE, &ts) != 0)
        abort();
    return (dibsx_nsec)ts.tv_sec * DIBSX_SEC + ts.tv_nsec;
}

int64_t dibsx_wall_us(void)
{
    struct timespec ts;

    if (clock_gettime(CLOCK_REALTIME, &ts) != 0)
        abort();
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

dibsx_nsec dibsx_after_ms(dibsx_nsec from_at, int64_t span_ms)
{
    dibsx_nsec span, at;

    if (span_ms < 0 || from_at == DIBSX_NEVER ||
        __builtin_mul_overflow(span_ms, DIBSX_MS, &span) ||
        __builtin_add_overflow(from_at, span, &at))
        return DIBSX_NEVER;
    return at < 0 ? 0 : at;
}

/* The span from now until a moment, not below 0. */
static dibsx_nsec span_left(dibsx_nsec until, dibsx_nsec now)
{
    dibsx_nsec span;

    if (until <= now)
        return 0;
    if (__builtin_sub_overflow(until, now, &span))
        return DIBSX_NEVER;
    return span;
}

int64_t dibsx_wait_ms(dibsx_nsec until, dibsx_nsec now)
{
    dibsx_nsec span;

    if (until == DIBSX_NEVER)
        return -1;
    span = span_left(until, now);
    return span / DIBSX_MS + (span % DIBSX_MS != 0);
}

int64_t dibsx_valid_ms(dibsx_nsec until, dibsx_nsec now)
{
    return span_left(until, now) / DIBSX_MS;
}

/* From the longest to the shortest: parts of a duration come in this order. */
static const struct unit {
    const char *name;
    int64_t ms;
} units[] = {
    {"d", INT64_C(86400000)},
    {"h", 3600000},
    {"m", 60000},
    {"s", 1000},
    {"ms", 1},
};

enum { UNITS = sizeof(units) / sizeof(units[0]), SECONDS = 3 };

/* Ten digits are enough for every fraction of a day that is a whole number of
 * milliseconds, and few enough not to overflow when multiplied by a day. */
enum { FRACTION_DIGITS = 10 };

typedef struct number {
    int64_t whole;
    int64_t fraction; /* over `scale` */
    int64_t scale;
} number;

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool read_fraction(const char **text, number *num)
{
    int digits = 0;

    if (!is_digit(**text))
        return false;
    for (; is_digit(**text); (*text)++) {
        if (digits++ < FRACTION_DIGITS) {
            num->fraction = num->fraction * 10 + (**text - '0');
            num->scale *= 10;
        } else if (**text != '0') {
            return false;
        }
    }
    return true;
}

static bool read_number(const char **text, number *num)
{
    *num = (number){.scale = 1};
    if (!is_digit(**text))
        return false;
    for (; is_digit(**text); (*text)++) {
        if (__builtin_mul_overflow(num->whole, 10, &num->whole) ||
            __builtin_add_overflow(num->whole, **text - '0', &num->whole))
            return false;
    }
    if (**text != '.')
        return true;
    (*text)++;
    return read_fraction(text, num);
}

/* The index of the unit that the text goes on with, moved past it; UNITS when
 * it is none. The whole word counts: "ms" is not "m", and "us" is not "s". */
static size_t read_unit(const char **text)
{
    size_t len = strspn(*text, "abcdefghijklmnopqrstuvwxyz");

    for (size_t i = 0; i < UNITS; i++) {
        if (strlen(units[i].name) == len &&
            memcmp(*text, units[i].name, len) == 0) {
            *text += len;
            return i;
        }
    }
    return UNITS;
}

/* Adds num, counted in units of unit_ms; false on overflow, and for what is
 * finer than a millisecond: silently rounding a wait to none would change what
 * it means. */
static bool add_part(const number *num, int64_t unit_ms, int64_t *total_ms)
{
    int64_t fine = num->fraction * unit_ms;
    int64_t part;

    return fine % num->scale == 0 &&
           !__builtin_mul_overflow(num->whole, unit_ms, &part) &&
           !__builtin_add_overflow(part, fine / num->scale, &part) &&
           !__builtin_add_overflow(*total_ms, part, total_ms);
}

bool dibsx_duration_parse(const char *text, int64_t *out_ms)
{
    int64_t total_ms = 0;
    size_t least = 0; /* the next part may not have a longer unit */
    number num;

    assert(text && out_ms);
    do {
        size_t unit;

        if (!read_number(&text, &num))
            return false;
        if (*text == '\0' && least == 0)
            unit = SECONDS;
        else
            unit = read_unit(&text);
        if (unit < least || unit == UNITS ||
            !add_part(&num, units[unit].ms, &total_ms))
            return false;
        least = unit + 1;
    } while (*text);
    *out_ms = total_ms;
    return true;
}

/* Two neighbouring units; the second is left out when it is 0. */
static void
put_pair(char *out, size_t size, const char *sign, uint64_t ms, size_t unit)
{
    uint64_t whole_ms = (uint64_t)units[unit].ms;
    uint64_t part_ms = (uint64_t)units[unit + 1].ms;
    uint64_t part = ms % whole_ms / part_ms;

    if (part)
        (void)snprintf(out, size, "%s%" PRIu64 "%s%02" PRIu64 "%s", sign,
                       ms / whole_ms, units[unit].name, part,
                       units[unit + 1].name);
    else
        (void)snprintf(out, size, "%s%" PRIu64 "%s", sign, ms / whole_ms,
                       units[unit].name);
}

void dibsx_duration_text(int64_t span_ms, char *out, size_t size)
{
    const char *sign = span_ms < 0 ? "-" : "";
    uint64_t ms = span_ms < 0 ? -(uint64_t)span_ms : (uint64_t)span_ms;
    uint64_t tenth = ms / 100 % 10;

    if (ms < 1000)
        (void)snprintf(out, size, "%s%" PRIu64 "ms", sign, ms);
    else if (ms < 60000 && tenth)
        (void)snprintf(out, size, "%s%" PRIu64 ".%" PRIu64 "s", sign, ms / 1000,
                       tenth);
    else if (ms < 60000)
        (void)snprintf(out, size, "%s%" PRIu64 "s", sign, ms / 1000);
    else if (ms < 3600000)
        put_pair(out, size, sign, ms, 2);
    else if (ms < 86400000)
        put_pair(out, size, sign, ms, 1);
    else
        put_pair(out, size, sign, ms, 0);
}

void dibsx_wall_text(int64_t wall_us, char *out, size_t size)
{
    time_t seconds = (time_t)(wall_us / 1000000);
    struct tm tm;
    size_t len;

    gmtime_r(&seconds, &tm);
    len = strftime(out, size, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(out + len, size - len, ".%03dZ", (int)(wall_us / 1000 % 1000));
}
