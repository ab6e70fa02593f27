/* moment.c - moments as people write them: RFC 3339, and local times of a zone. Pure. */
/* SPDX-License-Identifier: MIT */
#include "jobs/moment.h"
#include "jobs/calendar.h"

#include <stdio.h>
#include <stdlib.h>

enum { YEAR_MIN = 1970, YEAR_MAX = 2199 };

/* So many digits; moves *at past them. */
static bool take_digits(const char **at, int count, int low, int high, int *out)
{
    *out = 0;
    for (int i = 0; i < count; i++, (*at)++) {
        if (**at < '0' || **at > '9')
            return false;
        *out = *out * 10 + (**at - '0');
    }
    return *out >= low && *out <= high;
}

static bool take_char(const char **at, const char *wanted)
{
    for (; *wanted; wanted++) {
        if (**at == *wanted) {
            (*at)++;
            return true;
        }
    }
    return false;
}

static bool take_date(const char **at, int64_t *local)
{
    int year, month, day;

    if (!take_digits(at, 4, YEAR_MIN, YEAR_MAX, &year) || !take_char(at, "-") ||
        !take_digits(at, 2, 1, 12, &month) || !take_char(at, "-") ||
        !take_digits(at, 2, 1, 31, &day) ||
        day > dibs__month_length(year, month))
        return false;
    *local = dibs__day_of(year, month, day) * DIBS__DAY_S;
    return true;
}

static bool take_clock(const char **at, int64_t *local)
{
    int hour, minute, second = 0;

    if (!take_digits(at, 2, 0, 23, &hour) || !take_char(at, ":") ||
        !take_digits(at, 2, 0, 59, &minute))
        return false;
    if (take_char(at, ":") && !take_digits(at, 2, 0, 59, &second))
        return false;
    *local += (hour * 60 + minute) * 60 + second;
    return true;
}

/* "Z", "+01:00" or "+0100". */
static bool take_offset(const char **at, int64_t *offset_s)
{
    bool minus = **at == '-';
    int hours, minutes;

    *offset_s = 0;
    if (take_char(at, "Zz"))
        return true;
    if (!take_char(at, "+-") || !take_digits(at, 2, 0, 23, &hours))
        return false;
    (void)take_char(at, ":");
    if (!take_digits(at, 2, 0, 59, &minutes))
        return false;
    *offset_s = (hours * 60 + minutes) * 60;
    if (minus)
        *offset_s = -*offset_s;
    return true;
}

/* An offset can lead out of the years, and a moment before 1970 could be the -1 that
 * means none. */
static bool is_in_years(int64_t at)
{
    return at >= 0 && at < dibs__day_of(YEAR_MAX + 1, 1, 1) * DIBS__DAY_S;
}

bool dibs__moment_parse(const char *text, const dibs__zone *zone, int64_t *out)
{
    int64_t local, offset_s, at;
    bool has_clock;

    if (!take_date(&text, &local))
        return false;
    has_clock = take_char(&text, "Tt ");
    if (has_clock && !take_clock(&text, &local))
        return false;
    if (*text == '\0')
        at = dibs__zone_moment(zone, local);
    else if (has_clock && take_offset(&text, &offset_s) && *text == '\0')
        at = local - offset_s;
    else
        return false;
    if (!is_in_years(at))
        return false;
    *out = at;
    return true;
}

void dibs__moment_text(int64_t local, char out[DIBS__MOMENT_SIZE])
{
    int64_t day = dibs__day_at(local);
    int s = (int)(local - day * DIBS__DAY_S);
    dibs__date date;

    dibs__date_of(day, &date);
    (void)snprintf(out, DIBS__MOMENT_SIZE, "%04d-%02d-%02dT%02d:%02d:%02d",
                   date.year, date.month, date.day, s / 3600, s / 60 % 60,
                   s % 60);
}

void dibs__offset_text(int32_t offset_s, char out[DIBS__OFFSET_SIZE])
{
    int s = abs(offset_s);
    int len = snprintf(out, DIBS__OFFSET_SIZE, "%c%02d:%02d",
                       offset_s < 0 ? '-' : '+', s / 3600 % 100, s / 60 % 60);

    if (s % 60 != 0 && len > 0)
        (void)snprintf(out + len, DIBS__OFFSET_SIZE - (size_t)len, ":%02d",
                       s % 60);
}
