/* cron.h - cron expressions: reading them, and when they are due. Pure.
 *
 * Five fields: minute hour day-of-month month day-of-week; six with seconds first,
 * seven with the year last. docs/cron.md has the syntax, and the rules for clocks that
 * change, which in short are:
 *
 *  1. Every moment whose local time matches is a tick, but for rule 2.
 *  2. In an overlap, local times that occur twice, only the first pass counts, but for
 *     expressions of every hour or with a star for minutes or seconds.
 *  3. All matching local times of a gap together are one tick, at its end, but for
 *     expressions of every hour.
 *  4. An expression under rule 2 runs no local time twice, also when another version
 *     of the zone told the last tick: dibs__cron_next_from(). */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_JOBS_CRON_H
#define DIBS_JOBS_CRON_H

#include "base/buf.h"
#include "jobs/zone.h"

enum {
    DIBS__CRON_TEXT_MAX = 500,
    DIBS__CRON_YEAR_MIN = 1970,
    DIBS__CRON_YEAR_MAX = 2199,
    DIBS__CRON_YEARS = DIBS__CRON_YEAR_MAX - DIBS__CRON_YEAR_MIN + 1
};

/* Sets are bits: bit 5 of hours is 05:00 to 05:59. */
typedef struct dibs__cron {
    int64_t every_s; /* of @every: then nothing else counts but the anchor */
    int64_t
        anchor_s; /* @every counts from this moment; the caller may set it */

    uint64_t seconds;
    uint64_t minutes;
    uint32_t hours;
    uint32_t months;       /* from bit 1 */
    uint32_t days;         /* of the month, from bit 1 */
    uint32_t last_days;    /* bit n: n days before the last */
    uint32_t near_days;    /* bit n: the weekday nearest to day n */
    bool near_last;        /* the last weekday */
    uint8_t weekdays;      /* from bit 0, Sunday */
    uint8_t last_weekdays; /* the last such weekday of the month */
    uint8_t nth[6];        /* nth[n]: the n-th such weekday, n from 1 */
    uint64_t years[(DIBS__CRON_YEARS + 63) / 64]; /* from 1970 */

    bool has_seconds; /* six or seven fields */
    bool has_years;   /* seven; else any year */
    bool either;      /* a day matches if one of the two day fields does */
    bool all_hours;   /* all 24: a gap is no reason for a tick */
    bool star;        /* a star for minutes or seconds: both passes count */
    bool day_numbers; /* six or seven fields, and a weekday is a number */
} dibs__cron;

typedef enum dibs__tick_rule {
    DIBS__TICK_PLAIN,
    DIBS__TICK_GAP,       /* stands for the times of the gap that ends here */
    DIBS__TICK_FIRST_PASS /* its local time occurs again, and does not count then */
} dibs__tick_rule;

typedef struct dibs__tick {
    int64_t at;       /* seconds since 1970 */
    int32_t offset_s; /* of the zone at that moment */
    dibs__tick_rule rule;
} dibs__tick;

/* INVALID: it is no expression, or one that never fires; err says why, and *column
 * where, in characters from 1. */
DIBS_MUST_CHECK dibs_status dibs__cron_parse(const char *text, dibs__cron *out,
                                             int *column, dibs_error *err);

/* The first tick after a moment, the last one before it. False: there is none, from
 * 1970 to 2199. */
bool dibs__cron_next(const dibs__cron *cron, const dibs__zone *zone,
                     int64_t after, dibs__tick *out);
bool dibs__cron_prev(const dibs__cron *cron, const dibs__zone *zone,
                     int64_t before, dibs__tick *out);

/* The first tick after one of which moment and local time were kept (rule 4). */
bool dibs__cron_next_from(const dibs__cron *cron, const dibs__zone *zone,
                          int64_t after, int64_t after_local, dibs__tick *out);

/* Neither of every hour nor with a star: rules 2 and 4 hold. */
bool dibs__cron_fixed(const dibs__cron *cron);

/* Appends the expression in words: "at 02:30 on Monday to Friday". */
void dibs__cron_words(const dibs__cron *cron, dibsx_buf *out);

/* A sentence about changes of the clocks; a static string. */
const char *dibs__cron_shift_words(const dibs__cron *cron);

#endif
