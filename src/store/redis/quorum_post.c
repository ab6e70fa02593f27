/* quorum_post.c - votes that their asker sends to all nodes itself: see
 * store/quorum_steps.h.
 *
 * Owns each of them from its post to its end. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "store/quorum_steps.h"
#include "store/redis/lease_command.h"
#include "store/redis/quorum_vote.h"
#include "store/redis/sent.h"

static dibs__pipeline *pipeline_of(struct dibs__store *st)
{
    return dibs__route_only(dibs__redis_of(st)->steps);
}

/* Posts it, or frees it. */
static dibs__sent *
post_on(struct dibs__store *st, const dibs__voter *voter, dibs__sent *sent)
{
    sent->pd.only_on = voter->link;
    if (dibs__pipeline_seize(pipeline_of(st), &sent->pd))
        return sent;
    dibs__sent_free(sent);
    return NULL;
}

static dibs__sent *
post_grant(struct dibs__store *st, const dibs__voter *voter,
           const dibs__ask *ask, uint64_t fence, dibsx_nsec deadline)
{
    dibs__vote_command cm;
    dibs__sent *sent;

    if (!dibs__vote_is_short(voter, ask))
        return NULL;
    dibs__vote_write_free(voter, ask, fence, &cm);
    sent = dibs__sent_new(DIBS__SCRIPT_quorum_free, &cm.words, deadline);
    if (!sent)
        return NULL;
    sent->ask = ask;
    sent->fence = fence;
    return post_on(st, voter, sent);
}

static dibs__sent *
post_release(struct dibs__store *st, const dibs__voter *voter,
             const dibs__leave *leave, dibsx_nsec deadline)
{
    dibs__lease_command cm;
    dibs__sent *sent;

    if (!voter->link || !dibs__leave_is_short(leave))
        return NULL;
    dibs__leave_write(DIBS__SCRIPT_release_unqueued, leave, &cm);
    sent = dibs__sent_new(DIBS__SCRIPT_release_unqueued, &cm.words, deadline);
    if (!sent)
        return NULL;
    sent->leave = leave;
    return post_on(st, voter, sent);
}

static void watch_node(struct dibs__store *st, struct pollfd *out)
{
    dibs__pipeline_watch(pipeline_of(st), out);
}

static bool take_answer(struct dibs__store *st, const dibs__sent *sent)
{
    return dibs__pipeline_take(pipeline_of(st), &sent->pd);
}

static void resign_node(struct dibs__store *st)
{
    dibs__pipeline_resign(pipeline_of(st));
}

static bool is_over(struct dibs__store *st, const dibs__sent *sent)
{
    return dibs__pipeline_is_over(pipeline_of(st), &sent->pd);
}

static void await_answer(struct dibs__store *st, dibs__sent *sent)
{
    dibs__pipeline_await(pipeline_of(st), &sent->pd);
}

static dibs_status
judge(dibs__redis *rd, const dibs__sent *sent, dibs__answer *ans,
      dibs__node_word *word, dibs_error *err)
{
    dibs_status rc;

    if (sent->leave)
        return dibs__reply_status(sent->reply) == DIBS_OK ? DIBS_OK : DIBS_BUSY;
    rc = dibs__vote_judge_free(sent->ask, sent->fence, sent->reply, ans, word,
                               err);
    if (rc == DIBS_UNKNOWN)
        dibs__step_distrust(rd->steps, sent->ask->name, NULL);
    return rc;
}

static dibs_status
end_vote(struct dibs__store *st, dibs__sent *sent, dibs__answer *ans,
         dibs__node_word *word, dibs_error *err)
{
    dibs_status rc = dibs__sent_status(sent, err);

    *ans = (dibs__answer){.fence = 0};
    *word = (dibs__node_word){.wall_us = 0};
    if (rc == DIBS_OK)
        rc = judge(dibs__redis_of(st), sent, ans, word, err);
    dibs__sent_free(sent);
    return rc;
}

const dibs__vote_post_ops dibs__redis_vote_post_ops = {
    .grant = post_grant,
    .release = post_release,
    .watch = watch_node,
    .take = take_answer,
    .resign = resign_node,
    .is_over = is_over,
    .await = await_answer,
    .end = end_vote,
};
