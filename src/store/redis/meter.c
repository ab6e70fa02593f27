/* meter.c - the meter step, a script.
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

static bool read_sums(const redisReply *reply, dibs__sums *out)
{
    const redisReply *state = dibs__reply_item(reply, 6);
    int64_t reporters, version;

    if (!dibs__reply_int(dibs__reply_item(reply, 0), &out->good) ||
        !dibs__reply_int(dibs__reply_item(reply, 1), &out->bad) ||
        !dibs__reply_int(dibs__reply_item(reply, 2), &out->slow) ||
        !dibs__reply_int(dibs__reply_item(reply, 3), &reporters) ||
        !dibs__reply_int(dibs__reply_item(reply, 4), &version) ||
        !dibs__reply_int(dibs__reply_item(reply, 5), &out->expires_ms) ||
        !state || state->type != REDIS_REPLY_STRING || out->good < 0 ||
        out->bad < 0 || out->slow < 0 || reporters < 0 ||
        reporters > DIBS__METER_MARKS || version < 0 || out->expires_ms < -1)
        return false;
    out->reporters = (uint32_t)reporters;
    out->version = (uint64_t)version;
    if (out->expires_ms == 0)
        out->expires_ms = 1;
    dibs__meter_state(out, state->str, (size_t)state->len);
    return true;
}

static dibs_status
meter_calls(struct dibs__store *st, const dibs__meter *report,
            dibsx_nsec deadline, dibs__sums *out, dibs_error *err)
{
    char keys[2][DIBS__KEY_MAX], numbers[NUMBERS][NUMBER_MAX];
    const int64_t args[NUMBERS] = {(int64_t)report->version,
                                   report->window_ms,
                                   report->good,
                                   report->bad,
                                   report->slow,
                                   report->mark};
    dibs_status rc = dibs__meter_check(report, err);
    redisReply *reply = NULL;
    dibs__words words;

    *out = (dibs__sums){.expires_ms = -1};
    if (rc != DIBS_OK)
        return rc;
    dibs__script_begin(&words, DIBS__SCRIPT_meter, "2");
    dibs__words_add(&words, keys[0], dibs__key_meter(report->key, keys[0]));
    dibs__words_add(&words, keys[1], dibs__key_value(report->key, keys[1]));
    for (size_t i = 0; i < NUMBERS; i++) {
        snprintf(numbers[i], NUMBER_MAX, "%" PRId64, args[i]);
        dibs__words_puts(&words, numbers[i]);
    }
    rc = dibs__script_run(dibs__redis_of(st)->steps, DIBS__SCRIPT_meter, &words,
                          deadline, &reply, err);
    if (rc != DIBS_OK)
        return rc;
    if (read_sums(reply, out)) {
        rc = dibs__meter_status(report, out, err);
    } else {
        *out = (dibs__sums){.expires_ms = -1};
        rc = dibs__reply_odd(err);
    }
    dibs__reply_free(reply);
    return rc;
}

const dibs__meter_ops dibs__redis_meter_ops = {.meter = meter_calls};
