/* fence_guard.c - refusing fencing tokens that are old, in memory and in the store.
 *
 * Owns nothing. Any thread: the guard in memory is one atom, the shared one a
 * value that is changed by compare-and-set. */
/* SPDX-License-Identifier: MIT */
#include <dibs/guard.h>

#include "base/fail.h"
#include "base/uncancel.h"
#include "core/names.h"
#include "core/reach.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static dibs_status refuse_zero(dibs_error *err)
{
    return dibsx_fail(err, DIBS_INVALID,
                      "fence 0 is nobody's: the lock is not held");
}

static dibs_status fail_stale(uint64_t fence, uint64_t highest, dibs_error *err)
{
    return dibsx_fail(err, DIBS_STALE,
                      "fence %" PRIu64 " is out of date: %" PRIu64
                      " was here before",
                      fence, highest);
}

dibs_status dibs_guard_admit(dibs_guard *guard, uint64_t fence, dibs_error *err)
{
    uint64_t highest;

    if (!guard)
        return dibsx_fail(err, DIBS_INVALID, "the guard is NULL");
    if (fence == 0)
        return refuse_zero(err);
    highest = __atomic_load_n(&guard->highest, __ATOMIC_SEQ_CST);
    /* A failed exchange has read the highest anew. */
    while (highest < fence)
        if (__atomic_compare_exchange_n(&guard->highest, &highest, fence, false,
                                        __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
            return DIBS_OK;
    return highest == fence ? DIBS_OK : fail_stale(fence, highest, err);
}

/* The fence that the value holds; an absent value holds 0. */
static dibs_status
read_fence(const dibs_value *value, uint64_t *out, dibs_error *err)
{
    const char *text = value->data;
    char *end = NULL;

    *out = 0;
    if (!text)
        return DIBS_OK;
    errno = 0;
    *out = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || end != text + value->len || errno)
        return dibsx_fail(err, DIBS_INVALID, "the value is not a fence");
    return DIBS_OK;
}

/* One round: looks, and writes if that is needed. DIBS_STALE with *again: another
 * wrote meanwhile. */
static dibs_status admit_once(dibs_client *cl, dibs__put *put, uint64_t fence,
                              dibsx_nsec deadline, bool *again, dibs_error *err)
{
    const dibs__value_ops *ops = cl->st->ops->value;
    dibs_value value = {0};
    uint64_t highest, version;
    char text[24];
    dibs_status rc;

    *again = false;
    rc = ops->get(cl->st, put->key, deadline, &value, err);
    if (rc == DIBS_OK || rc == DIBS_NOTFOUND)
        rc = read_fence(&value, &highest, err);
    if (rc != DIBS_OK)
        goto out;
    if (highest > fence) {
        rc = fail_stale(fence, highest, err);
        goto out;
    }
    if (highest == fence && put->ttl_ms == 0 && value.expires_ms < 0)
        goto out;
    put->expected = value.version;
    put->data = text;
    put->len = (size_t)snprintf(text, sizeof(text), "%" PRIu64, fence);
    rc = ops->put(cl->st, put, deadline, &version, err);
    *again = rc == DIBS_STALE;
out:
    dibs_value_free(&value);
    return rc;
}

dibs_status
dibs_guard_admit_shared(dibs_client *cl, const char *resource, uint64_t fence,
                        int64_t keep_ms, dibs_error *err)
{
    DIBSX_UNCANCEL;
    char name[DIBS_NAME_MAX + 1], full[DIBS_NAME_MAX + 1];
    dibs__put put = {.key = full, .ttl_ms = keep_ms};
    dibsx_nsec deadline;
    bool again;
    dibs_status rc = dibs__reach_usable(cl, err);
    int len;

    if (rc != DIBS_OK)
        return rc;
    if (fence == 0)
        return refuse_zero(err);
    if (keep_ms < 0)
        return dibsx_fail(err, DIBS_INVALID, "keep_ms is negative");
    if (!resource || !*resource)
        return dibsx_fail(err, DIBS_INVALID, "the resource has no name");
    len = snprintf(name, sizeof(name), "fence:%s", resource);
    if (len < 0 || len >= (int)sizeof(name))
        return dibsx_fail(err, DIBS_INVALID, "the resource's name is too long");
    rc = dibs__name_full(cl, name, full, err);
    if (rc != DIBS_OK)
        return rc;
    deadline = dibs__client_deadline(cl, dibsx_now());
    do {
        rc = admit_once(cl, &put, fence, deadline, &again, err);
    } while (again);
    return rc;
}
