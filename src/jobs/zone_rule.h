/* zone_rule.h - the rule at the end of a zone file: a TZ string of POSIX. Pure.
 *
 * "CET-1CEST,M3.5.0,M10.5.0/3", with the extensions of RFC 8536: hours of -167 to
 * 167, and summer time that lasts all year. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_JOBS_ZONE_RULE_H
#define DIBS_JOBS_ZONE_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A day of each year, and a time on it. */
typedef struct dibs__rule_date {
    char kind;  /* 'M': month, week, weekday; 'J': without 29 February; 'N' */
    int month;  /* of M */
    int week;   /* of M; 5 is the last */
    int number; /* the weekday of M, or the day of the year */
    int32_t s;  /* from midnight, local time of the moment before */
} dibs__rule_date;

typedef struct dibs__rule {
    int32_t standard_s; /* offsets, east of UTC */
    int32_t summer_s;
    bool has_summer; /* else the standard offset is for ever */
    dibs__rule_date begin;
    dibs__rule_date end;
} dibs__rule;

/* The moment at which an offset begins to hold. */
typedef struct dibs__shift {
    int64_t at;
    int32_t offset_s;
} dibs__shift;

/* False when the text is no rule; *out is then of no use. */
bool dibs__rule_parse(const char *text, size_t len, dibs__rule *out);

/* The two shifts of a year, the earlier one first. */
void dibs__rule_year(const dibs__rule *rule, int year, dibs__shift out[2]);

#endif
