/* rate.c - the rate steps: draw, rates.
 *
 * Any thread. */
/* SPDX-License-Identifier: MIT */
#include "store/postgres/step.h"
#include <string.h>

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

/* DIBS_NOTFOUND: the list ends before it. */
static dibs_status
read_row(const PGresult *rows, int at, const dibs__rate_query *query,
         dibs__rate_row *row, dibs_error *err)
{
    const char *name = dibs__pg_text(rows, at, 0);
    int64_t at_us = dibs__pg_int(rows, at, 1);
    dibs__rate rate = {.tat_us = dibs__pg_int(rows, at, 2),
                       .last_us = dibs__pg_int(rows, at, 3),
                       .rest = dibs__pg_int(rows, at, 4),
                       .count = dibs__pg_int(rows, at, 5),
                       .period_us = dibs__pg_int(rows, at, 6)};

    if (strncmp(name, query->begins, strlen(query->begins)) != 0)
        return DIBS_NOTFOUND;
    memset(row, 0, sizeof(*row));
    if (strlen(name) > DIBS_NAME_MAX || !dibs__rate_show(&rate, at_us, row))
        return dibs__pg_odd(err);
    memcpy(row->name, name, strlen(name) + 1);
    return DIBS_OK;
}

static dibs_status
list_rates(struct dibs__store *st, const dibs__rate_query *query,
           dibsx_nsec deadline, dibs__rate_fn *each, void *arg, dibs_error *err)
{
    bool later = strcmp(query->after, query->begins) >= 0 && query->after[0];
    dibs__pg_args args = {.count = 0};
    PGresult *rows = NULL;
    dibs__rate_row row;
    dibs_status rc;
    int count;

    dibs__pg_arg_text(&args, later ? query->after : query->begins);
    dibs__pg_arg_int(&args, later ? 0 : 1);
    dibs__pg_arg_int(&args, (int64_t)dibs__rate_list_max(query));
    rc = dibs__pg_look(dibs__pg_of(st), DIBS__PG_RATES, &args, deadline, &rows,
                       err);
    count = rc == DIBS_OK ? dibs__pq.PQntuples(rows) : 0;
    for (int i = 0; i < count && rc == DIBS_OK; i++) {
        rc = read_row(rows, i, query, &row, err);
        if (rc == DIBS_OK && !each(&row, arg))
            break;
    }
    dibs__pq.PQclear(rows);
    return rc == DIBS_NOTFOUND ? DIBS_OK : rc;
}

const dibs__rate_ops dibs__pg_rate_ops = {
    .draw = draw_tokens,
    .rates = list_rates,
};
