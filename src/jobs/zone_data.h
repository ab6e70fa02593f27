/* zone_data.h - what a zone is made of: for zone.c, and the reader of its file. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_JOBS_ZONE_DATA_H
#define DIBS_JOBS_ZONE_DATA_H

#include "jobs/zone.h"
#include "jobs/zone_rule.h"

typedef struct dibs__zone_data {
    dibs__shift *shifts; /* in order, each to another offset */
    size_t shift_count;
    int32_t first_s;     /* the offset before the first shift */
    int64_t known_until; /* the rule is for later moments only */
    dibs__rule rule;
} dibs__zone_data;

/* Reads the content of a TZif file. INVALID: it is bad, and err says how; `path` is for
 * that message. Free with dibs__zone_data_fini(). */
DIBS_MUST_CHECK dibs_status dibs__zone_data_read(dibs__zone_data *data,
                                                 const char *path,
                                                 const unsigned char *bytes,
                                                 size_t len, dibs_error *err);
void dibs__zone_data_fini(dibs__zone_data *data);

#endif
