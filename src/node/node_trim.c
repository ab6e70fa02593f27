/* node_trim.c - the sweep of a node that keeps the history of a board short. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/fail.h"
#include "jobs/batch.h"
#include "jobs/history.h"
#include "node/node_sweep.h"

#include <stdio.h>
#include <string.h>

/* One sweep looks at so many runs of a job, 8 MiB of ids, and at so many definitions. Each
 * of the two has so long in one look. */
enum { RUNS_MAX = 65536, OLD_MAX = DIBS_LOOK_MAX, PART_MS = 500 };

#define TRIM_AGAIN_US (INT64_C(3600) * 1000000)

typedef struct run_list {
    dibs__node *node;
    char (*at)[DIBS__RUN_ID_SIZE];
    size_t count, room;
    bool full, failed;
} run_list;

static bool make_room(run_list *list)
{
    size_t room = list->room ? 2 * list->room : DIBS_LOOK_MAX;
    void *more;

    list->full = list->full || list->count == RUNS_MAX;
    if (list->full || list->count < list->room)
        return !list->full;
    more = dibsx_realloc_n(list->at, room, sizeof(*list->at));
    list->failed = !more;
    if (!more)
        return false;
    list->at = more;
    list->room = room;
    return true;
}

static bool note_run(const dibs_index_entry *entry, void *arg)
{
    run_list *list = arg;

    if (strlen(entry->member) >= DIBS__RUN_ID_SIZE)
        return true;
    if (!make_room(list))
        return false;
    if (list->count % DIBS_LOOK_MAX == 0)
        (void)dibs__node_valid_until(list->node);
    (void)snprintf(list->at[list->count++], DIBS__RUN_ID_SIZE, "%s",
                   entry->member);
    return true;
}

/* All runs of a job, the oldest first: any number of them may live, or be kept, before one
 * that goes. */
static dibs_status
list_runs(dibs__node *node, const char *job, run_list *list, dibs_error *err)
{
    char index[DIBS__PLACE_SIZE];
    dibs_status rc;

    (void)snprintf(index, sizeof(index), "runs/%.100s", job);
    rc = dibs__board_entries(node->board, index, note_run, list, err);
    return rc == DIBS_OK && list->failed ? dibsx_nomem(err, "the list of runs")
                                         : rc;
}

/* Definitions that are not in force any more. */
typedef struct old_list {
    char at[OLD_MAX][DIBS__JOB_HASH_SIZE];
    bool used[OLD_MAX];
    size_t count;
} old_list;

static bool note_hash(const dibs_index_entry *entry, void *arg)
{
    old_list *old = arg;

    if (strlen(entry->member) < DIBS__JOB_HASH_SIZE && old->count < OLD_MAX)
        (void)snprintf(old->at[old->count++], DIBS__JOB_HASH_SIZE, "%s",
                       entry->member);
    return true;
}

static dibs_status
list_old(dibs__node *node, const char *job, old_list *old, dibs_error *err)
{
    char inner[DIBS__PLACE_SIZE], key[DIBS_NAME_MAX + 1];
    dibs_index_look look = {.index = key,
                            .up_to = DIBS_INDEX_AT_MAX,
                            .limit = OLD_MAX};
    dibs_status rc;

    (void)snprintf(inner, sizeof(inner), "old/%.100s", job);
    rc = dibs__board_key(node->board, inner, key, err);
    if (rc == DIBS_OK)
        rc = dibs_index_first(node->board->cl, &look, 1, NULL, note_hash, old,
                              err);
    return rc;
}

static void note_use(old_list *old, const char *hash)
{
    for (size_t i = 0; i < old->count; i++)
        old->used[i] = old->used[i] || strcmp(old->at[i], hash) == 0;
}

/* The state is checked as it was before the runs were listed: a load that brings the
 * definition back comes before or after this, and so does a start that the list lacks. *left:
 * it has changed, and the definition stays for now. */
static dibs_status drop_old(dibs__node *node, const dibs__job_state *state,
                            const char *hash, bool *left, dibs_error *err)
{
    char key[DIBS__PLACE_SIZE], index[DIBS__PLACE_SIZE];
    bool doubt = false;
    dibs__intent in;
    dibs_status rc;

    dibs__intent_init(&in);
    (void)snprintf(key, sizeof(key), "state/%s", state->job);
    dibs__intent_check_version(&in, key, state->version);
    (void)snprintf(index, sizeof(index), "old/%s", state->job);
    dibs__intent_leave(&in, index, hash);
    (void)snprintf(key, sizeof(key), "def/%s/%s", state->job, hash);
    if (!state->set[0] || strcmp(state->hash, hash) != 0)
        dibs__intent_delete(&in, key);
    rc = dibs__board_commit(node->board, &in, &doubt, err);
    dibs__intent_fini(&in);
    *left = *left || rc == DIBS_STALE;
    return rc == DIBS_STALE ? DIBS_OK : rc;
}

/* A definition that a run had when this sweep began stays until the next one: a rerun
 * may be under way. The list loses definitions that are done; it is not empty when the time
 * was too short. */
static dibs_status drop_unused(dibs__node *node, const dibs__job_state *state,
                               old_list *old, bool *left, dibs_error *err)
{
    dibsx_nsec until = dibsx_after_ms(dibsx_now(), PART_MS);
    dibs_status rc = DIBS_OK;

    while (old->count > 0 && rc == DIBS_OK && dibsx_now() < until) {
        size_t i = --old->count;

        *left = *left || old->used[i];
        if (!old->used[i])
            rc = drop_old(node, state, old->at[i], left, err);
        (void)dibs__node_valid_until(node);
    }
    return rc;
}

/* A look is due again in an hour. */
static dibs_status
put_off_trim(dibs__node *node, const char *job, int64_t now_us, dibs_error *err)
{
    bool doubt = false;
    dibs__intent in;
    dibs_status rc;

    dibs__intent_init(&in);
    dibs__intent_enter(&in, "trim", job, now_us + TRIM_AGAIN_US);
    rc = dibs__board_commit(node->board, &in, &doubt, err);
    dibs__intent_fini(&in);
    return rc;
}

/* A sweep of one job, and the runs that it looks at together. State and definition are
 * those of its beginning. */
typedef struct dibs__trim {
    dibs__node *node;
    char job[DIBS__PLACE_SIZE];
    dibs__job_state state;
    dibs__job *def;
    run_list list;
    size_t end; /* those before it are still to be looked at */
    bool split; /* it took several looks */
    bool left;  /* another sweep is due in an hour */
    dibs__history_look look;
    old_list old;
    dibs__intent ins[DIBS_COMMITS_MAX];
    size_t in_count;
} trim;

/* The parent has not seen yet how its child has ended, as far as can be read. */
static bool is_awaited(trim *t, const dibs__run *run)
{
    dibs__run parent;
    dibs_status rc;
    bool awaited;
    size_t i;

    if (run->cause != DIBS__CAUSE_CHILD)
        return false;
    rc = dibs__board_run(t->node->board, run->origin, &parent, NULL);
    awaited = rc == DIBS_OK ? dibs__run_find(&parent, run->parent, &i) &&
                                  parent.steps[i].state == DIBS__STATE_WAITING
                            : rc != DIBS_NOTFOUND;
    dibs__run_fini(&parent);
    (void)dibs__node_valid_until(t->node);
    t->left = t->left || awaited;
    return awaited;
}

/* A record that nobody can read is left as it is: others are looked at all the same. */
static void look_at_record(trim *t, const char *id, const dibs_value *value)
{
    dibs__intent *in = &t->ins[t->in_count];
    dibs_error err = {0};
    dibs__run run;
    bool goes = value->version == 0;

    dibs__intent_init(in);
    dibs__run_init(&run, id);
    if (goes) { /* It has expired. */
        goes = dibs__history_forget(t->def, id, in, &err) == DIBS_OK;
    } else if (dibs__run_read(&run, id, value->data, value->len, &err) !=
               DIBS_OK) {
        dibs__node_complain(t->node, id, &err);
    } else {
        dibs__run_noted(&run, value->version);
        note_use(&t->old, run.hash);
        goes = dibs__history_goes(&t->look, &run) && !is_awaited(t, &run);
        if (goes)
            dibs__history_drop(&run, in);
    }
    t->in_count += goes;
    dibs__run_fini(&run);
}

/* A run that has changed since it was read stays. */
static dibs_status send_drops(trim *t, dibs_error *err)
{
    dibs__answer answers[DIBS_COMMITS_MAX] = {{.rc = DIBS_OK}};
    dibs_status rc = DIBS_OK;

    if (t->in_count > 0)
        (void)!dibs__board_commit_many(t->node->board, t->ins, t->in_count,
                                       answers, err);
    for (size_t i = 0; i < t->in_count; i++) {
        if (rc == DIBS_OK && answers[i].rc != DIBS_STALE)
            rc = answers[i].rc;
        dibs__intent_fini(&t->ins[i]);
    }
    t->in_count = 0;
    return rc;
}

/* Up to DIBS_GET_MANY_MAX runs, from the last to the first. */
static dibs_status look_at_some(trim *t, char (*ids)[DIBS__RUN_ID_SIZE],
                                size_t count, dibs_error *err)
{
    char names[DIBS_GET_MANY_MAX][DIBS_NAME_MAX + 1];
    const char *keys[DIBS_GET_MANY_MAX] = {NULL};
    dibs_value values[DIBS_GET_MANY_MAX] = {{.len = 0}};
    dibs_status rc = DIBS_OK;

    for (size_t i = 0; i < count && rc == DIBS_OK; i++) {
        char inner[DIBS__PLACE_SIZE];

        (void)snprintf(inner, sizeof(inner), "run/%s", ids[i]);
        rc = dibs__board_key(t->node->board, inner, names[i], err);
        keys[i] = names[i];
    }
    if (rc == DIBS_OK)
        rc = dibs_state_get_many(t->node->board->cl, keys, count, values, err);
    for (size_t i = count; i > 0 && rc == DIBS_OK; i--)
        look_at_record(t, ids[i - 1], &values[i - 1]);
    for (size_t i = 0; i < count; i++)
        dibs_value_free(&values[i]);
    if (rc == DIBS_OK)
        rc = send_drops(t, err);
    (void)dibs__node_valid_until(t->node);
    return rc;
}

/* Runs from the last to the first, until they are done or its time is over. */
static dibs_status look_at_runs(trim *t, dibs_error *err)
{
    dibsx_nsec until = dibsx_after_ms(dibsx_now(), PART_MS);
    dibs_status rc = DIBS_OK;

    do {
        size_t count = t->end < DIBS_GET_MANY_MAX ? t->end : DIBS_GET_MANY_MAX;

        if (count > 0)
            rc = look_at_some(t, t->list.at + t->end - count, count, err);
        if (rc == DIBS_OK)
            t->end -= count;
    } while (t->end > 0 && rc == DIBS_OK && dibsx_now() < until);
    return rc;
}

static dibs_status list_all(trim *t, dibs_error *err)
{
    dibs_status rc = list_old(t->node, t->job, &t->old, err);

    t->list.node = t->node;
    if (rc == DIBS_OK)
        rc = list_runs(t->node, t->job, &t->list, err);
    if (rc == DIBS_OK)
        rc = dibs__board_now(t->node->board, &t->look.now_us, err);
    t->end = t->list.count;
    return rc;
}

/* The sweep is node->trim. */
static dibs_status
begin_trim(dibs__node *node, const char *job, dibs_error *err)
{
    trim *t = node->trim = dibsx_zalloc(sizeof(*t));
    dibs_status rc = t ? DIBS_OK : dibsx_nomem(err, "a sweep of history");

    if (!t)
        return rc;
    t->node = node;
    (void)snprintf(t->job, sizeof(t->job), "%s", job);
    rc = dibs__board_state(node->board, job, &t->state, err);
    if (rc == DIBS_OK)
        rc = dibs__board_job(node->board, job, t->state.hash, &t->def, err);
    if (rc != DIBS_OK)
        return rc;
    t->look.limits = &t->def->history;
    return list_all(t, err);
}

/* Runs were made and have ended during a sweep of several looks: the next one is for them,
 * and for the definitions. *over: it has ended, else it goes on with the next look. */
static dibs_status end_trim(trim *t, bool *over, dibs_error *err)
{
    dibs_status rc = DIBS_OK;

    t->left = t->left || t->list.full || t->split;
    if (!t->list.full && !t->split) {
        rc = drop_unused(t->node, &t->state, &t->old, &t->left, err);
        *over = rc != DIBS_OK || t->old.count == 0;
    }
    if (rc != DIBS_OK || !*over)
        return rc;
    return t->left ? put_off_trim(t->node, t->job, t->look.now_us, err)
                   : dibs__node_drop_entry(t->node, "trim", t->job, NULL, err);
}

void dibs__node_free_trim(dibs__node *node)
{
    if (node->trim) {
        dibs__job_free(node->trim->def);
        dibsx_free(node->trim->list.at);
    }
    dibsx_free(node->trim);
    node->trim = NULL;
}

const char *dibs__node_trims(const dibs__node *node)
{
    return node->trim ? node->trim->job : NULL;
}

/* The node does not begin another one before this has ended. */
dibs_status dibs__sweep_trim(dibs__node *node, const dibs__node_entry *entry,
                             dibs_error *err)
{
    dibs_status rc = DIBS_OK;
    bool over = true;

    if (node->trim && strcmp(node->trim->job, entry->member) != 0)
        return DIBS_OK;
    if (strncmp(entry->member, DIBS__BATCH_PART, strlen(DIBS__BATCH_PART)) == 0)
        return dibs__trim_batch(node, entry, err);
    if (!node->trim)
        rc = begin_trim(node, entry->member, err);
    if (rc == DIBS_OK)
        rc = look_at_runs(node->trim, err);
    if (rc == DIBS_OK && node->trim->end > 0) {
        node->trim->split = true;
        return DIBS_OK; /* It goes on with the next look. */
    }
    if (rc == DIBS_OK)
        rc = end_trim(node->trim, &over, err);
    else if (rc == DIBS_NOTFOUND)
        rc = dibs__node_drop_entry(node, "trim", entry->member, NULL, err);
    if (over)
        dibs__node_free_trim(node);
    return rc;
}
