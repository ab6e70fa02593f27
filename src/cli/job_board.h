/* job_board.h - what the verbs of jobs in a store share: the board, and runs in JSON. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CLI_JOB_BOARD_H
#define DIBS_CLI_JOB_BOARD_H

#include "base/json.h"
#include "cli/command.h"
#include "jobs/board.h"

typedef struct dibs__open_board {
    dibs_client *cl;
    dibs__board board;
    char who[DIBS__RUN_NOTE_SIZE]; /* "user@host": for the record */
} dibs__open_board;

/* Opens the store and the board of --board. 0, or the exit code after a message. Close
 * with dibs__board_close() in any case. */
int dibs__board_open(const dibs__command *cmd, dibs__open_board *out);
void dibs__board_close(dibs__open_board *ob);

/* Calls `each` for the names of all jobs of the board that match (fnmatch); NULL: all.
 * The state of a job that is in no set any more is left out. */
typedef int dibs__job_fn(const dibs__command *cmd, dibs__open_board *ob,
                         const dibs__job_state *state, void *arg);
int dibs__board_each(const dibs__command *cmd, dibs__open_board *ob,
                     const char *match, dibs__job_fn *each, void *arg);

/* Waits until a run has ended, for wait_ms at most; negative: without limit. The exit code
 * of the run; or another, after a message, if *ended is false. */
int dibs__board_await(const dibs__command *cmd, dibs__open_board *ob,
                      const char *id, int64_t wait_ms, bool *ended);

/* The definition of a run; NULL: the store has none any more, or none that can be read. 0,
 * or the exit code after a message. Free it with dibs__job_free(). */
int dibs__board_definition(const dibs__command *cmd, dibs__open_board *ob,
                           const dibs__run *run, dibs__job **out);

/* A run as an object; `job` is its definition, or NULL. */
void dibs__json_run(dibsx_json *js, const dibs__run *run, const dibs__job *job);

/* "2026-11-15T02:00:00Z" of microseconds, "-" for none. */
void dibs__moment_cell(int64_t wall_us, char *out, size_t size);

/* A pair with such a time, or null. */
void dibs__json_moment(dibsx_json *js, const char *key, int64_t at_s);

#endif
