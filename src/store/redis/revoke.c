/* revoke.c - the steps on the leases of others: ending them, and asking for
 * them.
 *
 * Any thread. */
/* SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "store/redis/lease_words.h"

/* Both act on the holder with a fence, or on all, and answer their number. */
static dibs_status
reach_holders(struct dibs__store *st, dibs__script script, const char *name,
              uint64_t fence, dibsx_nsec deadline, uint32_t *reached,
              dibs_error *err)
{
    redisReply *reply = NULL;
    char number[DIBS__NUMBER_MAX];
    int64_t count = 0;
    dibs__words words;
    dibs__keys keys;
    dibs_status rc;
    int status;

    *reached = 0;
    dibs__step_begin(&words, script, name, &keys);
    dibs__words_number(&words, (int64_t)fence, number);
    rc = dibs__script_run(dibs__redis_of(st)->steps, script, &words, deadline,
                          &reply, err);
    if (rc != DIBS_OK)
        return rc;
    status = dibs__reply_status(reply);
    if (!dibs__reply_int(dibs__reply_item(reply, 1), &count) || count < 0 ||
        count > UINT32_MAX)
        status = -1;
    dibs__reply_free(reply);
    if (status == DIBS_OK) {
        *reached = (uint32_t)count;
        return DIBS_OK;
    }
    if (status == DIBS_NOTFOUND)
        return dibsx_fail(err, DIBS_NOTFOUND, "nobody holds it");
    if (status == DIBS_STALE)
        return dibsx_fail(err, DIBS_STALE, "it is held under another fence");
    dibs__step_distrust(dibs__redis_of(st)->steps, name, NULL);
    return dibs__reply_odd(err);
}

dibs_status
dibs__redis_revoke(struct dibs__store *st, const char *name, uint64_t fence,
                   dibsx_nsec deadline, uint32_t *broken, dibs_error *err)
{
    return reach_holders(st, DIBS__SCRIPT_revoke, name, fence, deadline, broken,
                         err);
}

dibs_status
dibs__redis_yield(struct dibs__store *st, const char *name, uint64_t fence,
                  dibsx_nsec deadline, uint32_t *asked, dibs_error *err)
{
    return reach_holders(st, DIBS__SCRIPT_yield, name, fence, deadline, asked,
                         err);
}
