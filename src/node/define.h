/* define.h - jobs that a program defines in code: as the text of a jobs file, so that
 * one reader knows the rules. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_NODE_DEFINE_H
#define DIBS_NODE_DEFINE_H

#include "base/buf.h"
#include <dibs/jobs.h>

/* Appends "name": {...} of one job. */
void dibs__define_job(dibsx_buf *out, const char *name,
                      const dibs_job_opts *opts);

#endif
