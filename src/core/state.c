/* state.c - shared values: the public calls, each one step of the store. */
/* SPDX-License-Identifier: MIT */
#include <dibs/state.h>

#include "base/fail.h"
#include "base/uncancel.h"
#include "core/lease_event.h"
#include "core/names.h"
#include "core/reach.h"
#include "core/stats/shared_stats.h"
#include <string.h>

/* Begins every call of this file: checks the client and the key. */
static dibs_status begin_call(dibs_client *cl, const char *key,
                              char full[DIBS_NAME_MAX + 1], dibs_error *err)
{
    dibs_status rc = dibs__reach_usable(cl, err);

    return rc == DIBS_OK ? dibs__name_full(cl, key, full, err) : rc;
}

dibs_status dibs_state_get(dibs_client *cl, const char *key, dibs_value *out,
                           dibs_error *err)
{
    DIBSX_UNCANCEL;
    char full[DIBS_NAME_MAX + 1];
    dibs_status rc;

    *out = (dibs_value){0};
    rc = begin_call(cl, key, full, err);
    if (rc != DIBS_OK)
        return rc;
    rc = cl->st->ops->value->get(cl->st, full,
                                 dibs__client_deadline(cl, dibsx_now()), out,
                                 err);
    if (rc == DIBS_NOTFOUND)
        return dibsx_fail(err, rc, "there is no value %s", key);
    return rc;
}

static dibs_status
put_value(dibs_client *cl, dibs__put *put, uint64_t *version, dibs_error *err)
{
    const char *key = put->key;
    char full[DIBS_NAME_MAX + 1];
    uint64_t ignored;
    dibs_status rc = begin_call(cl, key, full, err);

    if (rc != DIBS_OK)
        return rc;
    if (put->len > DIBS_VALUE_MAX)
        return dibsx_fail(err, DIBS_INVALID,
                          "the value is longer than %d bytes", DIBS_VALUE_MAX);
    if (put->ttl_ms < 0)
        return dibsx_fail(err, DIBS_INVALID, "ttl_ms is negative");
    put->key = full;
    rc = cl->st->ops->value->put(cl->st, put,
                                 dibs__client_deadline(cl, dibsx_now()),
                                 version ? version : &ignored, err);
    if (rc == DIBS_STALE)
        return dibsx_fail(err, rc, "%s has another version by now", key);
    return rc;
}

dibs_status
dibs_state_set(dibs_client *cl, const char *key, const void *data, size_t len,
               int64_t ttl_ms, uint64_t *version, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibs__put all = {.key = key,
                     .data = data,
                     .len = len,
                     .expected = DIBS_VERSION_ANY,
                     .ttl_ms = ttl_ms};

    return put_value(cl, &all, version, err);
}

dibs_status dibs_state_cas(dibs_client *cl, const char *key, uint64_t expected,
                           const void *data, size_t len, int64_t ttl_ms,
                           uint64_t *version, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibs__put all = {.key = key,
                     .data = data,
                     .len = len,
                     .expected = expected,
                     .ttl_ms = ttl_ms};

    return put_value(cl, &all, version, err);
}

dibs_status dibs_state_add(dibs_client *cl, const char *key, int64_t delta,
                           int64_t *sum, dibs_error *err)
{
    DIBSX_UNCANCEL;
    char full[DIBS_NAME_MAX + 1];
    int64_t ignored;
    dibs_status rc = begin_call(cl, key, full, err);

    if (rc != DIBS_OK)
        return rc;
    return cl->st->ops->value->add(cl->st, full, delta,
                                   dibs__client_deadline(cl, dibsx_now()),
                                   sum ? sum : &ignored, err);
}

dibs_status dibs_state_delete(dibs_client *cl, const char *key,
                              uint64_t expected, dibs_error *err)
{
    DIBSX_UNCANCEL;
    char full[DIBS_NAME_MAX + 1];
    dibs_status rc = begin_call(cl, key, full, err);

    if (rc != DIBS_OK)
        return rc;
    rc = cl->st->ops->value->del(cl->st, full, expected,
                                 dibs__client_deadline(cl, dibsx_now()), err);
    if (rc == DIBS_NOTFOUND)
        return dibsx_fail(err, rc, "there is no value %s", key);
    if (rc == DIBS_STALE)
        return dibsx_fail(err, rc, "%s has another version by now", key);
    return rc;
}

typedef struct listing {
    dibs_client *cl;
    bool all; /* what is the library's own as well */
    dibs_state_fn *each;
    void *arg;
} listing;

/* Whether the library keeps the value for itself: one for each name in use, and one that
 * has no more behind it. */
static bool is_own(const char *key)
{
    size_t len = strlen(key), own = strlen(DIBS__VIEWERS_KEY);

    return strstr(key, DIBS__SHARED_STATS_KEY) ||
           (len >= own && strcmp(key + len - own, DIBS__VIEWERS_KEY) == 0);
}

static bool show_item(const dibs_state_item *item, void *arg)
{
    const listing *ls = arg;
    dibs_state_item shown = *item;

    if (!ls->all && is_own(item->key))
        return true;
    shown.key = dibs__name_short(ls->cl, item->key);
    return ls->each(&shown, ls->arg);
}

dibs_status dibs_state_list(dibs_client *cl, const char *begins,
                            dibs_state_fn *each, void *arg, dibs_error *err)
{
    DIBSX_UNCANCEL;
    listing ls = {.cl = cl, .each = each, .arg = arg};
    char full[DIBS_NAME_MAX + 1];
    dibs_status rc = dibs__reach_usable(cl, err);

    if (rc == DIBS_OK)
        rc = dibs__name_begins(cl, begins, full, err);
    if (rc != DIBS_OK)
        return rc;
    ls.all = is_own(full);
    return cl->st->ops->value->list(cl->st, full,
                                    dibs__client_deadline(cl, dibsx_now()),
                                    show_item, &ls, err);
}
