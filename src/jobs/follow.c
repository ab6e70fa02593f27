/* follow.c - runs that other runs cause, and which node goes first. */
/* SPDX-License-Identifier: MIT */
#include "jobs/follow.h"
#include "base/fail.h"
#include "base/sha1.h"
#include "jobs/params.h"
#include "jobs/run_params.h"

#include <stdio.h>
#include <string.h>

enum { RANK_DELAY_MS = 100, RANK_DELAY_MAX_MS = 500 };

void dibs__child_id(const dibs__job *parent_job, const dibs__run *parent,
                    size_t step, char out[DIBS__RUN_ID_SIZE])
{
    dibs__run_id_after(parent_job->steps[step].job, parent->id,
                       parent->steps[step].name, out);
}

void dibs__then_id(const char *job, const dibs__run *ended,
                   char out[DIBS__RUN_ID_SIZE])
{
    dibs__run_id_after(job, ended->id, "", out);
}

/* The params of a step with values in place, one after the other in `text`. */
static dibs_status expand_with(const dibs__pairs *with, const dibs__run *parent,
                               dibsx_buf *text, dibs_error *err)
{
    const dibs__pairs values = {.at = parent->params,
                                .count = parent->param_count};
    char tick[DIBS__TICK_TEXT_SIZE];

    dibs__run_tick_text(parent, tick);
    for (size_t i = 0; i < with->count; i++) {
        dibs__params_expand(with->at[i].value, &values, tick, text);
        dibsx_buf_putc(text, '\0');
    }
    return dibsx_buf_ok(text)
               ? DIBS_OK
               : dibsx_fail(err, DIBS_INVALID,
                            "the params of a child of %s are too long",
                            parent->id);
}

dibs_status
dibs__wait_batch(const dibs__job *job, const dibs__run *run, size_t step,
                 char out[DIBS__JOB_NAME_SIZE], dibs_error *err)
{
    dibs__pair one = {.value = job->steps[step].wait.batch};
    const dibs__pairs with = {.at = &one, .count = 1};
    dibsx_buf text;
    dibs_status rc;

    dibsx_buf_init(&text, DIBS__JOB_NAME_SIZE);
    rc = expand_with(&with, run, &text, err);
    if (rc == DIBS_OK)
        (void)snprintf(out, DIBS__JOB_NAME_SIZE, "%s", dibsx_buf_text(&text));
    else
        rc = dibsx_fail(err, DIBS_INVALID,
                        "the name of the batch for which %s of %s waits is "
                        "too long",
                        job->steps[step].name, run->id);
    dibsx_buf_fini(&text);
    return rc;
}

static dibs_status
give_with(const dibs__pairs *with, const dibs__run *parent,
          const dibs__job *job, dibs__run *out, dibs_error *err)
{
    dibs__pair given[DIBS__JOB_PARAMS_MAX];
    const char *at;
    dibsx_buf text;
    dibs_status rc;

    if (with->count > DIBS__JOB_PARAMS_MAX)
        return dibsx_fail(err, DIBS_INVALID, "a child has more than %d params",
                          DIBS__JOB_PARAMS_MAX);
    dibsx_buf_init(&text, DIBS__RUN_JSON_MAX);
    rc = expand_with(with, parent, &text, err);
    at = dibsx_buf_text(&text);
    for (size_t i = 0; i < with->count && rc == DIBS_OK; i++) {
        given[i] = (dibs__pair){.name = with->at[i].name, .value = at};
        at += strlen(at) + 1;
    }
    if (rc == DIBS_OK)
        rc = dibs__run_params(out, job, given, with->count, err);
    dibsx_buf_fini(&text);
    return rc;
}

dibs_status
dibs__child_make(const dibs__job *parent_job, const dibs__run *parent,
                 size_t step, const dibs__job *job, const char *hash,
                 dibs__run *out, dibs_error *err)
{
    char id[DIBS__RUN_ID_SIZE];
    dibs_status rc;

    dibs__child_id(parent_job, parent, step, id);
    rc = dibs__run_make(out, id, job, hash, err);
    if (rc != DIBS_OK)
        return rc;
    out->cause = DIBS__CAUSE_CHILD;
    memcpy(out->origin, parent->id, sizeof(out->origin));
    memcpy(out->parent, parent->steps[step].name, sizeof(out->parent));
    out->end_by_us = parent->end_by_us; /* It does not outlive its parent. */
    return give_with(&parent_job->steps[step].with, parent, job, out, err);
}

dibs_status dibs__then_make(const dibs__run *ended, const dibs__job *job,
                            const char *hash, dibs__run *out, dibs_error *err)
{
    char id[DIBS__RUN_ID_SIZE];
    dibs_status rc;

    dibs__then_id(job->name, ended, id);
    rc = dibs__run_make(out, id, job, hash, err);
    if (rc != DIBS_OK)
        return rc;
    out->cause = DIBS__CAUSE_THEN;
    memcpy(out->origin, ended->id, sizeof(out->origin));
    return dibs__run_params(out, job, NULL, 0, err);
}

const dibs__texts *dibs__then_jobs(const dibs__job *job, const dibs__run *run)
{
    static const dibs__texts none;

    if (run->state == DIBS__STATE_OK)
        return &job->then.ok;
    return run->state == DIBS__STATE_FAILED ? &job->then.failed : &none;
}

static void
weigh_node(const char *name, const char *node, char out[DIBSX_SHA1_TEXT])
{
    char text[DIBS__JOB_NAME_SIZE + DIBS__NODE_SIZE + 1];
    int len = snprintf(text, sizeof(text), "%.100s %.16s", name, node);

    dibsx_sha1(text, (size_t)len, out);
}

size_t dibs__node_rank(const char *name, const char *own,
                       const char *const *others, size_t count)
{
    char weight[DIBSX_SHA1_TEXT], other[DIBSX_SHA1_TEXT];
    size_t rank = 0;

    weigh_node(name, own, weight);
    for (size_t i = 0; i < count; i++) {
        weigh_node(name, others[i], other);
        rank += strcmp(other, weight) > 0;
    }
    return rank;
}

int64_t dibs__rank_delay_ms(size_t rank)
{
    return rank < RANK_DELAY_MAX_MS / RANK_DELAY_MS
               ? (int64_t)rank * RANK_DELAY_MS
               : RANK_DELAY_MAX_MS;
}
