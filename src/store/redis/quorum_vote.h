/* quorum_vote.h - a vote as a command: its words, and what a reply of the short form
 * means. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_QUORUM_VOTE_H
#define DIBS_STORE_REDIS_QUORUM_VOTE_H

#include "store/quorum_steps.h"
#include "store/redis/lease_words.h"

#define DIBS__KEY_NODE "dibs:node"

/* The scripts count in microseconds, exactly up to here. */
#define DIBS__WALL_MAX_US (INT64_C(1) << 53)

/* The words of a command with the storage of those that it borrows. */
typedef struct dibs__vote_command {
    dibs__words words;
    dibs__keys keys;
    char numbers[3][DIBS__NUMBER_MAX];
} dibs__vote_command;

/* The words about the node, and all words of an ask for a vote that follow the keys of its
 * name; the numbers hold some of them. */
void dibs__vote_add_voter(dibs__words *words, const dibs__voter *voter,
                          char longest[DIBS__NUMBER_MAX]);
void dibs__vote_add(dibs__words *words, const dibs__voter *voter,
                    const dibs__ask *ask, uint64_t fence,
                    char numbers[3][DIBS__NUMBER_MAX]);

/* Whether quorum_free is worth a try: on the connection that proves the run of the
 * server. */
static inline bool
dibs__vote_is_short(const dibs__voter *voter, const dibs__ask *ask)
{
    return voter->link && ask->alone && ask->mode != DIBS__PERMITS;
}

/* For quorum_free. */
void dibs__vote_write_free(const dibs__voter *voter, const dibs__ask *ask,
                           uint64_t fence, dibs__vote_command *cm);

/* The answer of quorum_free. DIBS_BUSY: quorum_grant must do it; DIBS_UNKNOWN: the reply
 * was impossible. */
DIBS_MUST_CHECK dibs_status dibs__vote_judge_free(
    const dibs__ask *ask, uint64_t fence, const redisReply *reply,
    dibs__answer *ans, dibs__node_word *word, dibs_error *err);

#endif
