/* places.c - the difference that a record makes in the indexes of a board. */
/* SPDX-License-Identifier: MIT */
#include "jobs/places.h"
#include "base/alloc.h"

#include <stdio.h>
#include <string.h>

#define HOUR_US (INT64_C(3600) * 1000000)

/* A job that is in no set any more is kept so long. */
#define GONE_TTL_MS (INT64_C(30) * 24 * 3600 * 1000)

dibs__place dibs__step_place(const dibs__run_step *step)
{
    dibs__place place = {.cancel = step->cancel};

    switch (step->state) {
    case DIBS__STATE_READY:
        place.kind = DIBS__PLACE_READY;
        place.at = step->at_us;
        break;
    case DIBS__STATE_CLAIMED:
    case DIBS__STATE_RUNNING:
        place.kind = DIBS__PLACE_LIVE;
        place.at = (int64_t)step->fence;
        break;
    case DIBS__STATE_RETRY:
        place.kind = DIBS__PLACE_RETRY;
        place.at = step->at_us;
        break;
    default:
        break;
    }
    return place;
}

static int64_t find_earlier(int64_t a, int64_t b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

int64_t dibs__run_deadline_at(const dibs__run *run)
{
    int64_t at = 0;

    if (dibs__state_final(run->state))
        return 0;
    at = run->end_by_us;
    if (run->follows)
        at = find_earlier(at, run->start_by_us);
    for (size_t i = 0; i < run->step_count; i++) {
        const dibs__run_step *step = &run->steps[i];

        if (step->begins && (step->state == DIBS__STATE_READY ||
                             step->state == DIBS__STATE_CLAIMED ||
                             step->state == DIBS__STATE_RETRY))
            at = find_earlier(at, run->start_by_us);
        if (step->state == DIBS__STATE_WAITING)
            at = find_earlier(at, step->until_us);
    }
    return at;
}

int64_t dibs__run_resume_at(const dibs__run *run)
{
    int64_t at = 0;

    if (dibs__state_final(run->state))
        return run->owes ? run->ended_us : 0;
    for (size_t i = 0; i < run->step_count; i++)
        if (run->steps[i].state == DIBS__STATE_WAITING)
            at = find_earlier(at, run->steps[i].at_us);
    return at;
}

static int64_t listed_at(const dibs__run *run)
{
    return dibs__state_final(run->state) ? run->ended_us : run->made_us;
}

void dibs__run_noted(dibs__run *run, uint64_t version)
{
    run->version = version;
    run->deadline_at = dibs__run_deadline_at(run);
    run->resume_at = dibs__run_resume_at(run);
    run->listed_at = listed_at(run);
    run->was_final = dibs__state_final(run->state);
    run->was_counted = run->counted;
    run->changed = false;
    for (size_t i = 0; i < run->step_count; i++)
        run->steps[i].place = dibs__step_place(&run->steps[i]);
}

void dibs__job_state_noted(dibs__job_state *state, uint64_t version)
{
    state->version = version;
    state->due_at = state->due_us;
    state->changed = false;
}

void dibs__step_member(const dibs__run *run, const dibs__run_step *step,
                       char out[DIBS__PLACE_SIZE])
{
    (void)snprintf(out, DIBS__PLACE_SIZE, "%s/%s", run->id, step->name);
}

bool dibs__step_split(const char *member, char run[DIBS__RUN_ID_SIZE],
                      char step[DIBS__JOB_NAME_SIZE])
{
    const char *slash = strchr(member, '/');

    if (!slash || slash - member >= DIBS__RUN_ID_SIZE ||
        strlen(slash + 1) >= DIBS__JOB_NAME_SIZE)
        return false;
    (void)snprintf(run, DIBS__RUN_ID_SIZE, "%.*s", (int)(slash - member),
                   member);
    (void)snprintf(step, DIBS__JOB_NAME_SIZE, "%s", slash + 1);
    return true;
}

static void move_member(dibs__intent *in, const char *index, const char *member,
                        int64_t from, int64_t to)
{
    if (to && to != from)
        dibs__intent_enter(in, index, member, to);
    else if (!to && from)
        dibs__intent_leave(in, index, member);
}

/* The same, where nodes sleep until the number: one that comes earlier is news. */
static void move_moment(dibs__intent *in, const char *index, const char *member,
                        int64_t from, int64_t to)
{
    move_member(in, index, member, from, to);
    if (to && (from == 0 || to < from))
        dibs__intent_tell(in, index);
}

static void index_name(dibs__place_kind kind, const dibs__run_step *step,
                       char out[DIBS__PLACE_SIZE])
{
    (void)snprintf(out, DIBS__PLACE_SIZE, "%s%s",
                   kind == DIBS__PLACE_LIVE    ? "live"
                   : kind == DIBS__PLACE_RETRY ? "retry"
                                               : "ready/",
                   kind == DIBS__PLACE_READY ? step->label : "");
}

static void
move_step(const dibs__run *run, const dibs__run_step *step, dibs__intent *in)
{
    dibs__place was = step->place, is = dibs__step_place(step);
    char member[DIBS__PLACE_SIZE], index[DIBS__PLACE_SIZE];
    bool ends;

    dibs__step_member(run, step, member);
    if (was.kind != DIBS__PLACE_NONE && was.kind != is.kind) {
        index_name(was.kind, step, index);
        dibs__intent_leave(in, index, member);
    }
    if (is.kind != DIBS__PLACE_NONE &&
        (was.kind != is.kind || was.at != is.at)) {
        index_name(is.kind, step, index);
        dibs__intent_enter(in, index, member, is.at);
        if (is.kind == DIBS__PLACE_READY)
            dibs__intent_tell(in, index);
    }
    /* The node of a step that waits for a lock does not end it by itself. */
    ends = is.cancel || (was.kind == DIBS__PLACE_LIVE &&
                         step->state == DIBS__STATE_CANCELLED);
    if (ends && !was.cancel) {
        (void)snprintf(index, sizeof(index), "node/%s", step->node);
        dibs__intent_tell(in, index);
    }
}

int64_t dibs__batch_end(const dibs__run *run)
{
    return run->ended_us / 2 * 2 + (run->state != DIBS__STATE_OK);
}

bool dibs__batch_well(int64_t end)
{
    return end % 2 == 0;
}

static void
enter_batch(const dibs__run *run, char name[DIBS__PLACE_SIZE], dibs__intent *in)
{
    (void)snprintf(name, DIBS__PLACE_SIZE, "batch/%s", run->batch);
    dibs__intent_enter(in, name, run->id, dibs__batch_end(run));
}

/* The run has ended by this commit: others may wait for it. */
static void enter_end(const dibs__run *run, dibs__intent *in)
{
    char name[DIBS__PLACE_SIZE];
    int64_t hour = run->ended_us / HOUR_US;

    if (run->batch[0]) {
        enter_batch(run, name, in);
        dibs__intent_enter(in, "resume", name, run->ended_us);
        dibs__intent_tell(in, "resume");
    }
    if (run->cause == DIBS__CAUSE_CHILD) {
        dibs__intent_enter(in, "resume", run->origin, run->ended_us);
        dibs__intent_tell(in, "resume");
    }
    /* The same number for an hour: ends that follow each other do not put it off. */
    dibs__intent_enter(in, "trim", run->job, (hour + 1) * HOUR_US);
}

static void drop_longest(dibs__run *run)
{
    dibs__run_step *longest = &run->steps[0];

    for (size_t i = 1; i < run->step_count; i++)
        if (run->steps[i].result_len > longest->result_len)
            longest = &run->steps[i];
    dibsx_free(longest->result);
    longest->result = NULL;
    longest->result_len = 0;
}

/* Not for lack of memory. */
static bool is_too_long(const dibs__run *run)
{
    dibsx_buf json;
    bool written;

    dibsx_buf_init(&json, (size_t)8 * DIBS__RUN_JSON_MAX);
    dibs__run_write(run, &json);
    written = dibsx_buf_ok(&json);
    dibsx_buf_fini(&json);
    return written;
}

static void put_run(dibs__run *run, int64_t keep_ms, dibs__intent *in)
{
    char key[DIBS__PLACE_SIZE];
    dibsx_buf json;

    (void)snprintf(key, sizeof(key), "run/%s", run->id);
    dibsx_buf_init(&json, DIBS__RUN_JSON_MAX);
    dibs__run_write(run, &json);
    for (size_t i = 0; !dibsx_buf_ok(&json) && i < run->step_count; i++) {
        drop_longest(run);
        dibsx_buf_reset(&json);
        dibs__run_write(run, &json);
    }
    if (!dibsx_buf_ok(&json)) {
        in->failed = true;
        in->too_long = is_too_long(run);
    } else
        dibs__intent_put(in, key, json.data, json.len,
                         dibs__state_final(run->state) ? keep_ms : 0);
    dibs__intent_check_version(in, key, run->version);
    dibsx_buf_fini(&json);
}

/* The steps of a run that may begin tell nodes of it. */
static void move_deadline(const dibs__run *run, dibs__intent *in)
{
    int64_t at = dibs__run_deadline_at(run);

    if (run->follows)
        move_moment(in, "deadline", run->id, run->deadline_at, at);
    else
        move_member(in, "deadline", run->id, run->deadline_at, at);
}

void dibs__run_commit(dibs__run *run, int64_t keep_ms, dibs__intent *in)
{
    char index[DIBS__PLACE_SIZE];

    if (!run->changed)
        return;
    put_run(run, keep_ms, in);
    for (size_t i = 0; i < run->step_count; i++)
        move_step(run, &run->steps[i], in);
    move_deadline(run, in);
    move_moment(in, "resume", run->id, run->resume_at,
                dibs__run_resume_at(run));
    (void)snprintf(index, sizeof(index), "runs/%s", run->job);
    move_member(in, index, run->id, run->listed_at, listed_at(run));
    if (dibs__state_final(run->state) && !run->was_final)
        enter_end(run, in);
    else if (run->was_final && run->batch[0] &&
             run->listed_at != listed_at(run)) /* It was taken for lost. */
        enter_batch(run, index, in);
    if (run->was_counted && !run->counted) /* max_running has room. */
        dibs__intent_tell(in, "ready/");
}

void dibs__job_state_commit(dibs__job_state *state, dibs__intent *in)
{
    char key[DIBS__PLACE_SIZE];
    dibsx_buf json;

    if (!state->changed)
        return;
    (void)snprintf(key, sizeof(key), "state/%s", state->job);
    dibsx_buf_init(&json, DIBS__STATE_JSON_MAX);
    dibs__job_state_write(state, &json);
    if (!dibsx_buf_ok(&json))
        in->failed = true;
    else
        dibs__intent_put(in, key, json.data, json.len,
                         state->set[0] ? 0 : GONE_TTL_MS);
    dibs__intent_check_version(in, key, state->version);
    move_moment(in, "due", state->job, state->due_at, state->due_us);
    dibsx_buf_fini(&json);
}

void dibs__job_outdate(const char *job, const char *hash, dibs__intent *in)
{
    char index[DIBS__PLACE_SIZE];

    (void)snprintf(index, sizeof(index), "old/%s", job);
    dibs__intent_enter(in, index, hash, 1);
    dibs__intent_enter(in, "trim", job, 1);
}
