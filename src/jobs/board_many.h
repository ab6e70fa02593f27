/* board_many.h - several records of a board in one request. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_JOBS_BOARD_MANY_H
#define DIBS_JOBS_BOARD_MANY_H

#include "jobs/board.h"

/* Reads definitions that the cache of the board lacks into it, up to DIBS_GET_MANY_MAX; without
 * a cache it does nothing. One that is not there, or cannot be read, is left out. */
DIBS_MUST_CHECK dibs_status dibs__board_jobs(const dibs__board *board,
                                             const char *const *jobs,
                                             const char *const *hashes,
                                             size_t count, dibs_error *err);

#endif
