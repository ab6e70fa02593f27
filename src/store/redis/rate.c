/* rate.c - the rate steps, each a script: draw, rates.
 *
 * Any thread. */
/* SPDX-License-Identifier: MIT */
#include "store/redis/keys.h"
#include "store/redis/redis_store.h"
#include "store/redis/scan.h"
#include "store/redis/script.h"
#include "store/redis/wire/reply.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBERS = 6, NUMBER_MAX = 24, PAGE = 64 };

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

/* "TAT LAST REST COUNT PERIOD". */
static bool read_rate(const redisReply *word, dibs__rate *out)
{
    int64_t *const fields[] = {&out->tat_us, &out->last_us, &out->rest,
                               &out->count, &out->period_us};
    enum { FIELDS = sizeof(fields) / sizeof(fields[0]) };
    const char *at = word && word->type == REDIS_REPLY_STRING ? word->str : "";

    for (size_t i = 0; i < FIELDS; i++) {
        char *end = NULL;

        if (*at < '0' || *at > '9')
            return false;
        *fields[i] = strtoll(at, &end, 10);
        if (*fields[i] > DIBS__RATE_MAX ||
            *end != (i + 1 < FIELDS ? ' ' : '\0'))
            return false;
        at = end + 1;
    }
    return true;
}

static dibs_status
read_rates(dibs__redis *rd, const char *const *names, size_t count,
           dibsx_nsec deadline, redisReply **reply, dibs_error *err)
{
    char keys[PAGE][DIBS__KEY_MAX], key_count[NUMBER_MAX];
    dibs__words words;

    snprintf(key_count, sizeof(key_count), "%zu", count);
    dibs__script_begin(&words, DIBS__SCRIPT_rates, key_count);
    for (size_t i = 0; i < count; i++)
        dibs__words_add(&words, keys[i], dibs__key_rate(names[i], keys[i]));
    return dibs__script_run(rd->steps, DIBS__SCRIPT_rates, &words, deadline,
                            reply, err);
}

/* The limits that a list has shown, and to whom. */
typedef struct showing {
    dibs__rate_fn *each;
    void *arg;
    size_t left; /* of those that may be shown */
} showing;

/* DIBS_NOTFOUND: the list ends here. A text that no draw has written is passed over. */
static dibs_status
show_page(showing *sh, const char *const *names, size_t count,
          const redisReply *reply, dibs_error *err)
{
    int64_t now_us;

    if (!dibs__reply_int(dibs__reply_item(reply, 0), &now_us) ||
        !dibs__reply_item(reply, count))
        return dibs__reply_odd(err);
    for (size_t i = 0; i < count; i++) {
        dibs__rate_row row = {.count = 0};
        dibs__rate rate;

        if (!read_rate(dibs__reply_item(reply, i + 1), &rate) ||
            !dibs__rate_show(&rate, now_us, &row))
            continue;
        snprintf(row.name, sizeof(row.name), "%s", names[i]);
        if (!sh->each(&row, sh->arg) || --sh->left == 0)
            return DIBS_NOTFOUND;
    }
    return DIBS_OK;
}

static bool name_of(const char *key, size_t len, const char *begins,
                    char out[DIBS_NAME_MAX + 1])
{
    (void)begins;
    return dibs__key_tail(DIBS__KEY_RATE, key, len, out);
}

static dibs_status
list_rates(struct dibs__store *st, const dibs__rate_query *query,
           dibsx_nsec deadline, dibs__rate_fn *each, void *arg, dibs_error *err)
{
    dibs__redis *rd = dibs__redis_of(st);
    char text[DIBS__KEY_MAX];
    const char *const texts[] = {text};
    int64_t each_ms = dibsx_wait_ms(deadline, dibsx_now());
    showing sh = {each, arg, query->max};
    dibs__names names;
    dibs_status rc;

    dibs__key_rate(query->begins, text);
    rc = dibs__scan_paced(rd->steps, texts, 1, query->begins, name_of, deadline,
                          &names, err);
    for (size_t i = 0, few; i < names.count && rc == DIBS_OK; i += few) {
        /* In a cluster a script has keys of one slot only. */
        size_t page = rd->cluster ? 1 : PAGE;
        redisReply *reply = NULL;

        few = 1;
        if (strcmp(names.name[i], query->after) <= 0)
            continue;
        few = names.count - i < page ? names.count - i : page;
        rc = read_rates(rd, names.name + i, few,
                        dibsx_after_ms(dibsx_now(), each_ms), &reply, err);
        if (rc == DIBS_OK)
            rc = show_page(&sh, names.name + i, few, reply, err);
        dibs__reply_free(reply);
    }
    dibs__names_fini(&names);
    return rc == DIBS_NOTFOUND ? DIBS_OK : rc;
}

const dibs__rate_ops dibs__redis_rate_ops = {
    .draw = draw_tokens,
    .rates = list_rates,
};
