/* board_name.h - "BOARD/NAME" of the public interface: jobs, runs, graphs and batches. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_JOBS_BOARD_NAME_H
#define DIBS_JOBS_BOARD_NAME_H

#include "jobs/board.h"
#include <dibs/jobs.h>

/* The board, which is "main" where none is named, and the name on it, which is a part of
 * `name`. INVALID: one of both is empty or too long. */
DIBS_MUST_CHECK dibs_status dibs__board_split(dibs_client *cl, const char *name,
                                              dibs__board *board,
                                              const char **inner,
                                              dibs_error *err);

/* The reverse, for a run. */
void dibs__board_join(const dibs__board *board, const char *run,
                      char out[DIBS_RUN_SIZE]);

/* "user@host", which records name. */
void dibs__board_whoami(char *out, size_t size);

#endif
