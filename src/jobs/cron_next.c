/* cron_next.c - when a cron expression is due, before and after a moment. Pure.
 *
 * Within a segment of constant offset the search is one of the calendar: months whose
 * days are bits, and a time of day. The rules for clocks that change (cron.h) are
 * applied where two segments meet. "Local" is seconds since 1970 on the zone's clock. */
/* SPDX-License-Identifier: MIT */
#include "jobs/calendar.h"
#include "jobs/cron.h"
#include "jobs/cron_fields.h"

enum {
    WEEK = 0x10204081, /* bits 0, 7, 14, 21, 28 */
    OFFSET_MAX_S = 26 * 3600
};

static int64_t begin_of_time(void)
{
    return dibs__day_of(DIBS__CRON_YEAR_MIN, 1, 1) * DIBS__DAY_S;
}

static int64_t end_of_time(void)
{
    return dibs__day_of(DIBS__CRON_YEAR_MAX + 1, 1, 1) * DIBS__DAY_S;
}

/* A month, as the day fields see it. */
typedef struct month {
    int length;
    int weekday; /* of its first day */
} month;

/* The Monday to Friday nearest to a day, within the month. */
static int nearest_workday(month mo, int day)
{
    int weekday = (mo.weekday + day - 1) % 7;

    if (weekday == 6)
        return day > 1 ? day - 1 : day + 2;
    if (weekday == 0)
        return day < mo.length ? day + 1 : day - 2;
    return day;
}

static uint32_t days_of_month_field(const dibs__cron *cron, month mo)
{
    uint32_t days = cron->days;

    for (int n = 0; n < mo.length; n++) {
        if (cron->last_days >> n & 1)
            days |= 1u << (mo.length - n);
        if (cron->near_days >> (n + 1) & 1)
            days |= 1u << nearest_workday(mo, n + 1);
    }
    if (cron->near_last)
        days |= 1u << nearest_workday(mo, mo.length);
    return days;
}

static uint32_t days_of_week_field(const dibs__cron *cron, month mo)
{
    uint32_t days = 0;

    for (int weekday = 0; weekday < 7; weekday++) {
        int first = 1 + (weekday - mo.weekday + 7) % 7;

        if (cron->weekdays >> weekday & 1)
            days |= (uint32_t)WEEK << first;
        if (cron->last_weekdays >> weekday & 1)
            days |= 1u << (first + (mo.length - first) / 7 * 7);
        for (int n = 1; n <= 5; n++) {
            if (cron->nth[n] >> weekday & 1 && first + 7 * (n - 1) < 32)
                days |= 1u << (first + 7 * (n - 1));
        }
    }
    return days;
}

/* The days of a month that match, from bit 1. */
static uint32_t match_days(const dibs__cron *cron, int year, int number)
{
    month mo = {dibs__month_length(year, number),
                dibs__weekday_of(dibs__day_of(year, number, 1))};
    uint32_t within = (uint32_t)(((uint64_t)2 << mo.length) - 2);
    uint32_t by_month, by_week;

    if (!(cron->months >> number & 1) || !dibs__cron_has_year(cron, year))
        return 0;
    by_month = days_of_month_field(cron, mo);
    by_week = days_of_week_field(cron, mo);
    return (cron->either ? by_month | by_week : by_month & by_week) & within;
}

/* The lowest bit at or above `from`, the highest at or below it; -1: none. */
static int bit_from(uint64_t bits, int from)
{
    bits = from < 64 ? bits >> from << from : 0;
    return bits ? __builtin_ctzll(bits) : -1;
}

static int bit_to(uint64_t bits, int to)
{
    if (to < 63)
        bits &= ((uint64_t)2 << to) - 1;
    return bits ? 63 - __builtin_clzll(bits) : -1;
}

/* The first matching time of day at or after one, in seconds; -1: none. */
static int time_from(const dibs__cron *cron, int from)
{
    int hour = bit_from(cron->hours, from / 3600);
    int minute = 0, second = 0;

    if (hour < 0)
        return -1;
    if (hour == from / 3600) {
        minute = from / 60 % 60;
        second = from % 60;
    }
    if (!(cron->minutes >> minute & 1) || bit_from(cron->seconds, second) < 0) {
        second = 0;
        minute = bit_from(cron->minutes,
                          minute + (int)(cron->minutes >> minute & 1));
        if (minute < 0) {
            hour = bit_from(cron->hours, hour + 1);
            minute = bit_from(cron->minutes, 0);
        }
    }
    if (hour < 0)
        return -1;
    return (hour * 60 + minute) * 60 + bit_from(cron->seconds, second);
}

/* The last matching time of day at or before one. */
static int time_to(const dibs__cron *cron, int to)
{
    int hour = bit_to(cron->hours, to / 3600);
    int minute = 59, second = 59;

    if (hour < 0)
        return -1;
    if (hour == to / 3600) {
        minute = to / 60 % 60;
        second = to % 60;
    }
    if (!(cron->minutes >> minute & 1) || bit_to(cron->seconds, second) < 0) {
        int below = minute - (int)(cron->minutes >> minute & 1);

        second = 59;
        minute = below < 0 ? -1 : bit_to(cron->minutes, below);
        if (minute < 0) {
            hour = hour > 0 ? bit_to(cron->hours, hour - 1) : -1;
            minute = bit_to(cron->minutes, 59);
        }
    }
    if (hour < 0)
        return -1;
    return (hour * 60 + minute) * 60 + bit_to(cron->seconds, second);
}

/* The first day from `day` up to `last` that matches; false: there is none. */
static bool find_day_from(const dibs__cron *cron, int64_t *day, int64_t last)
{
    dibs__date date;
    int64_t first;

    if (*day > last)
        return false;
    dibs__date_of(*day, &date);
    first = *day - date.day;
    while (first < last) {
        int found = bit_from(match_days(cron, date.year, date.month), date.day);

        if (found >= 0) {
            *day = first + found;
            return *day <= last;
        }
        if (!dibs__cron_has_year(cron, date.year))
            date.month = 12;
        if (++date.month > 12) {
            date.month = 1;
            date.year++;
        }
        date.day = 1;
        first = dibs__day_of(date.year, date.month, 1) - 1;
    }
    return false;
}

/* The last day from `day` down to `first` that matches. */
static bool find_day_to(const dibs__cron *cron, int64_t *day, int64_t first)
{
    dibs__date date;
    int64_t before;

    if (*day < first)
        return false;
    dibs__date_of(*day, &date);
    before = *day - date.day;
    while (before + 31 >= first) {
        int found = bit_to(match_days(cron, date.year, date.month), date.day);

        if (found >= 0) {
            *day = before + found;
            return *day >= first;
        }
        if (!dibs__cron_has_year(cron, date.year))
            date.month = 1;
        if (--date.month < 1) {
            date.month = 12;
            date.year--;
        }
        date.day = dibs__month_length(date.year, date.month);
        before = dibs__day_of(date.year, date.month, 1) - 1;
    }
    return false;
}

/* The first matching local time in [begin, end). */
static bool find_local_from(const dibs__cron *cron, int64_t begin, int64_t end,
                            int64_t *out)
{
    int64_t day = dibs__day_at(begin), last = dibs__day_at(end - 1);
    int from = (int)(begin - day * DIBS__DAY_S);

    for (int64_t today = day; begin < end; day++, from = 0) {
        int s;

        if (!find_day_from(cron, &day, last))
            return false;
        s = time_from(cron, day == today ? from : 0);
        if (s >= 0) {
            *out = day * DIBS__DAY_S + s;
            return *out < end;
        }
    }
    return false;
}

/* The last one. */
static bool
find_local_to(const dibs__cron *cron, int64_t begin, int64_t end, int64_t *out)
{
    int64_t day = dibs__day_at(end - 1), first = dibs__day_at(begin);
    int to = (int)(end - 1 - day * DIBS__DAY_S);

    for (int64_t today = day; begin < end; day--) {
        int s;

        if (!find_day_to(cron, &day, first))
            return false;
        s = time_to(cron, day == today ? to : DIBS__DAY_S - 1);
        if (s >= 0) {
            *out = day * DIBS__DAY_S + s;
            return *out >= begin;
        }
    }
    return false;
}

bool dibs__cron_fixed(const dibs__cron *cron)
{
    return !cron->every_s && !cron->all_hours && !cron->star;
}

/* Rule 3: the beginning of the segment is the end of a gap with matching times. */
static bool ends_gap(const dibs__cron *cron, const dibs__segment *seg)
{
    int64_t found;

    return seg->offset_s > seg->before_s && !cron->all_hours &&
           find_local_from(cron, seg->begin + seg->before_s,
                           seg->begin + seg->offset_s, &found);
}

/* The local time at which the ticks of a segment begin: not before rule 2 says so. */
static int64_t
first_local(const dibs__cron *cron, const dibs__segment *seg, int64_t low)
{
    int64_t local = low + seg->offset_s;

    if (seg->begin >= begin_of_time() && seg->offset_s < seg->before_s &&
        dibs__cron_fixed(cron) && local < seg->begin + seg->before_s)
        local = seg->begin + seg->before_s;
    return local;
}

static void make_tick(const dibs__cron *cron, const dibs__zone *zone,
                      const dibs__segment *seg, int64_t at, dibs__tick *out)
{
    dibs__segment next;

    *out = (dibs__tick){.at = at, .offset_s = seg->offset_s};
    if (at == seg->begin && ends_gap(cron, seg)) {
        out->rule = DIBS__TICK_GAP;
        return;
    }
    if (!dibs__cron_fixed(cron) || seg->end >= end_of_time())
        return;
    dibs__zone_find(zone, seg->end, &next);
    if (at + seg->offset_s >= seg->end + next.offset_s)
        out->rule = DIBS__TICK_FIRST_PASS;
}

/* The tick of @every at or before a moment. */
static int64_t every_to(const dibs__cron *cron, int64_t at)
{
    int64_t over = (at - cron->anchor_s) % cron->every_s;

    return at - (over < 0 ? over + cron->every_s : over);
}

static bool make_every(const dibs__zone *zone, int64_t at, dibs__tick *out)
{
    *out = (dibs__tick){.at = at, .offset_s = dibs__zone_offset(zone, at)};
    return at >= begin_of_time() && at < end_of_time();
}

bool dibs__cron_next(const dibs__cron *cron, const dibs__zone *zone,
                     int64_t after, dibs__tick *out)
{
    const int64_t end = end_of_time();
    dibs__segment seg;
    int64_t local;

    if (after < begin_of_time() - 1)
        after = begin_of_time() - 1;
    if (after >= end)
        return false;
    if (cron->every_s)
        return make_every(zone, every_to(cron, after) + cron->every_s, out);
    dibs__zone_find(zone, after + 1, &seg);
    for (;;) {
        int64_t low = seg.begin > after ? seg.begin : after + 1;
        int64_t stop = seg.end < end ? seg.end : end;

        if (low == seg.begin && ends_gap(cron, &seg)) {
            make_tick(cron, zone, &seg, low, out);
            return true;
        }
        if (find_local_from(cron, first_local(cron, &seg, low),
                            stop + seg.offset_s, &local)) {
            make_tick(cron, zone, &seg, local - seg.offset_s, out);
            return true;
        }
        if (stop >= end)
            return false;
        dibs__zone_find(zone, stop, &seg);
    }
}

bool dibs__cron_prev(const dibs__cron *cron, const dibs__zone *zone,
                     int64_t before, dibs__tick *out)
{
    const int64_t begin = begin_of_time();
    dibs__segment seg;
    int64_t local;

    if (before > end_of_time())
        before = end_of_time();
    if (before <= begin)
        return false;
    if (cron->every_s)
        return make_every(zone, every_to(cron, before - 1), out);
    dibs__zone_find(zone, before - 1, &seg);
    for (;;) {
        int64_t low = seg.begin > begin ? seg.begin : begin;
        int64_t stop = seg.end < before ? seg.end : before;

        if (find_local_to(cron, first_local(cron, &seg, low),
                          stop + seg.offset_s, &local)) {
            make_tick(cron, zone, &seg, local - seg.offset_s, out);
            return true;
        }
        if (low == seg.begin && ends_gap(cron, &seg)) {
            make_tick(cron, zone, &seg, low, out);
            return true;
        }
        if (low <= begin)
            return false;
        dibs__zone_find(zone, low - 1, &seg);
    }
}

bool dibs__cron_next_from(const dibs__cron *cron, const dibs__zone *zone,
                          int64_t after, int64_t after_local, dibs__tick *out)
{
    /* No zone is further ahead: a local time beyond that was never one. */
    int64_t latest = after + OFFSET_MAX_S;

    if (after_local > latest)
        after_local = latest;
    while (dibs__cron_next(cron, zone, after, out)) {
        if (!dibs__cron_fixed(cron) || out->at + out->offset_s > after_local)
            return true;
        after = out->at;
    }
    return false;
}
