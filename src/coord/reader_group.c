/* reader_group.c - a group of readers; see reader_group.h.
 *
 * Owns the lock of the group. Threads: that of the reader. */
/* SPDX-License-Identifier: MIT */
#include "coord/reader_group.h"
#include "base/fail.h"
#include <dibs/state.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How long one attempt to enter waits; between two the reader looks whether its wait is
 * cancelled. */
enum { ATTEMPT_MS = 300 };

static dibs_status name_group(char *name, size_t size, const char *topic,
                              const char *group, dibs_error *err)
{
    int len = snprintf(name, size, "events/%s/%s", topic, group);

    /* The topic may have some: else two groups had the same name. */
    if (strchr(group, '/'))
        return dibsx_fail(err, DIBS_INVALID,
                          "`%.60s` is no name for a group of readers: it has a "
                          "`/`; use another character",
                          group);
    if (group[0] && len >= 0 && (size_t)len < size)
        return DIBS_OK;
    return dibsx_fail(err, DIBS_INVALID,
                      "the name of the group is empty, or with the topic "
                      "longer than %d bytes",
                      DIBS_NAME_MAX);
}

dibs_status dibs__reader_group_init(dibs__reader_group *g, dibs_client *cl,
                                    const char *topic, const char *group,
                                    int64_t ttl_ms, dibs_error *err)
{
    dibs_status rc;

    *g = (dibs__reader_group){.cl = cl};
    snprintf(g->topic, sizeof(g->topic), "%s", topic);
    rc = name_group(g->name, sizeof(g->name), topic, group, err);
    if (rc != DIBS_OK)
        return rc;
    return dibs_lock_new(cl, g->name,
                         DIBS_LOCK_OPTS(.ttl_ms = ttl_ms, .wait_ms = ATTEMPT_MS,
                                        .label = "events"),
                         &g->lock, err);
}

void dibs__reader_group_leave(dibs__reader_group *g)
{
    if (g->entered)
        (void)dibs_lock_release(g->lock, NULL);
    g->entered = false;
}

void dibs__reader_group_fini(dibs__reader_group *g)
{
    dibs__reader_group_leave(g);
    dibs_lock_free(g->lock);
    g->lock = NULL;
}

bool dibs__reader_group_holds(const dibs__reader_group *g)
{
    return g->entered && dibs_lock_check(g->lock) == DIBS_OK;
}

enum { POSITION_SIZE = 24 };

static size_t put_position(char text[POSITION_SIZE], uint64_t position)
{
    return (size_t)snprintf(text, POSITION_SIZE, "%" PRIu64, position);
}

/* A group that has no position yet has an empty value. */
static dibs_status write_position(dibs__reader_group *g, bool known,
                                  uint64_t position, dibs_error *err)
{
    char text[POSITION_SIZE];
    size_t len = known ? put_position(text, position) : 0;
    uint64_t version = 0;
    dibs_status rc =
        dibs_state_cas(g->cl, g->name, g->version, text, len, 0, &version, err);

    g->unsure = rc == DIBS_UNKNOWN;
    if (rc == DIBS_OK) {
        g->version = version;
        g->kept = position;
        g->kept_at = dibsx_now();
    }
    return rc;
}

static dibs_status read_position(dibs__reader_group *g, bool *found,
                                 uint64_t *position, dibs_error *err)
{
    dibs_value value = {0};
    dibs_status rc = dibs_state_get(g->cl, g->name, &value, err);

    *position = 0;
    *found = false;
    g->version = DIBS_VERSION_NONE;
    if (rc == DIBS_OK) {
        g->version = value.version;
        *found = value.len > 0;
        *position = strtoull(value.data, NULL, 10);
    }
    dibs_value_free(&value);
    return rc == DIBS_NOTFOUND ? DIBS_OK : rc;
}

/* Writes what is there anew. The write of a reader that was displaced may come in
 * between, and is read then. */
static dibs_status
take_position(dibs__reader_group *g, bool at_end, bool *found,
              uint64_t *position, dibs_error *err)
{
    dibs_status rc;

    do {
        dibs_topic_state at;

        rc = read_position(g, found, position, err);
        if (rc == DIBS_OK && !*found && at_end) {
            rc = dibs_events_show(g->cl, g->topic, &at, err);
            *position = at.last;
            *found = rc == DIBS_OK;
        }
        if (rc == DIBS_OK)
            rc = write_position(g, *found, *position, err);
    } while (rc == DIBS_STALE);
    return rc;
}

/* A reader that enters meanwhile finds the value that it lacks, or has made it first. */
dibs_status dibs__reader_group_found(dibs_client *cl, const char *topic,
                                     const char *group, dibs_error *err)
{
    char name[DIBS_NAME_MAX + 1], text[POSITION_SIZE];
    dibs_topic_state at;
    dibs_value value = {0};
    dibs_status rc = name_group(name, sizeof(name), topic, group, err);

    if (rc == DIBS_OK)
        rc = dibs_state_get(cl, name, &value, err);
    dibs_value_free(&value);
    if (rc != DIBS_NOTFOUND)
        return rc;
    rc = dibs_events_show(cl, topic, &at, err);
    if (rc == DIBS_OK)
        rc = dibs_state_cas(cl, name, DIBS_VERSION_NONE, text,
                            put_position(text, at.last), 0, NULL, err);
    return rc == DIBS_STALE ? DIBS_OK : rc;
}

dibs_status
dibs__reader_group_enter(dibs__reader_group *g, int64_t wait_ms, bool at_end,
                         bool *found, uint64_t *position, dibs_error *err)
{
    dibs_status rc;

    *found = false;
    dibs__reader_group_leave(g);
    rc = wait_ms == 0 ? dibs_lock_try(g->lock, err)
                      : dibs_lock_acquire(g->lock, err);
    if (rc == DIBS_TIMEOUT)
        rc = dibsx_fail(err, DIBS_BUSY,
                        "another reader of the group has the turn");
    if (rc != DIBS_OK)
        return rc;
    g->entered = true;
    g->kept = 0;
    rc = take_position(g, at_end, found, position, err);
    if (rc != DIBS_OK)
        dibs__reader_group_leave(g);
    return rc;
}

static dibs_status check_turn(const dibs__reader_group *g, dibs_error *err)
{
    return dibs__reader_group_holds(g)
               ? DIBS_OK
               : dibsx_fail(err, DIBS_LOST,
                            "another reader of the group may have the turn "
                            "now");
}

dibs_status dibs__reader_group_keep(dibs__reader_group *g, uint64_t position,
                                    dibs_error *err)
{
    uint64_t there;
    bool found;
    dibs_status rc = check_turn(g, err);

    /* If the lease is held yet after the read no other has written: the version is one of
     * ours. */
    if (rc == DIBS_OK && g->unsure) {
        rc = read_position(g, &found, &there, err);
        if (rc == DIBS_OK)
            rc = check_turn(g, err);
    }
    if (rc == DIBS_OK)
        rc = write_position(g, true, position, err);
    if (rc == DIBS_STALE)
        rc = dibsx_fail(err, DIBS_LOST,
                        "another reader of the group has the turn now");
    return rc;
}
