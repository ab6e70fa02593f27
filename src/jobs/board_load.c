/* board_load.c - a jobs file becomes a set of a board; see board_set.h.
 *
 * Owns the sets and the groups of jobs while it works on them. */
/* SPDX-License-Identifier: MIT */
#include "jobs/board_set.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "jobs/job_json.h"
#include <poll.h>
#include <stdio.h>
#include <string.h>

enum {
    GROUP_MAX = DIBS_COMMITS_MAX,
    ROUNDS_MAX = 16,
    TRIES_MAX = 16,
    PAUSE_MS = 20,
    SET_CHECK = 0 /* the first check of each commit is the set's */
};

typedef struct load {
    const dibs__board *board;
    const dibs__job_file *file;
    const dibs__load_opts *opts;
    dibs__stored_set stored;
    dibs__job_set set; /* of the file */
    dibs__set_job *jobs;
    uint64_t version;                     /* of the set's value */
    char first_hash[DIBS__JOB_HASH_SIZE]; /* of the set, at the first look */
    int64_t now_us;
    char tzdata[DIBS__TZDATA_SIZE];
    dibs__zone *zone; /* the one that was opened last */
    const char *zone_name;
    dibs__load_fn *each;
    void *arg;
    dibs__load_sum *sum;
} load;

/* A job of a group: to be as the file has it, or to leave the set. */
typedef struct item {
    const char *name;
    const dibs__job_entry *entry; /* NULL: it leaves */
    char mark;                    /* for the caller */
    bool doubt;                   /* it may have been changed */
} item;

typedef struct group {
    item items[GROUP_MAX];
    size_t count;
    dibs__job_state states[GROUP_MAX];
    dibs__intent ins[GROUP_MAX];
    dibs__answer answers[GROUP_MAX];
} group;

static dibs_status put_set(load *ld, bool loading, dibs_error *err)
{
    dibs__answer answer = {.doubt = false};
    dibs__intent in;
    dibs_status rc;

    ld->set.loading = loading;
    ld->set.loaded_s = ld->now_us / 1000000;
    dibs__intent_init(&in);
    dibs__set_put(&ld->set, ld->version, &in);
    rc = dibs__board_commit_many(ld->board, &in, 1, &answer, err);
    dibs__intent_fini(&in);
    ld->version = answer.version;
    return rc;
}

/* ---- one job */

/* Two definitions have the same ticks. */
static bool same_schedule(const dibs__job *a, const dibs__job *b)
{
    if (strcmp(a->zone, b->zone) != 0 || a->enabled != b->enabled ||
        a->from_s != b->from_s || a->until_s != b->until_s ||
        a->schedule.count != b->schedule.count)
        return false;
    for (size_t i = 0; i < a->schedule.count; i++)
        if (strcmp(a->schedule.at[i].text, b->schedule.at[i].text) != 0)
            return false;
    return true;
}

/* Jobs that follow each other mostly have one zone. */
static dibs_status open_zone(load *ld, const char *name, dibs_error *err)
{
    if (ld->zone && strcmp(ld->zone_name, name) == 0)
        return DIBS_OK;
    dibs__zone_free(ld->zone);
    ld->zone = NULL;
    ld->zone_name = name;
    return dibs__zone_open(name, &ld->zone, err);
}

/* An edit of the schedule makes nothing late: the mark is now. An edit of anything else
 * leaves it, and of the jitter moves only the moment of the next tick. */
static dibs_status change_state(load *ld, const dibs__job_entry *entry,
                                dibs__job_state *state, dibs_error *err)
{
    dibs__job *old = NULL;
    dibs_status rc = open_zone(ld, entry->job->zone, err);
    dibs__ticker tk = {.zone = ld->zone,
                       .tzdata = ld->tzdata,
                       .jitter_us =
                           dibs__job_jitter_us(entry->job, ld->board->name),
                       .hash = entry->hash};

    if (rc != DIBS_OK)
        return rc;
    if (state->set[0])
        rc = dibs__board_job(ld->board, state->job, state->hash, &old, err);
    /* One that is not there, or cannot be read, had any schedule. */
    if (rc != DIBS_OK && rc != DIBS_NOTFOUND && rc != DIBS_INVALID)
        return rc;
    memcpy(state->hash, entry->hash, sizeof(state->hash));
    (void)snprintf(state->set, sizeof(state->set), "%s", ld->file->set);
    state->changed = true;
    if (!old || !same_schedule(old, entry->job))
        dibs__tick_reset(entry->job, state, &tk, ld->now_us);
    else if (old->jitter_ms != entry->job->jitter_ms)
        dibs__tick_refresh(entry->job, state, &tk);
    dibs__job_free(old);
    return DIBS_OK;
}

static void put_definition(const dibs__job_entry *entry, dibs__intent *in)
{
    char key[DIBS__JOB_NAME_SIZE + DIBS__JOB_HASH_SIZE + 8];
    dibsx_buf json;

    dibsx_buf_init(&json, DIBS__JOB_JSON_MAX);
    dibs__job_json(entry->job, &json);
    (void)snprintf(key, sizeof(key), "def/%s/%s", entry->job->name,
                   entry->hash);
    if (dibsx_buf_ok(&json))
        dibs__intent_put(in, key, json.data, json.len, 0);
    else
        in->failed = true;
    dibsx_buf_fini(&json);
}

static dibs_status fill_intent(load *ld, const item *it, dibs__job_state *state,
                               dibs__intent *in, dibs_error *err)
{
    char key[DIBS__JOB_NAME_SIZE + 8];
    dibs_status rc = DIBS_OK;

    dibs__intent_init(in);
    (void)snprintf(key, sizeof(key), "set/%s", ld->file->set);
    dibs__intent_check_version(in, key, ld->version);
    if (!it->entry) {
        dibs__job_state_drop(state, in);
        return DIBS_OK;
    }
    if (state->hash[0] && strcmp(state->hash, it->entry->hash) != 0)
        dibs__job_outdate(it->name, state->hash, in);
    rc = change_state(ld, it->entry, state, err);
    dibs__job_state_commit(state, in);
    put_definition(it->entry, in);
    dibs__set_enter(ld->file->set, it->name, it->entry->hash, in);
    return rc;
}

/* ---- a group */

static dibs_status read_states(const load *ld, const group *g,
                               dibs__job_state *out, dibs_error *err)
{
    const char *names[GROUP_MAX];

    for (size_t i = 0; i < g->count; i++)
        names[i] = g->items[i].name;
    return dibs__board_states(ld->board, names, g->count, out, err);
}

static bool is_foreign(const load *ld, const dibs__job_state *state)
{
    return state->version && state->set[0] &&
           strcmp(state->set, ld->file->set) != 0;
}

static dibs_status refuse_foreign(const dibs__job_state *state, dibs_error *err)
{
    return dibsx_fail(err, DIBS_INVALID,
                      "the job %s is in the set %s; rename it, or remove it "
                      "there ('dibs job rm %s')",
                      state->job, state->set, state->job);
}

/* The job is as it has to be. */
static bool
is_done(const load *ld, const item *it, const dibs__job_state *state)
{
    bool in_set = state->version && strcmp(state->set, ld->file->set) == 0;

    if (!it->entry)
        return !in_set;
    return in_set && strcmp(state->hash, it->entry->hash) == 0;
}

static char mark_of(const item *it, const dibs__job_state *state)
{
    if (!it->entry)
        return '-';
    return state->version && state->set[0] ? '~' : '+';
}

static void tell_item(const load *ld, const item *it)
{
    *(it->mark == '-'   ? &ld->sum->removed
      : it->mark == '+' ? &ld->sum->added
                        : &ld->sum->changed) += 1;
    if (ld->each)
        ld->each(ld->arg, it->mark, it->name);
}

/* Keeps those that are to change, with their states. */
static dibs_status sort_group(const load *ld, group *g, dibs_error *err)
{
    dibs_status rc = read_states(ld, g, g->states, err);
    size_t kept = 0;

    for (size_t i = 0; i < g->count && rc == DIBS_OK; i++) {
        if (is_done(ld, &g->items[i], &g->states[i])) {
            if (g->items[i].doubt)
                tell_item(ld, &g->items[i]);
            continue;
        }
        if (is_foreign(ld, &g->states[i]))
            return refuse_foreign(&g->states[i], err);
        g->items[i].mark = mark_of(&g->items[i], &g->states[i]);
        if (ld->opts->dry_run)
            tell_item(ld, &g->items[i]);
        g->items[kept] = g->items[i];
        if (kept < i)
            g->states[kept] = g->states[i];
        kept++;
    }
    g->count = kept;
    return rc;
}

static void free_intents(group *g, size_t count)
{
    for (size_t i = 0; i < count; i++)
        dibs__intent_fini(&g->ins[i]);
}

static dibs_status fill_intents(load *ld, group *g, dibs_error *err)
{
    dibs_status rc = DIBS_OK;
    size_t made = 0;

    for (; made < g->count && rc == DIBS_OK; made++)
        rc = fill_intent(ld, &g->items[made], &g->states[made], &g->ins[made],
                         err);
    if (rc != DIBS_OK)
        free_intents(g, made);
    return rc;
}

/* Sends a commit for each. STALE: the set has changed. Jobs whose state has changed
 * stay in the group. */
static dibs_status commit_group(load *ld, group *g, dibs_error *err)
{
    dibs_status rc = fill_intents(ld, g, err);
    size_t count = g->count;

    if (rc != DIBS_OK)
        return rc;
    memset(g->answers, 0, sizeof(g->answers));
    (void)!dibs__board_commit_many(ld->board, g->ins, count, g->answers, err);
    free_intents(g, count);
    g->count = 0;
    for (size_t i = 0; i < count; i++) {
        const dibs__answer *answer = &g->answers[i];
        item it = g->items[i];

        if (answer->rc == DIBS_OK)
            tell_item(ld, &it);
        else if (answer->rc != DIBS_STALE || answer->failed == SET_CHECK)
            rc = rc == DIBS_OK ? answer->rc : rc;
        it.doubt = it.doubt || answer->doubt;
        if (answer->rc == DIBS_STALE)
            g->items[g->count++] = it;
    }
    return rc;
}

static dibs_status do_group(load *ld, group *g, dibs_error *err)
{
    dibs_status rc = DIBS_OK;

    for (int i = 0; i < TRIES_MAX && rc == DIBS_OK && g->count > 0; i++) {
        rc = sort_group(ld, g, err);
        if (rc == DIBS_OK && g->count > 0 && !ld->opts->dry_run)
            rc = commit_group(ld, g, err);
        else
            break;
    }
    if (rc == DIBS_OK && g->count > 0 && !ld->opts->dry_run)
        rc = DIBS_STALE;
    g->count = 0;
    return rc;
}

static dibs_status add_item(load *ld, group *g, const char *name,
                            const dibs__job_entry *entry, dibs_error *err)
{
    g->items[g->count++] = (item){.name = name, .entry = entry};
    return g->count == GROUP_MAX ? do_group(ld, g, err) : DIBS_OK;
}

/* ---- all of them */

/* Before anything changes: a job belongs to one set. */
static dibs_status check_owners(const load *ld, group *g, dibs_error *err)
{
    dibs_status rc = DIBS_OK;

    for (size_t i = 0; i < ld->file->count && rc == DIBS_OK;) {
        for (g->count = 0; i < ld->file->count && g->count < GROUP_MAX; i++)
            g->items[g->count++].name = ld->file->entries[i].job->name;
        rc = read_states(ld, g, g->states, err);
        for (size_t k = 0; k < g->count && rc == DIBS_OK; k++)
            if (is_foreign(ld, &g->states[k]))
                rc = refuse_foreign(&g->states[k], err);
    }
    g->count = 0;
    return rc;
}

/* A load of the same file is under way, or broke off. */
static bool joins(const load *ld)
{
    return ld->stored.set.loading &&
           ld->stored.set.version == ld->set.version &&
           strcmp(ld->stored.set.hash, ld->set.hash) == 0;
}

static dibs_status load_jobs(load *ld, group *g, dibs_error *err)
{
    const dibs__job_file *file = ld->file;
    dibs_status rc = check_owners(ld, g, err);

    ld->version = ld->stored.version;
    if (rc == DIBS_OK && !ld->opts->dry_run && !joins(ld))
        rc = put_set(ld, true, err);
    if (rc == DIBS_OK && !ld->opts->dry_run)
        ld->sum->begun = true;
    for (size_t i = 0; rc == DIBS_OK && i < file->count; i++)
        rc =
            add_item(ld, g, file->entries[i].job->name, &file->entries[i], err);
    for (size_t i = 0; rc == DIBS_OK && i < ld->stored.set.count; i++)
        if (!dibs__job_file_find(file, ld->stored.jobs[i].name))
            rc = add_item(ld, g, ld->stored.jobs[i].name, NULL, err);
    if (rc == DIBS_OK)
        rc = do_group(ld, g, err);
    if (rc == DIBS_OK && !ld->opts->dry_run)
        rc = put_set(ld, false, err);
    return rc;
}

/* Another client has put other content into the set since the first look, and the
 * version does not say which of the two wins. */
static bool is_contested(const load *ld, int round)
{
    const dibs__job_set *stored = &ld->stored.set;

    return round > 0 && ld->stored.version &&
           ld->set.version <= stored->version &&
           strcmp(stored->hash, ld->set.hash) != 0 &&
           strcmp(stored->hash, ld->first_hash) != 0;
}

static dibs_status
try_load(load *ld, group *g, int round, dibsx_buf *why, dibs_error *err)
{
    const dibs__job_set *stored;
    dibs_status rc =
        dibs__board_set(ld->board, ld->file->set, &ld->stored, err);

    if (rc != DIBS_OK && rc != DIBS_NOTFOUND)
        return rc;
    stored = ld->stored.version ? &ld->stored.set : NULL;
    if (round == 0 && stored)
        (void)snprintf(ld->first_hash, sizeof(ld->first_hash), "%.16s",
                       stored->hash);
    ld->sum->verdict = dibs__set_decide(stored, &ld->set, ld->opts->force);
    if (ld->sum->verdict == DIBS__SET_SAME)
        return DIBS_OK;
    rc = dibs__board_set_jobs(ld->board, ld->file->set, &ld->stored, err);
    if (rc == DIBS_OK && ld->sum->verdict != DIBS__SET_LOAD)
        dibs__set_explain(stored, &ld->set, ld->sum->verdict, why);
    else if (rc == DIBS_OK && is_contested(ld, round))
        rc = dibsx_fail(err, DIBS_BUSY,
                        "cannot load the set %s: another client loads other "
                        "content at the same time; look at it with 'dibs job "
                        "ls --set %s', and load again",
                        ld->file->set, ld->file->set);
    else if (rc == DIBS_OK)
        rc = load_jobs(ld, g, err);
    return rc;
}

static dibs_status describe_file(load *ld, dibs_error *err)
{
    ld->jobs = dibsx_zalloc_n(ld->file->count + 1, sizeof(*ld->jobs));
    if (!ld->jobs)
        return dibsx_nomem(err, "the jobs of a set");
    for (size_t i = 0; i < ld->file->count; i++)
        ld->jobs[i] = (dibs__set_job){ld->file->entries[i].job->name,
                                      ld->file->entries[i].hash};
    ld->set = (dibs__job_set){.name = ld->file->set,
                              .version = ld->file->version,
                              .hash = ld->file->hash,
                              .origin = ld->opts->origin,
                              .by = ld->opts->by,
                              .jobs = ld->jobs,
                              .count = ld->file->count};
    dibs__tzdata_version(ld->tzdata);
    return dibs__board_now(ld->board, &ld->now_us, err);
}

/* Again while others change the set too: they may load the same file. */
static dibs_status
load_rounds(load *ld, group *g, dibsx_buf *why, dibs_error *err)
{
    dibs_status rc = DIBS_STALE;

    for (int round = 0; rc == DIBS_STALE && round < ROUNDS_MAX; round++) {
        if (round > 0)
            (void)poll(NULL, 0, PAUSE_MS);
        dibs__stored_set_fini(&ld->stored);
        rc = try_load(ld, g, round, why, err);
    }
    if (rc == DIBS_STALE)
        rc = dibsx_fail(err, DIBS_BUSY,
                        "cannot load the set %s: others change it all the "
                        "time; load again",
                        ld->file->set);
    return rc;
}

dibs_status
dibs__board_load(const dibs__board *board, const dibs__job_file *file,
                 const dibs__load_opts *opts, dibs__load_fn *each, void *arg,
                 dibs__load_sum *sum, dibsx_buf *why, dibs_error *err)
{
    load ld = {.board = board,
               .file = file,
               .opts = opts,
               .each = each,
               .arg = arg,
               .sum = sum};
    group *g = dibsx_zalloc(sizeof(*g));
    dibs_status rc =
        g ? describe_file(&ld, err) : dibsx_nomem(err, "the jobs of a set");

    *sum = (dibs__load_sum){.verdict = DIBS__SET_SAME};
    if (rc == DIBS_OK)
        rc = load_rounds(&ld, g, why, err);
    /* Another client may have finished what this one began. */
    if (sum->verdict == DIBS__SET_SAME &&
        sum->added + sum->changed + sum->removed > 0)
        sum->verdict = DIBS__SET_LOAD;
    if (sum->verdict == DIBS__SET_SAME || sum->verdict == DIBS__SET_LOAD)
        sum->same = file->count - sum->added - sum->changed;
    dibs__zone_free(ld.zone);
    dibsx_free(ld.jobs);
    dibs__stored_set_fini(&ld.stored);
    dibsx_free(g);
    return rc;
}
