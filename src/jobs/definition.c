/* definition.c - definitions of jobs: names, steps, and the end of one. Pure. */
/* SPDX-License-Identifier: MIT */
#include "jobs/definition.h"

#include "jobs/arena.h"
#include <string.h>

void dibs__job_free(dibs__job *job)
{
    if (!job)
        return;
    if (job->holders > 0)
        job->holders--;
    else
        dibs__arena_free(job->arena);
}

dibs__job *dibs__job_hold(dibs__job *job)
{
    job->holders++;
    return job;
}

const dibs__step *dibs__job_step(const dibs__job *job, const char *name)
{
    for (size_t i = 0; i < job->step_count; i++)
        if (strcmp(job->steps[i].name, name) == 0)
            return &job->steps[i];
    return NULL;
}

const char *dibs__concurrency_name(dibs__concurrency way)
{
    static const char *const names[] = {"allow", "forbid", "replace", "queue"};

    return names[way];
}

static bool is_plain(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           (c >= '0' && c <= '9');
}

bool dibs__job_name_ok(const char *name)
{
    size_t len = 0;

    if (!is_plain(name[0]))
        return false;
    while (is_plain(name[len]) || (name[len] && strchr("._-", name[len])))
        len++;
    return name[len] == '\0' && len <= DIBS__JOB_NAME_MAX;
}
