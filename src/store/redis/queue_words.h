/* queue_words.h - words and refusals that the queue steps share. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_QUEUE_WORDS_H
#define DIBS_STORE_REDIS_QUEUE_WORDS_H

#include "store/redis/lease_words.h"
#include "store/redis/wire/queue_keys.h"

/* A lane as the scripts call it, and the token of a delivery, with their NUL. */
enum { DIBS__LANE_WORD = 17, DIBS__TOKEN_WORD = 64 };

void dibs__lane_word(uint64_t lane, char out[DIBS__LANE_WORD]);
size_t
dibs__item_token_write(const dibs__token *token, char out[DIBS__TOKEN_WORD]);
/* False when it is none. */
bool dibs__item_token_read(const redisReply *reply, dibs__token *out);

/* Begins a script that has all keys of the queue, which the caller keeps. */
void dibs__queue_begin(dibs__words *words, dibs__script script,
                       const char *queue, dibs__queue_names *names);

/* Fails with the refusal of a full queue: the reply has its items and its cap. */
dibs_status dibs__queue_full(const redisReply *reply, dibs_error *err);

#endif
