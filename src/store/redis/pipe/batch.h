/* batch.h - commands that were queued together, sent as one. Pure.
 *
 * A batch is one script that runs the step of many members, so that the server
 * reads, looks up and counts once. It has two parts; the members of a part have
 * the same number of words each. Its keys are one for all and then the keys of
 * each member; its words are the number of members in the first part and then
 * the words of each member. It answers a list with an item for each member. An
 * item that is nil says that this member's command must be sent by itself; an
 * error says so for all of them. A member's step must be safe to run twice: in
 * a batch and then once more. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_PIPE_BATCH_H
#define DIBS_STORE_REDIS_PIPE_BATCH_H

#include "base/buf.h"
#include "store/redis/wire/driver.h"
#include "store/redis/wire/resp.h"

/* The server does nothing else meanwhile: about 5 us for each member. */
enum { DIBS__BATCH_MAX = 64 };

typedef struct dibs__batch {
    const char *sha1;
    const char *text; /* of the script */
    size_t text_len;
    const char *shared; /* the key for all; NULL: there is none */
} dibs__batch;

/* How the command of another script becomes a member. */
typedef struct dibs__part {
    const dibs__batch *batch;
    bool second;
    int key_at; /* words of a command that are keys of the member */
    int key_count;
    int rest_at; /* the first of its further words */
} dibs__part;

/* A command as a member: parts of its bytes, which are borrowed. */
typedef struct dibs__member {
    const dibs__part *part; /* NULL: the command is sent by itself */
    const char *keys;
    size_t keys_len;
    const char *rest;
    size_t rest_len;
    int rest_count;
} dibs__member;

/* `bytes` are the words on the wire, `len` in all. */
void dibs__member_init(dibs__member *mb, const dibs__part *part,
                       const dibs__words *words, const char *bytes, size_t len);

/* Whether both can be in one batch. */
bool dibs__member_fits(const dibs__member *mb, const dibs__member *other);

/* Appends the command of `count` members that fit, the members of the first
 * part before the others. `whole`: with the text of the script, as the server
 * does not have it. */
void dibs__batch_put(const dibs__member *const *members, int count, bool whole,
                     dibsx_buf *out);

/* Whether a reply answers `count` members; if not, the batch may have done
 * anything. */
bool dibs__batch_is_answer(const redisReply *reply, int count);

/* Takes a member's answer out of the reply; NULL when it has none for it. Free
 * it with dibs__reply_free(). */
redisReply *dibs__batch_take(redisReply *reply, int i);

#endif
