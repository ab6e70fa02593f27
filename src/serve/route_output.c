/* route_output.c - the output of a run: live as events, or all of it as text. Threads of
 * the server. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/fail.h"
#include "http/sse.h"
#include "serve/ask.h"
#include "serve/daemon.h"
#include "serve/job_ask.h"
#include "serve/problem.h"
#include "serve/routes.h"
#include <stdio.h>
#include <string.h>

enum { TEXT_MAX = 64 * 1024 * 1024, TAIL_MAX = 100000 };

/* False: it was refused. */
static bool read_request(dibs__http_exchange *ex, dibs__run_output *ro)
{
    const char *step = dibs__http_query(ex, "step");
    const char *last = dibs__http_header(ex, "Last-Event-ID");
    const char *from = last ? last : dibs__http_query(ex, "from");
    int64_t tail = DIBS__OUTPUT_TAIL, attempt = 0;

    if (!dibs__serve_ask_query(ex, "tail", 1, TAIL_MAX, &tail) ||
        !dibs__serve_ask_query(ex, "attempt", 1, 99999, &attempt) ||
        !dibs__serve_ask_board(ex, &ro->board))
        return false;
    (void)snprintf(ro->run, sizeof(ro->run), "%.127s",
                   dibs__http_param(ex, "run"));
    if (step)
        (void)snprintf(ro->step, sizeof(ro->step), "%.100s", step);
    ro->attempt = (uint32_t)attempt;
    ro->tail = (size_t)tail;
    if (from && !dibs__output_resume(ro, from)) {
        (void)dibs__serve_refuse(ex, 400, "invalid",
                                 "?from= must be the id of an event of this "
                                 "run");
        return false;
    }
    return true;
}

static void answer_text(dibs__http_exchange *ex, const dibs__run_output *ro)
{
    dibs_error err = {0};
    dibsx_buf text;
    dibs_status rc;
    size_t len;

    dibsx_buf_init(&text, TEXT_MAX);
    rc = dibs__output_text(ro, &text, &err);
    if (rc == DIBS_OK && !dibsx_buf_ok(&text))
        rc = dibsx_nomem(&err, "the output");
    len = text.len;
    if (rc == DIBS_OK)
        dibs__http_answer_bytes(ex, 200, "text/plain; charset=utf-8",
                                len ? dibsx_buf_take(&text) : "", len,
                                len ? dibsx_free : NULL);
    else
        (void)dibs__serve_fail(ex, &err);
    dibsx_buf_fini(&text);
}

/* The highest attempt of the step, or of all steps; -1: there is no such step. */
static int64_t find_attempts(const dibs__run *run, const char *step)
{
    int64_t most = *step ? -1 : 0;

    for (size_t i = 0; i < run->step_count; i++)
        if ((!*step || strcmp(run->steps[i].name, step) == 0) &&
            (int64_t)run->steps[i].attempt > most)
            most = run->steps[i].attempt;
    return most;
}

/* A run, a step or an attempt that is not there is 404, not a stream without events. */
static bool check_run(dibs__http_exchange *ex, const dibs__run_output *ro)
{
    dibs__run run;
    dibs_error err = {0};
    dibs_status rc = dibs__board_run(&ro->board, ro->run, &run, &err);
    int64_t attempts = rc == DIBS_OK ? find_attempts(&run, ro->step) : 0;

    if (attempts < 0)
        rc =
            dibsx_fail(&err, DIBS_NOTFOUND, "the run has no step %s", ro->step);
    else if (rc == DIBS_OK && ro->attempt > attempts)
        rc = dibsx_fail(&err, DIBS_NOTFOUND,
                        "the run has no attempt %u there yet",
                        (unsigned)ro->attempt);
    if (rc != DIBS_OK)
        (void)dibs__serve_fail(ex, &err);
    dibs__run_fini(&run);
    return rc == DIBS_OK;
}

void dibs__serve_get_output(dibs__http_exchange *ex)
{
    dibs__serve *sv = dibs__http_arg(ex);
    const char *accept = dibs__http_header(ex, "Accept");
    dibs__run_output *ro = dibsx_zalloc(sizeof(*ro));

    if (!ro) {
        (void)dibs__serve_refuse(ex, 503, "nomem", "there is no memory left");
        return;
    }
    if (!read_request(ex, ro) || !check_run(ex, ro)) {
        dibsx_free(ro);
        return;
    }
    if (accept && strstr(accept, DIBS__HTTP_SSE_TYPE)) {
        dibs__tails_answer(&sv->tails, ex, ro);
        return;
    }
    answer_text(ex, ro);
    dibsx_free(ro);
}
