/* verb_job_reset.c - job reset: the times of a job from now on, and when it runs again. */
/* SPDX-License-Identifier: MIT */
#include "cli/changes.h"
#include "cli/job_board.h"
#include "cli/print.h"
#include "cli/verbs.h"
#include "jobs/board_change.h"
#include "jobs/moment.h"

#include <stdio.h>

/* So many times that ran before are looked at. */
enum { RAN_MAX = 10000 };

static dibs_status
reset_state(const dibs__job *job, dibs__job_state *state,
            const dibs__ticker *tk, int64_t now_us, void *arg, dibs_error *err)
{
    (void)arg;
    (void)err;
    dibs__tick_reset(job, state, tk, now_us);
    return DIBS_OK;
}

/* From when on the job runs again. */
typedef struct outlook {
    bool paused;    /* the rest is not looked at */
    int64_t next_s; /* 0: it has no time */
    size_t ran;     /* times before that, which have run already */
} outlook;

/* A time whose run is in the history does not run again. */
static dibs_status
find_first(const dibs__open_board *ob, const dibs__job *job,
           const dibs__job_state *state, outlook *out, dibs_error *err)
{
    dibs__zone *zone = NULL;
    dibs__tick tick = {.at = state->mark_s};
    int64_t local_s = state->mark_local_s;
    dibs_status rc = dibs__zone_open(job->zone, &zone, err);

    while (rc == DIBS_OK && out->ran < RAN_MAX &&
           dibs__job_next(job, state, zone, tick.at, local_s, &tick)) {
        char id[DIBS__RUN_ID_SIZE];
        dibs__run run;

        out->next_s = tick.at;
        local_s = tick.at + tick.offset_s;
        dibs__run_id_of_tick(job->name, tick.at, id);
        rc = dibs__board_run(&ob->board, id, &run, err);
        dibs__run_fini(&run);
        if (rc == DIBS_OK) {
            out->ran++;
            out->next_s = 0;
        }
    }
    dibs__zone_free(zone);
    return rc == DIBS_NOTFOUND ? DIBS_OK : rc;
}

static dibs_status look_ahead(const dibs__open_board *ob, const char *name,
                              outlook *out, dibs_error *err)
{
    dibs__job_state state;
    dibs__job *job = NULL;
    dibs_status rc = dibs__board_state(&ob->board, name, &state, err);

    if (rc == DIBS_OK)
        rc = dibs__board_job(&ob->board, name, state.hash, &job, err);
    out->paused = rc == DIBS_OK && state.paused;
    if (rc == DIBS_OK && job->enabled && !out->paused)
        rc = find_first(ob, job, &state, out, err);
    dibs__job_free(job);
    return rc;
}

static int
tell_outlook(const dibs__command *cmd, const char *name, const outlook *o)
{
    char when[DIBS__MOMENT_SIZE + 1];
    dibs__report report;

    if (dibs__opt_flag(cmd, "json")) {
        dibs__report_begin(&report);
        dibsx_json_pair_text(&report.js, "job", name);
        dibsx_json_pair_bool(&report.js, "paused", o->paused);
        dibs__json_moment(&report.js, "next", o->next_s);
        dibsx_json_pair_int(&report.js, "ran_before", (int64_t)o->ran);
        return dibs__report_end(&report);
    }
    dibs__moment_cell(o->next_s * 1000000, when, sizeof(when));
    if (o->paused)
        printf("%s is paused, and runs again after 'dibs job unpause %s', or "
               "the end of its pause\n",
               name, name);
    else if (o->ran == RAN_MAX)
        printf("%s runs again after its next %d times, which ran already\n",
               name, (int)RAN_MAX);
    else if (!o->next_s)
        printf("%s has no time at which it is due\n", name);
    else if (o->ran)
        printf("%s runs again from %s on; its %zu time%s before that ran "
               "already\n",
               name, when, o->ran, o->ran == 1 ? "" : "s");
    else
        printf("%s runs again from %s on\n", name, when);
    return dibs__out_done();
}

static int reset_job(const dibs__command *cmd)
{
    const char *name = dibs__operands(cmd)[0];
    outlook out = {.ran = 0};
    dibs__open_board ob;
    dibs_error err = {0};
    int code = dibs__board_open(cmd, &ob);

    if (!code) {
        dibs_status rc =
            dibs__board_change_job(&ob.board, name, reset_state, NULL, &err);

        dibs__cli_change_made(cmd, ob.cl, "job-reset", name,
                              dibs__cli_change_reason(cmd), rc);
        if (rc == DIBS_OK)
            rc = look_ahead(&ob, name, &out, &err);
        code = rc == DIBS_OK ? tell_outlook(cmd, name, &out)
                             : dibs__cli_fail(cmd, &err);
    }
    dibs__board_close(&ob);
    return code;
}

const dibs__verb dibs__verb_job_reset = {
    .name = "job reset",
    .operands = "JOB",
    .summary = "count the times of a job from now on",
    .about = "Times before now are dealt with, and none of them is made up "
             "for. That helps if the store's clock was ahead, and the job "
             "would wait until it has caught up. Times that ran before do not "
             "run again: it prints from when on the job runs, and how many "
             "times before that ran already. A pause goes on.\n",
    .examples = "  dibs job reset nightly\n",
    .exits = "1 there is no such job\n",
    .options = "json,reason",
    .min_operands = 1,
    .max_operands = 1,
    .run = reset_job,
};
