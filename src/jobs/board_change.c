/* board_change.c - see board_change.h. Owns the records while it changes them. */
/* SPDX-License-Identifier: MIT */
#include "jobs/board_change.h"

#include "base/fail.h"
#include "base/rand.h"
#include "jobs/board_batch.h"
#include "jobs/board_stage.h"
#include "jobs/follow.h"
#include "jobs/run_graph.h"
#include <poll.h>
#include <stdio.h>
#include <string.h>

enum { ROUNDS_MAX = 32, CHILDREN_DEEP = 16, RESUME_AGAIN_MS = 200 };

/* One try of a change. BROKEN: another client was faster. */
typedef dibs_status try_fn(const dibs__board *board, const void *what,
                           bool *doubt, dibs_error *err);

static dibs_status
try_rounds(const dibs__board *board, try_fn *try_once, const void *what,
           const char *name, dibs_error *err)
{
    bool doubt = false;

    for (int i = 0; i < ROUNDS_MAX; i++) {
        dibs_status rc = try_once(board, what, &doubt, err);

        if (rc != DIBS_BROKEN)
            return rc;
    }
    return dibsx_fail(err, DIBS_STALE,
                      "%s is changed by others all the time; try again", name);
}

/* BROKEN: the commit met the change of another. STALE would mean that the change found
 * nothing to do. */
static dibs_status commit_try(const dibs__board *board, const dibs__intent *in,
                              bool *doubt, dibs_error *err)
{
    dibs_status rc = dibs__board_commit(board, in, doubt, err);

    return rc == DIBS_STALE || rc == DIBS_EARLY || rc == DIBS_LATE ? DIBS_BROKEN
                                                                   : rc;
}

typedef struct run_change {
    const char *id;
    dibs__scene_fn *change;
    void *arg;
} run_change;

static dibs_status try_run(const dibs__board *board, const void *what,
                           bool *doubt, dibs_error *err)
{
    const run_change *rn = what;
    dibs__stage st;
    dibs_status rc = DIBS_OK;

    dibs__stage_init(&st);
    rc = dibs__stage_run(board, rn->id, &st, err);
    if (rc == DIBS_OK)
        rc = rn->change(&st.sc, *doubt, rn->arg, err);
    if (rc == DIBS_OK) {
        dibs__scene_write(&st.sc);
        rc = commit_try(board, &st.in, doubt, err);
    }
    dibs__stage_fini(&st);
    return rc;
}

dibs_status
dibs__board_change_run(const dibs__board *board, const char *id,
                       dibs__scene_fn *change, void *arg, dibs_error *err)
{
    const run_change rn = {.id = id, .change = change, .arg = arg};

    return try_rounds(board, try_run, &rn, id, err);
}

/* A second cancel says more than the first, so one that may have been made is not made
 * again. */
typedef struct cancellation {
    uint32_t before;
    bool tried;
    uint32_t most; /* the run is to be cancelled so often; 0: once more */
} cancellation;

static dibs_status
cancel_scene(dibs__scene *sc, bool doubt, void *arg, dibs_error *err)
{
    cancellation *c = arg;

    if (doubt && c->tried && sc->run->cancels > c->before)
        return DIBS_CANCELLED;
    if (c->most &&
        (dibs__state_final(sc->run->state) || sc->run->cancels >= c->most))
        return DIBS_CANCELLED;
    c->before = sc->run->cancels;
    c->tried = true;
    return dibs__run_cancel(sc, DIBS__REASON_CANCELLED, err);
}

/* Cancels one run, `most` as of the cancellation. */
static dibs_status cancel_run(const dibs__board *board, const char *id,
                              uint32_t most, dibs_error *err)
{
    cancellation c = {.most = most};
    dibs_status rc = dibs__board_change_run(board, id, cancel_scene, &c, err);

    return rc == DIBS_CANCELLED ? DIBS_OK : rc;
}

dibs_status dibs__board_cancel_to(const dibs__board *board, const char *id,
                                  uint32_t cancels, dibs_error *err)
{
    dibs_status rc = DIBS_OK;

    for (uint32_t n = 1; n <= cancels && rc == DIBS_OK; n++)
        rc = cancel_run(board, id, n, err);
    return rc;
}

static dibs_status cancel_children(const dibs__board *board, const char *id,
                                   int depth, dibs_error *err)
{
    dibs__job *job = NULL;
    dibs__run run;
    dibs_status rc = dibs__board_run(board, id, &run, err);

    if (rc == DIBS_OK && run.cancels > 0)
        rc = dibs__board_job(board, run.job, run.hash, &job, err);
    for (size_t i = 0; job && i < run.step_count && rc == DIBS_OK; i++) {
        char child[DIBS__RUN_ID_SIZE];

        if (!dibs__graph_leaves_child(job, &run, i))
            continue;
        dibs__child_id(job, &run, i, child);
        rc = dibs__board_cancel_to(board, child, run.cancels, err);
        if (rc == DIBS_OK && depth < CHILDREN_DEEP)
            rc = cancel_children(board, child, depth + 1, err);
        /* It was not made yet. */
        rc = rc == DIBS_NOTFOUND ? DIBS_OK : rc;
    }
    dibs__job_free(job);
    dibs__run_fini(&run);
    return rc;
}

dibs_status dibs__board_cancel_children(const dibs__board *board,
                                        const char *id, dibs_error *err)
{
    return cancel_children(board, id, 1, err);
}

dibs_status
dibs__board_cancel(const dibs__board *board, const char *id, dibs_error *err)
{
    dibs_status rc = cancel_run(board, id, 0, err);

    /* A node does what is left of it when the run has ended. */
    if (rc == DIBS_OK)
        (void)!dibs__board_cancel_children(board, id, NULL);
    return rc;
}

/* One of several calls resumes. A call that had no answer has to know whether it was the
 * one. */
typedef struct resumption {
    const char *bookmark;
    const void *data;
    size_t len;
    const char *who;
    char nonce[DIBS__NONCE_SIZE];
} resumption;

static dibs_status
resume_scene(dibs__scene *sc, bool doubt, void *arg, dibs_error *err)
{
    const resumption *r = arg;
    bool found;
    size_t i;
    dibs_status rc;

    (void)doubt;
    found = dibs__run_find_bookmark(sc, r->bookmark, r->nonce, &i);
    if (found && strcmp(sc->run->steps[i].nonce, r->nonce) == 0)
        return DIBS_CANCELLED;
    rc = dibs__run_bookmark(sc, r->bookmark, r->data, r->len, r->who, err);
    if (rc == DIBS_OK)
        memcpy(sc->run->steps[i].nonce, r->nonce, sizeof(r->nonce));
    return rc;
}

dibs_status
dibs__board_bookmark(const dibs__board *board, const char *id,
                     const char *bookmark, const void *data, size_t len,
                     const char *who, dibs__held_fn *held, const void *lock,
                     dibs_error *err)
{
    resumption r = {.bookmark = bookmark, .data = data, .len = len, .who = who};
    dibs_status rc;

    if (!dibsx_random_hex(r.nonce, sizeof(r.nonce)))
        return dibsx_fail(err, DIBS_INTERNAL, "the kernel has no randomness");
    rc = dibs__board_change_run(board, id, resume_scene, &r, err);
    while (dibsx_is_away(rc) && held && held(lock)) {
        (void)poll(NULL, 0, RESUME_AGAIN_MS);
        rc = dibs__board_change_run(board, id, resume_scene, &r, err);
    }
    return rc == DIBS_CANCELLED ? DIBS_OK : rc;
}

/* A run to start. */
typedef struct start {
    const char *job, *id, *hash;
    dibs__make_fn *make;
    void *arg;
    const dibs__member_of *member;
} start;

/* Whether a run of this id is there, which is then the one that was asked for. INVALID: it
 * is of another job, as "a.b.c" may be of the jobs a and a.b. */
static dibs_status find_start(const dibs__board *board, const start *s,
                              bool *there, dibs_error *err)
{
    dibs__run run;
    dibs_status rc = DIBS_OK;

    /* The commit finds one that cannot be read. */
    *there = dibs__board_run(board, s->id, &run, NULL) == DIBS_OK;
    if (*there && strcmp(run.job, s->job) != 0)
        rc = dibsx_fail(err, DIBS_INVALID,
                        "%s is the id of a run of the job %s, and not of %s; "
                        "give another id",
                        s->id, run.job, s->job);
    dibs__run_fini(&run);
    return rc;
}

static dibs_status
join_batch(const dibs__board *board, const dibs__member_of *member,
           dibs__run *run, dibs__batch *batch, dibs_error *err)
{
    dibs_status rc;

    if (!member || !member->batch)
        return DIBS_OK;
    rc = dibs__board_batch(board, member->batch, batch, err);
    if (rc == DIBS_OK)
        rc = dibs__batch_expect(batch, member->of, err);
    if (rc == DIBS_OK)
        rc = dibs__batch_join(batch, run, err);
    return rc;
}

/* The definition is in the store when the run is: no sweep deletes the one in force, and
 * one that is not in force is checked. A sweep that did not see the run meets a state that
 * has changed since it began (node_trim.c). */
static dibs_status
keep_definition(const dibs__board *board, const start *s, dibs__stage *st,
                dibs__job_state *known, dibs_error *err)
{
    dibs__job_state *state = st->sc.state ? st->sc.state : known;
    const char *hash = s->hash ? s->hash : known->hash;
    char key[DIBS__PLACE_SIZE];
    uint64_t version = 0;
    dibs_status rc = DIBS_OK;

    if (state->version != known->version)
        return DIBS_BROKEN;
    if (!known->set[0] || strcmp(known->hash, hash) != 0) {
        rc = dibs__board_job_version(board, s->job, hash, &version, err);
        (void)snprintf(key, sizeof(key), "def/%s/%s", s->job, hash);
        dibs__intent_check_version(&st->in, key, version);
        state->changed = true;
    }
    (void)snprintf(key, sizeof(key), "state/%s", s->job);
    if (!state->changed)
        dibs__intent_check_version(&st->in, key, state->version);
    else if (!st->sc.state)
        dibs__job_state_commit(state, &st->in);
    return rc;
}

/* A run that is there is found first: its job may have changed or be gone. */
static dibs_status try_start(const dibs__board *board, const void *what,
                             bool *doubt, dibs_error *err)
{
    const start *s = what;
    dibs__batch batch;
    dibs__stage st;
    dibs__job_state known;
    bool there = false;
    dibs_status rc = find_start(board, s, &there, err);

    if (there)
        return rc;
    dibs__stage_init(&st);
    dibs__batch_init(&batch, "");
    rc = dibs__board_state(board, s->job, &known, err);
    if (rc == DIBS_OK)
        rc = dibs__board_job(board, s->job, s->hash ? s->hash : known.hash,
                             &st.job, err);
    if (rc == DIBS_OK)
        rc = s->make(st.job, &known, &st.run, s->arg, err);
    if (rc == DIBS_OK)
        rc = join_batch(board, s->member, &st.run, &batch, err);
    if (rc == DIBS_OK)
        rc = dibs__stage_state(board, &st, "", err);
    if (rc == DIBS_OK)
        rc = dibs__board_now(board, &st.sc.now_us, err);
    if (rc == DIBS_OK)
        rc = dibs__run_start(&st.sc, err);
    if (rc == DIBS_OK)
        rc = keep_definition(board, s, &st, &known, err);
    if (rc == DIBS_OK) {
        dibs__scene_write(&st.sc);
        dibs__batch_commit(&batch, st.sc.now_us, &st.in);
        rc = commit_try(board, &st.in, doubt, err);
    }
    dibs__stage_fini(&st);
    return rc;
}

dibs_status
dibs__board_start_run(const dibs__board *board, const char *job, const char *id,
                      const char *hash, dibs__make_fn *make, void *arg,
                      dibs_error *err)
{
    const start s = {
        .job = job, .id = id, .hash = hash, .make = make, .arg = arg};

    return try_rounds(board, try_start, &s, job, err);
}

dibs_status
dibs__board_start_member(const dibs__board *board, const char *job,
                         const char *id, dibs__make_fn *make, void *arg,
                         const dibs__member_of *member, dibs_error *err)
{
    const start s = {
        .job = job, .id = id, .make = make, .arg = arg, .member = member};

    return try_rounds(board, try_start, &s, job, err);
}

typedef struct job_change {
    const char *name;
    dibs__state_fn *change;
    void *arg;
} job_change;

static dibs_status try_job(const dibs__board *board, const void *what,
                           bool *doubt, dibs_error *err)
{
    const job_change *jc = what;
    char tzdata[DIBS__TZDATA_SIZE];
    dibs__job_state state;
    dibs__job *job = NULL;
    dibs__zone *zone = NULL;
    dibs__intent in;
    int64_t now_us = 0;
    dibs_status rc = dibs__board_state(board, jc->name, &state, err);

    dibs__intent_init(&in);
    if (rc == DIBS_OK && !state.set[0])
        rc = dibsx_fail(err, DIBS_NOTFOUND,
                        "the job %s is in no set any more; load a file that "
                        "has it",
                        jc->name);
    if (rc == DIBS_OK)
        rc = dibs__board_job(board, jc->name, state.hash, &job, err);
    if (rc == DIBS_OK)
        rc = dibs__zone_open(job->zone, &zone, err);
    if (rc == DIBS_OK)
        rc = dibs__board_now(board, &now_us, err);
    if (rc == DIBS_OK) {
        dibs__tzdata_version(tzdata);
        dibs__ticker tk = {.zone = zone,
                           .tzdata = tzdata,
                           .jitter_us = dibs__job_jitter_us(job, board->name),
                           .hash = state.hash};
        rc = jc->change(job, &state, &tk, now_us, jc->arg, err);
    }
    if (rc == DIBS_OK) {
        dibs__job_state_commit(&state, &in);
        if (in.change_count > 0)
            rc = commit_try(board, &in, doubt, err);
    }
    dibs__intent_fini(&in);
    dibs__zone_free(zone);
    dibs__job_free(job);
    return rc;
}

dibs_status
dibs__board_change_job(const dibs__board *board, const char *job,
                       dibs__state_fn *change, void *arg, dibs_error *err)
{
    const job_change jc = {.name = job, .change = change, .arg = arg};

    return try_rounds(board, try_job, &jc, job, err);
}

static dibs_status
pause_state(const dibs__job *job, dibs__job_state *state,
            const dibs__ticker *tk, int64_t now_us, void *arg, dibs_error *err)
{
    const dibs__pause_order *order = arg;

    (void)job;
    (void)tk;
    if (order->until_us && order->until_us <= now_us)
        return dibsx_fail(err, DIBS_INVALID,
                          "the end of the pause has passed on the store's "
                          "clock");
    dibs__job_pause(state, order->by, order->note, order->until_us);
    return DIBS_OK;
}

static dibs_status unpause_state(const dibs__job *job, dibs__job_state *state,
                                 const dibs__ticker *tk, int64_t now_us,
                                 void *arg, dibs_error *err)
{
    (void)arg;
    (void)err;
    if (state->paused)
        dibs__job_unpause(job, state, tk, now_us);
    return DIBS_OK;
}

dibs_status dibs__board_pause(const dibs__board *board, const char *job,
                              const dibs__pause_order *order, dibs_error *err)
{
    dibs__pause_order copy = *order;

    return dibs__board_change_job(board, job, pause_state, &copy, err);
}

dibs_status
dibs__board_unpause(const dibs__board *board, const char *job, dibs_error *err)
{
    return dibs__board_change_job(board, job, unpause_state, NULL, err);
}

dibs_status
dibs__board_follow(const dibs__board *board, const char *id, dibs_error *err)
{
    char key[DIBS__PLACE_SIZE];
    bool doubt = false;
    dibs__intent in;
    dibs_status rc;

    (void)snprintf(key, sizeof(key), "follow/%.127s", id);
    dibs__intent_init(&in);
    dibs__intent_put(&in, key, "1", 1, DIBS__FOLLOW_MS);
    dibs__intent_tell(&in, key);
    rc = dibs__board_commit(board, &in, &doubt, err);
    dibs__intent_fini(&in);
    return rc;
}
