/* record_names.h - the names of what a record says by number; dibs__run_state_name() and
 * its neighbours are for others. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_JOBS_RECORD_NAMES_H
#define DIBS_JOBS_RECORD_NAMES_H

#include "jobs/record.h"

extern const char *const dibs__state_names[DIBS__STATES];
extern const char *const dibs__reason_names[DIBS__REASONS];
extern const char *const dibs__cause_names[DIBS__CAUSES];
extern const char *const dibs__wait_names[DIBS__WAITS];

#endif
