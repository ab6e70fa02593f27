/* shared_stats.c - adds the counts of a client to those in the store; see
 * shared_stats.h.
 *
 * Thread: a worker, and at the end the one that closes the client. It removes fresh
 * counts from the table under the mutex, talks to the store without it, and puts
 * counts back that the store did not accept. */
/* SPDX-License-Identifier: MIT */
#include "core/stats/shared_stats.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "core/log.h"
#include "core/names.h"
#include "core/reach.h"
#include "core/stats/name_table.h"
#include "core/stats/sharing.h"
#include <dibs/state.h>
#include <stdio.h>
#include <string.h>

/* Delay from a count to the round that shares it, with others that came
 * meanwhile. */
enum { PAUSE_MS = 5000 };

/* How long the shared counts of a name are kept after its last use. */
#define KEPT_MS ((int64_t)24 * 3600 * 1000)

/* How often a write is tried again after others wrote at the same moment. */
enum { STALE_TRIES = 8 };

/* The fresh counts of one name, on their way to the store. */
typedef struct fresh_counts {
    char name[DIBS_NAME_MAX + 1];
    dibs__counts counts;
} fresh_counts;

static size_t count_fresh(const dibs__name_table *table)
{
    size_t count = 0;

    for (dibs__name_row *at = table->newest; at; at = at->older)
        if (!dibs__counts_empty(&at->fresh))
            count++;
    return count;
}

/* Removes the fresh counts from the table. NULL: there are none, or memory is
 * short, in which case they stay in the table. Locks: cl->mutex. */
static fresh_counts *take_fresh(dibs_client *cl, size_t *count)
{
    size_t room = cl->name_table ? count_fresh(cl->name_table) : 0;
    fresh_counts *list = room > 0 ? dibsx_zalloc_n(room, sizeof(*list)) : NULL;

    *count = 0;
    if (!list)
        return NULL;
    for (dibs__name_row *at = cl->name_table->newest; at; at = at->older) {
        fresh_counts *fc = &list[*count];

        if (dibs__counts_empty(&at->fresh))
            continue;
        snprintf(fc->name, sizeof(fc->name), "%s", at->name);
        fc->counts = at->fresh;
        at->fresh = (dibs__counts){0};
        ++*count;
    }
    return list;
}

/* Puts counts that the store did not accept back for the next round. If the
 * name has left the table, they are dropped. */
static void put_back(dibs_client *cl, const fresh_counts *fc)
{
    dibs__name_row *name;

    pthread_mutex_lock(&cl->mutex);
    name = dibs__name_table_find(cl->name_table, fc->name);
    if (name) {
        dibs__counts_merge(&name->fresh, &fc->counts);
        dibs__shared_stats_note(cl);
    }
    pthread_mutex_unlock(&cl->mutex);
}

/* Reads the shared counts. *version is DIBS_VERSION_NONE when there are none. A
 * value that cannot be read is not of this library. */
static dibs_status
read_shared(dibs_client *cl, const char *key, dibsx_nsec deadline,
            dibs__counts *out, uint64_t *version, dibs_error *err)
{
    dibs_value value = {0};
    dibs_status rc =
        cl->st->ops->value->get(cl->st, key, deadline, &value, err);

    *out = (dibs__counts){0};
    *version = DIBS_VERSION_NONE;
    if (rc == DIBS_NOTFOUND)
        return DIBS_OK;
    if (rc == DIBS_UNKNOWN)
        rc = DIBS_UNAVAIL; /* to read changes nothing */
    if (rc == DIBS_OK) {
        *version = value.version;
        rc = dibs__counts_read(value.data, out);
    }
    if (rc == DIBS_NOMEM)
        rc = dibsx_nomem(err, "the shared statistics");
    if (rc == DIBS_MISMATCH)
        rc = dibsx_fail(err, rc, "%s is not what this version can read", key);
    dibs_value_free(&value);
    return rc;
}

/* Adds `counts` to the shared ones if no other client wrote since they were
 * read. */
static dibs_status
add_once(dibs_client *cl, const char *key, const dibs__counts *counts,
         dibsx_nsec deadline, dibs_error *err)
{
    dibs__put put = {.key = key, .ttl_ms = KEPT_MS};
    dibs__counts all;
    uint64_t version;
    dibsx_buf text;
    dibs_status rc = read_shared(cl, key, deadline, &all, &put.expected, err);

    if (rc != DIBS_OK)
        return rc;
    dibsx_buf_init(&text, DIBS__COUNTS_MAX);
    dibs__counts_merge(&all, counts);
    dibs__counts_write(&all, &text);
    put.data = dibsx_buf_text(&text);
    put.len = text.len;
    if (dibsx_buf_ok(&text))
        rc = cl->st->ops->value->put(cl->st, &put, deadline, &version, err);
    else
        rc = dibsx_nomem(err, "the shared statistics");
    dibsx_buf_fini(&text);
    dibs__counts_fini(&all);
    return rc;
}

static dibs_status share_one(dibs_client *cl, const fresh_counts *fc,
                             dibsx_nsec deadline, dibs_error *err)
{
    const char *name = dibs__name_short(cl, fc->name);
    char key[DIBS_NAME_MAX + 1];
    int len = snprintf(key, sizeof(key), "%s" DIBS__SHARED_STATS_KEY "%s",
                       cl->prefix, name);
    dibs_status rc = DIBS_STALE;

    if (len < 0 || (size_t)len >= sizeof(key))
        return DIBS_OK;
    /* A store that is refused is not written to, and not asked for every name. */
    if (dibs__reach_store(cl, deadline, err) != DIBS_OK)
        return DIBS_UNAVAIL;
    for (int i = 0; i < STALE_TRIES && rc == DIBS_STALE; i++)
        rc = add_once(cl, key, &fc->counts, deadline, err);
    return rc;
}

/* Whether counts that were not accepted are kept for another round. After
 * DIBS_UNKNOWN they may have been added, after DIBS_MISMATCH they never will
 * be. */
static bool worth_keeping(dibs_status rc)
{
    return rc != DIBS_OK && rc != DIBS_UNKNOWN && rc != DIBS_MISMATCH;
}

/* Whether the next name would fail the same way. */
static bool is_hopeless(dibs_status rc)
{
    return rc == DIBS_UNAVAIL || rc == DIBS_DENIED;
}

/* Locks: cl->mutex, let go meanwhile. */
static void share_all(dibs_client *cl, dibs__sharing *sh, dibsx_nsec deadline)
{
    size_t count;
    fresh_counts *list = take_fresh(cl, &count);
    bool given_up = false;

    (void)sh;
    pthread_mutex_unlock(&cl->mutex);
    for (size_t i = 0; i < count; i++) {
        dibs_status rc = DIBS_UNAVAIL;
        dibs_error err = {0};

        if (!given_up && dibsx_now() < deadline) {
            rc = share_one(cl, &list[i], deadline, &err);
            given_up = is_hopeless(rc);
            if (rc != DIBS_OK)
                dibs__log(cl, DIBS_LOG_DEBUG, "share",
                          "the statistics of %s were not shared: %s",
                          list[i].name, err.message);
        }
        if (worth_keeping(rc))
            put_back(cl, &list[i]);
        dibs__counts_fini(&list[i].counts);
    }
    dibsx_free(list);
    pthread_mutex_lock(&cl->mutex);
}

static void forget_shared_stats(dibs_client *cl, dibs__sharing *sh)
{
    (void)sh;
    cl->shared_stats = NULL;
}

static const dibs__sharing_ops sharing_ops = {.pause_ms = PAUSE_MS,
                                              .share = share_all,
                                              .free = forget_shared_stats};

void dibs__shared_stats_note(dibs_client *cl)
{
    if (!cl->shared_stats)
        cl->shared_stats =
            dibs__sharing_new(cl, sizeof(dibs__sharing), &sharing_ops);
    if (cl->shared_stats)
        dibs__sharing_due(cl, cl->shared_stats);
}
