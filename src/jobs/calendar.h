/* calendar.h - days and dates of the Gregorian calendar. Pure.
 *
 * A day is counted from 1970-01-01, which is 0. Years are 0 to 9999; a caller that
 * has a moment of unknown origin brings it into these bounds first. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_JOBS_CALENDAR_H
#define DIBS_JOBS_CALENDAR_H

#include <stdbool.h>
#include <stdint.h>

enum { DIBS__DAY_S = 86400 };

typedef struct dibs__date {
    int year;
    int month; /* 1 to 12 */
    int day;   /* 1 to 31 */
} dibs__date;

int64_t dibs__day_of(int year, int month, int day);
void dibs__date_of(int64_t day, dibs__date *out);

bool dibs__leap_year(int year);
int dibs__month_length(int year, int month);

/* 0 is Sunday. */
int dibs__weekday_of(int64_t day);

/* The day of a moment, which may be before 1970. */
int64_t dibs__day_at(int64_t at_s);

#endif
