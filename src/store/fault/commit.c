/* commit.c - the commit steps of the fault store. */
/* SPDX-License-Identifier: MIT */
#include "store/commit_check.h"
#include "store/fault/step.h"
#include <string.h>

static dibs_status
fault_commit(dibs__store *st, dibs__commit *items, size_t count,
             dibsx_nsec deadline, dibs_error *err)
{
    dibs__fault_store *fs = dibs__fault_of(st);
    bool after;
    dibs_status rc = dibs__commit_begin(items, count, err);

    if (rc != DIBS_OK)
        return rc;
    rc = dibs__fault_begin(fs, DIBS__STEP_COMMIT, deadline, &after, err);
    if (rc != DIBS_OK)
        return dibs__commit_fail(items, count, rc);
    rc = fs->within->ops->commit->commit(fs->within, items, count, deadline,
                                         err);
    return after ? dibs__commit_fail(items, count, dibs__fault_lose_answer(err))
                 : rc;
}

static dibs_status
fault_get_many(dibs__store *st, const char *const *keys, size_t count,
               dibsx_nsec deadline, dibs_value *out, dibs_error *err)
{
    dibs__fault_store *fs = dibs__fault_of(st);
    dibs_status rc = dibs__get_many_begin(keys, count, out, err);

    if (rc == DIBS_OK)
        rc = dibs__fault_begin_read(fs, DIBS__STEP_GET_MANY, deadline, err);
    if (rc != DIBS_OK)
        return rc;
    return fs->within->ops->commit->get_many(fs->within, keys, count, deadline,
                                             out, err);
}

static dibs_status
fault_first(dibs__store *st, dibs__index_look *looks, size_t count,
            dibsx_nsec deadline, int64_t *now_us, dibs__index_fn *each,
            void *arg, dibs_error *err)
{
    dibs__fault_store *fs = dibs__fault_of(st);
    dibs_status rc = dibs__first_begin(looks, count, now_us, err);

    if (rc == DIBS_OK)
        rc = dibs__fault_begin_read(fs, DIBS__STEP_FIRST, deadline, err);
    if (rc != DIBS_OK)
        return rc;
    return fs->within->ops->commit->first(fs->within, looks, count, deadline,
                                          now_us, each, arg, err);
}

const dibs__commit_ops dibs__fault_commit_ops = {
    .commit = fault_commit,
    .get_many = fault_get_many,
    .first = fault_first,
};
