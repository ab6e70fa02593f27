/* leave.c - releases for which nobody waits.
 *
 * Owns each of them from its post to its end. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "store/redis/lease_command.h"
#include "store/redis/sent.h"

/* The long script is enough by itself, whoever waits for the name. */
static dibs__sent *post_leave(struct dibs__store *st, const dibs__leave *leave,
                              dibsx_nsec deadline)
{
    const dibs__redis *rd = dibs__redis_of(st);
    dibs__lease_command cm;
    dibs__sent *sent;

    dibs__leave_write(DIBS__SCRIPT_release, leave, &cm);
    sent = dibs__sent_new(DIBS__SCRIPT_release, &cm.words, deadline);
    if (!sent)
        return NULL;
    sent->leave = leave;
    if (dibs__pipeline_post(dibs__route_only(rd->steps), &sent->pd))
        return sent;
    dibs__sent_free(sent);
    return NULL;
}

/* The status of one that is over. */
static dibs_status
judge_leave(dibs__redis *rd, const dibs__sent *sent, dibs_error *err)
{
    dibs_status rc = dibs__sent_status(sent, err);

    if (rc != DIBS_OK)
        return rc;
    rc = dibs__leave_judge(sent->leave, sent->reply, err);
    if (rc == DIBS_UNKNOWN)
        dibs__step_distrust(rd->steps, sent->leave->name, NULL);
    return rc;
}

static bool end_leave(struct dibs__store *st, dibs__sent *sent, bool waits,
                      dibs_status *rc, dibs_error *err)
{
    dibs__redis *rd = dibs__redis_of(st);
    dibs__pipeline *pl = dibs__route_only(rd->steps);

    if (waits)
        dibs__pipeline_await(pl, &sent->pd);
    else if (!dibs__pipeline_is_over(pl, &sent->pd))
        return false;
    *rc = judge_leave(rd, sent, err);
    dibs__sent_free(sent);
    return true;
}

const dibs__leave_ops dibs__redis_leave_ops = {.post = post_leave,
                                               .end = end_leave};
