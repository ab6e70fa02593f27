/* job_build.c - makes a definition from the nodes of a file. Reads zone files. */
/* SPDX-License-Identifier: MIT */
#include "jobs/job_build.h"

#include "base/fail.h"
#include "jobs/job_check.h"
#include "jobs/job_read.h"
#include "jobs/job_steps.h"
#include <string.h>

static const dibs__action job_actions[] = {
    {"run", DIBS__STEP_RUN},
    {"shell", DIBS__STEP_SHELL},
    {"call", DIBS__STEP_CALL},
    {"steps", DIBS__STEP_NOTHING},
};

enum { JOB_ACTIONS = sizeof(job_actions) / sizeof(job_actions[0]) };

/* Moments are of the zone of the job, so that one comes first. From the store they are
 * UTC, and the zone need not be on this machine. */
static void find_zone(dibs__job_reader *rd, const dibs__job_source *source)
{
    const dibsx_yaml_node *node = dibs__source_get(source, "zone");
    const char *name = "UTC";
    dibs_error err = {0};

    rd->ctx.zone = NULL;
    if (node && node->kind == DIBSX_YAML_SCALAR && !rd->stored)
        name = node->text;
    if (dibs__job_zone(rd, name, &rd->ctx.zone, &err) != DIBS_OK)
        dibs__job_failure(rd, node ? node : source->key, NULL, &err);
}

static void
read_keys(dibs__job_reader *rd, dibs__job *job, const dibs__job_source *source)
{
    const dibs__key_scope scopes[] = {{&dibs__job_keys, job},
                                      {&dibs__work_keys, &job->work}};

    dibs__keys_reset(&dibs__job_keys, &rd->ctx, job);
    dibs__keys_reset(&dibs__work_keys, &rd->ctx, &job->work);
    /* Its warnings were reported when it was checked by itself. */
    rd->mute = true;
    if (source->defaults)
        dibs__keys_read(rd, scopes, 2, "a job", NULL, source->defaults);
    rd->mute = false;
    dibs__keys_read(rd, scopes, 2, "a job", rd->stored ? "name" : NULL,
                    source->map);
}

/* An action of the job itself replaces that of the defaults. */
static void read_action(dibs__job_reader *rd, dibs__job *job,
                        const dibs__job_source *source)
{
    const dibs__action *action =
        dibs__action_find(rd, job_actions, JOB_ACTIONS, "the job", source->map);
    const dibsx_yaml_node *map = source->map;
    char words[100];

    if (!action && source->defaults) {
        action = dibs__action_find(rd, job_actions, JOB_ACTIONS, "the job",
                                   source->defaults);
        map = source->defaults;
        if (action && !dibs__source_get(source, action->key))
            action = NULL;
    }
    if (!action) {
        dibs__action_words(job_actions, JOB_ACTIONS, words, sizeof(words));
        dibs__job_mistake(rd, source->key,
                          "the job '%s' does nothing; give it %s", job->name,
                          words);
        return;
    }
    if (action->kind != DIBS__STEP_RUN)
        job->work.run = (dibs__texts){0};
    if (action->kind != DIBS__STEP_SHELL)
        job->work.shell = NULL;
    if (action->kind != DIBS__STEP_CALL)
        job->work.call = NULL;
    job->has_steps = action->kind == DIBS__STEP_NOTHING;
    if (job->has_steps) {
        dibs__steps_read(rd, job, dibs__node_get(map, "steps"));
        return;
    }
    dibs__refs_check(rd, &job->params, dibs__node_get(map, "run"));
    dibs__shell_check(rd, dibs__node_get(map, "shell"));
    dibs__steps_make_main(rd, job, action->kind);
}

/* Fills in values that follow from other keys. */
static void
complete(dibs__job_reader *rd, dibs__job *job, const dibs__job_source *source)
{
    bool chosen = dibs__source_get(source, "concurrency") != NULL;
    size_t len = strlen(job->name) + sizeof("job:");
    char *key;

    if (!chosen && (job->schedule.count > 0 || job->singleton))
        job->concurrency = DIBS__CONCURRENCY_FORBID;
    if (job->singleton && !job->lock.key) {
        key = dibs__arena_take(rd->ctx.arena, len, 1);
        if (key) {
            memcpy(key, "job:", 4);
            memcpy(key + 4, job->name, strlen(job->name));
        }
        job->lock.key = key;
    }
    if (job->work.output.head > job->work.output.keep)
        job->work.output.head = job->work.output.keep;
    for (size_t i = 0; i < job->step_count; i++)
        if (job->steps[i].work.output.head > job->steps[i].work.output.keep)
            job->steps[i].work.output.head = job->steps[i].work.output.keep;
}

dibs_status dibs__job_build(dibs__job_reader *rd, const char *name,
                            const dibs__job_source *source, dibs__job **out,
                            dibs_error *err)
{
    dibs__arena *arena = dibs__arena_new();
    size_t mistakes = rd->mistakes;
    dibs__job *job = NULL;

    *out = NULL;
    if (arena)
        job = dibs__arena_take(arena, 1, sizeof(*job));
    if (job) {
        rd->ctx.arena = job->arena = arena;
        job->name = dibs__arena_text(arena, name);
        find_zone(rd, source);
        if (job->name) {
            read_keys(rd, job, source);
            complete(rd, job, source);
            read_action(rd, job, source);
            complete(rd, job, source);
            dibs__job_check(rd, job, source);
        }
        rd->ctx.arena = NULL;
    }
    if (!job || !dibs__arena_ok(arena) || rd->nomem) {
        dibs__arena_free(arena);
        return dibsx_nomem(err, "the definition of a job");
    }
    if (rd->mistakes > mistakes) {
        dibs__arena_free(arena);
        return dibsx_fail(err, DIBS_INVALID, "the job '%s' has mistakes", name);
    }
    *out = job;
    return DIBS_OK;
}

void dibs__defaults_check(dibs__job_reader *rd, const dibsx_yaml_node *map)
{
    const dibs__job_source source = {.key = map, .map = map};
    dibs__job job = {.name = ""};

    rd->ctx.arena = dibs__arena_new();
    if (!rd->ctx.arena) {
        rd->nomem = true;
        return;
    }
    find_zone(rd, &source);
    read_keys(rd, &job, &source);
    rd->nomem |= !dibs__arena_ok(rd->ctx.arena);
    dibs__arena_free(rd->ctx.arena);
    rd->ctx.arena = NULL;
}
