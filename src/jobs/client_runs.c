/* client_runs.c - runs from any program: start, wait, look, cancel (dibs/jobs.h). */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/opts.h"
#include "base/uncancel.h"
#include "jobs/board_name.h"
#include "jobs/board_start.h"
#include "jobs/params.h"

#include <stdio.h>
#include <string.h>

_Static_assert((int)DIBS_RUN_SKIPPED == (int)DIBS__STATE_SKIPPED &&
                   (int)DIBS_RUN_OK == (int)DIBS__STATE_OK &&
                   (int)DIBS_RESULT_MAX == (int)DIBS__RUN_RESULT_MAX,
               "the public names of states are those of records");

/* ---- start */

dibs_status
dibs_job_start(dibs_client *cl, const char *job, const dibs_start_opts *given,
               char run[DIBS_RUN_SIZE], dibs_error *err)
{
    DIBSX_UNCANCEL;
    char id[DIBS__RUN_ID_SIZE];
    dibs_start_opts opts;
    dibs__pair params[DIBS__JOB_PARAMS_MAX];
    size_t param_count = 0;
    dibs__arena *arena = dibs__arena_new();
    dibs__board board;
    const char *name = NULL;
    dibs_status rc = arena ? dibs__board_split(cl, job, &board, &name, err)
                           : dibsx_nomem(err, "params");

    run[0] = '\0';
    if (rc == DIBS_OK)
        rc = dibsx_opts_copy(&opts, sizeof(opts), given, "DIBS_START_OPTS()",
                             err);
    if (rc == DIBS_OK)
        rc = dibs__run_id_of_hand(name, opts.id, id, err);
    if (rc == DIBS_OK)
        rc = dibs__params_split(opts.params, arena, params, &param_count, err);
    if (rc == DIBS_OK)
        rc = dibs__board_start(&board, name, id, params, param_count,
                               &(dibs__member_of){opts.batch, opts.of}, err);
    if (rc == DIBS_OK)
        dibs__board_join(&board, id, run);
    dibs__arena_free(arena);
    return rc;
}

/* ---- look and wait */

static void
fill_info(const dibs__board *board, const dibs__run *run, dibs_run_info *out)
{
    size_t size = out->size;
    dibs_run_info all = {.size = size,
                         .state = (dibs_run_state)run->state,
                         .ended = dibs__state_final(run->state),
                         .made_us = run->made_us,
                         .started_us = run->begun_us,
                         .ended_us = run->ended_us,
                         .steps = (uint32_t)run->step_count};

    dibs__board_join(board, run->id, all.run);
    (void)snprintf(all.job, sizeof(all.job), "%s", run->job);
    (void)snprintf(all.reason, sizeof(all.reason), "%s",
                   run->reason ? dibs__reason_name(run->reason) : "");
    (void)snprintf(all.cause, sizeof(all.cause), "%s",
                   dibs__cause_name(run->cause));
    all.tick_us = run->tick_s * 1000000;
    memcpy(out, &all, size < sizeof(all) ? size : sizeof(all));
}

static dibs_status check_info(const dibs_run_info *out, dibs_error *err)
{
    return !out || out->size ? DIBS_OK
                             : dibsx_fail(err, DIBS_INVALID,
                                          "the size of dibs_run_info is not "
                                          "set; set it to sizeof");
}

static dibs_status show_run(const dibs__board *board, const dibs__run *run,
                            dibs_run_info *out, dibs_step_fn *each, void *arg)
{
    bool more = each != NULL;

    if (out)
        fill_info(board, run, out);
    for (size_t i = 0; more && i < run->step_count; i++) {
        const dibs__run_step *step = &run->steps[i];
        const dibs_step_info info = {
            .name = step->name,
            .state = (dibs_run_state)step->state,
            .reason = step->reason ? dibs__reason_name(step->reason) : "",
            .attempt = step->attempt,
            .code = step->exit_code,
            .started_us = step->begun_us,
            .ended_us = step->ended_us,
            .result = step->result,
            .len = step->result ? step->result_len : 0};

        more = each(&info, arg);
    }
    return DIBS_OK;
}

dibs_status dibs_job_show(dibs_client *cl, const char *run, dibs_run_info *out,
                          dibs_step_fn *each, void *arg, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibs__board board;
    dibs__run record;
    const char *id = NULL;
    dibs_status rc = dibs__board_split(cl, run, &board, &id, err);

    if (rc == DIBS_OK)
        rc = check_info(out, err);
    if (rc != DIBS_OK)
        return rc;
    rc = dibs__board_run(&board, id, &record, err);
    if (rc == DIBS_OK)
        rc = show_run(&board, &record, out, each, arg);
    dibs__run_fini(&record);
    return rc;
}

/* A change of the record that is watched. */
static dibs_status
look_at_change(const dibs__board *board, const char *id,
               const dibs_value *value, dibs_run_info *info, dibs_error *err)
{
    dibs__run run;
    dibs_status rc;

    dibs__run_init(&run, id);
    if (value->version == 0)
        rc = dibsx_fail(err, DIBS_NOTFOUND,
                        "the run %s is not in the store, or is gone from it",
                        id);
    else
        rc = dibs__run_read(&run, id, value->data, value->len, err);
    if (rc == DIBS_OK)
        fill_info(board, &run, info);
    dibs__run_fini(&run);
    return rc;
}

static dibs_status
await_run(const dibs__board *board, const char *id, int64_t wait_ms,
          dibs_run_info *info, dibs_error *err)
{
    dibsx_nsec until = dibsx_after_ms(dibsx_now(), wait_ms);
    char inner[DIBS__RUN_ID_SIZE + 8], key[DIBS_NAME_MAX + 1];
    dibs_watch *watch = NULL;
    dibs_status rc;

    (void)snprintf(inner, sizeof(inner), "run/%s", id);
    rc = dibs__board_key(board, inner, key, err);
    if (rc == DIBS_OK)
        rc = dibs_state_watch(board->cl, key, &watch, err);
    while (rc == DIBS_OK && !info->ended) {
        dibs_change change = {.merged = false};

        rc = dibs_watch_next(watch, dibsx_wait_ms(until, dibsx_now()), &change,
                             err);
        if (rc == DIBS_OK)
            rc = look_at_change(board, id, &change.value, info, err);
        dibs_value_free(&change.value);
    }
    dibs_watch_free(watch);
    if (rc == DIBS_TIMEOUT)
        rc = dibsx_fail(err, rc, "the run %s has not ended in time", id);
    return rc;
}

dibs_status dibs_job_wait(dibs_client *cl, const char *run, int64_t wait_ms,
                          dibs_run_info *out, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibs_run_info info = {.size = sizeof(info)};
    dibs__board board;
    const char *id = NULL;
    dibs_status rc = dibs__board_split(cl, run, &board, &id, err);

    if (rc == DIBS_OK)
        rc = check_info(out, err);
    if (rc == DIBS_OK)
        rc = await_run(&board, id, wait_ms, &info, err);
    if (rc == DIBS_OK && out) {
        size_t size = out->size;

        memcpy(out, &info, size < sizeof(info) ? size : sizeof(info));
        out->size = size;
    }
    return rc;
}

dibs_status dibs_job_result(dibs_client *cl, const char *run, const char *step,
                            dibs_value *out, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibs__board board;
    dibs__run record;
    const char *id = NULL;
    size_t i = 0;
    dibs_status rc = dibs__board_split(cl, run, &board, &id, err);

    *out = (dibs_value){.len = 0};
    if (rc != DIBS_OK)
        return rc;
    rc = dibs__board_run(&board, id, &record, err);
    if (rc == DIBS_OK && (!step || !dibs__run_find(&record, step, &i) ||
                          !record.steps[i].result))
        rc = dibsx_fail(err, DIBS_NOTFOUND,
                        "the step %.60s of the run %.100s has no result",
                        step ? step : "", id);
    if (rc == DIBS_OK) {
        const dibs__run_step *from = &record.steps[i];

        out->data = dibsx_zalloc(from->result_len + 1);
        if (!out->data)
            rc = dibsx_nomem(err, "a result");
        else {
            memcpy(out->data, from->result, from->result_len);
            out->len = from->result_len;
            out->version = record.version;
            out->expires_ms = -1;
        }
    }
    dibs__run_fini(&record);
    return rc;
}

/* ---- the runs of a job */

typedef struct run_list {
    char (*at)[DIBS__RUN_ID_SIZE];
    size_t count;
} run_list;

static bool note_run(const dibs_index_entry *entry, void *arg)
{
    run_list *list = arg;

    if (strlen(entry->member) < DIBS__RUN_ID_SIZE &&
        list->count < DIBS_LOOK_MAX)
        (void)snprintf(list->at[list->count++], DIBS__RUN_ID_SIZE, "%s",
                       entry->member);
    return true;
}

static dibs_status list_runs(const dibs__board *board, const char *job,
                             run_list *list, dibs_error *err)
{
    char inner[DIBS__PLACE_SIZE], key[DIBS_NAME_MAX + 1];
    dibs_index_look look = {.index = key,
                            .up_to = DIBS_INDEX_AT_MAX,
                            .limit = DIBS_LOOK_MAX};
    dibs_status rc;

    list->at = dibsx_zalloc_n(DIBS_LOOK_MAX, sizeof(*list->at));
    if (!list->at)
        return dibsx_nomem(err, "the list of runs");
    (void)snprintf(inner, sizeof(inner), "runs/%.100s", job);
    rc = dibs__board_key(board, inner, key, err);
    return rc == DIBS_OK ? dibs_index_first(board->cl, &look, 1, NULL, note_run,
                                            list, err)
                         : rc;
}

dibs_status dibs_job_runs(dibs_client *cl, const char *job, dibs_run_fn *each,
                          void *arg, dibs_error *err)
{
    DIBSX_UNCANCEL;
    run_list list = {.count = 0};
    dibs__board board;
    const char *name = NULL;
    bool more = true;
    dibs_status rc = dibs__board_split(cl, job, &board, &name, err);

    if (rc == DIBS_OK)
        rc = list_runs(&board, name, &list, err);
    for (size_t i = 0; i < list.count && more && rc == DIBS_OK; i++) {
        dibs_run_info info = {.size = sizeof(info)};
        dibs__run run;

        rc = dibs__board_run(&board, list.at[i], &run, err);
        if (rc == DIBS_OK) {
            fill_info(&board, &run, &info);
            more = each(&info, arg);
        } else if (rc == DIBS_NOTFOUND || rc == DIBS_INVALID)
            rc = DIBS_OK; /* Gone meanwhile, or it cannot be read. */
        dibs__run_fini(&run);
    }
    dibsx_free(list.at);
    return rc;
}

dibs_status dibs_job_cancel(dibs_client *cl, const char *run, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibs__board board;
    const char *id = NULL;
    dibs_status rc = dibs__board_split(cl, run, &board, &id, err);

    return rc == DIBS_OK ? dibs__board_cancel(&board, id, err) : rc;
}
