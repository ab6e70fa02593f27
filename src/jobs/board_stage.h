/* board_stage.h - a scene of a board with storage of its own: records read for a change. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_JOBS_BOARD_STAGE_H
#define DIBS_JOBS_BOARD_STAGE_H

#include "jobs/board.h"

/* It points into itself, so it stays where it is. */
typedef struct dibs__stage {
    dibs__scene sc;
    dibs__job *job;                 /* as the store has it */
    dibs__job *live_job, *next_job; /* where they differ from it */
    dibs__run run, live, next;
    dibs__job_state state;
    dibs__intent in;
} dibs__stage;

/* Empty; end with dibs__stage_fini(). */
void dibs__stage_init(dibs__stage *st);
void dibs__stage_fini(dibs__stage *st);

/* Reads a run, its definition, what its rules ask for, and the store's clock, unless the
 * caller has set it. */
DIBS_MUST_CHECK dibs_status dibs__stage_run(const dibs__board *board,
                                            const char *id, dibs__stage *st,
                                            dibs_error *err);

/* The same for a stage whose run the caller has put there. */
DIBS_MUST_CHECK dibs_status dibs__stage_rest(const dibs__board *board,
                                             dibs__stage *st, dibs_error *err);

/* For a stage with the state of a job, which is due: the definition in force, which the
 * caller may have (NULL: it is read), and the runs beside which another may
 * be made. The caller sets the store's clock. */
DIBS_MUST_CHECK dibs_status dibs__stage_due(const dibs__board *board,
                                            dibs__stage *st,
                                            const dibs__job *own,
                                            dibs_error *err);

/* For a stage with a definition: the state, if the rules of the job ask for it, and the
 * runs it names beside `own`. */
DIBS_MUST_CHECK dibs_status dibs__stage_state(const dibs__board *board,
                                              dibs__stage *st, const char *own,
                                              dibs_error *err);

#endif
