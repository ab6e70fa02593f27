/* node_look.c - a look of a node at the indexes of its board: ticks, claims, sweeps. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/fail.h"
#include "node/call.h"

#include <stdio.h>
#include <string.h>

enum {
    LOOK_DUE,
    LOOK_RETRY,
    LOOK_DEADLINE,
    LOOK_RESUME,
    LOOK_TRIM,
    LOOK_LIVE,
    LOOK_READY, /* ... and one for each label, or for each function */
    LOOKS_MAX = LOOK_READY + 1 + DIBS_JOBS_FUNCTIONS_MAX,
    ENTRIES = 64,
    ENTRIES_READY = 256,
    ENTRIES_LIVE = 1024,
    SWEEP_TTL_MS = 30000
};

typedef struct found {
    size_t look;
    dibs__node_entry entry;
} found;

typedef struct view {
    found *at;
    size_t count, room;
    bool failed;
    char names[LOOKS_MAX][DIBS_NAME_MAX + 1];
    dibs_index_look looks[LOOKS_MAX];
    size_t look_count, first; /* of the request that is under way */
    int64_t now_us;
} view;

static bool note_entry(const dibs_index_entry *entry, void *arg)
{
    view *v = arg;

    if (strlen(entry->member) >= DIBS__PLACE_SIZE)
        return true;
    if (v->count == v->room) {
        size_t room = v->room ? v->room * 2 : 64;
        found *more = dibsx_realloc_n(v->at, room, sizeof(*v->at));

        v->failed = v->failed || !more;
        if (!more)
            return false;
        v->at = more;
        v->room = room;
    }
    v->at[v->count].look = v->first + entry->look;
    v->at[v->count].entry.at = entry->at;
    (void)snprintf(v->at[v->count++].entry.member, DIBS__PLACE_SIZE, "%s",
                   entry->member);
    return true;
}

static dibs_status
add_look(dibs__node *node, view *v, const char *index, dibs_error *err)
{
    size_t i = v->look_count++;
    bool all = i >= LOOK_LIVE;

    v->looks[i] =
        (dibs_index_look){.index = v->names[i],
                          .up_to = all ? DIBS_INDEX_AT_MAX : DIBS_INDEX_NOW,
                          .limit = i == LOOK_LIVE ? ENTRIES_LIVE
                                   : all          ? ENTRIES_READY
                                                  : ENTRIES};
    return dibs__board_key(node->board, index, v->names[i], err);
}

static dibs_status add_labels(dibs__node *node, view *v, dibs_error *err)
{
    const char *const *labels = node->opts->labels;
    dibs_status rc = add_look(node, v, "ready/", err);

    for (size_t i = 0; labels && labels[i] && rc == DIBS_OK; i++) {
        char name[DIBS__PLACE_SIZE];

        (void)snprintf(name, sizeof(name), "ready/%s", labels[i]);
        rc = add_look(node, v, name, err);
    }
    return rc;
}

static dibs_status add_functions(dibs__node *node, view *v, dibs_error *err)
{
    const struct dibs__calls *calls = node->opts->calls;
    dibs_status rc = DIBS_OK;

    for (size_t i = 0; i < calls->count && rc == DIBS_OK; i++) {
        char name[DIBS__PLACE_SIZE];

        (void)snprintf(name, sizeof(name), "ready/call/%s",
                       calls->functions[i].name);
        rc = add_look(node, v, name, err);
    }
    return rc;
}

/* One request, but for a node with many functions. */
static dibs_status ask_view(dibs__node *node, view *v, dibs_error *err)
{
    dibs_status rc = DIBS_OK;

    for (v->first = 0; v->first < v->look_count && rc == DIBS_OK;
         v->first += DIBS_LOOKS_MAX) {
        size_t count = v->look_count - v->first;

        rc = dibs_index_first(node->board->cl, v->looks + v->first,
                              count < DIBS_LOOKS_MAX ? count : DIBS_LOOKS_MAX,
                              &v->now_us, note_entry, v, err);
    }
    return rc;
}

static dibs_status take_view(dibs__node *node, view *v, dibs_error *err)
{
    static const char *const names[] = {"due",    "retry", "deadline",
                                        "resume", "trim",  "live"};
    dibs_status rc = DIBS_OK;

    for (size_t i = 0; i < LOOK_READY && rc == DIBS_OK; i++)
        rc = add_look(node, v, names[i], err);
    if (rc == DIBS_OK)
        rc = node->opts->calls ? add_functions(node, v, err)
                               : add_labels(node, v, err);
    if (rc == DIBS_OK)
        rc = ask_view(node, v, err);
    if (rc == DIBS_OK && v->failed)
        rc = dibsx_nomem(err, "what is to be done");
    return rc;
}

/* ---- ticks */

static dibs__node_mark *find_mark(dibs__node *node, const char *job)
{
    dibs__node_mark *more;

    for (size_t i = 0; i < node->mark_count; i++)
        if (strcmp(node->marks[i].job, job) == 0)
            return &node->marks[i];
    more = dibsx_realloc_n(node->marks, node->mark_count + 1, sizeof(*more));
    if (!more)
        return NULL;
    node->marks = more;
    more += node->mark_count++;
    *more = (dibs__node_mark){.mark_s = 0};
    (void)snprintf(more->job, sizeof(more->job), "%s", job);
    return more;
}

/* The step that this node may begin with, by the commit of the tick. */
static bool find_step(const dibs__node *node, const dibs__run *run, size_t *out)
{
    for (size_t i = 0; i < run->step_count; i++) {
        const dibs__run_step *step = &run->steps[i];

        if (step->state == DIBS__STATE_READY &&
            dibs__node_takes(node, step->label)) {
            *out = i;
            return true;
        }
    }
    return false;
}

static dibs_status send_tick(dibs__node *node, dibs__stage *st, dibs_error *err)
{
    bool doubt = false;
    dibs_status rc;
    size_t i;

    if (st->run.id[0] && find_step(node, &st->run, &i) &&
        dibs__node_claim(node, st, i))
        return DIBS_OK;
    dibs__scene_write(&st->sc);
    rc = dibs__board_commit(node->board, &st->in, &doubt, err);
    node->agreed = rc == DIBS_OK;
    return rc == DIBS_STALE || rc == DIBS_EARLY || rc == DIBS_LATE ? DIBS_OK
                                                                   : rc;
}

/* Rule 13. */
static void note_mark(dibs__node_mark *mark, const dibs__job_state *state)
{
    if (state->mark_s <= mark->mark_s)
        return;
    mark->mark_s = state->mark_s;
    mark->local_s = state->mark_local_s;
}

static dibs_status
tick_stage(dibs__node *node, dibs__stage *st, const dibs__zone *zone,
           dibs__node_mark *mark, dibs_error *err)
{
    char tzdata[DIBS__TZDATA_SIZE], hash[DIBS__JOB_HASH_SIZE];
    dibs__ticker tk = {.zone = zone,
                       .tzdata = tzdata,
                       .jitter_us =
                           dibs__job_jitter_us(st->job, node->board->name),
                       .hash = hash,
                       .seen_s = mark->mark_s,
                       .seen_local_s = mark->local_s};
    dibs_status rc;

    dibs__tzdata_version(tzdata);
    memcpy(hash, st->state.hash, sizeof(hash));
    note_mark(mark, &st->state);
    node->agreed = false;
    rc = dibs__tick_take(&st->sc, &tk, err);
    if (rc == DIBS_OK)
        rc = send_tick(node, st, err);
    if (rc == DIBS_OK && node->agreed)
        note_mark(mark, &st->state);
    return rc == DIBS_STALE ? DIBS_OK : rc;
}

static dibs_status
take_tick(dibs__node *node, const char *name, dibs_error *err)
{
    dibs__node_mark *mark = find_mark(node, name);
    dibs__zone *zone = NULL;
    dibs__stage st;
    dibs_status rc = mark ? DIBS_OK : dibsx_nomem(err, "the mark of a job");

    dibs__stage_init(&st);
    if (rc == DIBS_OK)
        rc = dibs__stage_job(node->board, name, &st, err);
    if (rc == DIBS_OK)
        rc = dibs__zone_open(st.job->zone, &zone, err);
    if (rc == DIBS_OK)
        rc = tick_stage(node, &st, zone, mark, err);
    dibs__zone_free(zone);
    dibs__stage_fini(&st);
    return rc;
}

static void do_ticks(dibs__node *node, const view *v)
{
    for (size_t i = 0; i < v->count; i++) {
        const dibs__node_entry *entry = &v->at[i].entry;
        dibs_error err = {0};

        if (v->at[i].look != LOOK_DUE)
            continue;
        node->idle = false;
        if (take_tick(node, entry->member, &err) != DIBS_OK)
            dibs__node_complain(node, entry->member, &err);
    }
}

/* ---- claims */

/* Whether a file of this node has a job of that name; an id begins with it. */
static bool has_job_of(const dibs__node *node, const char *id)
{
    char name[DIBS__RUN_ID_SIZE];

    for (size_t end = strcspn(id, "@."); id[end];
         end += 1 + strcspn(id + end + 1, "@.")) {
        (void)snprintf(name, sizeof(name), "%.*s", (int)end, id);
        for (size_t i = 0; i < node->opts->file_count; i++)
            if (dibs__job_file_find(node->opts->files[i], name))
                return true;
    }
    return false;
}

static void claim_entry(dibs__node *node, const dibs__node_entry *entry)
{
    char id[DIBS__RUN_ID_SIZE], step[DIBS__JOB_NAME_SIZE];
    dibs_error err = {0};
    dibs__stage st;
    dibs_status rc;
    size_t i;

    if (!dibs__step_split(entry->member, id, step) || !has_job_of(node, id))
        return;
    dibs__stage_init(&st);
    rc = dibs__stage_run(node->board, id, &st, &err);
    if (rc != DIBS_OK && rc != DIBS_NOTFOUND)
        dibs__node_complain(node, entry->member, &err);
    if (rc == DIBS_OK && dibs__run_find(&st.run, step, &i) &&
        dibs__node_claim(node, &st, i))
        node->idle = false;
    dibs__stage_fini(&st);
}

/* The entries of an index behind those of a view. */
static void claim_beyond(dibs__node *node, const dibs_index_look *first)
{
    dibs_index_look look = *first;
    dibs_error err = {0};

    while (look.next >= 0 && dibs__node_has_room(node)) {
        view more = {.count = 0};

        look.skip += look.limit;
        if (dibs_index_first(node->board->cl, &look, 1, NULL, note_entry, &more,
                             &err) != DIBS_OK) {
            dibs__node_complain(node, "the board", &err);
            look.next = -1;
        }
        for (size_t i = 0; i < more.count && dibs__node_has_room(node); i++)
            claim_entry(node, &more.at[i].entry);
        dibsx_free(more.at);
    }
}

/* Entries whose definition is in no file of this node are passed over: any number of them
 * may be before its own. */
static void claim_ready(dibs__node *node, const view *v)
{
    for (size_t i = 0; i < v->count && dibs__node_has_room(node); i++)
        if (v->at[i].look >= LOOK_READY)
            claim_entry(node, &v->at[i].entry);
    for (size_t i = LOOK_READY; i < v->look_count; i++)
        claim_beyond(node, &v->looks[i]);
}

/* ---- sweeps */

typedef struct sweep {
    size_t look;
    dibs__sweep_kind kind;
    const char *name;
    dibs__sweep_fn *fn;
} sweep;

static const sweep sweeps[] = {
    {LOOK_RETRY, DIBS__SWEEP_RETRY, "retry-scheduler", dibs__sweep_retry},
    {LOOK_DEADLINE, DIBS__SWEEP_TIMEOUT, "timeout-scheduler",
     dibs__sweep_deadline},
    {LOOK_LIVE, DIBS__SWEEP_TIMEOUT, "timeout-scheduler", dibs__sweep_live},
    {LOOK_RESUME, DIBS__SWEEP_RESUME, "resume-scheduler", dibs__sweep_resume},
    {LOOK_TRIM, DIBS__SWEEP_CLEANUP, "cleanup-scheduler", dibs__sweep_trim},
};

/* A node looks after its own commands by itself. */
static bool is_for(const dibs__node *node, const found *one, const sweep *s)
{
    return one->look == s->look &&
           (s->look != LOOK_LIVE || (uint64_t)one->entry.at != node->fence);
}

static void sweep_view(dibs__node *node, const view *v, const sweep *s)
{
    for (size_t i = 0; i < v->count; i++) {
        dibs_error err = {0};

        if (!is_for(node, &v->at[i], s))
            continue;
        if (s->fn(node, &v->at[i].entry, &err) != DIBS_OK)
            dibs__node_complain(node, v->at[i].entry.member, &err);
        (void)dibs__node_valid_until(node);
    }
}

/* The lock saves work; no rule rests on it. */
static bool do_sweep(dibs__node *node, const view *v, const sweep *s)
{
    char name[DIBS_NAME_MAX + 1];
    dibs_lock *lock = NULL;
    dibs_error err = {0};
    bool wanted = false;
    dibs_status rc;

    for (size_t i = 0; i < v->count; i++)
        wanted = wanted || is_for(node, &v->at[i], s);
    if (!wanted)
        return false;
    (void)snprintf(name, sizeof(name), "%s%s", node->opts->sweep_prefix,
                   s->name);
    rc = dibs_lock_new(node->board->cl, name,
                       DIBS_LOCK_OPTS(.ttl_ms = SWEEP_TTL_MS), &lock, &err);
    if (rc == DIBS_OK)
        rc = dibs_lock_try(lock, &err);
    if (rc == DIBS_OK)
        sweep_view(node, v, s);
    else if (rc != DIBS_BUSY)
        dibs__node_complain(node, name, &err);
    if (rc == DIBS_OK && s->look != LOOK_LIVE)
        node->idle = false;
    dibs_lock_free(lock);
    return rc == DIBS_OK;
}

static bool do_sweeps(dibs__node *node, const view *v, dibsx_nsec now)
{
    bool any = false;

    for (size_t i = 0; i < sizeof(sweeps) / sizeof(sweeps[0]); i++)
        if (now >= node->sweep_at[sweeps[i].kind])
            any = do_sweep(node, v, &sweeps[i]) || any;
    for (size_t i = 0; i < DIBS__SWEEPS; i++)
        if (now >= node->sweep_at[i])
            node->sweep_at[i] = dibsx_after_ms(now, node->opts->sweep_ms[i]);
    return any;
}

/* The next look: at the first number of all indexes, or when it is time anyway. */
static void plan_look(dibs__node *node, const view *v)
{
    int64_t wait_ms = node->opts->look_ms;

    for (size_t i = 0; i < LOOK_TRIM; i++) {
        int64_t until_ms = v->looks[i].next < 0
                               ? wait_ms
                               : (v->looks[i].next - v->now_us + 999) / 1000;

        if (until_ms < wait_ms)
            wait_ms = until_ms > 0 ? until_ms : 1;
    }
    node->look_at = dibsx_after_ms(dibsx_now(), wait_ms);
}

/* A sweep may have made steps ready. */
static void look_again(dibs__node *node, view *v)
{
    dibs_error err = {0};

    v->count = v->look_count = 0;
    if (take_view(node, v, &err) != DIBS_OK)
        dibs__node_complain(node, "the board", &err);
    else
        plan_look(node, v);
}

void dibs__node_look(dibs__node *node)
{
    dibsx_nsec now = dibsx_now();
    view *v = dibsx_zalloc(sizeof(*v));
    dibs_error err = {0};

    node->idle = false;
    node->alive_count = 0;
    node->look_at = dibsx_after_ms(now, node->opts->look_ms);
    if (!v || take_view(node, v, &err) != DIBS_OK)
        dibs__node_complain(node, "the board", &err);
    else {
        node->idle = true;
        plan_look(node, v);
        dibs__node_look_at_own(node);
        if (!node->stops) {
            do_ticks(node, v);
            if (do_sweeps(node, v, now))
                look_again(node, v);
            claim_ready(node, v);
        }
    }
    if (v)
        dibsx_free(v->at);
    dibsx_free(v);
}
