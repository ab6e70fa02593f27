/* queue_words.c - words and refusals that the queue steps share. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "store/redis/queue_words.h"
#include "base/fail.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void dibs__lane_word(uint64_t lane, char out[DIBS__LANE_WORD])
{
    snprintf(out, DIBS__LANE_WORD, "%016" PRIx64, lane);
}

size_t
dibs__item_token_write(const dibs__token *token, char out[DIBS__TOKEN_WORD])
{
    return (size_t)snprintf(out, DIBS__TOKEN_WORD,
                            "%016" PRIu64 " %016" PRIu64 " %u", token->id,
                            token->fence, (unsigned)token->attempt);
}

bool dibs__item_token_read(const redisReply *reply, dibs__token *out)
{
    char text[DIBS__TOKEN_WORD];
    char *at, *end;
    uint64_t attempt;

    dibs__reply_text(reply, text, sizeof(text));
    out->id = strtoull(text, &at, 10);
    out->fence = strtoull(at, &end, 10);
    attempt = strtoull(end, &at, 10);
    out->attempt = (uint32_t)attempt;
    return out->id > 0 && out->fence > 0 && attempt > 0 &&
           attempt <= UINT32_MAX && *at == '\0';
}

void dibs__queue_begin(dibs__words *words, dibs__script script,
                       const char *queue, dibs__queue_names *names)
{
    dibs__keys_of_queue(queue, names);
    dibs__script_begin(words, script, "16");
    for (size_t i = 0; i < DIBS__QUEUE_KEYS; i++)
        dibs__words_puts(words, names->key[i]);
}

dibs_status dibs__queue_full(const redisReply *reply, dibs_error *err)
{
    int64_t items = 0, cap = 0;

    if (!dibs__reply_int(dibs__reply_item(reply, 1), &items) ||
        !dibs__reply_int(dibs__reply_item(reply, 2), &cap))
        return dibs__reply_odd(err);
    return dibsx_fail(err, DIBS_FULL,
                      "the queue is full: it has %" PRId64 " of %" PRId64
                      " items; wait, or set a higher cap",
                      items, cap);
}
