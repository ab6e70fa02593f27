/* job_row.h - jobs and runs as JSON. Pure.
 *
 * Values of environment variables are left out: they are where jobs have secrets. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_JOB_ROW_H
#define DIBS_SERVE_JOB_ROW_H

#include "base/json.h"
#include "serve/board_picture.h"

/* The pairs of a row of a list. */
void dibs__job_row_json(dibsx_json *js, const dibs__board_row *row,
                        int64_t now_us);

/* The pairs of its definition. */
void dibs__job_definition_json(dibsx_json *js, const dibs__job *job);

/* "paused", "off", "running", "due" or "on demand". */
const char *dibs__job_row_status(const dibs__board_row *row);

/* Whether it is one of those. */
bool dibs__job_row_is_status(const char *text);

/* The pairs of a run; `job` (may be NULL) adds to its steps those that they need. The
 * brief ones are without its params and steps, which may be long. */
void dibs__run_brief_json(dibsx_json *js, const dibs__run *run);
void dibs__run_row_json(dibsx_json *js, const dibs__run *run,
                        const dibs__job *job, bool whole);

/* A pair with a moment in RFC 3339, or null for 0. */
void dibs__json_at(dibsx_json *js, const char *key, int64_t wall_us);

#endif
