/* run_inside.h - what the parts of the run machine share. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_JOBS_RUN_INSIDE_H
#define DIBS_JOBS_RUN_INSIDE_H

#include "jobs/run_machine.h"

/* The definition that a run of the scene was made with. */
const dibs__job *dibs__scene_job(const dibs__scene *sc, const dibs__run *run);

/* Settles the graph of a run of the scene; if that ends it, the state of the job too. */
void dibs__run_settle(dibs__scene *sc, dibs__run *run);

/* Ends a step that was not begun in time. */
void dibs__step_miss(dibs__scene *sc, dibs__run_step *step);

/* Cancels sc->run, which has not ended, for this reason. */
void dibs__run_drop(dibs__scene *sc, dibs__reason why);

#endif
