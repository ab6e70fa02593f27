/* rate.c - the rate step: draw.
 *
 * Any thread. */
/* SPDX-License-Identifier: MIT */
#include "store/postgres/step.h"

static bool
read_drawn(dibs__pg_answer *answer, const dibs__draw *draw, dibs__drawn *out)
{
    return dibs__pg_word(answer, 0, INT64_MAX, &out->granted) &&
           dibs__pg_word(answer, 0, INT64_MAX, &out->wait_us) &&
           dibs__pg_word(answer, 0, INT64_MAX, &out->remaining) &&
           dibs__rate_credible(draw, out);
}

static dibs_status
draw_tokens(struct dibs__store *st, const dibs__draw *asked,
            dibsx_nsec deadline, dibs__drawn *out, dibs_error *err)
{
    dibs__pg_args args = {.count = 0};
    dibs__pg_answer answer;
    dibs__draw draw;
    int64_t status;
    dibs_status rc = dibs__rate_check(asked, &draw, err);

    *out = (dibs__drawn){0};
    if (rc != DIBS_OK)
        return rc;
    dibs__pg_arg_text(&args, draw.name);
    dibs__pg_arg_int(&args, draw.cost);
    dibs__pg_arg_int(&args, draw.least);
    dibs__pg_arg_int(&args, draw.count);
    dibs__pg_arg_int(&args, draw.period_us);
    dibs__pg_arg_int(&args, draw.burst);
    dibs__pg_arg_int(&args, draw.wait_us);
    rc = dibs__pg_call(dibs__pg_of(st), DIBS__PG_RATE_DRAW, &args, deadline,
                       &answer, &status, err);
    if (rc == DIBS_OK && !read_drawn(&answer, &draw, out)) {
        *out = (dibs__drawn){0};
        rc = dibs__pg_odd(err);
    }
    dibs__pg_answer_fini(&answer);
    return rc == DIBS_OK ? dibs__rate_status(out, err) : rc;
}

const dibs__rate_ops dibs__pg_rate_ops = {.draw = draw_tokens};
