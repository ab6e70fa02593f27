/* board_stage.c - see board_stage.h. */
/* SPDX-License-Identifier: MIT */
#include "jobs/board_stage.h"

#include "base/rand.h"
#include <string.h>

void dibs__stage_init(dibs__stage *st)
{
    *st = (dibs__stage){.job = NULL};
    dibs__run_init(&st->run, "");
    dibs__run_init(&st->live, "");
    dibs__run_init(&st->next, "");
    dibs__intent_init(&st->in);
    st->sc = (dibs__scene){.run = &st->run, .in = &st->in};
    (void)dibsx_random(&st->sc.chance, sizeof(st->sc.chance));
}

void dibs__stage_fini(dibs__stage *st)
{
    dibs__intent_fini(&st->in);
    dibs__run_fini(&st->next);
    dibs__run_fini(&st->live);
    dibs__run_fini(&st->run);
    dibs__job_free(st->next_job);
    dibs__job_free(st->live_job);
    dibs__job_free(st->job);
}

/* A run that the state names may be gone with its history. Its definition is read where
 * it was made with another one than `hash`. */
static dibs_status
read_other(const dibs__board *board, const char *id, const char *hash,
           dibs__run *run, dibs__job **job, dibs_error *err)
{
    dibs_status rc = DIBS_OK;

    dibs__run_fini(run);
    rc = dibs__board_run(board, id, run, err);
    if (rc == DIBS_OK && strcmp(run->hash, hash) != 0)
        rc = dibs__board_job(board, run->job, run->hash, job, err);
    return rc;
}

/* For a scene whose own definition has this hash. */
static dibs_status
read_others(const dibs__board *board, dibs__stage *st, const char *own,
            const char *hash, dibs_error *err)
{
    const char *live = st->state.live, *follows = st->state.follows;
    dibs_status rc = DIBS_NOTFOUND;

    st->sc.state = &st->state;
    if (live[0] && strcmp(live, own) != 0)
        rc = read_other(board, live, hash, &st->live, &st->live_job, err);
    if (rc == DIBS_OK)
        st->sc.live = &st->live;
    if (rc != DIBS_OK && rc != DIBS_NOTFOUND)
        return rc;
    rc = DIBS_NOTFOUND;
    if (follows[0] && strcmp(follows, own) != 0)
        rc = read_other(board, follows, hash, &st->next, &st->next_job, err);
    if (rc == DIBS_OK)
        st->sc.next = &st->next;
    st->sc.live_job = st->live_job;
    st->sc.next_job = st->next_job;
    return rc == DIBS_NOTFOUND ? DIBS_OK : rc;
}

dibs_status dibs__stage_state(const dibs__board *board, dibs__stage *st,
                              const char *own, dibs_error *err)
{
    dibs_status rc = DIBS_OK;

    st->sc.job = st->job;
    if (!dibs__scene_needs_state(st->job))
        return DIBS_OK;
    rc = dibs__board_state(board, st->job->name, &st->state, err);
    return rc == DIBS_OK ? read_others(board, st, own, st->run.hash, err) : rc;
}

dibs_status dibs__stage_run(const dibs__board *board, const char *id,
                            dibs__stage *st, dibs_error *err)
{
    dibs_status rc = DIBS_OK;

    dibs__run_fini(&st->run);
    rc = dibs__board_run(board, id, &st->run, err);
    return rc == DIBS_OK ? dibs__stage_rest(board, st, err) : rc;
}

dibs_status
dibs__stage_rest(const dibs__board *board, dibs__stage *st, dibs_error *err)
{
    dibs_status rc =
        dibs__board_job(board, st->run.job, st->run.hash, &st->job, err);

    if (rc == DIBS_OK)
        rc = dibs__stage_state(board, st, st->run.id, err);
    if (rc == DIBS_OK && st->sc.now_us == 0)
        rc = dibs__board_now(board, &st->sc.now_us, err);
    return rc;
}

dibs_status dibs__stage_due(const dibs__board *board, dibs__stage *st,
                            const dibs__job *own, dibs_error *err)
{
    dibs_status rc = DIBS_OK;

    st->sc.state = &st->state;
    if (!own)
        rc = dibs__board_job(board, st->state.job, st->state.hash, &st->job,
                             err);
    st->sc.job = own ? own : st->job;
    if (rc == DIBS_OK && dibs__scene_needs_live(st->sc.job))
        rc = read_others(board, st, "", st->state.hash, err);
    return rc;
}
