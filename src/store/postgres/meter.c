/* meter.c - the meter step.
 *
 * Any thread. */
/* SPDX-License-Identifier: MIT */
#include "store/postgres/step.h"

static bool read_sums(dibs__pg_answer *answer, dibs__sums *out)
{
    int64_t reporters, version;

    if (!dibs__pg_word(answer, 0, INT64_MAX, &out->good) ||
        !dibs__pg_word(answer, 0, INT64_MAX, &out->bad) ||
        !dibs__pg_word(answer, 0, INT64_MAX, &out->slow) ||
        !dibs__pg_word(answer, 0, DIBS__METER_MARKS, &reporters) ||
        !dibs__pg_word(answer, 0, INT64_MAX, &version) ||
        !dibs__pg_word(answer, -1, INT64_MAX, &out->expires_ms))
        return false;
    out->reporters = (uint32_t)reporters;
    out->version = (uint64_t)version;
    return true;
}

/* The first bytes of the value, each as a number. */
static bool read_state(dibs__pg_answer *answer, dibs__sums *out)
{
    char state[DIBS__METER_STATE];
    int64_t len, byte;

    if (!dibs__pg_word(answer, 0, DIBS__METER_STATE - 1, &len))
        return false;
    for (int64_t i = 0; i < len; i++) {
        if (!dibs__pg_word(answer, 0, UINT8_MAX, &byte))
            return false;
        state[i] = (char)byte;
    }
    dibs__meter_state(out, state, (size_t)len);
    return true;
}

static dibs_status
meter_calls(struct dibs__store *st, const dibs__meter *report,
            dibsx_nsec deadline, dibs__sums *out, dibs_error *err)
{
    dibs__pg_args args = {.count = 0};
    dibs_status rc = dibs__meter_check(report, err);
    dibs__pg_answer answer;
    int64_t status;

    *out = (dibs__sums){.expires_ms = -1};
    if (rc != DIBS_OK)
        return rc;
    dibs__pg_arg_text(&args, report->key);
    dibs__pg_arg_int(&args, (int64_t)report->version);
    dibs__pg_arg_int(&args, report->window_ms);
    dibs__pg_arg_int(&args, report->good);
    dibs__pg_arg_int(&args, report->bad);
    dibs__pg_arg_int(&args, report->slow);
    dibs__pg_arg_int(&args, (int64_t)report->mark);
    rc = dibs__pg_call(dibs__pg_of(st), DIBS__PG_METER, &args, deadline,
                       &answer, &status, err);
    if (rc == DIBS_OK &&
        (!read_sums(&answer, out) || !read_state(&answer, out))) {
        *out = (dibs__sums){.expires_ms = -1};
        rc = dibs__pg_odd(err);
    }
    dibs__pg_answer_fini(&answer);
    return rc == DIBS_OK ? dibs__meter_status(report, out, err) : rc;
}

const dibs__meter_ops dibs__pg_meter_ops = {.meter = meter_calls};
