/* lease_words.c - words and refusals that the lease steps share.
 *
 * Owns nothing; any thread. */
/* SPDX-License-Identifier: MIT */
#include "store/redis/lease_words.h"
#include "base/fail.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The scripts count in microseconds, exactly up to 2^53. This is three years. */
#define SPAN_MAX_MS INT64_C(100000000000)

void dibs__words_number(dibs__words *words, int64_t number,
                        char out[DIBS__NUMBER_MAX])
{
    /* Renewals write very many of them, for which snprintf() is slow. */
    uint64_t left = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    char *at = out + DIBS__NUMBER_MAX;

    do
        *--at = (char)('0' + left % 10);
    while ((left /= 10) > 0);
    if (number < 0)
        *--at = '-';
    dibs__words_add(words, at, (size_t)(out + DIBS__NUMBER_MAX - at));
}

int64_t dibs__step_span(int64_t wanted_ms)
{
    return wanted_ms < SPAN_MAX_MS ? wanted_ms : SPAN_MAX_MS;
}

void dibs__step_begin(dibs__words *words, dibs__script script, const char *name,
                      dibs__keys *keys)
{
    dibs__keys_of(name, keys);
    dibs__script_begin(words, script, "5");
    dibs__keys_add(keys, words);
    dibs__words_add(words, DIBS__KEY_FENCE, sizeof(DIBS__KEY_FENCE) - 1);
}

void dibs__step_distrust(dibs__route *rt, const char *name, dibs__loan *loan)
{
    dibs__keys keys;

    dibs__keys_of(name, &keys);
    if (loan && loan->cn)
        loan->failed = true;
    else
        dibs__route_distrust(rt, keys.key[0], keys.len[0]);
}

void dibs__step_attend(dibs__redis *rd, const dibs__ask *ask,
                       const dibs__keys *keys)
{
    if (rd->cluster && (ask->flags & (DIBS__ASK_QUEUE | DIBS__ASK_TELL)))
        dibs__redis_doorbell_attend(&rd->bell,
                                    dibs__slot_of(keys->key[0], keys->len[0]));
}

const char *dibs__step_bell(dibs__redis *rd, const dibs__ask *ask,
                            char out[DIBS__BELL_WORD])
{
    const char *address = dibs__redis_doorbell_address(&rd->bell);

    if (!(ask->flags & DIBS__ASK_TELL))
        return address;
    snprintf(out, DIBS__BELL_WORD, "%s+", address);
    return out;
}

dibs_status
dibs__step_kind(const dibs__ask *ask, const redisReply *lives, dibs_error *err)
{
    int64_t capacity;

    if (!dibs__reply_int(lives, &capacity) || capacity < 0 ||
        capacity > UINT32_MAX)
        return dibs__reply_odd(err);
    return dibs__refuse_kind(ask, (uint32_t)capacity, err);
}

dibs_status
dibs__step_held(const dibs__ask *ask, const redisReply *who, dibs_error *err)
{
    char text[DIBS__WHO_MAX];

    dibs__reply_text(who, text, sizeof(text));
    return dibs__refuse_held(ask->name, text, err);
}
