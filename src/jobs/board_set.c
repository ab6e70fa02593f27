/* board_set.c - see board_set.h.
 *
 *     set/NAME: {"version":42,"hash":"...","origin":"host:path","by":"...",
 *                "loaded_s":1790000000,"loading":false}
 *
 * The index of the same name has the jobs; the number of a job is made of the first
 * digits of the hash of its definition, as many as an index can keep.
 *
 * Owns the sets while it looks at them. */
/* SPDX-License-Identifier: MIT */
#include "jobs/board_set.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/json_read.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TRIES_MAX = 16,
    SET_JSON_MAX = 16 * 1024,
    HASH_DIGITS = 13 /* 52 bits: DIBS_INDEX_AT_MAX has 53 */
};

typedef struct dibs__set_member {
    char name[DIBS__JOB_NAME_SIZE];
    char hash[HASH_DIGITS + 1];
} dibs__set_member;

void dibs__stored_set_fini(dibs__stored_set *stored)
{
    dibsx_free(stored->jobs);
    dibsx_free(stored->members);
    dibsx_free(stored->text);
    *stored = (dibs__stored_set){.version = 0};
}

/* ---- the form in the store */

static void write_set(const dibs__job_set *set, dibsx_buf *out)
{
    dibsx_json js;

    dibsx_json_init(&js, out);
    dibsx_json_open(&js, '{');
    dibsx_json_pair_int(&js, "version", set->version);
    dibsx_json_pair_text(&js, "hash", set->hash);
    dibsx_json_pair_text(&js, "origin", set->origin);
    dibsx_json_pair_text(&js, "by", set->by);
    dibsx_json_pair_int(&js, "loaded_s", set->loaded_s);
    dibsx_json_pair_bool(&js, "loading", set->loading);
    dibsx_json_close(&js, '}');
}

static void set_place(const char *set, char out[DIBS__JOB_NAME_SIZE + 8])
{
    (void)snprintf(out, DIBS__JOB_NAME_SIZE + 8, "set/%.100s", set);
}

void dibs__set_put(const dibs__job_set *set, uint64_t version, dibs__intent *in)
{
    char key[DIBS__JOB_NAME_SIZE + 8];
    dibsx_buf json;

    dibsx_buf_init(&json, SET_JSON_MAX);
    write_set(set, &json);
    set_place(set->name, key);
    dibs__intent_check_version(in, key, version);
    if (dibsx_buf_ok(&json))
        dibs__intent_put(in, key, json.data, json.len, 0);
    else
        in->failed = true;
    dibsx_buf_fini(&json);
}

void dibs__set_enter(const char *set, const char *job, const char *hash,
                     dibs__intent *in)
{
    char index[DIBS__JOB_NAME_SIZE + 8], digits[HASH_DIGITS + 1];

    set_place(set, index);
    (void)snprintf(digits, sizeof(digits), "%s", hash);
    dibs__intent_enter(in, index, job, (int64_t)strtoull(digits, NULL, 16));
}

void dibs__set_leave(const char *set, const char *job, dibs__intent *in)
{
    char index[DIBS__JOB_NAME_SIZE + 8];

    set_place(set, index);
    dibs__intent_leave(in, index, job);
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

/* All texts one behind the other, in one piece of memory. */
static bool
keep_texts(dibs__stored_set *out, const char *name, const dibsx_json_node *map)
{
    const char *const texts[] = {name, text_at(map, "hash"),
                                 text_at(map, "origin"), text_at(map, "by")};
    const char **const places[] = {&out->set.name, &out->set.hash,
                                   &out->set.origin, &out->set.by};
    size_t size = 0, used = 0;

    for (size_t i = 0; i < 4; i++)
        size += strlen(texts[i]) + 1;
    out->text = dibsx_zalloc(size);
    if (!out->text)
        return false;
    for (size_t i = 0; i < 4; i++) {
        *places[i] = out->text + used;
        memcpy(out->text + used, texts[i], strlen(texts[i]) + 1);
        used += strlen(texts[i]) + 1;
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
    out->set.version = number_at(doc.root, "version");
    out->set.loaded_s = number_at(doc.root, "loaded_s");
    out->set.loading = loading && loading->truth;
    out->version = value->version;
    if (!keep_texts(out, name, doc.root))
        rc = dibsx_nomem(err, "a set of jobs");
    dibsx_json_doc_fini(&doc);
    return rc;
}

dibs_status dibs__board_set(const dibs__board *board, const char *name,
                            dibs__stored_set *out, dibs_error *err)
{
    char inner[DIBS__JOB_NAME_SIZE + 8], key[DIBS_NAME_MAX + 1];
    dibs_value value = {0};
    dibs_status rc;

    *out = (dibs__stored_set){.version = 0};
    set_place(name, inner);
    rc = dibs__board_key(board, inner, key, err);
    if (rc == DIBS_OK)
        rc = dibs_state_get(board->cl, key, &value, err);
    if (rc == DIBS_OK)
        rc = read_set(out, name, &value, err);
    dibs_value_free(&value);
    return rc;
}

/* ---- its jobs */

typedef struct member_list {
    dibs__set_member *at;
    size_t count, room;
    bool failed;
} member_list;

static bool keep_member(const dibs_index_entry *entry, void *arg)
{
    member_list *list = arg;

    if (strlen(entry->member) >= DIBS__JOB_NAME_SIZE)
        return true;
    if (list->count == list->room) {
        size_t room = list->room ? list->room * 2 : 64;
        dibs__set_member *more =
            dibsx_realloc_n(list->at, room, sizeof(*list->at));

        list->failed = !more;
        if (!more)
            return false;
        list->at = more;
        list->room = room;
    }
    (void)snprintf(list->at[list->count].name, DIBS__JOB_NAME_SIZE, "%s",
                   entry->member);
    (void)snprintf(list->at[list->count++].hash, HASH_DIGITS + 1, "%0*" PRIx64,
                   HASH_DIGITS, (uint64_t)entry->at);
    return true;
}

dibs_status dibs__board_set_jobs(const dibs__board *board, const char *name,
                                 dibs__stored_set *stored, dibs_error *err)
{
    char index[DIBS__JOB_NAME_SIZE + 8];
    member_list list = {.count = 0};
    dibs_status rc;

    set_place(name, index);
    rc = dibs__board_entries(board, index, keep_member, &list, err);
    stored->members = list.at;
    if (rc == DIBS_OK && !list.failed)
        stored->jobs = dibsx_zalloc_n(list.count + 1, sizeof(*stored->jobs));
    if (rc == DIBS_OK && !stored->jobs)
        rc = dibsx_nomem(err, "the jobs of a set");
    for (size_t i = 0; rc == DIBS_OK && i < list.count; i++)
        stored->jobs[i] = (dibs__set_job){list.at[i].name, list.at[i].hash};
    stored->set.jobs = stored->jobs;
    stored->set.count = rc == DIBS_OK ? list.count : 0;
    return rc;
}

/* ---- removing */

void dibs__job_state_drop(dibs__job_state *state, dibs__intent *in)
{
    if (state->set[0])
        dibs__set_leave(state->set, state->job, in);
    if (state->hash[0])
        dibs__job_outdate(state->job, state->hash, in);
    state->set[0] = '\0';
    state->next_s = state->next_local_s = state->due_us = 0;
    state->changed = true;
    dibs__job_state_commit(state, in);
}

static bool count_entry(const dibs_index_entry *entry, void *arg)
{
    (void)entry;
    return ++*(size_t *)arg < 2;
}

/* The set without the job has a content that no file has; without any, it goes too. */
static dibs_status
put_rest(const dibs__board *board, const dibs__stored_set *stored,
         dibs__intent *in, dibs_error *err)
{
    char place[DIBS__JOB_NAME_SIZE + 8];
    dibs__job_set rest = stored->set;
    size_t count = 0;
    dibs_status rc;

    set_place(rest.name, place);
    rc = dibs__board_entries(board, place, count_entry, &count, err);
    rest.hash = "";
    if (count > 1)
        dibs__set_put(&rest, stored->version, in);
    else {
        dibs__intent_check_version(in, place, stored->version);
        dibs__intent_delete(in, place);
    }
    return rc;
}

static dibs_status try_remove(const dibs__board *board, const char *job,
                              bool *doubt, dibs_error *err)
{
    dibs__stored_set stored = {.version = 0};
    dibs__job_state state;
    dibs__intent in;
    dibs_status rc = dibs__board_state(board, job, &state, err);

    if (rc != DIBS_OK)
        return rc;
    /* In doubt, an earlier try of this call was carried out. */
    if (!state.set[0])
        return *doubt ? DIBS_OK
                      : dibsx_fail(err, DIBS_NOTFOUND,
                                   "the job %s is in no set any more", job);
    dibs__intent_init(&in);
    rc = dibs__board_set(board, state.set, &stored, err);
    if (rc == DIBS_OK)
        rc = put_rest(board, &stored, &in, err);
    else if (rc == DIBS_NOTFOUND)
        rc = DIBS_OK;
    if (rc == DIBS_OK) {
        dibs__job_state_drop(&state, &in);
        rc = dibs__board_commit(board, &in, doubt, err);
    }
    dibs__intent_fini(&in);
    dibs__stored_set_fini(&stored);
    return rc;
}

dibs_status
dibs__board_remove(const dibs__board *board, const char *job, dibs_error *err)
{
    dibs_status rc = DIBS_STALE;
    bool doubt = false;

    for (int i = 0; rc == DIBS_STALE && i < TRIES_MAX; i++)
        rc = try_remove(board, job, &doubt, err);
    return rc;
}
