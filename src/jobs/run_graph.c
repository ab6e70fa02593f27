/* run_graph.c - the graph of a run. */
/* SPDX-License-Identifier: MIT */
#include "jobs/run_graph.h"

#include <string.h>

static bool has_failed(const dibs__run_step *step)
{
    return step->state == DIBS__STATE_FAILED ||
           step->state == DIBS__STATE_MISSED;
}

/* Whether a step has failed that must not, or the time of the run is over. */
static bool is_failing(const dibs__job *job, const dibs__run *run)
{
    if (run->reason == DIBS__REASON_TIMEOUT)
        return true;
    for (size_t i = 0; i < run->step_count; i++)
        if (has_failed(&run->steps[i]) &&
            job->steps[i].on_failure == DIBS__FAILURE_FAIL)
            return true;
    return false;
}

bool dibs__graph_is_met(const dibs__job *job, const dibs__run *run, size_t need)
{
    const dibs__run_step *step = &run->steps[need];

    return step->state == DIBS__STATE_OK ||
           (has_failed(step) &&
            job->steps[need].on_failure == DIBS__FAILURE_CONTINUE);
}

/* A step after the others has no needs of its own. */
static bool comes_last(const dibs__step *plan)
{
    return plan->when != DIBS__WHEN_OK && plan->need_names.count == 0;
}

static bool needs(const dibs__job *job, size_t step, size_t other)
{
    if (comes_last(&job->steps[step]))
        return job->steps[other].when == DIBS__WHEN_OK;
    return dibs__step_needs(&job->steps[step], other);
}

typedef struct need_sum {
    bool all_final, all_met, one_unmet;
} need_sum;

static need_sum
sum_needs(const dibs__job *job, const dibs__run *run, size_t step)
{
    need_sum sum = {.all_final = true, .all_met = true};

    for (size_t i = 0; i < run->step_count; i++) {
        if (!needs(job, step, i))
            continue;
        if (!dibs__state_final(run->steps[i].state))
            sum.all_final = false;
        else if (!dibs__graph_is_met(job, run, i))
            sum.one_unmet = true;
        if (!dibs__graph_is_met(job, run, i))
            sum.all_met = false;
    }
    return sum;
}

void dibs__graph_end_step(dibs__run_step *step, dibs__run_state state,
                          dibs__reason reason, int64_t now_us)
{
    step->state = state;
    step->reason = reason;
    step->ended_us = now_us;
    step->at_us = step->until_us = 0;
    step->waits = DIBS__WAIT_NOTHING;
    step->node[0] = '\0';
    step->fence = 0;
    step->cancel = false;
    step->why_cancel = DIBS__REASON_NONE;
}

static void begin_wait(dibs__run *run, dibs__run_step *step,
                       dibs__wait_for waits, int64_t at_us, int64_t now_us)
{
    run->state = DIBS__STATE_ACTIVE;
    if (!run->begun_us)
        run->begun_us = now_us;
    step->begun_us = now_us;
    step->state = DIBS__STATE_WAITING;
    step->waits = waits;
    step->at_us = at_us;
}

static void open_step(const dibs__step *plan, dibs__run *run,
                      dibs__run_step *step, int64_t now_us)
{
    switch (plan->kind) {
    case DIBS__STEP_SLEEP:
        begin_wait(run, step, DIBS__WAIT_SLEEP, now_us + plan->sleep_ms * 1000,
                   now_us);
        break;
    case DIBS__STEP_JOB:
        begin_wait(run, step, DIBS__WAIT_CHILD, now_us, now_us);
        break;
    case DIBS__STEP_WAIT:
        if (plan->wait.bookmark)
            begin_wait(run, step, DIBS__WAIT_BOOKMARK, 0, now_us);
        else
            begin_wait(run, step, DIBS__WAIT_BATCH, now_us, now_us);
        if (plan->wait.timeout_ms != DIBS__JOB_NONE)
            step->until_us = now_us + plan->wait.timeout_ms * 1000;
        break;
    default:
        step->state = DIBS__STATE_READY;
        step->at_us = now_us;
    }
}

/* In a run that fails, what has not begun does not begin. */
static bool
give_up(const dibs__step *plan, dibs__run_step *step, int64_t now_us)
{
    if (plan->when != DIBS__WHEN_OK)
        return false;
    if (step->waits == DIBS__WAIT_CHILD)
        return false; /* Its run goes on to its end, as a command does. */
    switch (step->state) {
    case DIBS__STATE_PENDING:
    case DIBS__STATE_READY:
    case DIBS__STATE_CLAIMED:
    case DIBS__STATE_RETRY:
    case DIBS__STATE_WAITING:
        if (step->attempt > 0)
            dibs__graph_end_step(step, DIBS__STATE_FAILED, step->reason,
                                 now_us);
        else
            dibs__graph_end_step(step, DIBS__STATE_SKIPPED, DIBS__REASON_NEED,
                                 now_us);
        return true;
    default:
        return false;
    }
}

/* A PENDING step opens or ends, or neither. */
static bool settle_pending(const dibs__job *job, dibs__run *run, size_t i,
                           bool failing, int64_t now_us)
{
    const dibs__step *plan = &job->steps[i];
    dibs__run_step *step = &run->steps[i];
    need_sum sum = sum_needs(job, run, i);

    if (plan->when == DIBS__WHEN_OK) {
        if (sum.one_unmet)
            dibs__graph_end_step(step, DIBS__STATE_SKIPPED, DIBS__REASON_NEED,
                                 now_us);
        else if (sum.all_met)
            open_step(plan, run, step, now_us);
        return sum.one_unmet || sum.all_met;
    }
    if (!sum.all_final)
        return false;
    if (run->cancels > 1 ||
        (run->cancels > 0 && plan->when == DIBS__WHEN_FAILED))
        dibs__graph_end_step(step, DIBS__STATE_CANCELLED,
                             DIBS__REASON_CANCELLED, now_us);
    else if (plan->when == DIBS__WHEN_ALWAYS || failing || sum.one_unmet)
        open_step(plan, run, step, now_us);
    else
        dibs__graph_end_step(step, DIBS__STATE_SKIPPED, DIBS__REASON_WHEN,
                             now_us);
    return true;
}

static bool settle_once(const dibs__job *job, dibs__run *run, int64_t now_us)
{
    bool failing = is_failing(job, run), moved = false;

    for (size_t i = 0; i < run->step_count; i++) {
        if (failing && give_up(&job->steps[i], &run->steps[i], now_us))
            moved = true;
        else if (run->steps[i].state == DIBS__STATE_PENDING)
            moved |= settle_pending(job, run, i, failing, now_us);
    }
    return moved;
}

static const dibs__run_step *
find_step(const dibs__job *job, const dibs__run *run, dibs__run_state state,
          bool counts)
{
    for (size_t i = 0; i < run->step_count; i++)
        if (run->steps[i].state == state &&
            (!counts || job->steps[i].on_failure == DIBS__FAILURE_FAIL))
            return &run->steps[i];
    return NULL;
}

bool dibs__graph_has_begun(const dibs__run *run)
{
    if (run->begun_us)
        return true;
    for (size_t i = 0; i < run->step_count; i++)
        if (run->steps[i].state == DIBS__STATE_OK)
            return true;
    return false;
}

static void set_end(dibs__run *run, dibs__run_state state, dibs__reason reason)
{
    run->state = state;
    if (run->reason == DIBS__REASON_NONE)
        run->reason = reason;
}

bool dibs__graph_leaves_child(const dibs__job *job, const dibs__run *run,
                              size_t step)
{
    return job->steps[step].kind == DIBS__STEP_JOB &&
           run->steps[step].state == DIBS__STATE_CANCELLED &&
           run->steps[step].begun_us > 0;
}

static void end_run(const dibs__job *job, dibs__run *run, int64_t now_us)
{
    const dibs__run_step *cancelled =
        find_step(job, run, DIBS__STATE_CANCELLED, false);
    const dibs__run_step *failed =
        find_step(job, run, DIBS__STATE_FAILED, true);
    const dibs__run_step *missed =
        find_step(job, run, DIBS__STATE_MISSED, true);
    const dibs__run_step *skipped =
        find_step(job, run, DIBS__STATE_SKIPPED, false);

    if (cancelled)
        set_end(run, DIBS__STATE_CANCELLED, cancelled->reason);
    else if (missed && !dibs__graph_has_begun(run))
        set_end(run, DIBS__STATE_MISSED, missed->reason);
    else if (failed || missed || run->reason == DIBS__REASON_TIMEOUT)
        set_end(run, DIBS__STATE_FAILED,
                failed   ? failed->reason
                : missed ? missed->reason
                         : DIBS__REASON_TIMEOUT);
    else if (skipped && !dibs__graph_has_begun(run))
        set_end(run, DIBS__STATE_SKIPPED, skipped->reason);
    else
        set_end(run, DIBS__STATE_OK, DIBS__REASON_NONE);
    run->ended_us = now_us;
    run->owes =
        (run->state == DIBS__STATE_OK && job->then.ok.count > 0) ||
        (run->state == DIBS__STATE_FAILED && job->then.failed.count > 0);
    for (size_t i = 0; i < run->step_count; i++)
        run->owes |= dibs__graph_leaves_child(job, run, i);
}

static bool all_final(const dibs__run *run)
{
    for (size_t i = 0; i < run->step_count; i++)
        if (!dibs__state_final(run->steps[i].state))
            return false;
    return true;
}

void dibs__graph_settle(const dibs__job *job, dibs__run *run, int64_t now_us)
{
    run->changed = true;
    if (dibs__state_final(run->state) || run->follows)
        return;
    while (settle_once(job, run, now_us))
        ;
    if (all_final(run))
        end_run(job, run, now_us);
}

void dibs__graph_end_again(const dibs__job *job, dibs__run *run, int64_t now_us)
{
    run->changed = true;
    run->reason = DIBS__REASON_NONE;
    end_run(job, run, now_us);
}

bool dibs__graph_may_open(const dibs__job *job, const dibs__run *run,
                          size_t step)
{
    need_sum sum = sum_needs(job, run, step);

    return job->steps[step].when == DIBS__WHEN_OK ? sum.all_met : sum.all_final;
}

bool dibs__graph_may_begin(const dibs__job *job, const dibs__run *run,
                           size_t step)
{
    if (run->cancels > 1)
        return false;
    if (job->steps[step].when != DIBS__WHEN_OK)
        return true;
    return run->cancels == 0 && !is_failing(job, run);
}

bool dibs__graph_is_below(const dibs__job *job, size_t step, size_t from)
{
    bool below[DIBS__JOB_STEPS_MAX] = {false};
    bool moved = true;

    below[from] = true;
    while (moved) {
        moved = false;
        for (size_t i = 0; i < job->step_count; i++)
            for (size_t k = 0; k < job->step_count && !below[i]; k++)
                if (below[k] && needs(job, i, k))
                    below[i] = moved = true;
    }
    return below[step];
}

/* Whether the step has been opened, as far as its record shows. */
static bool was_opened(const dibs__run_step *step)
{
    return step->state != DIBS__STATE_PENDING &&
           step->state != DIBS__STATE_SKIPPED &&
           step->state != DIBS__STATE_CANCELLED &&
           step->state != DIBS__STATE_FAILED;
}

const char *dibs__graph_flaw(const dibs__job *job, const dibs__run *run)
{
    if (run->step_count != job->step_count)
        return "the run has other steps than its definition";
    if (dibs__state_final(run->state) != all_final(run))
        return "the run ended too soon, or not with its last step";
    for (size_t i = 0; i < run->step_count; i++) {
        const dibs__run_step *step = &run->steps[i];
        need_sum sum = sum_needs(job, run, i);
        bool ok = job->steps[i].when == DIBS__WHEN_OK;

        if (was_opened(step) && (ok ? !sum.all_met : !sum.all_final))
            return "a step opened before its needs had ended";
        if (step->state == DIBS__STATE_PENDING && !run->follows && ok &&
            sum.all_met)
            return "a step is PENDING although its needs are met";
    }
    return NULL;
}
