/* run_settle.c - what follows from a change of a run: its graph, its job's state, the
 * intent. */
/* SPDX-License-Identifier: MIT */
#include "jobs/run_graph.h"
#include "jobs/run_inside.h"

#include <string.h>

bool dibs__scene_needs_state(const dibs__job *job)
{
    return job->concurrency != DIBS__CONCURRENCY_ALLOW ||
           job->max_running != DIBS__JOB_NONE;
}

bool dibs__scene_needs_live(const dibs__job *job)
{
    return job->concurrency == DIBS__CONCURRENCY_REPLACE ||
           job->concurrency == DIBS__CONCURRENCY_QUEUE;
}

const dibs__job *dibs__scene_job(const dibs__scene *sc, const dibs__run *run)
{
    if (run == sc->live && sc->live_job)
        return sc->live_job;
    if (run == sc->next && sc->next_job)
        return sc->next_job;
    return sc->job;
}

static void write_run(dibs__scene *sc, dibs__run *run)
{
    if (run)
        dibs__run_commit(run, dibs__scene_job(sc, run)->history.keep_ms,
                         sc->in);
}

void dibs__scene_write(dibs__scene *sc)
{
    write_run(sc, sc->run);
    write_run(sc, sc->live);
    write_run(sc, sc->next);
    if (sc->state)
        dibs__job_state_commit(sc->state, sc->in);
}

bool dibs__run_find(const dibs__run *run, const char *name, size_t *out)
{
    for (size_t i = 0; i < run->step_count; i++)
        if (strcmp(run->steps[i].name, name) == 0) {
            *out = i;
            return true;
        }
    return false;
}

/* The run has ended: the job's state lets the next one begin (R4). */
static void leave_state(dibs__scene *sc, dibs__run *run)
{
    dibs__job_state *state = sc->state;

    if (!state)
        return;
    if (run->counted) {
        run->counted = false;
        state->running -= state->running > 0;
        state->changed = true;
    }
    if (strcmp(state->follows, run->id) == 0) {
        state->follows[0] = '\0';
        state->changed = true;
    }
    if (strcmp(state->live, run->id) != 0)
        return;
    state->changed = true;
    memcpy(state->live, state->follows, sizeof(state->live));
    state->follows[0] = '\0';
    if (!state->live[0])
        return;
    if (sc->next && strcmp(sc->next->id, state->live) == 0) {
        sc->next->follows = false;
        dibs__run_settle(sc, sc->next); /* Its time may be over. */
    } else                              /* It is not there any more. */
        state->live[0] = '\0';
}

void dibs__run_settle(dibs__scene *sc, dibs__run *run)
{
    bool was_final = dibs__state_final(run->state);

    dibs__graph_settle(dibs__scene_job(sc, run), run, sc->now_us);
    if (!was_final && dibs__state_final(run->state))
        leave_state(sc, run);
}

/* Steps of `when: always` are there for this case; a second cancel ends them too. */
static void drop_step(dibs__scene *sc, size_t i, dibs__reason why)
{
    dibs__run_step *step = &sc->run->steps[i];
    const dibs__job *job = dibs__scene_job(sc, sc->run);

    if (dibs__state_final(step->state) ||
        (job->steps[i].when == DIBS__WHEN_ALWAYS && sc->run->cancels < 2))
        return;
    if (step->state != DIBS__STATE_RUNNING)
        dibs__graph_end_step(step, DIBS__STATE_CANCELLED, why, sc->now_us);
    else if (!step->cancel) {
        step->cancel = true;
        step->why_cancel = why;
    }
}

void dibs__run_drop(dibs__scene *sc, dibs__reason why)
{
    dibs__run *run = sc->run;

    run->cancels++;
    if (run->follows) /* Nothing of it was to run after anything. */
        run->cancels = 2;
    for (size_t i = 0; i < run->step_count; i++)
        drop_step(sc, i, why);
    run->follows = false;
    dibs__run_settle(sc, run);
}
