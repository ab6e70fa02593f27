/* group.h - the commands of several threads, put together as one. Pure.
 *
 * A group is one script that does for many what another does for one, so that
 * the server reads, looks up and counts once. Its keys are one for all and those
 * of each member, its words those of each member in turn. It answers a list with
 * an item for each; nil says that the command of this member has to be sent for
 * itself, and so does an error for all of them. Whoever takes part must bear that
 * its step is done by the group and then asked for once more. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_GROUP_H
#define DIBS_STORE_REDIS_GROUP_H

#include "base/buf.h"
#include "store/redis/driver.h"
#include "store/redis/resp.h"

/* The server does nothing else meanwhile: 5 us for each member, or so. */
enum { DIBS__GROUP_MAX = 16, DIBS__GROUPS = 3 };

typedef struct dibs__group {
    int id; /* below DIBS__GROUPS */
    const char *sha1;
    const char *text; /* of the script */
    size_t text_len;
    const char *shared; /* the key for all; NULL: there is none */
    int key_at;         /* words of a command that are keys of the member, */
    int key_count;
    int rest_at; /* ... and from here on its further words */
} dibs__group;

/* What a command brings to a group: parts of its bytes, which are borrowed. */
typedef struct dibs__member {
    const dibs__group *group; /* NULL: it is sent for itself */
    const char *keys;
    size_t keys_len;
    const char *rest;
    size_t rest_len;
    int rest_count;
} dibs__member;

/* `bytes` are the words on the wire, `len` in all. */
void dibs__member_init(dibs__member *mb, const dibs__group *group,
                       const dibs__words *words, const char *bytes, size_t len);

/* Whether both can be in one group. */
bool dibs__member_fits(const dibs__member *mb, const dibs__member *other);

/* Appends the command up to where the keys of `count` members follow, and then
 * their further words. `whole`: with the text of the script, as the server does
 * not have it. */
void dibs__group_begin(const dibs__member *first, int count, bool whole,
                       dibsx_buf *out);

/* Whether a reply is an answer to `count` members; if not, the group may have done
 * anything. */
bool dibs__group_is_answer(const redisReply *reply, int count);

/* Takes the answer to a member out of that to all; NULL when there is none for it.
 * Free it with dibs__reply_free(). */
redisReply *dibs__group_take(redisReply *reply, int i);

#endif
