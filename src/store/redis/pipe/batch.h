/* batch.h - the commands of several threads, put together as one. Pure.
 *
 * A batch is one script that does for many what others do for one, so that the
 * server reads, looks up and counts once. It has two parts: members of the first
 * bring the same number of words each, as do those of the second. Its keys are one
 * for all and then those of each member; its words are the number of members in
 * the first part and then those of each. It answers a list with an item for each;
 * nil says that the command of this member has to be sent for itself, and so does
 * an error for all of them. Whoever takes part must bear that its step is done by
 * the batch and then asked for once more. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_PIPE_BATCH_H
#define DIBS_STORE_REDIS_PIPE_BATCH_H

#include "base/buf.h"
#include "store/redis/wire/driver.h"
#include "store/redis/wire/resp.h"

/* The server does nothing else meanwhile: 5 us for each member, or so. */
enum { DIBS__BATCH_MAX = 16 };

typedef struct dibs__batch {
    const char *sha1;
    const char *text; /* of the script */
    size_t text_len;
    const char *shared; /* the key for all; NULL: there is none */
} dibs__batch;

/* How the command of another script takes part. */
typedef struct dibs__part {
    const dibs__batch *batch;
    bool second;
    int key_at; /* words of a command that are keys of the member, */
    int key_count;
    int rest_at; /* ... and from here on its further words */
} dibs__part;

/* What a command brings to a batch: parts of its bytes, which are borrowed. */
typedef struct dibs__member {
    const dibs__part *part; /* NULL: it is sent for itself */
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

/* Appends the command of `count` members that fit, those of the first part before
 * the others. `whole`: with the text of the script, as the server does not have
 * it. */
void dibs__batch_put(const dibs__member *const *members, int count, bool whole,
                     dibsx_buf *out);

/* Whether a reply is an answer to `count` members; if not, the batch may have done
 * anything. */
bool dibs__batch_is_answer(const redisReply *reply, int count);

/* Takes the answer to a member out of that to all; NULL when there is none for it.
 * Free it with dibs__reply_free(). */
redisReply *dibs__batch_take(redisReply *reply, int i);

#endif
