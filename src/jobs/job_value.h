/* job_value.h - one value of a jobs file, checked by the row of its key. Pure. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_JOBS_JOB_VALUE_H
#define DIBS_JOBS_JOB_VALUE_H

#include "jobs/arena.h"
#include "jobs/job_keys.h"
#include "jobs/zone.h"

/* Where texts go, and whose clocks a local time is of. */
typedef struct dibs__value_context {
    dibs__arena *arena;
    const dibs__zone *zone;
} dibs__value_context;

/* The place of a value in the struct at `base`. */
static inline void *dibs__key_place(const dibs__key *row, void *base)
{
    return (char *)base + row->at;
}

static inline const void *
dibs__key_value(const dibs__key *row, const void *base)
{
    return (const char *)base + row->at;
}

/* Reads a scalar into the struct at `base`. INVALID: err says why. A list is read word
 * by word by its reader; of these only the words of `choices` and codes are read here,
 * and they add to what is there. */
DIBS_MUST_CHECK dibs_status dibs__key_read(const dibs__key *row,
                                           const char *text,
                                           const dibs__value_context *ctx,
                                           void *base, dibs_error *err);

/* Back to the default, or to not set; a group with all that it has. */
void dibs__key_reset(const dibs__key *row, const dibs__value_context *ctx,
                     void *base);
void dibs__keys_reset(const dibs__keys *keys, const dibs__value_context *ctx,
                      void *base);

/* The signal of a name such as TERM or SIGTERM, 0: none; and the other way. */
int dibs__signal_find(const char *name);
const char *dibs__signal_name(int number);

#endif
