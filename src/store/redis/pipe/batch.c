/* batch.c - the commands of several threads, sent as one. Pure. */
/* SPDX-License-Identifier: MIT */
#include "store/redis/pipe/batch.h"
#include <stdio.h>
#include <string.h>

void dibs__member_init(dibs__member *mb, const dibs__part *part,
                       const dibs__words *words, const char *bytes, size_t len)
{
    const char *end = bytes + len;
    int key_end = part->key_at + part->key_count;

    mb->part = part;
    mb->keys = end - dibs__words_size(words, part->key_at, words->count);
    mb->keys_len = dibs__words_size(words, part->key_at, key_end);
    mb->rest_len = dibs__words_size(words, part->rest_at, words->count);
    mb->rest = end - mb->rest_len;
    mb->rest_count = words->count - part->rest_at;
}

bool dibs__member_fits(const dibs__member *mb, const dibs__member *other)
{
    if (!mb->part || !other->part || mb->part->batch != other->part->batch)
        return false;
    return mb->part->second != other->part->second ||
           mb->rest_count == other->rest_count;
}

static void add_word(dibsx_buf *out, const char *word, size_t len)
{
    dibsx_buf_printf(out, "$%zu\r\n", len);
    dibsx_buf_add(out, word, len);
    dibsx_buf_add(out, "\r\n", 2);
}

static void add_number(dibsx_buf *out, int number)
{
    char text[16];
    int len = snprintf(text, sizeof(text), "%d", number);

    add_word(out, text, (size_t)len);
}

static void begin_command(const dibs__batch *batch, bool whole, dibsx_buf *out)
{
    if (whole) {
        add_word(out, "EVAL", 4);
        add_word(out, batch->text, batch->text_len);
    } else {
        add_word(out, "EVALSHA", 7);
        add_word(out, batch->sha1, strlen(batch->sha1));
    }
}

void dibs__batch_put(const dibs__member *const *members, int count, bool whole,
                     dibsx_buf *out)
{
    const dibs__batch *batch = members[0]->part->batch;
    int keys = batch->shared ? 1 : 0;
    int rest = 1;
    int first = 0;

    for (int i = 0; i < count; i++) {
        keys += members[i]->part->key_count;
        rest += members[i]->rest_count;
        first += members[i]->part->second ? 0 : 1;
    }
    dibsx_buf_printf(out, "*%d\r\n", 3 + keys + rest);
    begin_command(batch, whole, out);
    add_number(out, keys);
    if (batch->shared)
        add_word(out, batch->shared, strlen(batch->shared));
    for (int i = 0; i < count; i++)
        dibsx_buf_add(out, members[i]->keys, members[i]->keys_len);
    add_number(out, first);
    for (int i = 0; i < count; i++)
        dibsx_buf_add(out, members[i]->rest, members[i]->rest_len);
}

bool dibs__batch_is_answer(const redisReply *reply, int count)
{
    return reply->type == REDIS_REPLY_ARRAY && reply->elements == (size_t)count;
}

redisReply *dibs__batch_take(redisReply *reply, int i)
{
    redisReply *item = reply->element[i];

    if (item->type == REDIS_REPLY_NIL)
        return NULL;
    reply->element[i] = NULL;
    return item;
}
