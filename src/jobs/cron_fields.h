/* cron_fields.h - the fields of a cron expression: bounds and names. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_JOBS_CRON_FIELDS_H
#define DIBS_JOBS_CRON_FIELDS_H

#include "jobs/cron.h"

typedef enum dibs__cron_field {
    DIBS__CRON_SECOND,
    DIBS__CRON_MINUTE,
    DIBS__CRON_HOUR,
    DIBS__CRON_DAY,
    DIBS__CRON_MONTH,
    DIBS__CRON_WEEKDAY,
    DIBS__CRON_YEAR,
    DIBS__CRON_FIELDS
} dibs__cron_field;

static inline bool dibs__cron_has_year(const dibs__cron *cron, int year)
{
    unsigned bit = (unsigned)(year - DIBS__CRON_YEAR_MIN);

    if (!cron->has_years)
        return true;
    return bit < DIBS__CRON_YEARS && cron->years[bit / 64] >> (bit % 64) & 1;
}

#endif
