/* board_start.c - see board_start.h. */
/* SPDX-License-Identifier: MIT */
#include "jobs/board_start.h"

#include "base/fail.h"
#include "base/rand.h"
#include "jobs/board_stage.h"
#include "jobs/run_params.h"
#include <dibs/lock.h>
#include <stdio.h>
#include <string.h>

enum { ID_DIGITS = 12, LOCK_TTL_MS = 30000 };

dibs_status dibs__run_id_of_hand(const char *job, const char *given,
                                 char out[DIBS__RUN_ID_SIZE], dibs_error *err)
{
    char drawn[ID_DIGITS + 1];
    size_t len = strlen(job);

    if (given && strncmp(given, job, len) == 0 && given[len] == '.')
        given += len + 1;
    if (!given && !dibsx_random_hex(drawn, sizeof(drawn)))
        return dibsx_fail(err, DIBS_INTERNAL, "the kernel has no randomness");
    if (!dibs__job_name_ok(job))
        return dibsx_fail(err, DIBS_INVALID, "'%.60s' is no name of a job",
                          job);
    if (given && (!dibs__job_name_ok(given) ||
                  len + strlen(given) + 2 > DIBS__RUN_ID_SIZE))
        return dibsx_fail(err, DIBS_INVALID,
                          "'%.60s' is no id of a run: letters, digits, '.', "
                          "'_' and '-'",
                          given);
    (void)snprintf(out, DIBS__RUN_ID_SIZE, "%.100s.%s", job,
                   given ? given : drawn);
    return DIBS_OK;
}

typedef struct order {
    const char *id;
    const dibs__pair *params;
    size_t param_count;
    const dibs__run *older; /* of a rerun */
    const char *from;
} order;

static dibs_status
make_start(const dibs__job *job, const dibs__job_state *state, dibs__run *run,
           void *arg, dibs_error *err)
{
    const order *o = arg;
    dibs_status rc = DIBS_OK;

    if (!state->set[0])
        return dibsx_fail(err, DIBS_NOTFOUND,
                          "the job %s is in no set any more; load a file that "
                          "has it",
                          job->name);
    rc = dibs__run_make(run, o->id, job, state->hash, err);
    run->cause = DIBS__CAUSE_HAND;
    return rc == DIBS_OK
               ? dibs__run_params(run, job, o->params, o->param_count, err)
               : rc;
}

dibs_status
dibs__board_start(const dibs__board *board, const char *job, const char *id,
                  const dibs__pair *params, size_t count,
                  const dibs__member_of *member, dibs_error *err)
{
    order o = {.id = id, .params = params, .param_count = count};

    return dibs__board_start_member(board, job, id, make_start, &o, member,
                                    err);
}

static dibs_status
make_rerun(const dibs__job *job, const dibs__job_state *state, dibs__run *run,
           void *arg, dibs_error *err)
{
    const order *o = arg;
    dibs_status rc = dibs__run_make(run, o->id, job, o->older->hash, err);

    (void)state;
    return rc == DIBS_OK ? dibs__run_rerun(job, run, o->older, o->from, err)
                         : rc;
}

dibs_status dibs__board_rerun(const dibs__board *board, const dibs__run *older,
                              const char *id, const char *from, dibs_error *err)
{
    order o = {.id = id, .older = older, .from = from};

    if (!dibs__state_final(older->state))
        return dibsx_fail(err, DIBS_BUSY,
                          "the run %s has not ended; wait for its end, or "
                          "cancel it",
                          older->id);
    return dibs__board_start_run(board, older->job, id, older->hash, make_rerun,
                                 &o, err);
}

static dibs_status check_size(size_t len, dibs_error *err)
{
    return len <= DIBS__RUN_RESULT_MAX
               ? DIBS_OK
               : dibsx_fail(err, DIBS_INVALID,
                            "the data has more than %d bytes; pass on where it "
                            "is",
                            DIBS__RUN_RESULT_MAX);
}

/* Whether it can be resumed now, before any work is done. */
static dibs_status check_bookmark(const dibs__board *board, const char *run,
                                  const dibs__resumption *a, dibs_error *err)
{
    dibs__stage st;
    dibs_status rc = DIBS_OK;

    dibs__stage_init(&st);
    rc = dibs__stage_run(board, run, &st, err);
    if (rc == DIBS_OK)
        rc = dibs__run_bookmark(&st.sc, a->bookmark, NULL, 0, a->who, err);
    dibs__stage_fini(&st);
    return rc;
}

dibs_status dibs__board_resume_held(const dibs__board *board, const char *run,
                                    const dibs__resumption *a, dibs_error *err)
{
    char made[DIBS__RUN_RESULT_MAX];
    const void *data = a->data;
    size_t len = a->len;
    dibs_status rc = DIBS_OK;

    if (a->work) {
        data = made;
        len = sizeof(made);
        rc = check_bookmark(board, run, a, err);
        if (rc == DIBS_OK)
            rc = a->work(a->arg, made, &len, err);
        if (rc == DIBS_OK)
            rc = check_size(len, err);
    }
    /* Work that was done is not to be done again because the store was away. */
    return rc == DIBS_OK
               ? dibs__board_bookmark(board, run, a->bookmark, data, len,
                                      a->who, a->work ? a->held : NULL, a->lock,
                                      err)
               : rc;
}

dibs_status dibs__bookmark_lock(const char *run, const char *bookmark,
                                char out[DIBS_NAME_MAX + 1], dibs_error *err)
{
    int size = snprintf(out, DIBS_NAME_MAX + 1, "workflow:%s:bookmark:%s", run,
                        bookmark);

    return size >= 0 && size <= DIBS_NAME_MAX
               ? DIBS_OK
               : dibsx_fail(err, DIBS_INVALID, "'%.60s' is no bookmark",
                            bookmark);
}

dibs_status
dibs__bookmark_busy(const char *run, const char *bookmark, dibs_error *err)
{
    return dibsx_fail(err, DIBS_BUSY,
                      "the bookmark %s of the run %s is already in progress",
                      bookmark, run);
}

static bool is_held(const void *lock)
{
    return dibs_lock_valid_ms(lock) > 0;
}

/* The lock tells a second caller that the first is at work; the version of the record
 * makes it happen once. */
dibs_status dibs__board_resume(const dibs__board *board, const char *run,
                               const dibs__resumption *a, dibs_error *err)
{
    char name[DIBS_NAME_MAX + 1];
    dibs_lock *lock = NULL;
    dibs_status rc = check_size(a->len, err);

    if (rc == DIBS_OK)
        rc = dibs__bookmark_lock(run, a->bookmark, name, err);
    if (rc == DIBS_OK)
        rc = dibs_lock_new(board->cl, name,
                           DIBS_LOCK_OPTS(.ttl_ms = LOCK_TTL_MS), &lock, err);
    if (rc == DIBS_OK)
        rc = dibs_lock_try(lock, err);
    if (rc == DIBS_BUSY)
        rc = dibs__bookmark_busy(run, a->bookmark, err);
    if (rc == DIBS_OK) {
        dibs__resumption held = *a;

        held.held = is_held;
        held.lock = lock;
        rc = dibs__board_resume_held(board, run, &held, err);
        (void)!dibs_lock_release(lock, NULL);
    }
    dibs_lock_free(lock);
    return rc;
}
