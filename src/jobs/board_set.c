/* board_set.c - see board_set.h.
 *
 *     set/NAME: {"version":42,"hash":"...","origin":"host:path","by":"...",
 *                "loaded_s":1790000000,"loading":false,"jobs":"NAME HASH\n..."}
 *
 * Owns the sets while it looks at them. */
/* SPDX-License-Identifier: MIT */
#include "jobs/board_set.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/json_read.h"
#include "jobs/job_json.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TRIES_MAX = 16 };

/* A job that is in no set any more is kept so long. */
#define GONE_TTL_MS (INT64_C(30) * 24 * 3600 * 1000)

void dibs__stored_set_fini(dibs__stored_set *stored)
{
    dibsx_free(stored->jobs);
    dibsx_free(stored->text);
    *stored = (dibs__stored_set){.version = 0};
}

/* ---- the form in the store */

static void write_set(const dibs__job_set *set, dibsx_buf *out)
{
    dibsx_json js;
    dibsx_buf jobs;

    dibsx_buf_init(&jobs, DIBS_VALUE_MAX);
    for (size_t i = 0; i < set->count; i++)
        dibsx_buf_printf(&jobs, "%s %s\n", set->jobs[i].name,
                         set->jobs[i].hash);
    dibsx_json_init(&js, out);
    dibsx_json_open(&js, '{');
    dibsx_json_pair_int(&js, "version", set->version);
    dibsx_json_pair_text(&js, "hash", set->hash);
    dibsx_json_pair_text(&js, "origin", set->origin);
    dibsx_json_pair_text(&js, "by", set->by);
    dibsx_json_pair_int(&js, "loaded_s", set->loaded_s);
    dibsx_json_pair_bool(&js, "loading", set->loading);
    dibsx_json_pair_text(&js, "jobs", dibsx_buf_text(&jobs));
    dibsx_json_close(&js, '}');
    if (!dibsx_buf_ok(&jobs))
        out->failed = true;
    dibsx_buf_fini(&jobs);
}

static const char *text_at(const dibsx_json_node *map, const char *key)
{
    const dibsx_json_node *node = dibsx_json_get(map, key);

    return node && node->kind == DIBSX_JSON_TEXT ? node->text : "";
}

static int64_t number_at(const dibsx_json_node *map, const char *key)
{
    const dibsx_json_node *node = dibsx_json_get(map, key);

    return node && node->kind == DIBSX_JSON_NUMBER && node->whole
               ? node->integer
               : 0;
}

/* "NAME HASH\n" lines, cut in place. */
static bool split_jobs(dibs__stored_set *out, char *lines)
{
    size_t count = 0;

    for (const char *at = lines; *at; at++)
        count += *at == '\n';
    out->jobs = dibsx_zalloc_n(count + 1, sizeof(*out->jobs));
    if (!out->jobs)
        return false;
    for (char *line = lines, *end; (end = strchr(line, '\n')); line = end + 1) {
        char *space = strchr(line, ' ');

        *end = '\0';
        if (!space || space > end)
            continue;
        *space = '\0';
        out->jobs[out->set.count++] = (dibs__set_job){line, space + 1};
    }
    out->set.jobs = out->jobs;
    return true;
}

/* All texts one behind the other, in one piece of memory. */
static bool keep_texts(dibs__stored_set *out, const dibsx_json_node *map)
{
    const char *const keys[] = {"hash", "origin", "by", "jobs"};
    const char **const places[] = {&out->set.hash, &out->set.origin,
                                   &out->set.by, NULL};
    size_t size = 0, used = 0;

    for (size_t i = 0; i < 4; i++)
        size += strlen(text_at(map, keys[i])) + 1;
    out->text = dibsx_zalloc(size);
    if (!out->text)
        return false;
    for (size_t i = 0; i < 4; i++) {
        const char *text = text_at(map, keys[i]);
        char *copy = out->text + used;

        memcpy(copy, text, strlen(text) + 1);
        used += strlen(text) + 1;
        if (places[i])
            *places[i] = copy;
        else if (!split_jobs(out, copy))
            return false;
    }
    return true;
}

static dibs_status read_set(dibs__stored_set *out, const char *name,
                            const dibs_value *value, dibs_error *err)
{
    dibsx_json_doc doc;
    const dibsx_json_node *loading;
    dibs_status rc = dibsx_json_read(value->data, value->len, &doc, err);

    if (rc != DIBS_OK)
        return rc;
    loading = dibsx_json_get(doc.root, "loading");
    out->set.name = name;
    out->set.version = number_at(doc.root, "version");
    out->set.loaded_s = number_at(doc.root, "loaded_s");
    out->set.loading = loading && loading->truth;
    out->version = value->version;
    if (!keep_texts(out, doc.root))
        rc = dibsx_nomem(err, "a set of jobs");
    dibsx_json_doc_fini(&doc);
    return rc;
}

static dibs_status set_key(const dibs__board *board, const char *name,
                           char out[DIBS_NAME_MAX + 1], dibs_error *err)
{
    char inner[DIBS_NAME_MAX + 1];

    (void)snprintf(inner, sizeof(inner), "set/%s", name);
    return dibs__board_key(board, inner, out, err);
}

dibs_status dibs__board_set(const dibs__board *board, const char *name,
                            dibs__stored_set *out, dibs_error *err)
{
    char key[DIBS_NAME_MAX + 1];
    dibs_value value = {0};
    dibs_status rc = set_key(board, name, key, err);

    *out = (dibs__stored_set){.version = 0};
    if (rc == DIBS_OK)
        rc = dibs_state_get(board->cl, key, &value, err);
    if (rc == DIBS_OK)
        rc = read_set(out, name, &value, err);
    dibs_value_free(&value);
    return rc;
}

/* ---- loading */

typedef struct load {
    const dibs__board *board;
    const dibs__job_file *file;
    const dibs__load_opts *opts;
    dibs__stored_set stored;
    dibs__job_set set; /* of the file */
    dibs__set_job *jobs;
    uint64_t version; /* of the set's value, as this load wrote it */
    int64_t now_us;
    char tzdata[DIBS__TZDATA_SIZE];
    dibs__load_fn *each;
    void *arg;
    dibs__load_sum *sum;
} load;

static dibs_status put_set(load *ld, bool loading, dibs_error *err)
{
    char key[DIBS_NAME_MAX + 1];
    dibsx_buf json;
    dibs_status rc = set_key(ld->board, ld->file->set, key, err);

    dibsx_buf_init(&json, DIBS_VALUE_MAX);
    ld->set.loading = loading;
    ld->set.loaded_s = ld->now_us / 1000000;
    write_set(&ld->set, &json);
    if (rc == DIBS_OK && !dibsx_buf_ok(&json))
        rc = dibsx_fail(err, DIBS_INVALID,
                        "the set %s has too many jobs; split its file into "
                        "several sets",
                        ld->file->set);
    if (rc == DIBS_OK)
        rc = dibs_state_cas(ld->board->cl, key, ld->version, json.data,
                            json.len, 0, &ld->version, err);
    if (rc == DIBS_STALE)
        rc = dibsx_fail(
            err, DIBS_STALE,
            "cannot load the set %s: another client is loading it; look "
            "at it with 'dibs job ls --set %s', and load again",
            ld->file->set, ld->file->set);
    dibsx_buf_fini(&json);
    return rc;
}

/* Two definitions are due at the same times. */
static bool same_schedule(const dibs__job *a, const dibs__job *b)
{
    if (strcmp(a->zone, b->zone) != 0 || a->enabled != b->enabled ||
        a->from_s != b->from_s || a->until_s != b->until_s ||
        a->jitter_ms != b->jitter_ms || a->schedule.count != b->schedule.count)
        return false;
    for (size_t i = 0; i < a->schedule.count; i++)
        if (strcmp(a->schedule.at[i].text, b->schedule.at[i].text) != 0)
            return false;
    return true;
}

/* An edit of the schedule makes nothing late: the mark is now. An edit of anything else
 * leaves it. */
static dibs_status change_state(load *ld, const dibs__job_entry *entry,
                                dibs__job_state *state, dibs_error *err)
{
    dibs__job *old = NULL;
    dibs__zone *zone = NULL;
    bool gone = !state->set[0];
    dibs_status rc = dibs__zone_open(entry->job->zone, &zone, err);
    dibs__ticker tk = {.zone = zone,
                       .tzdata = ld->tzdata,
                       .jitter_us =
                           dibs__job_jitter_us(entry->job, ld->board->name),
                       .hash = entry->hash};

    if (rc != DIBS_OK)
        return rc;
    if (!gone)
        (void)!dibs__board_job(ld->board, state->job, state->hash, &old, NULL);
    memcpy(state->hash, entry->hash, sizeof(state->hash));
    (void)snprintf(state->set, sizeof(state->set), "%s", ld->file->set);
    state->changed = true;
    if (!old || !same_schedule(old, entry->job))
        dibs__tick_reset(entry->job, state, &tk, ld->now_us);
    dibs__job_free(old);
    dibs__zone_free(zone);
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

static void check_set(const load *ld, dibs__intent *in)
{
    char key[DIBS__JOB_NAME_SIZE + 8];

    (void)snprintf(key, sizeof(key), "set/%s", ld->file->set);
    dibs__intent_check_version(in, key, ld->version);
}

/* One commit, again while a run of the job changes its state. */
static dibs_status
load_job(load *ld, const dibs__job_entry *entry, dibs_error *err)
{
    const char *name = entry->job->name;
    dibs_status rc = DIBS_STALE;

    for (int i = 0; rc == DIBS_STALE && i < TRIES_MAX; i++) {
        dibs__job_state state;
        dibs__intent in;
        bool doubt = false, is_new;

        rc = dibs__board_state(ld->board, name, &state, err);
        is_new = rc == DIBS_NOTFOUND || (rc == DIBS_OK && !state.set[0]);
        if (rc == DIBS_NOTFOUND)
            rc = DIBS_OK;
        if (rc == DIBS_OK && !is_new && strcmp(state.hash, entry->hash) == 0) {
            ld->sum->same += i == 0;
            return DIBS_OK;
        }
        if (i == 0 && ld->each && rc == DIBS_OK)
            ld->each(ld->arg, is_new ? '+' : '~', name);
        if (i == 0)
            *(is_new ? &ld->sum->added : &ld->sum->changed) += 1;
        if (rc != DIBS_OK || ld->opts->dry_run)
            return rc;
        rc = change_state(ld, entry, &state, err);
        dibs__intent_init(&in);
        check_set(ld, &in);
        dibs__job_state_commit(&state, &in);
        put_definition(entry, &in);
        if (rc == DIBS_OK)
            rc = dibs__board_commit(ld->board, &in, &doubt, err);
        dibs__intent_fini(&in);
    }
    return rc;
}

/* The state of a job without a set stays for a while, with its history. */
static void drop_state(dibs__job_state *state, dibs__intent *in)
{
    state->set[0] = '\0';
    state->next_s = state->next_local_s = state->due_us = 0;
    state->changed = true;
    dibs__job_state_commit(state, in);
    for (size_t i = 0; i < in->change_count; i++)
        if (in->changes[i].verb == DIBS__INTENT_PUT)
            in->changes[i].ttl_ms = GONE_TTL_MS;
}

static dibs_status remove_job(load *ld, const char *name, dibs_error *err)
{
    dibs_status rc = DIBS_STALE;

    for (int i = 0; rc == DIBS_STALE && i < TRIES_MAX; i++) {
        dibs__job_state state;
        dibs__intent in;
        bool doubt = false;

        rc = dibs__board_state(ld->board, name, &state, err);
        if (rc == DIBS_NOTFOUND ||
            (rc == DIBS_OK && strcmp(state.set, ld->file->set) != 0))
            return DIBS_OK;
        if (i == 0) {
            ld->sum->removed++;
            if (ld->each)
                ld->each(ld->arg, '-', name);
        }
        if (rc != DIBS_OK || ld->opts->dry_run)
            return rc;
        dibs__intent_init(&in);
        check_set(ld, &in);
        drop_state(&state, &in);
        rc = dibs__board_commit(ld->board, &in, &doubt, err);
        dibs__intent_fini(&in);
    }
    return rc;
}

/* Before anything changes: a job belongs to one set. */
static dibs_status check_owners(const load *ld, dibs_error *err)
{
    for (size_t i = 0; i < ld->file->count; i++) {
        const char *name = ld->file->entries[i].job->name;
        dibs__job_state state;
        dibs_status rc = dibs__board_state(ld->board, name, &state, err);

        if (rc != DIBS_OK && rc != DIBS_NOTFOUND)
            return rc;
        if (rc == DIBS_OK && state.set[0] &&
            strcmp(state.set, ld->file->set) != 0)
            return dibsx_fail(err, DIBS_INVALID,
                              "the job %s is in the set %s; rename it, or "
                              "remove it there ('dibs job rm %s')",
                              name, state.set, name);
    }
    return DIBS_OK;
}

static dibs_status load_jobs(load *ld, dibs_error *err)
{
    dibs_status rc = check_owners(ld, err);

    ld->version = ld->stored.version;
    if (rc == DIBS_OK && !ld->opts->dry_run)
        rc = put_set(ld, true, err);
    for (size_t i = 0; rc == DIBS_OK && i < ld->file->count; i++)
        rc = load_job(ld, &ld->file->entries[i], err);
    for (size_t i = 0; rc == DIBS_OK && i < ld->stored.set.count; i++)
        if (!dibs__job_file_find(ld->file, ld->stored.jobs[i].name))
            rc = remove_job(ld, ld->stored.jobs[i].name, err);
    if (rc == DIBS_OK && !ld->opts->dry_run)
        rc = put_set(ld, false, err);
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
    const dibs__job_set *stored;
    dibs_status rc = dibs__board_set(board, file->set, &ld.stored, err);

    *sum = (dibs__load_sum){.verdict = DIBS__SET_SAME};
    if (rc == DIBS_OK || rc == DIBS_NOTFOUND)
        rc = describe_file(&ld, err);
    if (rc == DIBS_OK) {
        stored = ld.stored.version ? &ld.stored.set : NULL;
        sum->verdict = dibs__set_decide(stored, &ld.set, opts->force);
        if (sum->verdict == DIBS__SET_LOAD)
            rc = load_jobs(&ld, err);
        else if (sum->verdict != DIBS__SET_SAME)
            dibs__set_explain(stored, &ld.set, sum->verdict, why);
        else
            sum->same = file->count;
    }
    dibsx_free(ld.jobs);
    dibs__stored_set_fini(&ld.stored);
    return rc;
}

/* ---- removing */

/* The set without the job has a content that no file has. */
static void
put_rest(const dibs__stored_set *stored, const char *job, dibs__intent *in)
{
    char key[DIBS__JOB_NAME_SIZE + 8];
    dibs__job_set rest = stored->set;
    size_t count = 0;
    dibsx_buf json;

    for (size_t i = 0; i < stored->set.count; i++)
        if (strcmp(stored->jobs[i].name, job) != 0)
            stored->jobs[count++] = stored->jobs[i];
    rest.count = count;
    rest.hash = "";
    dibsx_buf_init(&json, DIBS_VALUE_MAX);
    write_set(&rest, &json);
    (void)snprintf(key, sizeof(key), "set/%s", rest.name);
    dibs__intent_check_version(in, key, stored->version);
    if (!dibsx_buf_ok(&json))
        in->failed = true;
    else if (count > 0)
        dibs__intent_put(in, key, json.data, json.len, 0);
    else
        dibs__intent_delete(in, key);
    dibsx_buf_fini(&json);
}

static dibs_status
try_remove(const dibs__board *board, const char *job, dibs_error *err)
{
    dibs__stored_set stored = {.version = 0};
    dibs__job_state state;
    dibs__intent in;
    char set[DIBS__JOB_NAME_SIZE];
    bool doubt = false;
    dibs_status rc = dibs__board_state(board, job, &state, err);

    if (rc != DIBS_OK)
        return rc;
    if (!state.set[0])
        return dibsx_fail(err, DIBS_NOTFOUND,
                          "the job %s is in no set any more", job);
    dibs__intent_init(&in);
    memcpy(set, state.set, sizeof(set));
    rc = dibs__board_set(board, set, &stored, err);
    if (rc == DIBS_NOTFOUND)
        rc = DIBS_OK;
    if (rc == DIBS_OK) {
        drop_state(&state, &in);
        if (stored.version)
            put_rest(&stored, job, &in);
        rc = dibs__board_commit(board, &in, &doubt, err);
    }
    dibs__intent_fini(&in);
    dibs__stored_set_fini(&stored);
    return rc;
}

dibs_status
dibs__board_remove(const dibs__board *board, const char *job, dibs_error *err)
{
    dibs_status rc = DIBS_STALE;

    for (int i = 0; rc == DIBS_STALE && i < TRIES_MAX; i++)
        rc = try_remove(board, job, err);
    return rc;
}
