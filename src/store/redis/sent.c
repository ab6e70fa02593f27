/* sent.c - a script that was sent: see sent.h. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "store/redis/sent.h"
#include "base/alloc.h"
#include "base/fail.h"

dibs__sent *
dibs__sent_new(dibs__script script, dibs__words *words, dibsx_nsec deadline)
{
    dibs__sent *sent =
        dibsx_zalloc(sizeof(*sent) + dibs__script_room(script, words, false));

    if (!sent)
        return NULL;
    sent->pd.replies = &sent->reply;
    sent->pd.err = &sent->why;
    sent->pd.deadline = deadline;
    dibs__script_pend(script, words, false, false, sent->bytes, &sent->pd);
    return sent;
}

void dibs__sent_free(dibs__sent *sent)
{
    dibs__reply_free(sent->reply);
    dibsx_free(sent);
}

dibs_status dibs__sent_status(const dibs__sent *sent, dibs_error *err)
{
    dibs_status rc;

    if (sent->pd.rc != DIBS_OK)
        return dibsx_fail_at(err,
                             sent->pd.rc == DIBS_UNKNOWN ? DIBS_UNKNOWN
                                                         : DIBS_STALE,
                             sent->why.origin, "%s", sent->why.message);
    return dibs__script_is_lacking(sent->reply, &rc, err) ? DIBS_STALE : rc;
}
