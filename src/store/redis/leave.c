/* leave.c - releases for which nobody waits.
 *
 * Owns each of them from its post to its end. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/fail.h"
#include "store/redis/lease_command.h"
#include "store/redis/pipe/pending.h"

struct dibs__sent_leave {
    dibs__pending pd;
    const dibs__leave *leave; /* the caller's */
    redisReply *reply;
    dibs_error why;
    char bytes[]; /* of the command */
};

/* The long script is enough by itself, whoever waits for the name. */
static dibs__sent_leave *
post_leave(struct dibs__store *st, const dibs__leave *leave,
           dibsx_nsec deadline)
{
    const dibs__redis *rd = dibs__redis_of(st);
    dibs__lease_command cm;
    dibs__sent_leave *sent;

    dibs__leave_write(DIBS__SCRIPT_release, leave, &cm);
    sent = dibsx_zalloc(sizeof(*sent) + dibs__script_room(DIBS__SCRIPT_release,
                                                          &cm.words, false));
    if (!sent)
        return NULL;
    sent->leave = leave;
    sent->pd.replies = &sent->reply;
    sent->pd.err = &sent->why;
    sent->pd.deadline = deadline;
    dibs__script_pend(DIBS__SCRIPT_release, &cm.words, false, false,
                      sent->bytes, &sent->pd);
    if (dibs__pipeline_post(dibs__route_only(rd->steps), &sent->pd))
        return sent;
    dibsx_free(sent);
    return NULL;
}

/* The status of one that is over. */
static dibs_status
judge_leave(dibs__redis *rd, const dibs__sent_leave *sent, dibs_error *err)
{
    dibs_status rc;

    if (sent->pd.rc != DIBS_OK)
        return dibsx_fail_at(err,
                             sent->pd.rc == DIBS_UNKNOWN ? DIBS_UNKNOWN
                                                         : DIBS_STALE,
                             sent->why.origin, "%s", sent->why.message);
    if (dibs__script_is_lacking(sent->reply, &rc, err))
        return DIBS_STALE;
    if (rc == DIBS_OK)
        rc = dibs__leave_judge(sent->leave, sent->reply, err);
    if (rc == DIBS_UNKNOWN)
        dibs__step_distrust(rd->steps, sent->leave->name, NULL);
    return rc;
}

static bool end_leave(struct dibs__store *st, dibs__sent_leave *sent,
                      bool waits, dibs_status *rc, dibs_error *err)
{
    dibs__redis *rd = dibs__redis_of(st);
    dibs__pipeline *pl = dibs__route_only(rd->steps);

    if (waits)
        dibs__pipeline_await(pl, &sent->pd);
    else if (!dibs__pipeline_is_over(pl, &sent->pd))
        return false;
    *rc = judge_leave(rd, sent, err);
    dibs__reply_free(sent->reply);
    dibsx_free(sent);
    return true;
}

const dibs__leave_ops dibs__redis_leave_ops = {.post = post_leave,
                                               .end = end_leave};
