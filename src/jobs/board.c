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

static dibs_status
read_states(const char *const *jobs, size_t count, const dibs_value *values,
            dibs__job_state *out, dibs_error *err)
{
    dibs_status rc = DIBS_OK;

    for (size_t i = 0; i < count && rc == DIBS_OK; i++) {
        dibs__job_state_init(&out[i], jobs[i]);
        if (values[i].version == 0)
            continue;
        rc = dibs__job_state_read(&out[i], jobs[i], values[i].data,
                                  values[i].len, err);
        if (rc == DIBS_OK)
            dibs__job_state_noted(&out[i], values[i].version);
    }
    return rc;
}

dibs_status
dibs__board_states(const dibs__board *board, const char *const *jobs,
                   size_t count, dibs__job_state *out, dibs_error *err)
{
    char names[DIBS_GET_MANY_MAX][DIBS_NAME_MAX + 1];
    const char *keys[DIBS_GET_MANY_MAX] = {NULL};
    dibs_value values[DIBS_GET_MANY_MAX] = {0};
    dibs_status rc = DIBS_OK;

    for (size_t i = 0; i < count && rc == DIBS_OK; i++) {
        char inner[DIBS__JOB_NAME_SIZE + 8];

        (void)snprintf(inner, sizeof(inner), "state/%.100s", jobs[i]);
        rc = dibs__board_key(board, inner, names[i], err);
        keys[i] = names[i];
    }
    if (rc == DIBS_OK)
        rc = dibs_state_get_many(board->cl, keys, count, values, err);
    if (rc == DIBS_OK)
        rc = read_states(jobs, count, values, out, err);
    for (size_t i = 0; i < count; i++)
        dibs_value_free(&values[i]);
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

static dibs_status
read_definition(const dibs__board *board, const char *job, const char *hash,
                dibs_value *out, dibs_error *err)
{
    char name[DIBS__JOB_NAME_SIZE + DIBS__JOB_HASH_SIZE + 1];
    dibs_status rc;

    (void)snprintf(name, sizeof(name), "%s/%s", job, hash);
    rc = read_value(board, "def", name, out, err);
    return rc == DIBS_NOTFOUND
               ? dibsx_fail(err, rc,
                            "the store has no definition %s of the job %s; "
                            "load its file with 'dibs job load'",
                            hash, job)
               : rc;
}

dibs_status
dibs__board_job_version(const dibs__board *board, const char *job,
                        const char *hash, uint64_t *out, dibs_error *err)
{
    dibs_value value;
    dibs_status rc = read_definition(board, job, hash, &value, err);

    *out = value.version;
    dibs_value_free(&value);
    return rc;
}

static dibs_status read_job(const dibs__board *board, const char *job,
                            const char *hash, dibs__job **out, dibs_error *err)
{
    dibs_value value;
    dibs_error why = {.status = DIBS_OK};
    dibs_status rc = read_definition(board, job, hash, &value, err);

    *out = NULL;
    if (rc == DIBS_OK)
        rc = dibs__job_from_json(value.data, value.len, out, &why);
    if (why.status == DIBS_INVALID)
        (void)dibsx_fail(err, rc,
                         "the definition %s of the job %s cannot be read: %s",
                         hash, job, why.message);
    else if (why.status != DIBS_OK)
        (void)dibsx_fail(err, rc, "%s", why.message);
    dibs_value_free(&value);
    return rc;
}

dibs_status dibs__board_job(const dibs__board *board, const char *job,
                            const char *hash, dibs__job **out, dibs_error *err)
{
    dibs_status rc = DIBS_OK;

    *out = board->cache ? dibs__job_cache_find(board->cache, job, hash) : NULL;
    if (*out)
        return DIBS_OK;
    rc = read_job(board, job, hash, out, err);
    if (rc == DIBS_OK && board->cache)
        dibs__job_cache_add(board->cache, *out, hash);
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

/* True: the commit has no answer, and is to be sent again. */
static bool note_answer(const dibs_commit *commit, dibs__answer *answer)
{
    answer->rc = commit->rc;
    answer->version = commit->version;
    answer->failed = commit->failed;
    /* An earlier try may yet be carried out. */
    if (answer->doubt &&
        (commit->rc == DIBS_EARLY || commit->rc == DIBS_UNAVAIL))
        answer->rc = DIBS_UNKNOWN;
    if (answer->rc != DIBS_UNKNOWN)
        return false;
    answer->doubt = true;
    return true;
}

static void send_commits(const dibs__board *board, const dibs_commit *commits,
                         size_t count, dibs__answer *answers, dibs_error *err)
{
    dibs_commit round[DIBS_COMMITS_MAX];
    size_t place[DIBS_COMMITS_MAX], left = count;

    for (size_t i = 0; i < count; i++)
        place[i] = i;
    for (int tries = 0; left > 0 && tries < TRIES_MAX; tries++) {
        size_t kept = 0;
        dibs_status rc;

        if (tries > 0)
            (void)poll(NULL, 0, PAUSE_MS);
        for (size_t i = 0; i < left; i++) {
            round[i] = commits[place[i]];
            round[i].rc = DIBS_INTERNAL;
        }
        rc = dibs_state_commit(board->cl, round, left, err);
        for (size_t i = 0; i < left; i++) {
            /* Refused as a whole, as one breaks a bound. */
            if (rc != DIBS_OK && round[i].rc == DIBS_INTERNAL)
                round[i].rc = rc;
            if (note_answer(&round[i], &answers[place[i]]))
                place[kept++] = place[i];
        }
        dibs_commit_free(round, left);
        left = kept;
    }
}

/* Commits with the names, checks and changes that they point to. */
typedef struct parcel {
    dibs_commit commits[DIBS_COMMITS_MAX];
    names all;
    dibs_commit_check *checks;
    dibs_commit_change *changes;
} parcel;

dibs_status
dibs__board_check(const dibs__intent *ins, size_t count, dibs_error *err)
{
    for (size_t i = 0; i < count; i++) {
        if (ins[i].too_long)
            return dibsx_fail(err, DIBS_INVALID,
                              "the record of a run would be longer than "
                              "%d KiB",
                              DIBS__RUN_JSON_MAX / 1024);
        if (!dibs__intent_ok(&ins[i]))
            return dibsx_nomem(err, "a change of a job");
    }
    return DIBS_OK;
}

static dibs_status
make_parcel(const dibs__intent *ins, size_t count, parcel *out, dibs_error *err)
{
    size_t checks = 0, changes = 0;
    dibs_status rc = dibs__board_check(ins, count, err);

    *out = (parcel){.checks = NULL};
    for (size_t i = 0; i < count; i++) {
        checks += ins[i].check_count;
        changes += ins[i].change_count;
    }
    if (rc != DIBS_OK)
        return rc;
    out->all.at = dibsx_zalloc_n(checks + changes + 1, sizeof(*out->all.at));
    out->checks = dibsx_zalloc_n(checks + 1, sizeof(*out->checks));
    out->changes = dibsx_zalloc_n(changes + 1, sizeof(*out->changes));
    return out->all.at && out->checks && out->changes
               ? DIBS_OK
               : dibsx_nomem(err, "a change of a job");
}

static void free_parcel(parcel *pc)
{
    dibsx_free(pc->changes);
    dibsx_free(pc->checks);
    dibsx_free(pc->all.at);
}

static dibs_status
fill_parcel(const dibs__board *board, const dibs__intent *ins, size_t count,
            parcel *pc, dibs_error *err)
{
    dibs_commit_check *check = pc->checks;
    dibs_commit_change *change = pc->changes;
    dibs_status rc = DIBS_OK;

    for (size_t i = 0; i < count; i++) {
        const dibs__intent *in = &ins[i];

        pc->commits[i] = (dibs_commit){.checks = check,
                                       .check_count = in->check_count,
                                       .changes = change,
                                       .not_before_us = in->not_before_us,
                                       .not_after_us = in->not_after_us};
        for (size_t k = 0; k < in->check_count; k++, check++)
            *check = (dibs_commit_check){add_name(board, &pc->all,
                                                  in->checks[k].key, &rc, err),
                                         in->checks[k].version};
        pc->commits[i].change_count =
            fill_changes(board, in, &pc->all, change, &rc, err);
        change += pc->commits[i].change_count;
    }
    return rc;
}

dibs_status
dibs__board_commit_many(const dibs__board *board, const dibs__intent *ins,
                        size_t count, dibs__answer *answers, dibs_error *err)
{
    parcel pc;
    dibs_status rc = make_parcel(ins, count, &pc, err);

    if (rc == DIBS_OK)
        rc = fill_parcel(board, ins, count, &pc, err);
    if (rc == DIBS_OK)
        send_commits(board, pc.commits, count, answers, err);
    for (size_t i = 0; i < count && rc != DIBS_OK; i++)
        answers[i].rc = rc;
    for (size_t i = 0; i < count && rc == DIBS_OK; i++)
        rc = answers[i].rc;
    free_parcel(&pc);
    return rc;
}

dibs_status dibs__board_commit(const dibs__board *board, const dibs__intent *in,
                               bool *doubt, dibs_error *err)
{
    dibs__answer answer = {.doubt = *doubt};
    dibs_status rc = dibs__board_commit_many(board, in, 1, &answer, err);

    *doubt = answer.doubt;
    return rc;
}

/* ---- indexes */

typedef struct pager {
    dibs_index_fn *each;
    void *arg;
    int64_t at;    /* the number of the last entry */
    uint32_t same; /* entries with this number, so far */
    bool stopped;
} pager;

static bool page_entry(const dibs_index_entry *entry, void *arg)
{
    pager *pg = arg;

    pg->same = entry->at == pg->at ? pg->same + 1 : 1;
    pg->at = entry->at;
    pg->stopped = !pg->each(entry, pg->arg);
    return !pg->stopped;
}

dibs_status dibs__board_entries(const dibs__board *board, const char *index,
                                dibs_index_fn *each, void *arg, dibs_error *err)
{
    char key[DIBS_NAME_MAX + 1];
    pager pg = {.each = each, .arg = arg, .at = -1};
    dibs_index_look look = {.index = key,
                            .up_to = DIBS_INDEX_AT_MAX,
                            .limit = DIBS_LOOK_MAX};
    dibs_status rc = dibs__board_key(board, index, key, err);

    do {
        if (rc == DIBS_OK)
            rc = dibs_index_first(board->cl, &look, 1, NULL, page_entry, &pg,
                                  err);
        look.from = pg.at > 0 ? pg.at : 0;
        look.skip = pg.same;
    } while (rc == DIBS_OK && !pg.stopped && look.next >= 0);
    return rc;
}
