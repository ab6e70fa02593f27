/* node_zones.c - see node_zones.h. */
/* SPDX-License-Identifier: MIT */
#include "node/node_zones.h"
#include "base/alloc.h"
#include "base/fail.h"
#include "jobs/board_change.h"

#include <stdio.h>
#include <string.h>

enum {
    AT_ONCE = DIBS_GET_MANY_MAX, /* jobs in one look */
    AGAIN_MS = 1000
};

#define VERSION_KEY                                                            \
    "tzdata" /* has the newest version that a node has dealt with */

/* Owned by the node while it goes through the jobs that have a next tick. */
struct dibs__node_zones {
    dibs__node *node;
    char version[DIBS__TZDATA_SIZE];
    char (*jobs)[DIBS__JOB_NAME_SIZE];
    size_t count, room, at;
    bool failed;
};

static bool note_job(const dibs_index_entry *entry, void *arg)
{
    struct dibs__node_zones *z = arg;

    if (strlen(entry->member) >= DIBS__JOB_NAME_SIZE)
        return true;
    if (z->count % DIBS_LOOK_MAX == 0)
        (void)dibs__node_valid_until(z->node);
    if (z->count == z->room) {
        size_t room = z->room ? z->room * 2 : 64;
        char(*more)[DIBS__JOB_NAME_SIZE] =
            dibsx_realloc_n(z->jobs, room, sizeof(*more));

        z->failed = z->failed || !more;
        if (!more)
            return false;
        z->jobs = more;
        z->room = room;
    }
    (void)snprintf(z->jobs[z->count++], DIBS__JOB_NAME_SIZE, "%s",
                   entry->member);
    return true;
}

/* A job that moves in the index meanwhile was ticked, or has changed otherwise: its next
 * tick is new anyway. */
static dibs_status
list_jobs(dibs__node *node, struct dibs__node_zones *z, dibs_error *err)
{
    dibs_status rc;

    z->node = node;
    rc = dibs__board_entries(node->board, "due", note_job, z, err);
    (void)dibs__node_valid_until(node);
    return rc == DIBS_OK && z->failed ? dibsx_nomem(err, "the names of jobs")
                                      : rc;
}

bool dibs__tzdata_newer(const char *version, const char *than)
{
    return version[0] && strcmp(version, than) > 0;
}

/* Whether no node had this version yet. */
static dibs_status
is_new(dibs__node *node, const char *version, bool *out, dibs_error *err)
{
    char key[DIBS_NAME_MAX + 1], known[DIBS__TZDATA_SIZE] = "";
    dibs_value value = {.len = 0};
    dibs_status rc = dibs__board_key(node->board, VERSION_KEY, key, err);

    if (rc == DIBS_OK)
        rc = dibs_state_get(node->board->cl, key, &value, err);
    if (rc == DIBS_OK)
        (void)snprintf(known, sizeof(known), "%.*s", (int)value.len,
                       (const char *)value.data);
    dibs_value_free(&value);
    *out = dibs__tzdata_newer(version, known);
    return rc == DIBS_NOTFOUND ? DIBS_OK : rc;
}

static dibs_status
keep_version(dibs__node *node, const char *version, dibs_error *err)
{
    char key[DIBS_NAME_MAX + 1];
    dibs_status rc = dibs__board_key(node->board, VERSION_KEY, key, err);

    return rc == DIBS_OK ? dibs_state_set(node->board->cl, key, version,
                                          strlen(version), 0, NULL, err)
                         : rc;
}

/* As dibs__state_fn. */
static dibs_status refresh_state(const dibs__job *job, dibs__job_state *state,
                                 const dibs__ticker *tk, int64_t now_us,
                                 void *arg, dibs_error *err)
{
    (void)now_us;
    (void)arg;
    (void)err;
    if (dibs__tzdata_newer(tk->tzdata, state->tzdata))
        dibs__tick_refresh(job, state, tk);
    return DIBS_OK;
}

void dibs__node_free_zones(dibs__node *node)
{
    if (node->zones)
        dibsx_free(node->zones->jobs);
    dibsx_free(node->zones);
    node->zones = NULL;
}

/* Begins to go through all jobs, if there is a reason. */
static dibs_status begin_zones(dibs__node *node, dibs_error *err)
{
    char version[DIBS__TZDATA_SIZE];
    bool new = false;
    dibs_status rc = DIBS_OK;

    dibs__tzdata_version(version);
    if (strcmp(version, node->tzdata) == 0)
        return DIBS_OK;
    rc = is_new(node, version, &new, err);
    if (rc == DIBS_OK && new) {
        node->zones = dibsx_zalloc(sizeof(*node->zones));
        rc = node->zones ? list_jobs(node, node->zones, err)
                         : dibsx_nomem(err, "the names of jobs");
        if (rc != DIBS_OK)
            dibs__node_free_zones(node);
    }
    if (rc == DIBS_OK && new)
        memcpy(node->zones->version, version, sizeof(version));
    else if (rc == DIBS_OK)
        memcpy(node->tzdata, version, sizeof(version));
    return rc;
}

/* Which of the next jobs, `count` in all, have a next tick by older data: one request. */
static dibs_status
find_older(dibs__node *node, size_t count, bool older[AT_ONCE], dibs_error *err)
{
    const struct dibs__node_zones *z = node->zones;
    char keys[AT_ONCE][DIBS_NAME_MAX + 1];
    const char *list[AT_ONCE] = {NULL};
    dibs_value values[AT_ONCE];
    dibs_status rc = DIBS_OK;

    for (size_t i = 0; i < count && rc == DIBS_OK; i++) {
        char inner[DIBS__JOB_NAME_SIZE + 8];

        (void)snprintf(inner, sizeof(inner), "state/%s", z->jobs[z->at + i]);
        rc = dibs__board_key(node->board, inner, keys[i], err);
        list[i] = keys[i];
    }
    if (rc == DIBS_OK)
        rc = dibs_state_get_many(node->board->cl, list, count, values, err);
    for (size_t i = 0; i < count && rc == DIBS_OK; i++) {
        dibs__job_state state;

        older[i] =
            values[i].version &&
            dibs__job_state_read(&state, z->jobs[z->at + i], values[i].data,
                                 values[i].len, NULL) == DIBS_OK &&
            dibs__tzdata_newer(z->version, state.tzdata);
        dibs_value_free(&values[i]);
    }
    return rc;
}

/* A job that cannot be read, or whose zone this node lacks, is left as it is. */
static dibs_status go_on(dibs__node *node, dibs_error *err)
{
    struct dibs__node_zones *z = node->zones;
    size_t count = z->count - z->at < AT_ONCE ? z->count - z->at : AT_ONCE;
    bool older[AT_ONCE] = {false};
    dibs_status rc = count > 0 ? find_older(node, count, older, err) : DIBS_OK;

    for (size_t i = 0; i < count && rc == DIBS_OK; i++) {
        const char *job = z->jobs[z->at + i];

        if (!older[i])
            continue;
        rc = dibs__board_change_job(node->board, job, refresh_state, NULL, err);
        if (rc != DIBS_OK && !dibsx_is_away(rc)) {
            dibs__node_complain(node, job, err);
            rc = DIBS_OK;
        }
        (void)dibs__node_valid_until(node);
    }
    if (rc != DIBS_OK)
        return rc;
    z->at += count;
    return z->at < z->count ? DIBS_OK : keep_version(node, z->version, err);
}

void dibs__node_look_at_zones(dibs__node *node)
{
    dibsx_nsec now = dibsx_now();
    dibs_error err = {0};
    dibs_status rc = DIBS_OK;

    if (!node->zones && now < node->zones_at)
        return;
    node->zones_at = dibsx_after_ms(now, node->opts->ttl_ms);
    if (!node->zones)
        rc = begin_zones(node, &err);
    if (rc == DIBS_OK && node->zones) {
        rc = go_on(node, &err);
        if (rc == DIBS_OK && node->zones->at == node->zones->count) {
            dibs__node_say(
                node,
                "the node looked at the next ticks of %zu jobs by the "
                "zone data %s",
                node->zones->count, node->zones->version);
            memcpy(node->tzdata, node->zones->version, sizeof(node->tzdata));
            dibs__node_free_zones(node);
        }
        /* A store may answer reads and refuse writes. */
        dibs__node_hurry(node, rc == DIBS_OK ? 0 : AGAIN_MS);
    }
    if (rc != DIBS_OK)
        dibs__node_complain(node, "new zone data", &err);
}
