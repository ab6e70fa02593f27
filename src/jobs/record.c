/* record.c - the record of a run: storage, names, and the invariants of its form. */
/* SPDX-License-Identifier: MIT */
#include "jobs/record.h"
#include "base/alloc.h"
#include "base/fail.h"
#include "base/sha1.h"
#include "jobs/calendar.h"
#include "jobs/moment.h"
#include "jobs/record_names.h"

#include <stdio.h>
#include <string.h>

const char *const dibs__state_names[DIBS__STATES] = {
    [DIBS__STATE_QUEUED] = "QUEUED",
    [DIBS__STATE_ACTIVE] = "ACTIVE",
    [DIBS__STATE_PENDING] = "PENDING",
    [DIBS__STATE_READY] = "READY",
    [DIBS__STATE_CLAIMED] = "CLAIMED",
    [DIBS__STATE_RUNNING] = "RUNNING",
    [DIBS__STATE_RETRY] = "RETRY",
    [DIBS__STATE_WAITING] = "WAITING",
    [DIBS__STATE_OK] = "OK",
    [DIBS__STATE_FAILED] = "FAILED",
    [DIBS__STATE_CANCELLED] = "CANCELLED",
    [DIBS__STATE_MISSED] = "MISSED",
    [DIBS__STATE_SKIPPED] = "SKIPPED",
};

const char *const dibs__reason_names[DIBS__REASONS] = {
    [DIBS__REASON_NONE] = "",
    [DIBS__REASON_FAILED] = "failed",
    [DIBS__REASON_TIMEOUT] = "timeout",
    [DIBS__REASON_LOST] = "lost",
    [DIBS__REASON_STOPPED] = "stopped",
    [DIBS__REASON_UNSTARTED] = "not started",
    [DIBS__REASON_CANCELLED] = "cancelled",
    [DIBS__REASON_REPLACED] = "replaced",
    [DIBS__REASON_BUSY] = "lock busy",
    [DIBS__REASON_LATE] = "too late to start",
    [DIBS__REASON_NEED] = "a need failed",
    [DIBS__REASON_WHEN] = "not wanted",
};

const char *const dibs__cause_names[DIBS__CAUSES] = {
    [DIBS__CAUSE_TICK] = "tick",   [DIBS__CAUSE_HAND] = "hand",
    [DIBS__CAUSE_THEN] = "then",   [DIBS__CAUSE_RERUN] = "rerun",
    [DIBS__CAUSE_CHILD] = "child",
};

const char *const dibs__wait_names[DIBS__WAITS] = {
    [DIBS__WAIT_NOTHING] = "",          [DIBS__WAIT_SLEEP] = "sleep",
    [DIBS__WAIT_BOOKMARK] = "bookmark", [DIBS__WAIT_BATCH] = "batch",
    [DIBS__WAIT_CHILD] = "child",
};

const char *dibs__run_state_name(dibs__run_state state)
{
    return dibs__state_names[state];
}

const char *dibs__reason_name(dibs__reason reason)
{
    return dibs__reason_names[reason];
}

const char *dibs__cause_name(dibs__cause cause)
{
    return dibs__cause_names[cause];
}

void dibs__run_init(dibs__run *run, const char *id)
{
    memset(run, 0, sizeof(*run));
    (void)snprintf(run->id, sizeof(run->id), "%s", id);
}

void dibs__run_fini(dibs__run *run)
{
    for (size_t i = 0; i < run->step_count; i++)
        dibsx_free(run->steps[i].result);
    for (size_t i = 0; i < run->param_count; i++)
        dibsx_free((char *)run->params[i].name);
    dibsx_free(run->steps);
    dibsx_free(run->params);
    memset(run, 0, sizeof(*run));
}

static const char *label_of(const dibs__step *step)
{
    if (step->kind == DIBS__STEP_CALL && step->work.call)
        return step->work.call;
    return step->work.runs_on ? step->work.runs_on : "";
}

dibs_status dibs__run_make(dibs__run *run, const char *id, const dibs__job *job,
                           const char *hash, dibs_error *err)
{
    dibs__run_init(run, id);
    run->steps = dibsx_zalloc_n(job->step_count, sizeof(*run->steps));
    if (!run->steps)
        return dibsx_nomem(err, "the steps of a run");
    run->step_count = job->step_count;
    (void)snprintf(run->job, sizeof(run->job), "%s", job->name);
    (void)snprintf(run->hash, sizeof(run->hash), "%s", hash);
    for (size_t i = 0; i < job->step_count; i++) {
        dibs__run_step *step = &run->steps[i];

        step->state = DIBS__STATE_PENDING;
        step->begins = job->steps[i].need_names.count == 0 &&
                       job->steps[i].when == DIBS__WHEN_OK;
        (void)snprintf(step->name, sizeof(step->name), "%s",
                       job->steps[i].name);
        (void)snprintf(step->label, sizeof(step->label), "%s%s",
                       job->steps[i].kind == DIBS__STEP_CALL ? "call/" : "",
                       label_of(&job->steps[i]));
    }
    return DIBS_OK;
}

const char *dibs__run_node_of(const dibs__run *run, size_t step)
{
    const char *node = run->steps[step].node;
    const bool ended = dibs__state_final(run->steps[step].state);

    for (size_t i = run->attempt_count; ended && i > 0 && !*node; i--)
        if (run->attempts[i - 1].step == step)
            node = run->attempts[i - 1].node;
    return node;
}

int64_t dibs__run_due_us(const dibs__run *run)
{
    return run->cause == DIBS__CAUSE_TICK ? run->tick_s * INT64_C(1000000)
                                          : run->made_us;
}

void dibs__run_tick_text(const dibs__run *run, char out[DIBS__TICK_TEXT_SIZE])
{
    _Static_assert((int)DIBS__TICK_TEXT_SIZE > (int)DIBS__MOMENT_SIZE,
                   "room for the Z");

    out[0] = '\0';
    if (!run->tick_s)
        return;
    dibs__moment_text(run->tick_s, out);
    (void)snprintf(out + strlen(out), 2, "Z");
}

dibs_status dibs__run_param(dibs__run *run, const char *name, const char *value,
                            dibs_error *err)
{
    size_t name_size = strlen(name) + 1, value_size = strlen(value) + 1;
    dibs__pair *more;
    char *copy;

    if (run->param_count == DIBS__JOB_PARAMS_MAX)
        return dibsx_fail(err, DIBS_INVALID,
                          "the run %s has more than %d params", run->id,
                          DIBS__JOB_PARAMS_MAX);
    more = dibsx_realloc_n(run->params, run->param_count + 1, sizeof(*more));
    if (!more)
        return dibsx_nomem(err, "the params of a run");
    run->params = more;
    copy = dibsx_zalloc(name_size + value_size);
    if (!copy)
        return dibsx_nomem(err, "the params of a run");
    memcpy(copy, name, name_size);
    memcpy(copy + name_size, value, value_size);
    more[run->param_count++] =
        (dibs__pair){.name = copy, .value = copy + name_size};
    return DIBS_OK;
}

dibs_status dibs__step_result(dibs__run_step *step, const void *data,
                              size_t len, dibs_error *err)
{
    char *copy = NULL;

    if (len > DIBS__RUN_RESULT_MAX)
        len = DIBS__RUN_RESULT_MAX;
    if (len > 0) {
        copy = dibsx_zalloc(len + 1);
        if (!copy)
            return dibsx_nomem(err, "the result of a step");
        memcpy(copy, data, len);
    }
    dibsx_free(step->result);
    step->result = copy;
    step->result_len = len;
    return DIBS_OK;
}

static const char *flaw_of_step(const dibs__run_step *step)
{
    bool claimed = step->state == DIBS__STATE_CLAIMED ||
                   step->state == DIBS__STATE_RUNNING;

    if (!dibs__job_name_ok(step->name))
        return "a step has no name";
    if (step->state < DIBS__STATE_PENDING)
        return "a step has the state of a run";
    if (claimed != (step->fence != 0) || claimed != (step->node[0] != '\0'))
        return "a step has a node, and is not claimed, or the other way round";
    if (claimed && step->nonce[0] == '\0')
        return "a step is claimed without a nonce";
    if (step->state == DIBS__STATE_RUNNING && step->attempt == 0)
        return "a step runs, and no attempt of it was begun";
    if (step->cancel && step->state != DIBS__STATE_RUNNING)
        return "a step has to end, and does not run";
    if ((step->state == DIBS__STATE_WAITING) !=
        (step->waits != DIBS__WAIT_NOTHING))
        return "a step waits for nothing, or does not wait for something";
    if (dibs__state_final(step->state) != (step->ended_us != 0))
        return "a step has ended at no time, or not ended at some";
    if (step->at_us < 0 || step->until_us < 0)
        return "a step has a time before 1970";
    return NULL;
}

const char *dibs__run_flaw(const dibs__run *run)
{
    bool final = dibs__state_final(run->state);

    if (!dibs__job_name_ok(run->job))
        return "the job of a run has no name";
    if (run->step_count == 0 || run->step_count > DIBS__JOB_STEPS_MAX)
        return "a run has no steps, or too many";
    if (!final && run->state > DIBS__STATE_ACTIVE)
        return "a run has the state of a step";
    if (final != (run->ended_us > 0))
        return "a run has ended at no time, or not ended at some";
    if (run->owes && !final)
        return "a run is to be followed, and has not ended";
    if (run->made_us < 0 || run->start_by_us < 0 || run->end_by_us < 0)
        return "a run has a time before 1970";
    for (size_t i = 0; i < run->step_count; i++) {
        const char *flaw = flaw_of_step(&run->steps[i]);

        if (flaw)
            return flaw;
        if (final && !dibs__state_final(run->steps[i].state))
            return "a run has ended before one of its steps";
        if (run->follows && run->steps[i].state != DIBS__STATE_PENDING &&
            !dibs__state_final(run->steps[i].state))
            return "a run that follows another has begun";
    }
    for (size_t i = 0; i < run->attempt_count; i++)
        if (run->attempts[i].step >= run->step_count)
            return "an attempt is of no step";
    return NULL;
}

void dibs__run_id_of_tick(const char *job, int64_t tick_s,
                          char out[DIBS__RUN_ID_SIZE])
{
    int64_t day = dibs__day_at(tick_s), rest = tick_s - day * DIBS__DAY_S;
    dibs__date date;

    dibs__date_of(day, &date);
    (void)snprintf(out, DIBS__RUN_ID_SIZE, "%.*s@%04d%02d%02dT%02d%02d%02dZ",
                   DIBS__JOB_NAME_MAX, job, date.year, date.month, date.day,
                   (int)(rest / 3600), (int)(rest / 60 % 60), (int)(rest % 60));
}

void dibs__run_id_after(const char *job, const char *origin, const char *step,
                        char out[DIBS__RUN_ID_SIZE])
{
    char text[DIBS__RUN_ID_SIZE + 2 * DIBS__JOB_NAME_SIZE + 2];
    char hash[DIBSX_SHA1_TEXT];
    int len = snprintf(text, sizeof(text), "%s %s %s", job, origin, step);

    dibsx_sha1(text, (size_t)len, hash);
    (void)snprintf(out, DIBS__RUN_ID_SIZE, "%.*s.%.12s", DIBS__JOB_NAME_MAX,
                   job, hash);
}
