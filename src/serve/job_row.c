/* job_row.c - see job_row.h. */
/* SPDX-License-Identifier: MIT */
#include "serve/job_row.h"
#include "base/clock.h"
#include "base/json_data.h"
#include <string.h>

enum { WORDS_MAX = 4096 };

void dibs__json_at(dibsx_json *js, const char *key, int64_t wall_us)
{
    char text[40];

    dibsx_wall_text(wall_us, text, sizeof(text));
    dibsx_json_pair_text(js, key, wall_us > 0 ? text : NULL);
}

static void put_text(dibsx_json *js, const char *key, const char *text)
{
    dibsx_json_pair_text(js, key, text && *text ? text : NULL);
}

/* A span, or null. */
static void put_span(dibsx_json *js, const char *key, int64_t span_ms)
{
    dibsx_json_key(js, key);
    if (span_ms >= 0)
        dibsx_json_int(js, span_ms);
    else
        dibsx_json_null(js);
}

static int64_t span_of(int64_t from_us, int64_t to_us)
{
    if (from_us <= 0 || to_us <= 0)
        return -1;
    return to_us > from_us ? (to_us - from_us) / 1000 : 0;
}

/* ---- jobs */

static const char paused[] = "paused", off[] = "off", running[] = "running",
                  due[] = "due", on_demand[] = "on demand";

const char *dibs__job_row_status(const dibs__board_row *row)
{
    const dibs__job *job = dibs__board_row_job(row);

    if (row->state.paused)
        return paused;
    if (job && !job->enabled)
        return off;
    /* The state of a job without a limit counts no runs. */
    if (row->state.live[0] || row->state.running > 0 || row->works)
        return running;
    return row->state.next_s ? due : on_demand;
}

bool dibs__job_row_is_status(const char *text)
{
    static const char *const all[] = {paused, off, running, due, on_demand};

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if (strcmp(all[i], text) == 0)
            return true;
    return false;
}

static void put_pause(dibsx_json *js, const dibs__job_state *state)
{
    dibsx_json_key(js, "paused");
    if (!state->paused) {
        dibsx_json_null(js);
        return;
    }
    dibsx_json_open(js, '{');
    put_text(js, "by", state->paused_by);
    put_text(js, "reason", state->note);
    dibs__json_at(js, "until_at", state->paused_until_us);
    dibsx_json_close(js, '}');
}

/* "at 02:00 every day, or every 15 minutes"; null without a schedule. */
static void put_schedule_text(dibsx_json *js, const dibs__schedules *schedule)
{
    dibsx_buf words;

    dibsx_buf_init(&words, WORDS_MAX);
    for (size_t i = 0; i < schedule->count; i++) {
        dibsx_buf_puts(&words, i ? ", or " : "");
        dibs__cron_words(&schedule->at[i].cron, &words);
    }
    put_text(js, "schedule_text",
             dibsx_buf_ok(&words) ? dibsx_buf_text(&words) : NULL);
    dibsx_buf_fini(&words);
}

static void put_schedule(dibsx_json *js, const dibs__schedules *schedule)
{
    dibsx_json_key(js, "schedule");
    dibsx_json_open(js, '[');
    for (size_t i = 0; i < schedule->count; i++)
        dibsx_json_text(js, schedule->at[i].text);
    dibsx_json_close(js, ']');
    put_schedule_text(js, schedule);
}

void dibs__job_row_json(dibsx_json *js, const dibs__board_row *row,
                        int64_t now_us)
{
    const dibs__job_state *state = &row->state;
    const dibs__job *job = dibs__board_row_job(row);
    /* A paused job is not due; its engine looks again when the pause ends. */
    const int64_t next_us = state->paused ? 0 : state->due_us;

    dibsx_json_pair_text(js, "name", state->job);
    dibsx_json_pair_text(js, "set", state->set);
    dibsx_json_pair_text(js, "hash", state->hash);
    dibsx_json_pair_text(js, "status", dibs__job_row_status(row));
    put_text(js, "description", job ? job->description : NULL);
    put_schedule(js, job ? &job->schedule : &(dibs__schedules){.count = 0});
    put_text(js, "zone", job ? job->zone : NULL);
    dibs__json_at(js, "next_at", state->paused ? 0 : state->next_s * 1000000);
    put_span(js, "next_in_ms", span_of(now_us, next_us));
    put_pause(js, state);
    put_text(js, "live", state->live);
    put_text(js, "waits", state->follows);
    put_text(js, "last",
             row->run_count ? row->runs[row->run_count - 1].id : NULL);
    dibsx_json_pair_uint(js, "run_count", row->run_count);
    dibsx_json_pair_uint(js, "missed", state->missed);
    dibsx_json_pair_uint(js, "merged", state->merged);
    dibsx_json_pair_uint(js, "skipped", state->skipped);
}

static void put_texts(dibsx_json *js, const char *key, const dibs__texts *texts)
{
    dibsx_json_key(js, key);
    dibsx_json_open(js, '[');
    for (size_t i = 0; i < texts->count; i++)
        dibsx_json_text(js, texts->at[i]);
    dibsx_json_close(js, ']');
}

static const char *kind_of(const dibs__step *step)
{
    static const char *const names[] = {"nothing", "run",   "shell", "call",
                                        "wait",    "sleep", "job"};

    return names[step->kind];
}

static void put_work(dibsx_json *js, const dibs__step *step)
{
    const dibs__work *work = &step->work;

    if (step->kind == DIBS__STEP_RUN)
        put_texts(js, "run", &work->run);
    if (step->kind == DIBS__STEP_SHELL)
        dibsx_json_pair_text(js, "shell", work->shell);
    if (step->kind == DIBS__STEP_CALL)
        dibsx_json_pair_text(js, "call", work->call);
    if (step->kind == DIBS__STEP_WAIT) {
        put_text(js, "bookmark", step->wait.bookmark);
        put_text(js, "batch", step->wait.batch);
    }
    if (step->kind == DIBS__STEP_SLEEP)
        dibsx_json_pair_int(js, "sleep_ms", step->sleep_ms);
    if (step->kind == DIBS__STEP_JOB)
        dibsx_json_pair_text(js, "job", step->job);
    if (step->kind > DIBS__STEP_CALL)
        return;
    put_text(js, "dir", work->dir);
    put_text(js, "user", work->user);
    put_text(js, "runs_on", work->runs_on);
    put_span(js, "timeout_ms", work->timeout_ms);
    dibsx_json_pair_int(js, "attempts", work->retry.attempts);
    dibsx_json_key(js, "env");
    dibsx_json_open(js, '[');
    for (size_t i = 0; i < work->env.count; i++)
        dibsx_json_text(js, work->env.at[i].name);
    dibsx_json_close(js, ']');
}

static void put_step(dibsx_json *js, const dibs__step *step)
{
    static const char *const whens[] = {"ok", "failed", "always"};
    static const char *const failures[] = {"fail", "skip", "continue"};

    dibsx_json_open(js, '{');
    dibsx_json_pair_text(js, "name", step->name);
    dibsx_json_pair_text(js, "kind", kind_of(step));
    put_texts(js, "needs", &step->need_names);
    dibsx_json_pair_text(js, "when", whens[step->when]);
    dibsx_json_pair_text(js, "on_failure", failures[step->on_failure]);
    put_work(js, step);
    dibsx_json_close(js, '}');
}

static void put_params(dibsx_json *js, const dibs__param_list *params)
{
    dibsx_json_key(js, "params");
    dibsx_json_open(js, '[');
    for (size_t i = 0; i < params->count; i++) {
        dibsx_json_open(js, '{');
        dibsx_json_pair_text(js, "name", params->at[i].name);
        dibsx_json_pair_text(js, "default", params->at[i].initial);
        dibsx_json_pair_text(js, "pattern", params->at[i].pattern);
        dibsx_json_pair_bool(js, "required", params->at[i].required);
        dibsx_json_close(js, '}');
    }
    dibsx_json_close(js, ']');
}

void dibs__job_definition_json(dibsx_json *js, const dibs__job *job)
{
    static const char *const policies[] = {"skip", "run_once", "run_all"};

    dibsx_json_pair_bool(js, "enabled", job->enabled);
    dibsx_json_pair_text(js, "misfire", policies[job->misfire.policy]);
    dibsx_json_pair_text(js, "concurrency",
                         dibs__concurrency_name(job->concurrency));
    dibsx_json_pair_bool(js, "singleton", job->singleton);
    put_text(js, "lock", job->lock.key);
    put_span(js, "jitter_ms", job->jitter_ms);
    put_span(js, "start_deadline_ms", job->start_deadline_ms);
    put_span(js, "run_timeout_ms", job->run_timeout_ms);
    put_params(js, &job->params);
    put_texts(js, "then_ok", &job->then.ok);
    put_texts(js, "then_failed", &job->then.failed);
    dibsx_json_key(js, "steps");
    dibsx_json_open(js, '[');
    for (size_t i = 0; i < job->step_count; i++)
        put_step(js, &job->steps[i]);
    dibsx_json_close(js, ']');
}

/* ---- runs */

static const char *reason_of(dibs__reason reason)
{
    return reason ? dibs__reason_name(reason) : NULL;
}

static void
put_wait(dibsx_json *js, const dibs__run_step *step, const dibs__step *own)
{
    static const char *const names[] = {NULL, "sleep", "bookmark", "batch",
                                        "child"};

    dibsx_json_pair_text(js, "waits_for", names[step->waits]);
    put_text(js, "bookmark", own ? own->wait.bookmark : NULL);
    put_text(js, "resumed_by", step->who);
    dibs__json_at(js, "due_at", step->at_us);
}

static void put_run_step(dibsx_json *js, const dibs__run *run, size_t index,
                         const dibs__step *own)
{
    const dibs__run_step *step = &run->steps[index];

    dibsx_json_open(js, '{');
    dibsx_json_pair_text(js, "name", step->name);
    dibsx_json_pair_text(js, "state", dibs__run_state_name(step->state));
    dibsx_json_pair_text(js, "reason", reason_of(step->reason));
    dibsx_json_pair_uint(js, "attempt", step->attempt);
    put_text(js, "node", dibs__run_node_of(run, index));
    dibsx_json_pair_int(js, "exit_code", step->exit_code);
    dibs__json_at(js, "begun_at", step->begun_us);
    dibs__json_at(js, "ended_at", step->ended_us);
    put_span(js, "took_ms", span_of(step->begun_us, step->ended_us));
    if (own) {
        dibsx_json_pair_text(js, "kind", kind_of(own));
        put_texts(js, "needs", &own->need_names);
    }
    put_wait(js, step, own);
    if (step->result)
        dibsx_json_data(js, "result", step->result, step->result_len);
    else
        dibsx_json_pair_text(js, "result", NULL);
    dibsx_json_close(js, '}');
}

static void put_attempts(dibsx_json *js, const dibs__run *run)
{
    dibsx_json_key(js, "attempts");
    dibsx_json_open(js, '[');
    for (size_t i = 0; i < run->attempt_count; i++) {
        const dibs__run_attempt *at = &run->attempts[i];

        dibsx_json_open(js, '{');
        dibsx_json_pair_text(js, "step",
                             at->step < run->step_count
                                 ? run->steps[at->step].name
                                 : NULL);
        dibsx_json_pair_uint(js, "attempt", at->attempt);
        put_text(js, "node", at->node);
        dibsx_json_pair_text(js, "reason", reason_of(at->reason));
        dibsx_json_pair_int(js, "exit_code", at->exit_code);
        dibs__json_at(js, "begun_at", at->begun_us);
        dibs__json_at(js, "ended_at", at->ended_us);
        dibsx_json_close(js, '}');
    }
    dibsx_json_close(js, ']');
}

void dibs__run_brief_json(dibsx_json *js, const dibs__run *run)
{
    const int64_t due_us = dibs__run_due_us(run);

    dibsx_json_pair_text(js, "id", run->id);
    dibsx_json_pair_text(js, "job", run->job);
    dibsx_json_pair_text(js, "state", dibs__run_state_name(run->state));
    dibsx_json_pair_text(js, "reason", reason_of(run->reason));
    dibsx_json_pair_text(js, "cause", dibs__cause_name(run->cause));
    put_text(js, "origin", run->origin);
    dibs__json_at(js, "tick_at", run->tick_s * 1000000);
    dibs__json_at(js, "made_at", run->made_us);
    dibs__json_at(js, "begun_at", run->begun_us);
    dibs__json_at(js, "ended_at", run->ended_us);
    put_span(js, "delay_ms", span_of(due_us, run->begun_us));
    put_span(js, "took_ms", span_of(run->begun_us, run->ended_us));
    dibsx_json_pair_uint(js, "cancels", run->cancels);
    dibsx_json_pair_text(js, "hash", run->hash);
}

void dibs__run_row_json(dibsx_json *js, const dibs__run *run,
                        const dibs__job *job, bool whole)
{
    dibs__run_brief_json(js, run);
    dibsx_json_key(js, "params");
    dibsx_json_open(js, '{');
    for (size_t i = 0; i < run->param_count; i++)
        dibsx_json_pair_text(js, run->params[i].name, run->params[i].value);
    dibsx_json_close(js, '}');
    dibsx_json_key(js, "steps");
    dibsx_json_open(js, '[');
    for (size_t i = 0; i < run->step_count; i++)
        put_run_step(js, run, i,
                     job ? dibs__job_step(job, run->steps[i].name) : NULL);
    dibsx_json_close(js, ']');
    if (whole)
        put_attempts(js, run);
}
