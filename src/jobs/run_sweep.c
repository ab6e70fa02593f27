/* run_sweep.c - retries, limits, waits and cancels of runs. */
/* SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "jobs/run_graph.h"
#include "jobs/run_inside.h"

#include <stdio.h>
#include <string.h>

/* In one commit, which has a bound for changes. */
enum { RETRIES_MAX = 100 };

static dibs_status fail_early(const dibs__scene *sc, dibs_error *err)
{
    return dibsx_fail(err, DIBS_STALE, "nothing of the run %s is due",
                      sc->run->id);
}

/* A moment that has come, as far as this node knows; the store looks again (R2). */
static bool is_due(dibs__scene *sc, int64_t at_us)
{
    if (at_us == 0 || at_us > sc->now_us)
        return false;
    dibs__intent_not_before(sc->in, at_us);
    return true;
}

dibs_status dibs__run_retry(dibs__scene *sc, dibs_error *err)
{
    size_t moved = 0;

    for (size_t i = 0; i < sc->run->step_count && moved < RETRIES_MAX; i++) {
        dibs__run_step *step = &sc->run->steps[i];

        if (step->state != DIBS__STATE_RETRY || !is_due(sc, step->at_us))
            continue;
        step->state = DIBS__STATE_READY;
        step->at_us = sc->now_us;
        sc->run->changed = true;
        moved++;
    }
    return moved ? DIBS_OK : fail_early(sc, err);
}

void dibs__step_miss(dibs__scene *sc, dibs__run_step *step)
{
    if (step->attempt > 0)
        dibs__graph_end_step(step, DIBS__STATE_FAILED, step->reason,
                             sc->now_us);
    else
        dibs__graph_end_step(step, DIBS__STATE_MISSED, DIBS__REASON_LATE,
                             sc->now_us);
}

static bool pass_start_by(dibs__scene *sc)
{
    bool moved = false;

    if (!is_due(sc, sc->run->start_by_us))
        return false;
    for (size_t i = 0; i < sc->run->step_count; i++) {
        dibs__run_step *step = &sc->run->steps[i];

        if (step->begins && (step->state == DIBS__STATE_READY ||
                             step->state == DIBS__STATE_CLAIMED ||
                             step->state == DIBS__STATE_RETRY)) {
            dibs__step_miss(sc, step);
            moved = true;
        }
    }
    return moved;
}

static bool pass_end_by(dibs__scene *sc)
{
    if (!is_due(sc, sc->run->end_by_us))
        return false;
    sc->run->end_by_us = 0;
    sc->run->reason = DIBS__REASON_TIMEOUT; /* The graph sees to the rest. */
    for (size_t i = 0; i < sc->run->step_count; i++) {
        dibs__run_step *step = &sc->run->steps[i];

        if (step->state == DIBS__STATE_RUNNING && !step->cancel) {
            step->cancel = true;
            step->why_cancel = DIBS__REASON_TIMEOUT;
        }
    }
    return true;
}

/* A run that still follows another ends as a whole: nothing of it may begin. The steps that
 * would have begun with its turn have missed it; in a rerun they may have needs. */
static bool pass_turn(dibs__scene *sc)
{
    dibs__run *run = sc->run;
    bool late = is_due(sc, run->start_by_us);
    bool opens[DIBS__JOB_STEPS_MAX];

    if (!late && !is_due(sc, run->end_by_us))
        return false;
    if (!late)
        run->reason = DIBS__REASON_TIMEOUT;
    for (size_t i = 0; i < run->step_count; i++)
        opens[i] = dibs__graph_may_open(sc->job, run, i);
    for (size_t i = 0; i < run->step_count; i++) {
        dibs__run_step *step = &run->steps[i];

        if (step->state != DIBS__STATE_PENDING)
            continue;
        if (late && opens[i])
            dibs__step_miss(sc, step);
        else
            dibs__graph_end_step(step, DIBS__STATE_SKIPPED, DIBS__REASON_NEED,
                                 sc->now_us);
    }
    run->follows = false;
    return true;
}

static bool pass_waits(dibs__scene *sc)
{
    bool moved = false;

    for (size_t i = 0; i < sc->run->step_count; i++) {
        dibs__run_step *step = &sc->run->steps[i];
        bool goes_on =
            sc->job->steps[i].wait.on_timeout == DIBS__TIMEOUT_CONTINUE;

        if (step->state != DIBS__STATE_WAITING || !is_due(sc, step->until_us))
            continue;
        dibs__graph_end_step(step,
                             goes_on ? DIBS__STATE_OK : DIBS__STATE_FAILED,
                             DIBS__REASON_TIMEOUT, sc->now_us);
        moved = true;
    }
    return moved;
}

dibs_status dibs__run_deadline(dibs__scene *sc, dibs_error *err)
{
    bool moved;

    /* The caller came here by some number; the record's own is written. */
    sc->run->deadline_at = -1;
    sc->run->changed = true;
    if (dibs__state_final(sc->run->state))
        return fail_early(sc, err);
    if (sc->run->follows) {
        moved = pass_turn(sc);
    } else {
        moved = pass_start_by(sc);
        moved |= pass_end_by(sc);
        moved |= pass_waits(sc);
    }
    if (!moved)
        return fail_early(sc, err);
    dibs__run_settle(sc, sc->run);
    return DIBS_OK;
}

dibs_status dibs__run_resume(dibs__scene *sc, dibs_error *err)
{
    bool moved = false;

    sc->run->resume_at = -1;
    sc->run->changed = true;
    for (size_t i = 0; i < sc->run->step_count; i++) {
        dibs__run_step *step = &sc->run->steps[i];

        if (step->state != DIBS__STATE_WAITING ||
            step->waits != DIBS__WAIT_SLEEP || !is_due(sc, step->at_us))
            continue;
        dibs__graph_end_step(step, DIBS__STATE_OK, DIBS__REASON_NONE,
                             sc->now_us);
        moved = true;
    }
    if (!moved)
        return fail_early(sc, err);
    dibs__run_settle(sc, sc->run);
    return DIBS_OK;
}

/* Looks again later; whoever ends what is waited for brings that forward. */
static void look_again(dibs__scene *sc, dibs__run_step *step)
{
    step->at_us = sc->now_us + (int64_t)DIBS__LOOK_AGAIN_MS * 1000;
    sc->run->changed = true;
}

bool dibs__run_saw_child(const dibs__run_step *step)
{
    return step->at_us != step->begun_us;
}

static dibs_status
take_child_result(dibs__run_step *step, const dibs__run *child, dibs_error *err)
{
    for (size_t i = child->step_count; i > 0; i--)
        if (child->steps[i - 1].result)
            return dibs__step_result(step, child->steps[i - 1].result,
                                     child->steps[i - 1].result_len, err);
    return DIBS_OK;
}

dibs_status dibs__run_child(dibs__scene *sc, size_t i, const dibs__run *child,
                            dibs_error *err)
{
    dibs__run_step *step = &sc->run->steps[i];
    dibs_status rc;

    sc->run->resume_at = -1;
    sc->run->changed = true;
    if (step->state != DIBS__STATE_WAITING || step->waits != DIBS__WAIT_CHILD)
        return fail_early(sc, err);
    if (!dibs__state_final(child->state)) {
        look_again(sc, step);
        return DIBS_OK;
    }
    rc = take_child_result(step, child, err);
    if (rc != DIBS_OK)
        return rc;
    if (child->state == DIBS__STATE_OK)
        dibs__graph_end_step(step, DIBS__STATE_OK, DIBS__REASON_NONE,
                             sc->now_us);
    else
        dibs__graph_end_step(step, DIBS__STATE_FAILED,
                             child->reason ? child->reason
                                           : DIBS__REASON_FAILED,
                             sc->now_us);
    dibs__run_settle(sc, sc->run);
    return DIBS_OK;
}

dibs_status dibs__run_unmade(dibs__scene *sc, size_t i, dibs_error *err)
{
    dibs__run_step *step = &sc->run->steps[i];

    if (step->state != DIBS__STATE_WAITING ||
        (step->waits != DIBS__WAIT_CHILD && step->waits != DIBS__WAIT_BATCH))
        return fail_early(sc, err);
    dibs__graph_end_step(step, DIBS__STATE_FAILED, DIBS__REASON_UNSTARTED,
                         sc->now_us);
    dibs__run_settle(sc, sc->run);
    return DIBS_OK;
}

dibs_status
dibs__run_batch(dibs__scene *sc, size_t i, bool complete, dibs_error *err)
{
    dibs__run_step *step = &sc->run->steps[i];

    sc->run->resume_at = -1;
    sc->run->changed = true;
    if (step->state != DIBS__STATE_WAITING || step->waits != DIBS__WAIT_BATCH)
        return fail_early(sc, err);
    if (!complete) {
        look_again(sc, step);
        return DIBS_OK;
    }
    dibs__graph_end_step(step, DIBS__STATE_OK, DIBS__REASON_NONE, sc->now_us);
    dibs__run_settle(sc, sc->run);
    return DIBS_OK;
}

static dibs_status
resume_step(dibs__scene *sc, dibs__run_step *step, const void *data, size_t len,
            const char *who, dibs_error *err)
{
    dibs_status rc;

    if (step->state == DIBS__STATE_PENDING)
        return dibsx_fail(err, DIBS_BUSY,
                          "the run %s has not come to %s; try again later",
                          sc->run->id, step->name);
    if (step->state != DIBS__STATE_WAITING)
        return dibsx_fail(err, DIBS_STALE,
                          "%s of %s is %s%s%s; it goes on once", step->name,
                          sc->run->id, dibs__run_state_name(step->state),
                          step->who[0] ? ", resumed by " : "", step->who);
    rc = dibs__step_result(step, data, len, err);
    if (rc != DIBS_OK)
        return rc;
    (void)snprintf(step->who, sizeof(step->who), "%s", who);
    dibs__graph_end_step(step, DIBS__STATE_OK, DIBS__REASON_NONE, sc->now_us);
    dibs__run_settle(sc, sc->run);
    return DIBS_OK;
}

static bool has_bookmark(const dibs__step *plan, const char *bookmark)
{
    return plan->kind == DIBS__STEP_WAIT && plan->wait.bookmark &&
           strcmp(plan->wait.bookmark, bookmark) == 0;
}

/* How well a step fits: the caller's own, one that waits, any. */
static int rank_bookmark(const dibs__run_step *step, const char *nonce)
{
    if (nonce && strcmp(step->nonce, nonce) == 0)
        return 3;
    return step->state == DIBS__STATE_WAITING ? 2 : 1;
}

bool dibs__run_find_bookmark(const dibs__scene *sc, const char *bookmark,
                             const char *nonce, size_t *out)
{
    int best = 0;

    *out = 0;
    for (size_t i = 0; i < sc->job->step_count; i++) {
        int rank = has_bookmark(&sc->job->steps[i], bookmark)
                       ? rank_bookmark(&sc->run->steps[i], nonce)
                       : 0;

        if (rank > best) {
            best = rank;
            *out = i;
        }
    }
    return best > 0;
}

dibs_status
dibs__run_bookmark(dibs__scene *sc, const char *bookmark, const void *data,
                   size_t len, const char *who, dibs_error *err)
{
    size_t i;

    if (dibs__run_find_bookmark(sc, bookmark, NULL, &i))
        return resume_step(sc, &sc->run->steps[i], data, len, who, err);
    return dibsx_fail(err, DIBS_NOTFOUND, "the job %s has no bookmark %s",
                      sc->run->job, bookmark);
}

dibs_status dibs__run_cancel(dibs__scene *sc, dibs__reason why, dibs_error *err)
{
    if (dibs__state_final(sc->run->state))
        return dibsx_fail(err, DIBS_STALE, "the run %s is %s", sc->run->id,
                          dibs__run_state_name(sc->run->state));
    if (sc->run->cancels < 2)
        dibs__run_drop(sc, why);
    return DIBS_OK;
}

void dibs__run_followed(dibs__scene *sc, const dibs__run *ended)
{
    if (sc->run->state != ended->state || sc->run->ended_us != ended->ended_us)
        return;
    sc->run->owes = false;
    sc->run->resume_at = -1;
    sc->run->changed = true;
}

static dibs_status
copy_end(dibs__run_step *step, const dibs__run_step *older, dibs_error *err)
{
    step->state = older->state;
    step->reason = older->reason;
    step->ended_us = older->ended_us;
    step->exit_code = older->exit_code;
    return dibs__step_result(step, older->result, older->result_len, err);
}

dibs_status
dibs__run_rerun(const dibs__job *job, dibs__run *run, const dibs__run *older,
                const char *from, dibs_error *err)
{
    dibs_status rc = DIBS_OK;
    size_t first = 0;

    run->cause = DIBS__CAUSE_RERUN;
    run->tick_s = older->tick_s; /* ${tick} is the one that is done again. */
    memcpy(run->origin, older->id, sizeof(run->origin));
    for (size_t i = 0; rc == DIBS_OK && i < older->param_count; i++)
        rc = dibs__run_param(run, older->params[i].name, older->params[i].value,
                             err);
    if (rc == DIBS_OK)
        rc = dibs__run_fits(run, err);
    if (rc != DIBS_OK || !from)
        return rc;
    if (!dibs__run_find(older, from, &first) ||
        older->step_count != run->step_count)
        return dibsx_fail(err, DIBS_NOTFOUND, "the run %s has no step %s",
                          older->id, from);
    for (size_t i = 0; rc == DIBS_OK && i < run->step_count; i++)
        if (dibs__graph_is_met(job, older, i) &&
            job->steps[i].when == DIBS__WHEN_OK &&
            !dibs__graph_is_below(job, i, first))
            rc = copy_end(&run->steps[i], &older->steps[i], err);
    return rc;
}

const char *dibs__run_check(const dibs__job *job, const dibs__run *run)
{
    const char *flaw = dibs__run_flaw(run);

    if (!flaw)
        flaw = dibs__graph_flaw(job, run);
    for (size_t i = 0; i < run->step_count && !flaw; i++)
        if (run->steps[i].attempt > 0 &&
            (int64_t)run->steps[i].attempt > job->steps[i].work.retry.attempts)
            flaw = "I6: more attempts than the definition has";
    return flaw;
}
