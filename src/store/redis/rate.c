/* rate.c - the rate step: draw, a script.
 *
 * Any thread. */
/* SPDX-License-Identifier: MIT */
#include "store/redis/keys.h"
#include "store/redis/redis_store.h"
#include "store/redis/script.h"
#include "store/redis/wire/reply.h"
#include <inttypes.h>
#include <stdio.h>

enum { NUMBERS = 6, NUMBER_MAX = 24 };

static bool
read_drawn(const redisReply *reply, const dibs__draw *draw, dibs__drawn *out)
{
    return dibs__reply_int(dibs__reply_item(reply, 0), &out->granted) &&
           dibs__reply_int(dibs__reply_item(reply, 1), &out->wait_us) &&
           dibs__reply_int(dibs__reply_item(reply, 2), &out->remaining) &&
           dibs__rate_credible(draw, out);
}

static dibs_status
draw_tokens(struct dibs__store *st, const dibs__draw *asked,
            dibsx_nsec deadline, dibs__drawn *out, dibs_error *err)
{
    char key[DIBS__KEY_MAX], numbers[NUMBERS][NUMBER_MAX];
    redisReply *reply = NULL;
    dibs__words words;
    dibs__draw draw;
    dibs_status rc = dibs__rate_check(asked, &draw, err);
    const int64_t args[NUMBERS] = {draw.cost,      draw.least, draw.count,
                                   draw.period_us, draw.burst, draw.wait_us};

    *out = (dibs__drawn){0};
    if (rc != DIBS_OK)
        return rc;
    dibs__script_begin(&words, DIBS__SCRIPT_draw, "1");
    dibs__words_add(&words, key, dibs__key_rate(draw.name, key));
    for (size_t i = 0; i < NUMBERS; i++) {
        snprintf(numbers[i], NUMBER_MAX, "%" PRId64, args[i]);
        dibs__words_puts(&words, numbers[i]);
    }
    rc = dibs__script_run(dibs__redis_of(st)->steps, DIBS__SCRIPT_draw, &words,
                          deadline, &reply, err);
    if (rc != DIBS_OK)
        return rc;
    if (read_drawn(reply, &draw, out)) {
        rc = dibs__rate_status(out, err);
    } else {
        *out = (dibs__drawn){0};
        rc = dibs__reply_odd(err);
    }
    dibs__reply_free(reply);
    return rc;
}

const dibs__rate_ops dibs__redis_rate_ops = {.draw = draw_tokens};
