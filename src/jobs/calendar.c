/* calendar.c - days and dates of the Gregorian calendar. Pure. */
/* SPDX-License-Identifier: MIT */
#include "jobs/calendar.h"

enum { EPOCH_YEAR = 1970, CYCLE_YEARS = 400, CYCLE_DAYS = 146097 };

/* Rounds down, also below zero. */
static int64_t divide_down(int64_t number, int64_t by)
{
    return number / by - (number % by < 0);
}

static int64_t count_leap_years(int64_t up_to)
{
    return divide_down(up_to, 4) - divide_down(up_to, 100) +
           divide_down(up_to, CYCLE_YEARS);
}

static int64_t first_day(int64_t year)
{
    return (year - EPOCH_YEAR) * 365 + count_leap_years(year - 1) -
           count_leap_years(EPOCH_YEAR - 1);
}

bool dibs__leap_year(int year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % CYCLE_YEARS == 0;
}

int dibs__month_length(int year, int month)
{
    static const int8_t length[] = {31, 28, 31, 30, 31, 30,
                                    31, 31, 30, 31, 30, 31};

    return length[month - 1] + (month == 2 && dibs__leap_year(year));
}

int64_t dibs__day_of(int year, int month, int day)
{
    int64_t at = first_day(year) + day - 1;

    for (int i = 1; i < month; i++)
        at += dibs__month_length(year, i);
    return at;
}

void dibs__date_of(int64_t day, dibs__date *out)
{
    int64_t year = EPOCH_YEAR + divide_down(day * CYCLE_YEARS, CYCLE_DAYS);
    int left;

    /* The mean length of a year leads to the year itself or a neighbour. */
    while (first_day(year) > day)
        year--;
    while (first_day(year + 1) <= day)
        year++;
    left = (int)(day - first_day(year));
    out->year = (int)year;
    out->month = 1;
    while (left >= dibs__month_length(out->year, out->month))
        left -= dibs__month_length(out->year, out->month++);
    out->day = left + 1;
}

int dibs__weekday_of(int64_t day)
{
    /* 1970-01-01 was a Thursday. */
    int64_t weekday = (day + 4) % 7;

    return (int)(weekday < 0 ? weekday + 7 : weekday);
}

int64_t dibs__day_at(int64_t at_s)
{
    return divide_down(at_s, DIBS__DAY_S);
}
