/* board.c - see board.h. Owns nothing between calls. */
/* SPDX-License-Identifier: MIT */
#include "jobs/board.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "jobs/job_json.h"
#include <poll.h>
#include <stdio.h>
#include <string.h>

enum { TRIES_MAX = 8, PAUSE_MS = 50 };

dibs_status dibs__board_init(dibs__board *board, dibs_client *cl,
                             const char *name, dibs_error *err)
{
    *board = (dibs__board){.cl = cl};
    if (!dibs__job_name_ok(name))
        return dibsx_fail(err, DIBS_INVALID,
                          "'%.60s' is no name of a board: letters, digits, "
                          "'.', '_' and '-', up to %d",
                          name, DIBS__JOB_NAME_MAX);
    (void)snprintf(board->name, sizeof(board->name), "%s", name);
    return DIBS_OK;
}

dibs_status dibs__board_key(const dibs__board *board, const char *name,
                            char out[DIBS_NAME_MAX + 1], dibs_error *err)
{
    int len =
        snprintf(out, DIBS_NAME_MAX + 1, "job/{%s}/%s", board->name, name);

    if (len < 0 || len > DIBS_NAME_MAX)
        return dibsx_fail(err, DIBS_INVALID,
                          "board and name have more than %d bytes: %.60s",
                          DIBS_NAME_MAX, name);
    return DIBS_OK;
}

static bool stop_looking(const dibs_index_entry *entry, void *arg)
{
    (void)entry;
    (void)arg;
    return false;
}

dibs_status
dibs__board_now(const dibs__board *board, int64_t *now_us, dibs_error *err)
{
    char key[DIBS_NAME_MAX + 1];
    dibs_index_look look = {.index = key, .limit = 1};
    dibs_status rc = dibs__board_key(board, "due", key, err);

    if (rc != DIBS_OK)
        return rc;
    return dibs_index_first(board->cl, &look, 1, now_us, stop_looking, NULL,
                            err);
}

/* Reads "PART/NAME" of the board. */
static dibs_status
read_value(const dibs__board *board, const char *part, const char *name,
           dibs_value *out, dibs_error *err)
{
    char key[DIBS_NAME_MAX + 1], inner[DIBS_NAME_MAX + 1];
    dibs_status rc = DIBS_OK;

    (void)snprintf(inner, sizeof(inner), "%s/%s", part, name);
    *out = (dibs_value){0};
    rc = dibs__board_key(board, inner, key, err);
    return rc == DIBS_OK ? dibs_state_get(board->cl, key, out, err) : rc;
}

dibs_status dibs__board_state(const dibs__board *board, const char *job,
                              dibs__job_state *out, dibs_error *err)
{
    dibs_value value;
    dibs_status rc = DIBS_OK;

    dibs__job_state_init(out, job);
    if (!dibs__job_name_ok(job))
        return dibsx_fail(err, DIBS_INVALID, "'%.60s' is no name of a job",
                          job);
    rc = read_value(board, "state", job, &value, err);
    if (rc == DIBS_NOTFOUND)
        return dibsx_fail(err, rc,
                          "there is no job %s on the board %s; 'dibs job ls' "
                          "lists those there are",
                          job, board->name);
    if (rc == DIBS_OK)
        rc = dibs__job_state_read(out, job, value.data, value.len, err);
    if (rc == DIBS_OK)
        dibs__job_state_noted(out, value.version);
    dibs_value_free(&value);
    return rc;
}

dibs_status dibs__board_run(const dibs__board *board, const char *id,
                            dibs__run *out, dibs_error *err)
{
    dibs_value value;
    dibs_status rc = DIBS_OK;

    dibs__run_init(out, strlen(id) < DIBS__RUN_ID_SIZE ? id : "");
    if (!*id || strchr(id, '/') || strlen(id) >= DIBS__RUN_ID_SIZE)
        return dibsx_fail(err, DIBS_INVALID, "'%.60s' is no id of a run", id);
    rc = read_value(board, "run", id, &value, err);
    if (rc == DIBS_NOTFOUND)
        return dibsx_fail(err, rc,
                          "there is no run %s on the board %s; 'dibs job runs' "
                          "lists those there are",
                          id, board->name);
    if (rc == DIBS_OK)
        rc = dibs__run_read(out, id, value.data, value.len, err);
    if (rc == DIBS_OK)
        dibs__run_noted(out, value.version);
    dibs_value_free(&value);
    return rc;
}

dibs_status dibs__board_job(const dibs__board *board, const char *job,
                            const char *hash, dibs__job **out, dibs_error *err)
{
    char name[DIBS__JOB_NAME_SIZE + DIBS__JOB_HASH_SIZE + 1];
    dibs_value value;
    dibs_status rc = DIBS_OK;

    *out = NULL;
    (void)snprintf(name, sizeof(name), "%s/%s", job, hash);
    rc = read_value(board, "def", name, &value, err);
    if (rc == DIBS_NOTFOUND)
        return dibsx_fail(err, rc,
                          "the store has no definition %s of the job %s; load "
                          "its file with 'dibs job load'",
                          hash, job);
    if (rc == DIBS_OK)
        rc = dibs__job_from_json(value.data, value.len, out, err);
    dibs_value_free(&value);
    return rc;
}

/* The names of an intent in a store: each in a slot of DIBS_NAME_MAX + 1 bytes. */
typedef struct names {
    char (*at)[DIBS_NAME_MAX + 1];
    size_t count;
} names;

static const char *add_name(const dibs__board *board, names *all,
                            const char *name, dibs_status *rc, dibs_error *err)
{
    char *out = all->at[all->count++];
    dibs_status one = dibs__board_key(board, name, out, err);

    if (one != DIBS_OK)
        *rc = one;
    return out;
}

/* All that an intent tells is one ring of the board's bell: nodes look at all indexes at
 * once. A commit that has no room for it is found by their next looks. */
static size_t
fill_changes(const dibs__board *board, const dibs__intent *in, names *all,
             dibs_commit_change *out, dibs_status *rc, dibs_error *err)
{
    static const dibs_commit_verb verbs[] = {
        [DIBS__INTENT_PUT] = DIBS_COMMIT_PUT,
        [DIBS__INTENT_DELETE] = DIBS_COMMIT_DELETE,
        [DIBS__INTENT_ENTER] = DIBS_COMMIT_ENTER,
        [DIBS__INTENT_LEAVE] = DIBS_COMMIT_LEAVE};
    size_t count = 0;
    bool tells = false;

    for (size_t i = 0; i < in->change_count; i++) {
        const dibs__intent_change *from = &in->changes[i];

        tells = tells || from->verb == DIBS__INTENT_TELL;
        if (from->verb == DIBS__INTENT_TELL)
            continue;
        out[count++] =
            (dibs_commit_change){.verb = verbs[from->verb],
                                 .name =
                                     add_name(board, all, from->key, rc, err),
                                 .data = from->data,
                                 .len = from->len,
                                 .ttl_ms = from->ttl_ms,
                                 .member = from->member,
                                 .at = from->at};
    }
    if (tells && count < DIBS_CHANGES_MAX)
        out[count++] =
            (dibs_commit_change){.verb = DIBS_COMMIT_RING,
                                 .name = add_name(board, all, DIBS__BOARD_BELL,
                                                  rc, err)};
    return count;
}

static dibs_status send_commit(const dibs__board *board, dibs_commit *commit,
                               bool *doubt, dibs_error *err)
{
    dibs_status rc = DIBS_OK;

    for (int i = 0; i < TRIES_MAX; i++) {
        rc = dibs_state_commit(board->cl, commit, 1, err);
        dibs_commit_free(commit, 1);
        /* An earlier try may yet be carried out. */
        if (*doubt && (rc == DIBS_EARLY || rc == DIBS_UNAVAIL))
            rc = DIBS_UNKNOWN;
        if (rc != DIBS_UNKNOWN)
            return rc;
        *doubt = true;
        (void)poll(NULL, 0, PAUSE_MS);
    }
    return rc;
}

dibs_status dibs__board_commit(const dibs__board *board, const dibs__intent *in,
                               bool *doubt, dibs_error *err)
{
    dibs_commit_check checks[DIBS__INTENT_CHECKS_MAX];
    size_t total = in->check_count + in->change_count;
    names all = {.at = dibsx_zalloc_n(total + 1, sizeof(*all.at))};
    dibs_commit_change *changes =
        dibsx_zalloc_n(in->change_count + 1, sizeof(*changes));
    dibs_commit commit = {.checks = checks,
                          .check_count = in->check_count,
                          .changes = changes,
                          .not_before_us = in->not_before_us,
                          .not_after_us = in->not_after_us};
    dibs_status rc = DIBS_OK;

    if (!all.at || !changes || !dibs__intent_ok(in))
        rc = dibsx_nomem(err, "a change of a job");
    if (rc == DIBS_OK) {
        for (size_t i = 0; i < in->check_count; i++)
            checks[i] =
                (dibs_commit_check){add_name(board, &all, in->checks[i].key,
                                             &rc, err),
                                    in->checks[i].version};
        commit.change_count = fill_changes(board, in, &all, changes, &rc, err);
    }
    if (rc == DIBS_OK)
        rc = send_commit(board, &commit, doubt, err);
    dibsx_free(changes);
    dibsx_free(all.at);
    return rc;
}
