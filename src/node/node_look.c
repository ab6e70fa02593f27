/* node_look.c - a look of a node at the indexes of its board: ticks, claims, sweeps. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/fail.h"
#include "jobs/follow.h"
#include "node/call.h"
#include "node/node_zones.h"

#include <stdio.h>
#include <string.h>

enum {
    LOOK_DUE,
    LOOK_RETRY,
    LOOK_DEADLINE,
    LOOK_RESUME,
    LOOK_TRIM,
    LOOK_LIVE,
    LOOK_NODES,
    LOOK_DRAINING,
    LOOK_READY, /* ... and one for each label, or for each function */
    LOOKS_MAX = LOOK_READY + 1 + DIBS_JOBS_FUNCTIONS_MAX,
    ENTRIES = 64,
    ENTRIES_READY = 256,
    ENTRIES_LIVE = 1024,
    SWEEP_TTL_MS = 30000,
    AGAIN_MS = 1000, /* what could not be done now */
    STUCK_AGAIN_MS = 60000,
    STUCK_MAX = 256 /* in one look: the node has other things to do */
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
    static const char *const names[] = {"due",    "retry",   "deadline",
                                        "resume", "trim",    "live",
                                        "nodes",  "draining"};
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

/* A node with older zone data found this tick. True: it is not due by newer data. */
static bool refresh_next(dibs__stage *st, const dibs__ticker *tk)
{
    dibs__job_state *state = &st->state;

    if (state->paused || !dibs__tzdata_newer(tk->tzdata, state->tzdata))
        return false;
    dibs__tick_refresh(st->job, state, tk);
    return state->due_us == 0 || state->due_us > st->sc.now_us;
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
    if (refresh_next(st, &tk))
        rc = DIBS_OK;
    else
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

/* The entries of `due` that one request showed. */
typedef struct page {
    size_t ranks[ENTRIES];       /* 0: dealt with */
    size_t done, stuck, refused; /* refused: of those stuck, in this look */
} page;

/* A job that cannot be ticked here, because its zone is not installed, say, is left to
 * others for a while. */
static void
tick_entry(dibs__node *node, const dibs__node_entry *entry, page *pg)
{
    dibs_error err = {0};
    dibs_status rc;

    node->agreed = false;
    rc = take_tick(node, entry->member, &err);
    (void)dibs__node_valid_until(node);
    if (rc != DIBS_OK)
        dibs__node_complain(node, entry->member, &err);
    if (rc != DIBS_OK && !dibsx_is_away(rc)) {
        dibs__node_leave(node, entry, STUCK_AGAIN_MS);
        pg->stuck++;
        pg->refused++;
        return;
    }
    node->idle = false;
    pg->done++;
    /* If it was ticked, its next number is not known yet. */
    dibs__node_hurry(node, rc == DIBS_OK && node->agreed ? 0 : AGAIN_MS);
}

/* Ticks for which this node is the first by rank. Entries that are due come first. */
static void do_own_ticks(dibs__node *node, const view *v, page *pg)
{
    const char *others[DIBS__NODE_OTHERS_MAX];

    for (size_t i = 0; i < node->other_count; i++)
        others[i] = node->others[i];
    for (size_t i = 0; i < v->count && v->at[i].look == LOOK_DUE; i++) {
        const dibs__node_entry *entry = &v->at[i].entry;

        if (dibs__node_is_left(node, entry)) {
            pg->stuck++;
            continue;
        }
        pg->ranks[i] =
            dibs__node_rank(entry->member, node->id, others, node->other_count);
        if (pg->ranks[i] == 0)
            tick_entry(node, entry, pg);
    }
}

/* The others wait for their turn, and until this node's own are done. True: no job of
 * the page can be ticked here; *refused grows by those that were tried. */
static bool do_ticks(dibs__node *node, const view *v, size_t *refused)
{
    page pg = {.done = 0};
    size_t own, i = 0;

    do_own_ticks(node, v, &pg);
    own = pg.done;
    for (; i < v->count && v->at[i].look == LOOK_DUE; i++) {
        const dibs__node_entry *entry = &v->at[i].entry;
        int64_t wait_us;

        if (pg.ranks[i] == 0)
            continue;
        wait_us = dibs__wake_turn_us(pg.ranks[i], entry->at, v->now_us);
        node->idle = false;
        if (wait_us > 0 || own > 0)
            dibs__node_hurry(node, (wait_us + 999) / 1000);
        else
            tick_entry(node, entry, &pg);
    }
    *refused += pg.refused;
    return pg.stuck == i;
}

static void hurry_to(dibs__node *node, int64_t at_us, int64_t now_us)
{
    int64_t ms = (at_us - now_us + 999) / 1000;

    if (at_us >= 0)
        dibs__node_hurry(node, ms > 0 ? ms : 0);
}

/* Jobs that this node cannot tick stay first in the index, any number of them: those that
 * are due behind them are looked at too. */
static void tick_all(dibs__node *node, const view *v)
{
    dibs_index_look look = v->looks[LOOK_DUE];
    size_t refused = 0;
    bool stuck = do_ticks(node, v, &refused);
    dibs_error err = {0};

    while (stuck && refused < STUCK_MAX && look.next >= 0 &&
           look.next <= v->now_us) {
        view *more = dibsx_zalloc(sizeof(*more));
        dibs_status rc = more ? DIBS_OK : dibsx_nomem(&err, "due jobs");

        look.skip += look.limit;
        if (rc == DIBS_OK)
            rc = dibs_index_first(node->board->cl, &look, 1, &more->now_us,
                                  note_entry, more, &err);
        if (rc != DIBS_OK) {
            dibs__node_complain(node, "the board", &err);
            look.next = v->now_us + AGAIN_MS * INT64_C(1000);
        } else {
            stuck = do_ticks(node, more, &refused);
        }
        if (more)
            dibsx_free(more->at);
        dibsx_free(more);
    }
    if (refused >= STUCK_MAX && look.next <= v->now_us)
        dibs__node_hurry(node, AGAIN_MS);
    else
        hurry_to(node, look.next, v->now_us);
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

    /* A function is in the program, whatever file its job is in. */
    if (!dibs__step_split(entry->member, id, step) ||
        (!node->opts->calls && !has_job_of(node, id)))
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

/* A node looks after its own commands by itself, and leaves those of a node alone that was
 * seen alive. */
static bool is_for(dibs__node *node, const found *one, const sweep *s)
{
    return one->look == s->look &&
           (s->look != LOOK_LIVE || ((uint64_t)one->entry.at != node->fence &&
                                     !dibs__node_is_known(node, &one->entry)));
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

/* The first entry of a sweep; NULL: there is nothing to do. */
static const dibs__node_entry *
find_first(dibs__node *node, const view *v, const sweep *s)
{
    for (size_t i = 0; i < v->count; i++)
        if (is_for(node, &v->at[i], s))
            return &v->at[i].entry;
    return NULL;
}

/* The node looks again at once, but later if the sweep did not get rid of the first entry. */
static void look_after_sweep(dibs__node *node, const sweep *s,
                             const dibs__node_entry *first)
{
    char *last = node->swept[s->look];

    if (s->look != LOOK_LIVE)
        node->idle = false;
    dibs__node_hurry(node, strcmp(last, first->member) == 0 ? AGAIN_MS : 0);
    (void)snprintf(last, DIBS__PLACE_SIZE, "%s", first->member);
}

/* The lock saves work; no rule rests on it. Nobody sweeps after the death of a node that
 * did until its lock ends, which is no later than its lease. */
static void do_sweep(dibs__node *node, const view *v, const sweep *s)
{
    const dibs__node_entry *first = find_first(node, v, s);
    char name[DIBS_NAME_MAX + 1];
    dibs_lock *lock = NULL;
    dibs_error err = {0};
    dibs_status rc;

    if (!first)
        return;
    (void)snprintf(name, sizeof(name), "%s%s", node->opts->sweep_prefix,
                   s->name);
    rc =
        dibs_lock_new(node->board->cl, name,
                      DIBS_LOCK_OPTS(.ttl_ms = node->opts->ttl_ms < SWEEP_TTL_MS
                                                   ? node->opts->ttl_ms
                                                   : SWEEP_TTL_MS),
                      &lock, &err);
    if (rc == DIBS_OK)
        rc = dibs_lock_try(lock, &err);
    if (rc == DIBS_OK)
        sweep_view(node, v, s);
    else if (rc != DIBS_BUSY)
        dibs__node_complain(node, name, &err);
    dibs_lock_free(lock);
    if (rc == DIBS_OK)
        look_after_sweep(node, s, first);
    else
        dibs__node_hurry(node, AGAIN_MS);
}

static void do_sweeps(dibs__node *node, const view *v, dibsx_nsec now)
{
    for (size_t i = 0; i < sizeof(sweeps) / sizeof(sweeps[0]); i++) {
        dibsx_nsec at = node->sweep_at[sweeps[i].kind];

        if (now >= at)
            do_sweep(node, v, &sweeps[i]);
        else if (find_first(node, v, &sweeps[i]))
            dibs__node_hurry(node, dibsx_wait_ms(at, now));
    }
    for (size_t i = 0; i < DIBS__SWEEPS; i++)
        if (now >= node->sweep_at[i])
            node->sweep_at[i] = dibsx_after_ms(now, node->opts->sweep_ms[i]);
}

/* ---- other nodes */

static void note_nodes(dibs__node *node, const view *v)
{
    node->other_count = 0;
    for (size_t i = 0; i < v->count; i++) {
        const dibs__node_entry *entry = &v->at[i].entry;
        bool drains = v->at[i].look == LOOK_DRAINING;
        bool own = strcmp(entry->member, node->id) == 0;

        if (!drains && v->at[i].look != LOOK_NODES)
            continue;
        if (own && drains)
            dibs__node_drain(node, ", as a user has asked for it");
        else if (!own && entry->at <= v->now_us)
            dibs__node_strike_off(node, drains ? "draining" : "nodes",
                                  entry->member);
        else if (!own && !drains && node->other_count < DIBS__NODE_OTHERS_MAX)
            (void)snprintf(node->others[node->other_count++], DIBS__NODE_SIZE,
                           "%.16s", entry->member);
    }
}

/* The next look: at the first number of all indexes at the latest. Ticks see to theirs. */
static void plan_look(dibs__node *node, const view *v)
{
    for (size_t i = LOOK_DUE + 1; i < LOOK_TRIM; i++)
        hurry_to(node, v->looks[i].next, v->now_us);
}

static void use_view(dibs__node *node, const view *v, dibsx_nsec now)
{
    node->idle = true;
    if (now >= node->own_at) {
        node->own_at = node->wake.look_at;
        dibs__node_look_at_own(node);
    }
    note_nodes(node, v);
    dibs__node_write_record(node, v->now_us);
    if (node->draining)
        return;
    plan_look(node, v);
    dibs__node_look_at_zones(node);
    tick_all(node, v);
    do_sweeps(node, v, now);
    claim_ready(node, v);
    dibs__node_await_gone(node);
}

void dibs__node_look(dibs__node *node)
{
    dibsx_nsec now = dibsx_now();
    view *v = dibsx_zalloc(sizeof(*v));
    dibs_error err = {0};

    node->idle = false;
    dibs__wake_looking(&node->wake, now);
    if (v && take_view(node, v, &err) == DIBS_OK)
        use_view(node, v, now);
    else {
        dibs__node_complain(node, "the board", &err);
        dibs__node_hurry(node, AGAIN_MS);
    }
    if (v)
        dibsx_free(v->at);
    dibsx_free(v);
}
