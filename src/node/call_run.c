/* call_run.c - see call_run.h: what a function asks of its call. */
/* SPDX-License-Identifier: MIT */
#include "node/call_run.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void copy_params(dibs_run *call, const dibs__run *run)
{
    dibs__pair *pairs =
        dibs__arena_take(call->arena, run->param_count + 1, sizeof(*pairs));

    for (size_t i = 0; pairs && i < run->param_count; i++) {
        pairs[i].name = dibs__arena_text(call->arena, run->params[i].name);
        pairs[i].value = dibs__arena_text(call->arena, run->params[i].value);
    }
    call->params = (dibs__pairs){.at = pairs, .count = run->param_count};
}

static void copy_needs(dibs_run *call, const dibs__job *job,
                       const dibs__step *step, const dibs__run *run)
{
    call->needs = dibs__arena_take(call->arena, job->step_count + 1,
                                   sizeof(*call->needs));
    for (size_t i = 0; call->needs && i < run->step_count; i++) {
        const dibs__run_step *from = &run->steps[i];
        char *copy;

        if (i >= job->step_count || !dibs__step_needs(step, i) || !from->result)
            continue;
        copy = dibs__arena_take(call->arena, from->result_len + 1, 1);
        if (copy)
            memcpy(copy, from->result, from->result_len);
        call->needs[call->need_count++] =
            (dibs__call_need){.step = dibs__arena_text(call->arena, from->name),
                              .result = copy,
                              .len = from->result_len};
    }
}

dibs_status
dibs__call_fill(dibs_run *call, const dibs__job *job, const dibs__step *step,
                const dibs__run *run, dibs_error *err)
{
    call->arena = dibs__arena_new();
    if (!call->arena)
        return dibsx_nomem(err, "a call");
    (void)snprintf(call->job, sizeof(call->job), "%s", run->job);
    (void)snprintf(call->step, sizeof(call->step), "%s", step->name);
    call->tick_us = run->tick_s * 1000000;
    /* Versions rise on the board, and the claim of a later attempt has a later one. */
    call->token = run->version;
    copy_params(call, run);
    copy_needs(call, job, step, run);
    return dibs__arena_ok(call->arena) ? DIBS_OK : dibsx_nomem(err, "a call");
}

void dibs__call_free(dibs_run *call)
{
    if (!call)
        return;
    if (call->stop_fd >= 0)
        close(call->stop_fd);
    dibs__arena_free(call->arena);
    dibsx_free(call);
}

const char *dibs_run_id(const dibs_run *run)
{
    return run->id;
}

const char *dibs_run_job(const dibs_run *run)
{
    return run->job;
}

const char *dibs_run_step(const dibs_run *run)
{
    return run->step;
}

uint32_t dibs_run_attempt(const dibs_run *run)
{
    return run->attempt;
}

int64_t dibs_run_tick_us(const dibs_run *run)
{
    return run->tick_us;
}

uint64_t dibs_run_token(const dibs_run *run)
{
    return run->token;
}

uint64_t dibs_run_fence(const dibs_run *run)
{
    return run->fence;
}

const char *dibs_run_param(const dibs_run *run, const char *name)
{
    for (size_t i = 0; name && i < run->params.count; i++)
        if (strcmp(run->params.at[i].name, name) == 0)
            return run->params.at[i].value;
    return NULL;
}

const void *dibs_run_need(const dibs_run *run, const char *step, size_t *len)
{
    if (len)
        *len = 0;
    for (size_t i = 0; step && i < run->need_count; i++)
        if (strcmp(run->needs[i].step, step) == 0) {
            if (len)
                *len = run->needs[i].len;
            return run->needs[i].result;
        }
    return NULL;
}

/* The clock decides as well: what tells calls may be late. */
static dibs__reason find_why(const dibs_run *run)
{
    dibs__reason why = (dibs__reason)atomic_load(&run->why);
    dibsx_nsec now;

    if (why)
        return why;
    now = dibsx_now();
    if (now >= run->timeout_at)
        return DIBS__REASON_TIMEOUT;
    if (!run->outlives && now >= atomic_load(&run->belief->go_until))
        return DIBS__REASON_LOST;
    return DIBS__REASON_NONE;
}

bool dibs_run_go_on(const dibs_run *run)
{
    return find_why(run) == DIBS__REASON_NONE;
}

const char *dibs_run_why(const dibs_run *run)
{
    dibs__reason why = find_why(run);

    return why ? dibs__reason_name(why) : NULL;
}

int dibs_run_stop_fd(const dibs_run *run)
{
    return run->stop_fd;
}

dibs_status
dibs_run_result(dibs_run *run, const void *data, size_t len, dibs_error *err)
{
    if (len > DIBS_RESULT_MAX || (len && !data))
        return dibsx_fail(err, DIBS_INVALID,
                          "the result has more than %d bytes; pass on where it "
                          "is",
                          DIBS_RESULT_MAX);
    if (len)
        memcpy(run->result, data, len);
    run->result_len = len;
    return DIBS_OK;
}
