/* job_check.c - rules of a definition that concern more than one key. Pure. */
/* SPDX-License-Identifier: MIT */
#include "jobs/job_check.h"

#include "base/clock.h"
#include <string.h>

/* Where a key of the job stands; else its name. */
static const dibsx_yaml_node *
place_of(const dibs__job_source *source, const char *key)
{
    const dibsx_yaml_node *node = dibs__node_get(source->map, key);

    return node ? node : source->key;
}

static void
check_span(dibs__job_reader *rd, const dibs__job *job,
           const dibsx_yaml_node *at, const char *key, int64_t span_ms)
{
    char span[32], whole[32];

    if (job->run_timeout_ms == DIBS__JOB_NONE || span_ms <= job->run_timeout_ms)
        return;
    dibsx_duration_text(span_ms, span, sizeof(span));
    dibsx_duration_text(job->run_timeout_ms, whole, sizeof(whole));
    dibs__job_mistake(rd, at,
                      "%s is %s, longer than the whole run may take "
                      "(run_timeout: %s)",
                      key, span, whole);
}

/* The map of a step, in both forms. */
static const dibsx_yaml_node *
step_map(const dibsx_yaml_node *steps, const char *name)
{
    const dibsx_yaml_node *map = dibs__node_get(steps, name);

    if (map || !steps)
        return map;
    for (const dibsx_yaml_node *at = steps->child; at; at = at->next) {
        const dibsx_yaml_node *node = dibs__node_get(at, "name");

        if (node && node->text && strcmp(node->text, name) == 0)
            return at;
    }
    return NULL;
}

static void
check_step_spans(dibs__job_reader *rd, const dibs__job *job,
                 const dibs__job_source *source, const dibs__step *step)
{
    const dibsx_yaml_node *map =
        step_map(dibs__source_get(source, "steps"), step->name);
    const dibsx_yaml_node *wait = dibs__node_get(map, "wait");
    const dibsx_yaml_node *at = dibs__node_get(map, "timeout");

    /* One that the step has from its job is reported there. */
    if (at)
        check_span(rd, job, at, "timeout", step->work.timeout_ms);
    at = dibs__node_get(map, "sleep");
    if (at)
        check_span(rd, job, at, "sleep", step->sleep_ms);
    at = dibs__node_get(wait, "timeout");
    if (at)
        check_span(rd, job, at, "timeout", step->wait.timeout_ms);
}

static void check_spans(dibs__job_reader *rd, const dibs__job *job,
                        const dibs__job_source *source)
{
    check_span(rd, job, place_of(source, "timeout"), "timeout",
               job->work.timeout_ms);
    if (!job->has_steps)
        return;
    for (size_t i = 0; i < job->step_count; i++)
        check_step_spans(rd, job, source, &job->steps[i]);
}

/* Whether a schedule has a tick between from and until. */
static bool fires_between(const dibs__cron *cron, const dibs__zone *zone,
                          const dibs__job *job)
{
    dibs__tick tick;
    int64_t after = job->from_s == DIBS__JOB_NONE ? 0 : job->from_s - 1;

    if (cron->every_s > 0)
        return true; /* it counts from its first load */
    return dibs__cron_next(cron, zone, after, &tick) &&
           (job->until_s == DIBS__JOB_NONE || tick.at <= job->until_s);
}

static void check_bounds(dibs__job_reader *rd, const dibs__job *job,
                         const dibs__job_source *source)
{
    bool bounded =
        job->from_s != DIBS__JOB_NONE || job->until_s != DIBS__JOB_NONE;
    bool fires = false;

    if (!bounded || !rd->ctx.zone || rd->stored)
        return;
    if (job->from_s != DIBS__JOB_NONE && job->until_s != DIBS__JOB_NONE &&
        job->from_s > job->until_s) {
        dibs__job_mistake(rd, place_of(source, "until"),
                          "until is before from; the job is never due");
        return;
    }
    for (size_t i = 0; i < job->schedule.count; i++)
        fires |= fires_between(&job->schedule.at[i].cron, rd->ctx.zone, job);
    if (job->schedule.count > 0 && !fires)
        dibs__job_mistake(rd, place_of(source, "schedule"),
                          "the schedule never fires between from and until");
}

static void check_deadline(dibs__job_reader *rd, const dibs__job *job,
                           const dibs__job_source *source)
{
    if (job->start_deadline_ms != DIBS__JOB_NONE && job->jitter_ms > 0 &&
        job->start_deadline_ms <= job->jitter_ms)
        dibs__job_mistake(rd, place_of(source, "start_deadline"),
                          "start_deadline is not longer than jitter; a tick "
                          "that comes late by it would never run");
}

/* Ticks that are made up for come one after the other, and meet the run of the first. */
static void check_misfire(dibs__job_reader *rd, const dibs__job *job,
                          const dibs__job_source *source)
{
    if (job->misfire.policy == DIBS__MISFIRE_RUN_ALL && job->misfire.max > 1 &&
        job->schedule.count > 0 && job->concurrency != DIBS__CONCURRENCY_ALLOW)
        dibs__job_warn(rd, place_of(source, "misfire"),
                       "with concurrency: %s most ticks that run_all makes up "
                       "for are %s; use concurrency: allow, and max_running: 1 "
                       "for one run at a time",
                       dibs__concurrency_name(job->concurrency),
                       job->concurrency == DIBS__CONCURRENCY_REPLACE
                           ? "replaced by the next"
                           : "dropped");
}

static void check_concurrency(dibs__job_reader *rd, const dibs__job *job,
                              const dibs__job_source *source)
{
    const dibsx_yaml_node *lock = dibs__source_get(source, "lock");

    if (job->singleton && job->concurrency != DIBS__CONCURRENCY_FORBID)
        dibs__job_mistake(rd, place_of(source, "concurrency"),
                          "a singleton has concurrency: forbid; leave "
                          "concurrency out");
    if (job->max_running != DIBS__JOB_NONE &&
        job->concurrency != DIBS__CONCURRENCY_ALLOW)
        dibs__job_warn(rd, place_of(source, "max_running"),
                       "max_running counts with concurrency: allow; this job "
                       "runs once at a time");
    if (job->concurrency == DIBS__CONCURRENCY_QUEUE &&
        job->step_count > DIBS__JOB_QUEUE_MAX && !rd->stored)
        dibs__job_mistake(rd, place_of(source, "concurrency"),
                          "a job with concurrency: queue has at most %d steps; "
                          "move some into another job, and run that by a step",
                          DIBS__JOB_QUEUE_MAX);
    if (lock && !job->lock.key)
        dibs__job_mistake(rd, lock, "the lock has no key; give it a name");
}

static bool retries_lost(const dibs__work *work)
{
    return work->retry.attempts > 1 && work->retry.on & DIBS__RETRY_LOST;
}

static void check_lost(dibs__job_reader *rd, const dibs__job *job,
                       const dibs__job_source *source)
{
    const dibsx_yaml_node *at = place_of(source, "on_lost");
    bool again = retries_lost(&job->work);

    if (job->on_lost != DIBS__LOST_FINISH)
        return;
    for (size_t i = 0; i < job->step_count; i++)
        again |= retries_lost(&job->steps[i].work);
    if (job->concurrency != DIBS__CONCURRENCY_ALLOW)
        dibs__job_mistake(
            rd, at,
            "on_lost: finish needs concurrency: allow; with %s no run may "
            "begin while the processes of a lost one go on",
            dibs__concurrency_name(job->concurrency));
    else if (job->lock.key)
        dibs__job_mistake(rd, at,
                          "on_lost: finish does not go with a lock, which "
                          "ends with the node");
    else if (again)
        dibs__job_mistake(rd, at,
                          "on_lost: finish does not go with a retry of lost "
                          "runs: both would run");
}

static void check_then(dibs__job_reader *rd, const dibs__job *job,
                       const dibs__job_source *source)
{
    const dibs__texts *lists[] = {&job->then.ok, &job->then.failed};

    for (size_t i = 0; i < 2; i++)
        for (size_t j = 0; j < lists[i]->count; j++)
            if (lists[i]->at[j] && strcmp(lists[i]->at[j], job->name) == 0)
                dibs__job_mistake(rd, place_of(source, "then"),
                                  "then names the job itself, which would "
                                  "run for ever; use retry, or a schedule");
}

/* A tick gives no values. */
static void check_params(dibs__job_reader *rd, const dibs__job *job,
                         const dibs__job_source *source)
{
    const dibsx_yaml_node *own = dibs__node_get(source->map, "params");

    if (job->schedule.count == 0 || rd->stored)
        return;
    for (size_t i = 0; i < job->params.count; i++) {
        const dibs__param *param = &job->params.at[i];
        const dibsx_yaml_node *at = dibs__node_get(own, param->name);

        if (param->required && !param->initial)
            dibs__job_mistake(rd, at ? at : place_of(source, "schedule"),
                              "the param '%s' is required, and a schedule "
                              "gives no value; give it a default",
                              param->name);
    }
}

void dibs__job_check(dibs__job_reader *rd, const dibs__job *job,
                     const dibs__job_source *source)
{
    check_spans(rd, job, source);
    check_bounds(rd, job, source);
    check_deadline(rd, job, source);
    check_concurrency(rd, job, source);
    check_misfire(rd, job, source);
    check_lost(rd, job, source);
    check_then(rd, job, source);
    check_params(rd, job, source);
}
