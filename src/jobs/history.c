/* history.c - which runs of a job are kept. */
/* SPDX-License-Identifier: MIT */
#include "jobs/history.h"

#include <stdio.h>

enum { OUTPUTS_MAX = 250 };

/* Runs that did nothing are many, and have a count of their own: they leave the others. */
static bool is_beyond(dibs__history_look *look, dibs__run_state state)
{
    if (state == DIBS__STATE_OK)
        return ++look->ok > look->limits->ok;
    if (state == DIBS__STATE_SKIPPED || state == DIBS__STATE_MISSED)
        return ++look->idle > look->limits->ok;
    return ++look->failed > look->limits->failed;
}

bool dibs__history_goes(dibs__history_look *look, const dibs__run *run)
{
    bool beyond;

    if (!dibs__state_final(run->state) || run->owes)
        return false;
    beyond = is_beyond(look, run->state);
    return beyond ||
           look->now_us - run->ended_us > look->limits->keep_ms * 1000;
}

void dibs__output_key(const dibs__run *run, const dibs__run_step *step,
                      uint32_t attempt, char out[DIBS__PLACE_SIZE])
{
    (void)snprintf(out, DIBS__PLACE_SIZE, "out/%.127s/%.100s/%u", run->id,
                   step->name, attempt % 100000);
}

static void drop_outputs(const dibs__run *run, dibs__intent *in)
{
    char key[DIBS__PLACE_SIZE];
    size_t count = 0;

    for (size_t i = 0; i < run->step_count; i++)
        for (uint32_t n = 1; n <= run->steps[i].attempt; n++) {
            if (count++ == OUTPUTS_MAX)
                return;
            dibs__output_key(run, &run->steps[i], n, key);
            dibs__intent_delete(in, key);
        }
}

void dibs__history_drop(const dibs__run *run, dibs__intent *in)
{
    char key[DIBS__PLACE_SIZE];

    (void)snprintf(key, sizeof(key), "run/%s", run->id);
    dibs__intent_check_version(in, key, run->version);
    dibs__intent_delete(in, key);
    drop_outputs(run, in);
    (void)snprintf(key, sizeof(key), "runs/%s", run->job);
    dibs__intent_leave(in, key, run->id);
}

dibs_status dibs__history_forget(const dibs__job *job, const char *id,
                                 dibs__intent *in, dibs_error *err)
{
    dibs__run run;
    dibs_status rc = dibs__run_make(&run, id, job, "", err);

    for (size_t i = 0; i < run.step_count; i++)
        run.steps[i].attempt = (uint32_t)job->steps[i].work.retry.attempts;
    if (rc == DIBS_OK)
        dibs__history_drop(&run, in);
    dibs__run_fini(&run);
    return rc;
}
