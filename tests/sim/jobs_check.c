/* jobs_check.c - the invariants of sim_jobs that time shows: nothing is left undone. */
/* SPDX-License-Identifier: MIT */
#include "jobs_sim.h"

#include <string.h>

/* I2: a job that is due is ticked, whoever has died. Real time, as the clock jumps. */
void check_due(world *w)
{
    for (int i = 0; i < JOBS; i++) {
        dibs__job_state state;
        bool due = read_state(w, i, &state) && state.due_us &&
                   state.due_us <= wall_us(w);

        if (!due || state.due_us != w->due_us[i])
            w->due_since[i] = w->now;
        w->due_us[i] = due ? state.due_us : 0;
        if (w->now - w->due_since[i] >
            (dibsx_nsec)(w->calm ? CALM_MS : LATE_MS) * DIBSX_MS)
            w->wrong = "I2: a job is due, and nobody ticks it";
    }
}

/* I8, I9: nobody waits for a node that knows nothing, or that is gone. */
void check_live(world *w)
{
    char id[DIBS__RUN_ID_SIZE], step[DIBS__JOB_NAME_SIZE];
    const dibsx_nsec late = (dibsx_nsec)LATE_MS * DIBSX_MS;
    sim_entry entry;

    for (size_t k = 0; first_entry(w, LIVE, 0, k, &entry); k++) {
        const sim_lease *lease = find_lease(w, (uint64_t)entry.at);
        const sim_value *value;
        bool known = false;

        if (!dibs__step_split(entry.member, id, step) || !lease)
            continue;
        value = find_value(w, "run/", id);
        if (lease->until + late < w->now || lease->struck)
            w->wrong = "I9: a step of a dead node was not taken over";
        for (size_t i = 0; i < TASKS; i++) {
            const sim_task *task = &w->nodes[lease->who].tasks[i];

            known |= task->used && strcmp(task->task.run, id) == 0 &&
                     strcmp(task->task.step, step) == 0;
        }
        /* The claim may have been carried out late, for a task that is over. */
        if (!known && lease->until > w->now && value &&
            lease->fence == w->nodes[lease->who].fence)
            w->wrong = "I8: a live node knows nothing of a step of its own";
    }
}

/* No job waits for the end of a run that has ended. */
void check_states(world *w)
{
    for (int i = 0; i < JOBS; i++) {
        dibs__job_state state;
        dibs__run run = {0};

        if (!read_state(w, i, &state) || !state.live[0])
            continue;
        if (!read_run(w, state.live, &run) || dibs__state_final(run.state))
            w->wrong = "I10: a job waits for a run that has ended";
        dibs__run_fini(&run);
    }
}

static bool has_free_slot(const world *w)
{
    for (int i = 0; i < NODES; i++)
        for (size_t k = 0; k < TASKS; k++)
            if (!w->nodes[i].tasks[k].used)
                return true;
    return false;
}

/* I17: a step that is ready is begun, whatever rings were lost. Where jobs have schedules,
 * it may wait for a slot or for others of its job. */
void check_ready(world *w)
{
    int64_t late_ms = w->calm && w->clear ? CALM_MS : LATE_MS;
    sim_entry entry;

    for (size_t k = 0; w->quiet && first_entry(w, READY, 0, k, &entry); k++)
        if (w->now - entry.since > (dibsx_nsec)late_ms * DIBSX_MS &&
            has_free_slot(w))
            w->wrong = "I17: a step is ready, and nobody begins it";
}
