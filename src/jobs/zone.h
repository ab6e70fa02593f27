/* zone.h - a time zone: which offset from UTC holds when.
 *
 * A zone is a row of segments of constant offset. They come from a file of the
 * system's zone database (TZif, RFC 8536), and beyond its last entry from the rule at
 * its end. "UTC" needs no file. TZDIR names another folder than the usual one.
 *
 * A zone belongs to its caller and has no lock. Searches are pure; opening and
 * refreshing read files. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_JOBS_ZONE_H
#define DIBS_JOBS_ZONE_H

#include <dibs/types.h>

enum {
    DIBS__ZONE_NAME_MAX = 64,
    DIBS__ZONE_FILE_MAX = 64 * 1024,
    DIBS__ZONE_SHIFTS_MAX = 2000,
    DIBS__TZDATA_SIZE = 16
};

typedef struct dibs__zone dibs__zone;

/* Times are seconds since 1970. The ends of the first and the last segment are
 * INT64_MIN and INT64_MAX. */
typedef struct dibs__segment {
    int64_t begin;    /* the first second of it */
    int64_t end;      /* the first second after it */
    int32_t offset_s; /* east of UTC */
    int32_t
        before_s; /* the offset of the segment before; of the first: its own */
} dibs__segment;

/* Free with dibs__zone_free(). INVALID: the name is none, or the file is bad; NOTFOUND:
 * there is no such zone; DENIED, NOMEM. */
DIBS_MUST_CHECK dibs_status dibs__zone_open(const char *name, dibs__zone **out,
                                            dibs_error *err);
void dibs__zone_free(dibs__zone *zone);

/* Reads the content of a file, which is borrowed for the call. */
DIBS_MUST_CHECK dibs_status dibs__zone_read(const char *name, const void *bytes,
                                            size_t len, dibs__zone **out,
                                            dibs_error *err);

const char *dibs__zone_name(const dibs__zone *zone);

/* The segment that holds a moment. The rule is followed up to the year 2400. */
void dibs__zone_find(const dibs__zone *zone, int64_t at, dibs__segment *out);

int32_t dibs__zone_offset(const dibs__zone *zone, int64_t at);

/* The moment of a local time, which is given as seconds since 1970 on its clock. The
 * first one if it occurs twice; the end of the gap if it does not occur. */
int64_t dibs__zone_moment(const dibs__zone *zone, int64_t local);

/* The version of the zone database, such as "2025b"; "" when it is not known. */
void dibs__tzdata_version(char out[DIBS__TZDATA_SIZE]);

#endif
