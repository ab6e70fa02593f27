/* name_stats.c - statistics per name: this client's own, and what all share.
 *
 * Any thread. */
/* SPDX-License-Identifier: MIT */
#include <dibs/monitor.h>

#include "base/fail.h"
#include "base/uncancel.h"
#include "core/lock/lock.h"
#include "core/names.h"
#include "core/reach.h"
#include "core/stats/name_table.h"
#include "core/stats/ranking.h"
#include "core/stats/shared_stats.h"
#include <dibs/state.h>
#include <stdio.h>
#include <string.h>

static dibs_status no_memory(dibs_error *err)
{
    return dibsx_nomem(err, "the statistics");
}

/* Acquires that have not ended are attempts of their name already. Locks:
 * cl->mutex. */
static void count_waiting(dibs_client *cl, dibs__name_table *table)
{
    for (dibs__name_row *at = table->newest; at; at = at->older)
        at->waiting = 0;
    for (dibs_lock *lock = cl->acquires; lock; lock = lock->acquire->next) {
        dibs__name_row *name = NULL;

        if (lock->lease.state == DIBS__LEASE_ASKING ||
            lock->lease.state == DIBS__LEASE_QUEUED)
            name = dibs__name_table_use(table, lock->name);
        if (name)
            name->waiting++;
    }
}

/* False when memory is short. Locks: cl->mutex. */
static bool rank_own(dibs_client *cl, dibs__ranking *rk)
{
    dibs__name_table *table = dibs__name_table_of(cl);

    if (!table)
        return false;
    count_waiting(cl, table);
    for (dibs__name_row *at = table->newest; at; at = at->older)
        if (!dibs__ranking_add(rk, dibs__name_short(cl, at->name), &at->all,
                               at->waiting))
            return false;
    return true;
}

dibs_status dibs_name_stats_own(dibs_client *cl, dibs_name_stats_fn *each,
                                void *arg, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibs__ranking rk = {0};
    dibs_status rc = dibs__client_usable(cl, err);
    bool good;

    if (rc != DIBS_OK)
        return rc;
    pthread_mutex_lock(&cl->mutex);
    good = rank_own(cl, &rk);
    pthread_mutex_unlock(&cl->mutex);
    if (good)
        dibs__ranking_show(&rk, each, arg);
    else
        rc = no_memory(err);
    dibs__ranking_fini(&rk);
    return rc;
}

/* Keys to read, each with its NUL; more of them are too much at once. */
enum { KEYS_MAX = 16 << 20 };

static bool note_key(const dibs_state_item *item, void *arg)
{
    dibsx_buf *keys = arg;

    dibsx_buf_add(keys, item->key, strlen(item->key) + 1);
    return dibsx_buf_ok(keys);
}

/* A value that went meanwhile, or that this version cannot read, is passed
 * over. */
static dibs_status rank_shared(dibs_client *cl, const char *key,
                               dibs__ranking *rk, dibs_error *err)
{
    const char *name =
        dibs__name_short(cl, key) + strlen(DIBS__SHARED_STATS_KEY);
    dibs__counts counts = {0};
    dibs_value value = {0};
    dibs_status rc =
        cl->st->ops->value->get(cl->st, key,
                                dibs__client_deadline(cl, dibsx_now()), &value,
                                err);

    if (rc == DIBS_OK) {
        rc = dibs__counts_read(value.data, &counts);
        if (rc == DIBS_OK && !dibs__ranking_add(rk, name, &counts, 0))
            rc = DIBS_NOMEM;
        if (rc == DIBS_NOMEM)
            rc = no_memory(err);
    }
    dibs__counts_fini(&counts);
    dibs_value_free(&value);
    return rc == DIBS_NOTFOUND || rc == DIBS_MISMATCH ? DIBS_OK : rc;
}

/* The keys of all names that begin so. */
static dibs_status
list_keys(dibs_client *cl, const char *begins, dibsx_buf *keys, dibs_error *err)
{
    char name[sizeof(DIBS__SHARED_STATS_KEY) + DIBS_NAME_MAX];
    char full[DIBS_NAME_MAX + 1];
    dibs_status rc = dibs__name_begins(cl, begins, full, err);

    if (rc != DIBS_OK)
        return rc;
    snprintf(name, sizeof(name), DIBS__SHARED_STATS_KEY "%s",
             begins ? begins : "");
    /* Names for which there is no room are not shared. */
    if (dibs__name_begins(cl, name, full, NULL) != DIBS_OK)
        return DIBS_OK;
    rc = cl->st->ops->value->list(cl->st, full,
                                  dibs__client_deadline(cl, dibsx_now()),
                                  note_key, keys, err);
    return rc == DIBS_OK && !dibsx_buf_ok(keys) ? no_memory(err) : rc;
}

dibs_status
dibs_name_stats_shared(dibs_client *cl, const char *begins,
                       dibs_name_stats_fn *each, void *arg, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibs__ranking rk = {0};
    dibsx_buf keys;
    dibs_status rc = dibs__reach_usable(cl, err);

    if (rc != DIBS_OK)
        return rc;
    dibsx_buf_init(&keys, KEYS_MAX);
    rc = list_keys(cl, begins, &keys, err);
    for (size_t at = 0; rc == DIBS_OK && at < keys.len;
         at += strlen(keys.data + at) + 1)
        rc = rank_shared(cl, keys.data + at, &rk, err);
    if (rc == DIBS_OK)
        dibs__ranking_show(&rk, each, arg);
    dibs__ranking_fini(&rk);
    dibsx_buf_fini(&keys);
    return rc;
}
