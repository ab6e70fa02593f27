/* job_build.h - makes a definition from the nodes of a file, and checks its rules. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_JOBS_JOB_BUILD_H
#define DIBS_JOBS_JOB_BUILD_H

#include "jobs/definition.h"
#include "jobs/job_reader.h"

/* *out is NULL if there were mistakes, which the reader has reported; then it is
 * INVALID. Free with dibs__job_free(). */
DIBS_MUST_CHECK dibs_status dibs__job_build(dibs__job_reader *rd,
                                            const char *name,
                                            const dibs__job_source *source,
                                            dibs__job **out, dibs_error *err);

/* Reports mistakes in what all jobs of a file start from. */
void dibs__defaults_check(dibs__job_reader *rd, const dibsx_yaml_node *map);

#endif
