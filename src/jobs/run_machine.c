/* run_machine.c - starts, claims, ends and retries of runs. */
/* SPDX-License-Identifier: MIT */
#include "jobs/run_machine.h"
#include "base/fail.h"
#include "jobs/run_graph.h"
#include "jobs/run_inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { REPLACED_STEPS_MAX = 300 };

static void set_limits(dibs__scene *sc)
{
    const dibs__job *job = sc->job;
    dibs__run *run = sc->run;
    int64_t end_us = 0;

    run->made_us = sc->now_us;
    if (job->start_deadline_ms != DIBS__JOB_NONE)
        run->start_by_us =
            dibs__run_due_us(run) + job->start_deadline_ms * 1000;
    if (job->run_timeout_ms != DIBS__JOB_NONE)
        end_us = sc->now_us + job->run_timeout_ms * 1000;
    /* A child has the limit of its parent too. */
    if (end_us && (!run->end_by_us || end_us < run->end_by_us))
        run->end_by_us = end_us;
}

/* The run that lives is to end; the one that followed it so far never begins. */
static void replace_live(dibs__scene *sc)
{
    dibs__scene old = *sc;

    if (sc->next) {
        old.run = sc->next;
        dibs__run_drop(&old, DIBS__REASON_REPLACED);
    }
    sc->state->follows[0] = '\0';
    old.run = sc->live;
    old.next = NULL;
    if (sc->live->cancels == 0)
        dibs__run_drop(&old, DIBS__REASON_REPLACED);
}

/* The run waits for the end of the one that lives. */
static void follow_live(dibs__scene *sc)
{
    dibs__job_state *state = sc->state;

    if (sc->job->concurrency == DIBS__CONCURRENCY_REPLACE)
        replace_live(sc);
    if (!state->live[0])
        return; /* It had not begun, and has ended. */
    memcpy(state->follows, sc->run->id, sizeof(state->follows));
    sc->run->follows = true;
}

/* A commit has a bound for changes: all that the two runs have in indexes must fit. */
static bool is_too_wide(const dibs__scene *sc)
{
    size_t count = sc->run->step_count;

    for (size_t i = 0; i < sc->live->step_count; i++)
        count += dibs__step_place(&sc->live->steps[i]).kind != DIBS__PLACE_NONE;
    return count > REPLACED_STEPS_MAX;
}

/* Whether the run that lives leaves room for one more. */
static dibs_status check_room(const dibs__scene *sc, dibs_error *err)
{
    const dibs__job_state *state = sc->state;

    if (sc->job->concurrency == DIBS__CONCURRENCY_FORBID)
        return dibsx_fail(err, DIBS_BUSY,
                          "the job %s is running: %s; wait for its end, or "
                          "cancel it",
                          sc->run->job, state->live);
    if (sc->job->concurrency == DIBS__CONCURRENCY_QUEUE && sc->next)
        return dibsx_fail(err, DIBS_BUSY,
                          "the job %s is running: %s; and %s waits for its "
                          "end: try again when it has begun",
                          sc->run->job, state->live, state->follows);
    if (sc->job->concurrency == DIBS__CONCURRENCY_REPLACE && sc->live &&
        is_too_wide(sc))
        return dibsx_fail(err, DIBS_BUSY,
                          "the run %s has too many open steps to be replaced; "
                          "try again when some have ended",
                          state->live);
    return DIBS_OK;
}

dibs_status dibs__run_start(dibs__scene *sc, dibs_error *err)
{
    dibs__job_state *state = sc->state;
    dibs__run *run = sc->run;
    dibs_status rc = DIBS_OK;

    if (state && state->live[0])
        rc = check_room(sc, err);
    if (rc != DIBS_OK)
        return rc;
    set_limits(sc);
    if (state && sc->job->concurrency != DIBS__CONCURRENCY_ALLOW) {
        state->changed = true;
        if (state->live[0] && sc->live)
            follow_live(sc);
        if (!run->follows)
            memcpy(state->live, run->id, sizeof(state->live));
    }
    dibs__run_settle(sc, run);
    return DIBS_OK;
}

static void begin_step(dibs__scene *sc, dibs__run_step *step)
{
    step->state = DIBS__STATE_RUNNING;
    step->attempt++;
    step->begun_us = sc->now_us;
    step->at_us = 0;
    step->reason = DIBS__REASON_NONE;
    sc->run->state = DIBS__STATE_ACTIVE;
    if (!sc->run->begun_us)
        sc->run->begun_us = sc->now_us;
    if (step->begins)
        dibs__intent_not_after(sc->in, sc->run->start_by_us);
    sc->run->changed = true;
}

dibs_status dibs__run_claim(dibs__scene *sc, size_t i,
                            const dibs__claimant *who, dibs_error *err)
{
    const dibs__job *job = sc->job;
    dibs__run_step *step = &sc->run->steps[i];

    if (step->state != DIBS__STATE_READY)
        return dibsx_fail(err, DIBS_STALE, "the step %s of %s is %s",
                          step->name, sc->run->id,
                          dibs__run_state_name(step->state));
    if (step->begins && sc->run->start_by_us &&
        sc->now_us > sc->run->start_by_us)
        return dibsx_fail(err, DIBS_STALE, "it is too late to start %s",
                          sc->run->id);
    if (sc->state && job->max_running != DIBS__JOB_NONE && !sc->run->counted) {
        if (sc->state->running >= (uint64_t)job->max_running)
            return dibsx_fail(err, DIBS_FULL,
                              "%" PRIu64 " runs of %s are running",
                              sc->state->running, job->name);
        sc->state->running++;
        sc->state->changed = true;
        sc->run->counted = true;
    }
    memcpy(step->node, who->node, sizeof(step->node));
    memcpy(step->nonce, who->nonce, sizeof(step->nonce));
    step->fence = who->fence;
    if (!job->lock.key) {
        begin_step(sc, step);
        return DIBS_OK;
    }
    step->state = DIBS__STATE_CLAIMED;
    sc->run->changed = true;
    return DIBS_OK;
}

static dibs_status
fail_nonce(const dibs__scene *sc, const dibs__run_step *step, dibs_error *err)
{
    return dibsx_fail(err, DIBS_STALE,
                      "the step %s of %s is %s, and another attempt is the "
                      "current one",
                      step->name, sc->run->id,
                      dibs__run_state_name(step->state));
}

dibs_status
dibs__run_begin(dibs__scene *sc, size_t i, const char *nonce, dibs_error *err)
{
    dibs__run_step *step = &sc->run->steps[i];

    if (step->state != DIBS__STATE_CLAIMED || strcmp(step->nonce, nonce) != 0)
        return fail_nonce(sc, step, err);
    begin_step(sc, step);
    return DIBS_OK;
}

static void
note_attempt(dibs__scene *sc, size_t i, const dibs__outcome *outcome)
{
    dibs__run *run = sc->run;
    const dibs__run_step *step = &run->steps[i];
    dibs__run_attempt done = {.step = (uint32_t)i,
                              .attempt = step->attempt,
                              .reason = outcome->reason,
                              .exit_code = outcome->exit_code,
                              .begun_us = step->begun_us,
                              .ended_us = sc->now_us};

    memcpy(done.node, step->node, sizeof(done.node));
    if (run->attempt_count == DIBS__RUN_ATTEMPTS_KEPT)
        memmove(&run->attempts[0], &run->attempts[1],
                (--run->attempt_count) * sizeof(done));
    run->attempts[run->attempt_count++] = done;
}

static uint32_t retry_bit(dibs__reason reason)
{
    switch (reason) {
    case DIBS__REASON_FAILED:
    case DIBS__REASON_UNSTARTED:
        return DIBS__RETRY_FAILED;
    case DIBS__REASON_TIMEOUT:
        return DIBS__RETRY_TIMEOUT;
    case DIBS__REASON_LOST:
    case DIBS__REASON_STOPPED:
        return DIBS__RETRY_LOST;
    default:
        return 0;
    }
}

/* delay, delay * factor, ... up to max_delay, and jitter to both sides. */
static int64_t
backoff_us(const dibs__retry *retry, uint32_t attempt, uint64_t chance)
{
    int64_t delay_ms = retry->delay_ms, span;

    for (uint32_t i = 1; i < attempt && delay_ms < retry->max_delay_ms; i++)
        delay_ms *= retry->factor;
    if (retry->max_delay_ms > 0 && delay_ms > retry->max_delay_ms)
        delay_ms = retry->max_delay_ms;
    span = delay_ms * 1000 / 100 * retry->jitter_pct;
    return delay_ms * 1000 - span +
           (span ? (int64_t)(chance % (uint64_t)(2 * span + 1)) : 0);
}

static void leave_node(dibs__run_step *step)
{
    step->node[0] = '\0';
    step->fence = 0;
    step->cancel = false;
    step->why_cancel = DIBS__REASON_NONE;
}

/* True: the step is tried again. */
static bool retry_step(dibs__scene *sc, size_t i, dibs__reason reason)
{
    const dibs__retry *retry = &sc->job->steps[i].work.retry;
    dibs__run_step *step = &sc->run->steps[i];
    int64_t at_us;

    if (step->cancel || !(retry->on & retry_bit(reason)) ||
        (int64_t)step->attempt >= retry->attempts ||
        !dibs__graph_may_begin(sc->job, sc->run, i))
        return false;
    at_us = sc->now_us + backoff_us(retry, step->attempt, sc->chance);
    if (step->begins && sc->run->start_by_us && at_us > sc->run->start_by_us)
        return false;
    leave_node(step);
    step->state = DIBS__STATE_RETRY;
    step->reason = reason;
    step->at_us = at_us;
    return true;
}

/* Nothing was begun: no charge. */
static void give_back(dibs__scene *sc, dibs__run_step *step)
{
    leave_node(step);
    step->state = DIBS__STATE_READY;
    step->at_us = sc->now_us;
}

/* Another step of the run may be the holder. */
static bool has_sibling(const dibs__run *run, const dibs__run_step *step)
{
    for (size_t i = 0; i < run->step_count; i++)
        if (&run->steps[i] != step &&
            (run->steps[i].state == DIBS__STATE_CLAIMED ||
             run->steps[i].state == DIBS__STATE_RUNNING))
            return true;
    return false;
}

static void skip_run(dibs__scene *sc)
{
    for (size_t i = 0; i < sc->run->step_count; i++)
        if (!dibs__state_final(sc->run->steps[i].state))
            dibs__graph_end_step(&sc->run->steps[i], DIBS__STATE_SKIPPED,
                                 DIBS__REASON_BUSY, sc->now_us);
}

/* The lock of the job was held, so nothing was begun. A run is skipped as a whole or not
 * at all: one that has begun would else end well without this step. */
static void end_busy(dibs__scene *sc, dibs__run_step *step)
{
    const dibs__job_lock *lock = &sc->job->lock;
    bool skips = lock->on_busy == DIBS__BUSY_SKIP;

    if (lock->on_busy == DIBS__BUSY_RETRY || has_sibling(sc->run, step) ||
        (skips && dibs__graph_has_begun(sc->run))) {
        leave_node(step);
        step->state = DIBS__STATE_RETRY;
        step->reason = DIBS__REASON_BUSY;
        step->at_us = sc->now_us + lock->retry_delay_ms * 1000;
    } else if (skips) {
        skip_run(sc);
    } else {
        dibs__graph_end_step(step, DIBS__STATE_FAILED, DIBS__REASON_BUSY,
                             sc->now_us);
    }
}

static void end_attempt(dibs__scene *sc, size_t i, const dibs__outcome *outcome)
{
    dibs__run_step *step = &sc->run->steps[i];
    dibs__reason why = step->why_cancel;

    note_attempt(sc, i, outcome);
    step->exit_code = outcome->exit_code;
    if (outcome->reason == DIBS__REASON_NONE)
        dibs__graph_end_step(step, DIBS__STATE_OK, DIBS__REASON_NONE,
                             sc->now_us);
    else if (step->cancel && why != DIBS__REASON_TIMEOUT)
        dibs__graph_end_step(step, DIBS__STATE_CANCELLED, why, sc->now_us);
    else if (!retry_step(sc, i, outcome->reason))
        dibs__graph_end_step(step, DIBS__STATE_FAILED,
                             step->cancel ? why : outcome->reason, sc->now_us);
}

/* ---- the end of an attempt that was taken for lost (on_lost: finish) */

static bool has_skipped(const dibs__run *run)
{
    for (size_t i = 0; i < run->step_count; i++)
        if (run->steps[i].state == DIBS__STATE_SKIPPED)
            return true;
    return false;
}

/* The steps behind it were skipped with the loss, and nothing brings them back: the run
 * stays as it is then. */
static bool is_late(const dibs__scene *sc, const dibs__run_step *step,
                    const char *nonce, const dibs__outcome *outcome)
{
    return sc->job->on_lost == DIBS__LOST_FINISH &&
           step->state == DIBS__STATE_FAILED &&
           step->reason == DIBS__REASON_LOST &&
           strcmp(step->nonce, nonce) == 0 &&
           outcome->reason != DIBS__REASON_LOST && !has_skipped(sc->run);
}

static void amend_attempt(dibs__scene *sc, size_t i, const dibs__outcome *o)
{
    for (size_t k = 0; k < sc->run->attempt_count; k++) {
        dibs__run_attempt *at = &sc->run->attempts[k];

        if (at->step != i || at->attempt != sc->run->steps[i].attempt)
            continue;
        at->reason = o->reason;
        at->exit_code = o->exit_code;
        at->ended_us = sc->now_us;
    }
}

static dibs_status end_late(dibs__scene *sc, size_t i,
                            const dibs__outcome *outcome, dibs_error *err)
{
    dibs__run_step *step = &sc->run->steps[i];
    dibs_status rc =
        dibs__step_result(step, outcome->result, outcome->result_len, err);

    if (rc != DIBS_OK)
        return rc;
    amend_attempt(sc, i, outcome);
    step->exit_code = outcome->exit_code;
    dibs__graph_end_step(step,
                         outcome->reason ? DIBS__STATE_FAILED : DIBS__STATE_OK,
                         outcome->reason, sc->now_us);
    if (dibs__state_final(sc->run->state))
        dibs__graph_end_again(sc->job, sc->run, sc->now_us);
    else
        dibs__run_settle(sc, sc->run);
    return DIBS_OK;
}

dibs_status dibs__run_end(dibs__scene *sc, size_t i, const char *nonce,
                          const dibs__outcome *outcome, dibs_error *err)
{
    dibs__run_step *step = &sc->run->steps[i];
    bool claimed = step->state == DIBS__STATE_CLAIMED;
    dibs_status rc;

    if (is_late(sc, step, nonce, outcome))
        return end_late(sc, i, outcome, err);
    if ((!claimed && step->state != DIBS__STATE_RUNNING) ||
        strcmp(step->nonce, nonce) != 0)
        return fail_nonce(sc, step, err);
    rc = dibs__step_result(step, outcome->result, outcome->result_len, err);
    if (rc != DIBS_OK)
        return rc;
    if (claimed && outcome->reason == DIBS__REASON_BUSY)
        end_busy(sc, step);
    else if (claimed && outcome->reason == DIBS__REASON_STOPPED)
        give_back(sc, step);
    else if (claimed && outcome->reason == DIBS__REASON_LATE)
        dibs__step_miss(sc, step);
    else
        end_attempt(sc, i, outcome);
    dibs__run_settle(sc, sc->run);
    return DIBS_OK;
}

dibs_status
dibs__run_lost(dibs__scene *sc, size_t i, uint64_t fence, dibs_error *err)
{
    static const dibs__outcome lost = {.reason = DIBS__REASON_LOST};
    dibs__run_step *step = &sc->run->steps[i];

    if ((step->state != DIBS__STATE_CLAIMED &&
         step->state != DIBS__STATE_RUNNING) ||
        step->fence != fence)
        return fail_nonce(sc, step, err);
    if (step->state == DIBS__STATE_CLAIMED)
        give_back(sc, step);
    else
        end_attempt(sc, i, &lost);
    dibs__run_settle(sc, sc->run);
    return DIBS_OK;
}
