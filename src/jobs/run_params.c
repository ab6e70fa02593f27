/* run_params.c - see run_params.h. */
/* SPDX-License-Identifier: MIT */
#include "jobs/run_params.h"

#include "base/fail.h"
#include "jobs/params.h"

dibs_status
dibs__run_params(dibs__run *run, const dibs__job *job, const dibs__pair *given,
                 size_t count, dibs_error *err)
{
    dibs__arena *arena = dibs__arena_new();
    dibs__pairs all = {.count = 0};
    dibs_status rc =
        arena ? dibs__params_fill(&job->params, given, count, arena, &all, err)
              : dibsx_nomem(err, "the params of a run");

    for (size_t i = 0; rc == DIBS_OK && i < all.count; i++)
        rc = dibs__run_param(run, all.at[i].name, all.at[i].value, err);
    dibs__arena_free(arena);
    return rc == DIBS_OK ? dibs__run_fits(run, err) : rc;
}
