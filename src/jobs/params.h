/* params.h - values that a run is given, and their places in commands. Pure.
 *
 * "${param.NAME}" and "${tick}" stand for values in the words of a command, in the name
 * of a batch and in params of other jobs; "$${" stands for "${". Text for a shell is
 * left as it is, for a value there could be a command: a shell has $DIBS_PARAM_NAME. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_JOBS_PARAMS_H
#define DIBS_JOBS_PARAMS_H

#include "base/buf.h"
#include "jobs/arena.h"
#include "jobs/definition.h"

enum {
    DIBS__PARAM_NAME_MAX = 64,
    DIBS__PARAM_VALUE_MAX = 4096,
    DIBS__PARAM_VARIABLE_SIZE = DIBS__PARAM_NAME_MAX + 16
};

/* A letter, then letters, digits and _. */
bool dibs__param_name_ok(const char *name);

/* "DIBS_PARAM_REGION" of region. */
void dibs__param_variable(const char *name,
                          char out[DIBS__PARAM_VARIABLE_SIZE]);

/* "NAME=VALUE" texts, up to a NULL, as pairs whose texts are in the arena. */
DIBS_MUST_CHECK dibs_status dibs__params_split(
    const char *const *given, dibs__arena *arena,
    dibs__pair out[DIBS__JOB_PARAMS_MAX], size_t *count, dibs_error *err);

/* Completes what a run is given with defaults. INVALID: a param is unknown, missing,
 * given twice or against its pattern. A param without a value is left out. The texts of
 * *out are borrowed from both, its list is in the arena. */
DIBS_MUST_CHECK dibs_status dibs__params_fill(const dibs__param_list *params,
                                              const dibs__pair *given,
                                              size_t count, dibs__arena *arena,
                                              dibs__pairs *out,
                                              dibs_error *err);

/* Whether all that a text refers to is there. INVALID: err says what is not, and *at
 * where, in bytes from 0. */
DIBS_MUST_CHECK dibs_status dibs__params_check(const char *text,
                                               const dibs__param_list *params,
                                               size_t *at, dibs_error *err);

/* Appends the text with values in place. A param without a value is nothing. `tick` is
 * the moment of the run, as text. The text has passed dibs__params_check(). */
void dibs__params_expand(const char *text, const dibs__pairs *values,
                         const char *tick, dibsx_buf *out);

#endif
