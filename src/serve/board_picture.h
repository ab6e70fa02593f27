/* board_picture.h - a board as the store had it at one time: its jobs with their
 * definitions, the ids of their runs, and the steps that nodes have.
 *
 * A picture does not change, so that any thread reads it without a mutex. Making one blocks
 * for the store. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_BOARD_PICTURE_H
#define DIBS_SERVE_BOARD_PICTURE_H

#include "base/clock.h"
#include "jobs/board.h"
#include <stdatomic.h>

enum { DIBS__BOARD_JOBS_MAX = 20000 };

/* A definition never changes, so that pictures share it. */
typedef struct dibs__board_def {
    atomic_size_t users;
    dibs__job *job;
} dibs__board_def;

/* A member of the index of a job's runs. */
typedef struct dibs__board_run_id {
    char *id;
    const char *job; /* of its row, which does not move any more */
    int64_t at_us;   /* its end; while it lives, its making */
} dibs__board_run_id;

typedef struct dibs__board_row {
    dibs__job_state state;
    dibs__board_def *def; /* NULL: the store has none */
    dibs__board_run_id *runs;
    size_t run_count; /* the oldest first */
    bool works;       /* a node has a step of one of them */
} dibs__board_row;

/* A step that a node has. */
typedef struct dibs__board_live {
    char run[DIBS__RUN_ID_SIZE];
    char step[DIBS__JOB_NAME_SIZE];
    uint64_t fence; /* of the lease of the node */
} dibs__board_live;

typedef struct dibs__board_picture {
    atomic_size_t users;
    dibs__board board;
    dibsx_nsec seen_at;
    int64_t took_us;
    int64_t now_us; /* the store's wall clock */
    dibs_status rc; /* rows are only there with DIBS_OK */
    dibs_error err;
    dibs__board_row *rows; /* by name */
    size_t count;
    bool complete; /* false: the board has more jobs than a picture */
    dibs__board_live *live;
    size_t live_count;
} dibs__board_picture;

/* Definitions are taken from `before` (may be NULL) where they are the same. NULL: no
 * memory. End with dibs__board_picture_drop(). */
dibs__board_picture *
dibs__board_picture_make(const dibs__board *board,
                         const dibs__board_picture *before);
dibs__board_picture *dibs__board_picture_hold(dibs__board_picture *picture);
void dibs__board_picture_drop(dibs__board_picture *picture);

/* The row of a job, or NULL. */
const dibs__board_row *
dibs__board_picture_find(const dibs__board_picture *picture, const char *job);

/* Adds the runs of up to DIBS_LOOKS_MAX jobs to their rows, which have none yet, as the
 * store has them now; *now_us (may be NULL) is its clock. Blocks for the store. End with
 * dibs__board_row_drop_runs(), also after an error. */
DIBS_MUST_CHECK dibs_status dibs__board_row_read_runs(const dibs__board *board,
                                                      dibs__board_row *rows,
                                                      size_t count,
                                                      int64_t *now_us,
                                                      dibs_error *err);
void dibs__board_row_drop_runs(dibs__board_row *row);

/* Its definition, or NULL. */
static inline const dibs__job *dibs__board_row_job(const dibs__board_row *row)
{
    return row->def ? row->def->job : NULL;
}

#endif
