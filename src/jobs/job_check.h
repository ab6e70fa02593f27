/* job_check.h - rules of a definition that concern more than one key. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_JOBS_JOB_CHECK_H
#define DIBS_JOBS_JOB_CHECK_H

#include "jobs/definition.h"
#include "jobs/job_reader.h"

/* Reports what breaks one. */
void dibs__job_check(dibs__job_reader *rd, const dibs__job *job,
                     const dibs__job_source *source);

#endif
