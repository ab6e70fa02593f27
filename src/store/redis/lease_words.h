/* lease_words.h - words and refusals that the lease steps share. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_LEASE_WORDS_H
#define DIBS_STORE_REDIS_LEASE_WORDS_H

#include "store/answer.h"
#include "store/redis/keys.h"
#include "store/redis/redis_store.h"
#include "store/redis/script.h"
#include "store/redis/wire/reply.h"
#include "store/refuse.h"

enum { DIBS__NUMBER_MAX = 24 };
enum { DIBS__BELL_WORD = DIBS__DOORBELL_ADDRESS + 1 };

/* A number as a word of a command, in storage of the caller. */
void dibs__words_number(dibs__words *words, int64_t number,
                        char out[DIBS__NUMBER_MAX]);

/* A span that the scripts can count with. */
int64_t dibs__step_span(int64_t wanted_ms);

/* Begins a step on one name, whose keys the caller keeps. */
void dibs__step_begin(dibs__words *words, dibs__script script, const char *name,
                      dibs__keys *keys);

/* The reply of the server of a name was impossible: neither its connection nor
 * a borrowed one (or NULL) is used any more. */
void dibs__step_distrust(dibs__route *rt, const char *name, dibs__loan *loan);

/* In a cluster, before it asks: the bell subscribes in the slot of the keys. */
void dibs__step_attend(dibs__redis *rd, const dibs__ask *ask,
                       const dibs__keys *keys);

/* The address of the asker's bell. May be `out`. */
const char *dibs__step_bell(dibs__redis *rd, const dibs__ask *ask,
                            char out[DIBS__BELL_WORD]);

/* Fails with the refusal of a reply: the name lives as another kind, and the
 * reply has its capacity; or it is held, and the reply has the holder. */
dibs_status
dibs__step_kind(const dibs__ask *ask, const redisReply *lives, dibs_error *err);
dibs_status
dibs__step_held(const dibs__ask *ask, const redisReply *who, dibs_error *err);

#endif
