/* run_params.h - the params of a new run, whatever makes it: a caller, a tick or another
 * run. Pure. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_JOBS_RUN_PARAMS_H
#define DIBS_JOBS_RUN_PARAMS_H

#include "jobs/record.h"

/* Gives a new run what it is given, and the defaults of its job. INVALID: as of
 * dibs__params_fill() and dibs__run_fits(); NOMEM. */
DIBS_MUST_CHECK dibs_status dibs__run_params(dibs__run *run,
                                             const dibs__job *job,
                                             const dibs__pair *given,
                                             size_t count, dibs_error *err);

#endif
