/* quorum_vote.c - votes as commands: see quorum_vote.h. Pure. */
/* SPDX-License-Identifier: MIT */
#include "store/redis/quorum_vote.h"
#include <string.h>

void dibs__vote_add_voter(dibs__words *words, const dibs__voter *voter,
                          char longest[DIBS__NUMBER_MAX])
{
    dibs__words_puts(words, voter->run_id);
    dibs__words_puts(words, voter->durable ? "1" : "0");
    dibs__words_number(words, dibs__step_span(voter->longest_ms), longest);
}

void dibs__vote_add(dibs__words *words, const dibs__voter *voter,
                    const dibs__ask *ask, uint64_t fence,
                    char numbers[3][DIBS__NUMBER_MAX])
{
    dibs__words_puts(words, DIBS__KEY_FENCE);
    dibs__words_puts(words, DIBS__KEY_NODE);
    dibs__vote_add_voter(words, voter, numbers[0]);
    dibs__words_puts(words, ask->owner);
    dibs__words_number(words, dibs__step_span(ask->ttl_ms), numbers[1]);
    dibs__words_add(words, ask->who, strnlen(ask->who, DIBS__WHO_MAX - 1));
    dibs__words_number(words, (int64_t)fence, numbers[2]);
}

void dibs__vote_write_free(const dibs__voter *voter, const dibs__ask *ask,
                           uint64_t fence, dibs__vote_command *cm)
{
    dibs__keys_of(ask->name, &cm->keys);
    dibs__script_begin(&cm->words, DIBS__SCRIPT_quorum_free, "4");
    dibs__words_add(&cm->words, cm->keys.key[0], cm->keys.len[0]);
    dibs__words_add(&cm->words, cm->keys.key[1], cm->keys.len[1]);
    dibs__vote_add(&cm->words, voter, ask, fence, cm->numbers);
}

dibs_status dibs__vote_judge_free(const dibs__ask *ask, uint64_t fence,
                                  const redisReply *reply, dibs__answer *ans,
                                  dibs__node_word *word, dibs_error *err)
{
    const redisReply *other = dibs__reply_item(reply, 2);
    int64_t seconds, left_us, given = (int64_t)fence;

    if (reply->type == REDIS_REPLY_INTEGER)
        return DIBS_BUSY;
    if (!dibs__reply_int(dibs__reply_item(reply, 0), &seconds) ||
        !dibs__reply_int(dibs__reply_item(reply, 1), &left_us) ||
        seconds <= 0 || seconds >= DIBS__WALL_MAX_US / 1000000 || left_us < 0 ||
        left_us >= 1000000 ||
        (other && (!dibs__reply_int(other, &given) || given < (int64_t)fence)))
        return dibs__reply_odd(err);
    word->wall_us = seconds * 1000000 + left_us;
    ans->fence = (uint64_t)given;
    ans->left_ms = dibs__step_span(ask->ttl_ms);
    return dibs__answer_grant(ask, ans, err);
}
