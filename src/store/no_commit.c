/* no_commit.c - see no_commit.h. Nothing here speaks to a server. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "store/no_commit.h"
#include "base/fail.h"
#include "store/commit_check.h"
#include "store/store.h"
#include <string.h>

static dibs_status refuse_step(struct dibs__store *st, dibs_error *err)
{
    return dibsx_fail(err, DIBS_UNSUPPORTED, "%s",
                      st->ops->cannot(st, DIBS__CAN_COMMIT));
}

static dibs_status
refuse_commit(struct dibs__store *st, dibs__commit *items, size_t count,
              dibsx_nsec deadline, dibs_error *err)
{
    dibs_status rc = dibs__commit_begin(items, count, err);

    (void)deadline;
    if (rc != DIBS_OK)
        return rc;
    return dibs__commit_fail(items, count, refuse_step(st, err));
}

static dibs_status
refuse_get_many(struct dibs__store *st, const char *const *keys, size_t count,
                dibsx_nsec deadline, dibs_value *out, dibs_error *err)
{
    dibs_status rc = dibs__get_many_begin(keys, count, out, err);

    (void)deadline;
    return rc == DIBS_OK ? refuse_step(st, err) : rc;
}

static dibs_status
refuse_first(struct dibs__store *st, dibs__index_look *looks, size_t count,
             dibsx_nsec deadline, int64_t *now_us, dibs__index_fn *each,
             void *arg, dibs_error *err)
{
    dibs_status rc = dibs__first_begin(looks, count, now_us, err);

    (void)deadline;
    (void)each;
    (void)arg;
    return rc == DIBS_OK ? refuse_step(st, err) : rc;
}

#define MEMBER(step, STEP) .step = refuse_##step,

const dibs__commit_ops dibs__no_commit_ops = {DIBS__COMMIT_STEPS(MEMBER)};
