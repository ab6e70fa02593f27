/* convert.c - the lease step that converts a lease, a script.
 *
 * Any thread. */
/* SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "store/redis/lease_words.h"
#include <string.h>

static bool read_converted(const redisReply *reply, dibs__answer *ans)
{
    int64_t fence;

    if (!dibs__reply_int(dibs__reply_item(reply, 1), &fence) || fence < 0 ||
        !dibs__reply_int(dibs__reply_item(reply, 2), &ans->left_ms))
        return false;
    ans->fence = (uint64_t)fence;
    return true;
}

static dibs_status
judge_reply(const dibs__conversion *conversion, const redisReply *reply,
            dibs__answer *ans, dibs_error *err)
{
    const redisReply *text = dibs__reply_item(reply, 1);
    char who[DIBS__WHO_MAX], why[128];

    switch (dibs__reply_status(reply)) {
    case DIBS_OK:
        return read_converted(reply, ans)
                   ? dibs__answer_convert(conversion, ans, err)
                   : dibs__reply_odd(err);
    case DIBS_BUSY:
        dibs__reply_text(text, who, sizeof(who));
        return dibs__refuse_shared(conversion->name, who, err);
    case DIBS_LOST:
        return dibs__refuse_fence(conversion->name, err);
    case DIBS_INVALID:
        dibs__reply_text(text, why, sizeof(why));
        return dibsx_fail(err, DIBS_INVALID, "`" DIBS__NAME_SHOWN "`: %s",
                          conversion->name, why);
    default:
        return dibs__reply_odd(err);
    }
}

/* A conversion that too few replicas acknowledged, or that the server would not wait for,
 * is not undone: a retry is answered as done, and waits for the replicas once more. */
static dibs_status
confirm_replicas(dibs__loan *loan, const dibs__conversion *conversion,
                 dibsx_nsec deadline, dibs__answer *ans, dibs_error *err)
{
    int64_t limit_ms =
        dibs__replica_wait_patience_ms(conversion->ttl_ms, deadline);
    dibs_status rc =
        dibs__replica_wait_wait(loan, conversion->replicas, limit_ms, deadline,
                                &ans->acked, err);

    if (rc != DIBS_OK)
        return dibsx_unanswered(err);
    if (ans->acked >= conversion->replicas)
        return DIBS_OK;
    return dibsx_fail(err, DIBS_UNKNOWN,
                      "the change of `" DIBS__NAME_SHOWN
                      "` was acknowledged by %u of %u replicas",
                      conversion->name, (unsigned)ans->acked,
                      (unsigned)conversion->replicas);
}

dibs_status
dibs__redis_convert(struct dibs__store *st, const dibs__conversion *conversion,
                    dibsx_nsec deadline, dibs__answer *ans, dibs_error *err)
{
    dibs__redis *rd = dibs__redis_of(st);
    char numbers[3][DIBS__NUMBER_MAX];
    dibs__loan loan = {.cn = NULL};
    redisReply *reply = NULL;
    dibs__words words;
    dibs__keys keys;
    dibs_status rc;

    memset(ans, 0, sizeof(*ans));
    dibs__step_begin(&words, DIBS__SCRIPT_convert, conversion->name, &keys);
    dibs__words_puts(&words, conversion->owner);
    dibs__words_number(&words, (int64_t)conversion->fence, numbers[0]);
    dibs__words_number(&words, conversion->mode, numbers[1]);
    dibs__words_puts(&words, conversion->to_owner);
    dibs__words_number(&words, dibs__step_span(conversion->ttl_ms), numbers[2]);
    rc = conversion->replicas > 0
             ? dibs__replica_wait_run(&rd->replica_wait, DIBS__SCRIPT_convert,
                                      &words, deadline, &loan, &reply, err)
             : dibs__script_run(rd->steps, DIBS__SCRIPT_convert, &words,
                                deadline, &reply, err);
    if (rc == DIBS_OK) {
        rc = judge_reply(conversion, reply, ans, err);
        if (rc == DIBS_UNKNOWN)
            dibs__step_distrust(rd->steps, conversion->name, &loan);
    }
    dibs__reply_free(reply);
    if (rc == DIBS_OK && conversion->replicas > 0)
        rc = confirm_replicas(&loan, conversion, deadline, ans, err);
    dibs__replica_wait_done(&loan);
    return rc;
}
