/* zone_rule.c - reads a TZ string of POSIX, and tells its shifts. Pure. */
/* SPDX-License-Identifier: MIT */
#include "jobs/zone_rule.h"
#include "jobs/calendar.h"

enum { OFFSET_HOURS_MAX = 25, DATE_HOURS_MAX = 167, DEFAULT_DATE_S = 7200 };

/* The part of the text that is not read yet. */
typedef struct cursor {
    const char *at;
    const char *end;
} cursor;

static bool take_char(cursor *cur, char wanted)
{
    if (cur->at == cur->end || *cur->at != wanted)
        return false;
    cur->at++;
    return true;
}

static bool is_letter(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/* "CEST", or "<+0330>"; three letters at least. */
static bool skip_name(cursor *cur)
{
    const char *begin = cur->at;

    if (take_char(cur, '<')) {
        while (cur->at < cur->end && *cur->at != '>')
            cur->at++;
        return take_char(cur, '>');
    }
    while (cur->at < cur->end && is_letter(*cur->at))
        cur->at++;
    return cur->at - begin >= 3;
}

static bool take_number(cursor *cur, int max, int *out)
{
    const char *begin = cur->at;
    int number = 0;

    while (cur->at < cur->end && *cur->at >= '0' && *cur->at <= '9' &&
           number <= max)
        number = number * 10 + (*cur->at++ - '0');
    *out = number;
    return cur->at > begin && number <= max;
}

/* [+-]hh[:mm[:ss]] as seconds. */
static bool take_time(cursor *cur, int hours_max, int32_t *out)
{
    bool minus = take_char(cur, '-');
    int hours, minutes = 0, seconds = 0;

    if (!minus)
        (void)take_char(cur, '+');
    if (!take_number(cur, hours_max, &hours))
        return false;
    if (take_char(cur, ':') && !take_number(cur, 59, &minutes))
        return false;
    if (take_char(cur, ':') && !take_number(cur, 59, &seconds))
        return false;
    *out = (hours * 60 + minutes) * 60 + seconds;
    if (minus)
        *out = -*out;
    return true;
}

static bool take_date(cursor *cur, dibs__rule_date *out)
{
    bool ok;

    *out = (dibs__rule_date){.s = DEFAULT_DATE_S};
    if (!take_char(cur, ','))
        return false;
    if (take_char(cur, 'M')) {
        out->kind = 'M';
        ok = take_number(cur, 12, &out->month) && out->month >= 1 &&
             take_char(cur, '.') && take_number(cur, 5, &out->week) &&
             out->week >= 1 && take_char(cur, '.') &&
             take_number(cur, 6, &out->number);
    } else if (take_char(cur, 'J')) {
        out->kind = 'J';
        ok = take_number(cur, 365, &out->number) && out->number >= 1;
    } else {
        out->kind = 'N';
        ok = take_number(cur, 365, &out->number);
    }
    if (ok && take_char(cur, '/'))
        ok = take_time(cur, DATE_HOURS_MAX, &out->s);
    return ok;
}

static int64_t find_day(const dibs__rule_date *date, int year)
{
    int64_t first = dibs__day_of(year, date->kind == 'M' ? date->month : 1, 1);
    int64_t day;

    if (date->kind == 'N')
        return first + date->number;
    if (date->kind == 'J')
        return first + date->number - 1 +
               (date->number >= 60 && dibs__leap_year(year));
    day = (date->number - dibs__weekday_of(first) + 7) % 7 +
          (int64_t)7 * (date->week - 1);
    if (day >= dibs__month_length(year, date->month))
        day -= 7;
    return first + day;
}

static int64_t
find_moment(const dibs__rule_date *date, int year, int32_t offset_before_s)
{
    return find_day(date, year) * DIBS__DAY_S + date->s - offset_before_s;
}

void dibs__rule_year(const dibs__rule *rule, int year, dibs__shift out[2])
{
    dibs__shift begin = {find_moment(&rule->begin, year, rule->standard_s),
                         rule->summer_s};
    dibs__shift end = {find_moment(&rule->end, year, rule->summer_s),
                       rule->standard_s};

    out[0] = begin.at <= end.at ? begin : end;
    out[1] = begin.at <= end.at ? end : begin;
}

/* Summer time that ends when that of the next year begins never ends. */
static bool lasts_all_year(const dibs__rule *rule)
{
    for (int year = 2000; year < 2004; year++) {
        if (find_moment(&rule->end, year, rule->summer_s) !=
            find_moment(&rule->begin, year + 1, rule->standard_s))
            return false;
    }
    return true;
}

bool dibs__rule_parse(const char *text, size_t len, dibs__rule *out)
{
    cursor cur = {text, text + len};
    int32_t west_s;

    *out = (dibs__rule){0};
    if (!skip_name(&cur) || !take_time(&cur, OFFSET_HOURS_MAX, &west_s))
        return false;
    /* POSIX counts to the west. */
    out->standard_s = -west_s;
    if (cur.at == cur.end)
        return true;
    if (!skip_name(&cur) || cur.at == cur.end)
        return false;
    west_s = -(out->standard_s + 3600);
    if (*cur.at != ',' && !take_time(&cur, OFFSET_HOURS_MAX, &west_s))
        return false;
    out->summer_s = -west_s;
    if (!take_date(&cur, &out->begin) || !take_date(&cur, &out->end) ||
        cur.at != cur.end)
        return false;
    out->has_summer = out->summer_s != out->standard_s;
    if (out->has_summer && lasts_all_year(out)) {
        out->standard_s = out->summer_s;
        out->has_summer = false;
    }
    return true;
}
