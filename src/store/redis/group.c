/* group.c - the commands of several threads, put together as one. Pure. */
/* SPDX-License-Identifier: MIT */
#include "store/redis/group.h"
#include <stdio.h>
#include <string.h>

void dibs__member_init(dibs__member *mb, const dibs__group *group,
                       const dibs__words *words, const char *bytes, size_t len)
{
    const char *end = bytes + len;
    int key_end = group->key_at + group->key_count;

    mb->group = group;
    mb->keys = end - dibs__words_size(words, group->key_at, words->count);
    mb->keys_len = dibs__words_size(words, group->key_at, key_end);
    mb->rest_len = dibs__words_size(words, group->rest_at, words->count);
    mb->rest = end - mb->rest_len;
    mb->rest_count = words->count - group->rest_at;
}

bool dibs__member_fits(const dibs__member *mb, const dibs__member *other)
{
    return mb->group == other->group && mb->rest_count == other->rest_count;
}

static void add_word(dibsx_buf *out, const char *word, size_t len)
{
    dibsx_buf_printf(out, "$%zu\r\n", len);
    dibsx_buf_add(out, word, len);
    dibsx_buf_add(out, "\r\n", 2);
}

void dibs__group_begin(const dibs__member *first, int count, bool whole,
                       dibsx_buf *out)
{
    const dibs__group *group = first->group;
    int keys = count * group->key_count + (group->shared ? 1 : 0);
    char number[16];
    int len = snprintf(number, sizeof(number), "%d", keys);

    dibsx_buf_printf(out, "*%d\r\n", 3 + keys + count * first->rest_count);
    if (whole) {
        add_word(out, "EVAL", 4);
        add_word(out, group->text, group->text_len);
    } else {
        add_word(out, "EVALSHA", 7);
        add_word(out, group->sha1, strlen(group->sha1));
    }
    add_word(out, number, (size_t)len);
    if (group->shared)
        add_word(out, group->shared, strlen(group->shared));
}

bool dibs__group_is_answer(const redisReply *reply, int count)
{
    return reply->type == REDIS_REPLY_ARRAY && reply->elements == (size_t)count;
}

redisReply *dibs__group_take(redisReply *reply, int i)
{
    redisReply *item = reply->element[i];

    if (item->type == REDIS_REPLY_NIL)
        return NULL;
    reply->element[i] = NULL;
    return item;
}
