/* job_steps.h - reads the steps of a job, and checks that their needs form no circle. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_JOBS_JOB_STEPS_H
#define DIBS_JOBS_JOB_STEPS_H

#include "jobs/definition.h"
#include "jobs/job_reader.h"

/* One of several keys that exclude each other, as `run` and `shell`. */
typedef struct dibs__action {
    const char *key;
    dibs__step_kind kind; /* NOTHING: `steps` */
} dibs__action;

/* The action that a map gives, NULL: none, which is no mistake here. Two are one.
 * `of` is what has them: "a job". */
const dibs__action *
dibs__action_find(dibs__job_reader *rd, const dibs__action *actions,
                  size_t count, const char *of, const dibsx_yaml_node *map);

/* "run, shell, call or steps". */
void dibs__action_words(const dibs__action *actions, size_t count, char *out,
                        size_t size);

/* Reads them into the job, whose `work` and `params` are there already. The source is
 * a map by name, or a list of maps that have a name. */
void dibs__steps_read(dibs__job_reader *rd, dibs__job *job,
                      const dibsx_yaml_node *source);

/* The one step of a job without `steps`. */
void dibs__steps_make_main(dibs__job_reader *rd, dibs__job *job,
                           dibs__step_kind kind);

/* Checks what texts refer to: a scalar, the words of a list, the values of a map. */
void dibs__refs_check(dibs__job_reader *rd, const dibs__param_list *params,
                      const dibsx_yaml_node *value);

/* References have no place in the text of a shell. `value` may be NULL. */
void dibs__shell_check(dibs__job_reader *rd, const dibsx_yaml_node *value);

#endif
