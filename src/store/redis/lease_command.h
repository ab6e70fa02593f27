/* lease_command.h - acquire and release as commands: their words, and what a reply
 * means. For the steps one by one (lease.c) and together (lease_group.c). */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_LEASE_COMMAND_H
#define DIBS_STORE_REDIS_LEASE_COMMAND_H

#include "store/redis/lease_words.h"

/* The words of a command with the storage of those that it borrows. */
typedef struct dibs__lease_command {
    dibs__words words;
    dibs__keys keys;
    char numbers[5][DIBS__NUMBER_MAX];
    char bell[DIBS__BELL_WORD];
} dibs__lease_command;

/* Whether it is for a plain lock, and so may join a batch. */
static inline bool dibs__ask_is_plain(const dibs__ask *ask)
{
    return ask->mode == DIBS__EXCLUSIVE && ask->priority == 0;
}

/* Whether the short scripts are worth a try. */
static inline bool dibs__ask_is_short(const dibs__ask *ask)
{
    return ask->alone && dibs__ask_is_plain(ask) && ask->replicas == 0;
}

static inline bool dibs__leave_is_short(const dibs__leave *leave)
{
    return leave->alone && !leave->unanswered && leave->keep_ms <= 0;
}

/* For acquire or acquire_free; for release or release_unqueued. */
void dibs__ask_write(dibs__redis *rd, dibs__script script, const dibs__ask *ask,
                     dibs__lease_command *cm);
void dibs__leave_write(dibs__script script, const dibs__leave *leave,
                       dibs__lease_command *cm);

/* The answer of acquire. DIBS_UNKNOWN: the reply was impossible. */
DIBS_MUST_CHECK dibs_status dibs__ask_judge(const dibs__ask *ask,
                                            const redisReply *reply,
                                            dibs__answer *ans, dibs_error *err);

/* That of acquire_free: false when acquire must do it. */
bool dibs__ask_granted(const dibs__ask *ask, const redisReply *reply,
                       dibs__answer *ans);

/* The same for release. */
DIBS_MUST_CHECK dibs_status dibs__leave_judge(const dibs__leave *leave,
                                              const redisReply *reply,
                                              dibs_error *err);

#endif
