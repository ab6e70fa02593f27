/* moment.h - moments as people write them: RFC 3339, and local times of a zone. Pure. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_JOBS_MOMENT_H
#define DIBS_JOBS_MOMENT_H

#include "jobs/zone.h"

enum { DIBS__MOMENT_SIZE = 32, DIBS__OFFSET_SIZE = 16 };

/* Reads "2026-11-15T02:00:00Z", "2026-11-15T02:00+01:00", and, as local time of the
 * zone, "2026-11-15 02:00" and "2026-11-15", from 1970 to 2199, as written and in UTC.
 * False when it is none of these; *out is then left alone. */
bool dibs__moment_parse(const char *text, const dibs__zone *zone, int64_t *out);

/* "2026-11-15T02:00:00", of seconds since 1970 from the year 1 to 9999. */
void dibs__moment_text(int64_t local, char out[DIBS__MOMENT_SIZE]);

/* "+01:00", "-03:30", "+00:53:28". */
void dibs__offset_text(int32_t offset_s, char out[DIBS__OFFSET_SIZE]);

#endif
