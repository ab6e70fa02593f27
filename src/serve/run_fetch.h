/* run_fetch.h - records of many runs, or of other things of a board, in one call of the
 * store. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_RUN_FETCH_H
#define DIBS_SERVE_RUN_FETCH_H

#include "serve/board_picture.h"

/* Reads up to DIBS_GET_MANY_MAX records, "node/" and an id say; version 0: there is none. Blocks for the
 * store. With DIBS_OK, end each with dibs_value_free(). */
DIBS_MUST_CHECK dibs_status dibs__record_fetch(const dibs__board *board,
                                               const char *begins,
                                               const char *const *ids,
                                               size_t count, dibs_value *values,
                                               dibs_error *err);

/* The same for runs. */
DIBS_MUST_CHECK dibs_status
dibs__run_fetch(const dibs__board *board, const dibs__board_run_id *const *ids,
                size_t count, dibs_value *values, dibs_error *err);

#endif
