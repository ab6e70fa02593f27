/* job_text.h - jobs that a program makes: read as the text of a jobs file, so that one
 * reader knows the rules. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_JOBS_JOB_TEXT_H
#define DIBS_JOBS_JOB_TEXT_H

#include "base/buf.h"
#include "jobs/job_file.h"

/* INVALID: err has the first mistake, behind `what`, and with its place if `places`. End
 * with dibs__job_file_fini() in any case. */
DIBS_MUST_CHECK dibs_status dibs__job_text_read(dibsx_buf *text,
                                                const char *what, bool places,
                                                dibs__job_file *out,
                                                dibs_error *err);

#endif
