/* convert.c - the lease steps convert and acquire_all.
 *
 * Any thread. */
/* SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "store/postgres/array.h"
#include "store/postgres/step.h"
#include <string.h>

static dibs_status
read_grant(dibs__pg_answer *answer, dibs__answer *ans, dibs_error *err)
{
    int64_t fence, claim;

    if (!dibs__pg_word(answer, 1, INT64_MAX, &fence) ||
        !dibs__pg_word(answer, 0, INT64_MAX, &ans->left_ms) ||
        !dibs__pg_word(answer, 0, 1, &claim))
        return dibs__pg_odd(err);
    ans->fence = (uint64_t)fence;
    ans->claim = claim == 1;
    return DIBS_OK;
}

static dibs_status
read_conversion(const dibs__conversion *conversion, dibs__pg_answer *answer,
                dibs__answer *ans, dibs_error *err)
{
    dibs_status rc = read_grant(answer, ans, err);

    if (rc == DIBS_OK && ans->left_ms == 0)
        return dibs__refuse_fence(conversion->name, err);
    return rc == DIBS_OK ? dibs__answer_convert(conversion, ans, err) : rc;
}

static dibs_status
judge_conversion(const dibs__conversion *conversion, int64_t status,
                 dibs__pg_answer *answer, dibs__answer *ans, dibs_error *err)
{
    switch (status) {
    case DIBS_OK:
        return read_conversion(conversion, answer, ans, err);
    case DIBS_BUSY:
        return dibs__refuse_shared(conversion->name, answer->at, err);
    case DIBS_LOST:
        return dibs__refuse_fence(conversion->name, err);
    case DIBS_INVALID:
        return dibsx_fail(err, DIBS_INVALID, "`" DIBS__NAME_SHOWN "`: %.90s",
                          conversion->name, answer->at);
    default:
        return dibs__pg_odd(err);
    }
}

dibs_status
dibs__pg_convert(struct dibs__store *st, const dibs__conversion *conversion,
                 dibsx_nsec deadline, dibs__answer *ans, dibs_error *err)
{
    dibs__pg_args args = {.count = 0};
    dibs__pg_answer answer;
    int64_t status;
    dibs_status rc;

    memset(ans, 0, sizeof(*ans));
    dibs__pg_arg_text(&args, conversion->name);
    dibs__pg_arg_text(&args, conversion->owner);
    dibs__pg_arg_int(&args, (int64_t)conversion->fence);
    dibs__pg_arg_text(&args, dibs__pg_mode(conversion->mode));
    dibs__pg_arg_text(&args, conversion->to_owner);
    dibs__pg_arg_int(&args, dibs__pg_span(conversion->ttl_ms));
    rc = dibs__pg_call(dibs__pg_of(st), DIBS__PG_CONVERT, &args, deadline,
                       &answer, &status, err);
    if (rc == DIBS_OK)
        rc = judge_conversion(conversion, status, &answer, ans, err);
    if (rc == DIBS_UNKNOWN)
        dibs__pg_distrust(dibs__pg_of(st));
    dibs__pg_answer_fini(&answer);
    return rc;
}

static dibs_status read_busy(const dibs__ask *ask, dibs__pg_answer *answer,
                             dibs__answer *ans, dibs_error *err)
{
    int64_t fence, ahead;
    dibs_status rc;

    if (!dibs__pg_word(answer, 0, INT64_MAX, &fence) ||
        !dibs__pg_word(answer, 0, INT64_MAX, &ans->left_ms) ||
        !dibs__pg_word(answer, 0, UINT32_MAX, &ahead))
        return dibs__pg_odd(err);
    ans->fence = (uint64_t)fence;
    ans->ahead = (uint32_t)ahead;
    rc = dibs__answer_busy(ans, err);
    return rc == DIBS_OK ? dibs__refuse_held(ask->name, answer->at, err) : rc;
}

/* One that is nearly over blocks all. The others may have been granted: the caller
 * gives back what an earlier ask of it, without an answer, may have got. */
static dibs_status
read_grants(const dibs__ask *asks, size_t count, dibs__pg_answer *answer,
            dibs__answer *answers, size_t *blocked, dibs_error *err)
{
    dibs_status rc = DIBS_OK;

    for (size_t i = 0; i < count && rc == DIBS_OK; i++) {
        rc = read_grant(answer, &answers[i], err);
        if (rc == DIBS_OK && answers[i].left_ms == 0) {
            *blocked = i;
            return dibs__refuse_left(asks[i].name, err);
        }
        if (rc == DIBS_OK)
            rc = dibs__answer_grant(&asks[i], &answers[i], err);
    }
    return rc;
}

static dibs_status
judge_all(const dibs__ask *asks, size_t count, int64_t status,
          dibs__pg_answer *answer, dibs__answer *answers, size_t *blocked,
          dibs_error *err)
{
    int64_t which;

    if (status == DIBS_OK)
        return read_grants(asks, count, answer, answers, blocked, err);
    if (!dibs__pg_word(answer, 0, (int64_t)count - 1, &which))
        return dibs__pg_odd(err);
    *blocked = (size_t)which;
    if (status == DIBS_BUSY)
        return read_busy(&asks[which], answer, &answers[which], err);
    if (status == DIBS_LOST)
        return dibs__refuse_left(asks[which].name, err);
    if (status == DIBS_MISMATCH)
        return dibs__pg_kind(&asks[which], answer, err);
    return dibs__pg_odd(err);
}

enum { ALL_LISTS = 6 };

static bool write_asks(const dibs__ask *asks, size_t count,
                       dibs__pg_array lists[ALL_LISTS], dibs__pg_args *args)
{
    for (size_t i = 0; i < count; i++) {
        char who[DIBS__WHO_MAX];

        dibs__pg_array_text(&lists[0], asks[i].name);
        dibs__pg_array_text(&lists[1], asks[i].owner);
        dibs__pg_array_int(&lists[2], asks[i].priority);
        dibs__pg_array_int(&lists[3], dibs__pg_span(asks[i].ttl_ms));
        dibs__pg_array_int(&lists[4], (asks[i].flags & DIBS__ASK_TELL) != 0);
        dibs__pg_array_text(&lists[5], dibs__pg_who(asks[i].who, who));
    }
    return dibs__pg_array_end(lists, ALL_LISTS, args);
}

dibs_status
dibs__pg_acquire_all(struct dibs__store *st, const dibs__ask *asks,
                     size_t count, dibsx_nsec deadline, dibs__answer *answers,
                     size_t *blocked, dibs_error *err)
{
    dibs__pg *pg = dibs__pg_of(st);
    dibs__pg_array lists[ALL_LISTS];
    dibs__pg_args args = {.count = 0};
    dibs__pg_answer answer = {.at = ""};
    dibs_status rc = DIBS_OK;
    int64_t status;

    memset(answers, 0, count * sizeof(*answers));
    *blocked = 0;
    for (size_t i = 0; i < count && rc == DIBS_OK; i++)
        rc = dibs__pg_check(&asks[i], err);
    if (rc != DIBS_OK)
        return rc;
    for (size_t i = 0; i < ALL_LISTS; i++)
        dibs__pg_array_init(&lists[i]);
    if (!write_asks(asks, count, lists, &args))
        rc = dibsx_nomem(err, "a set of names");
    dibs__pg_arg_text(&args, dibs__pg_doorbell_address(&pg->doorbell));
    if (rc == DIBS_OK)
        rc = dibs__pg_call(pg, DIBS__PG_ACQUIRE_ALL, &args, deadline, &answer,
                           &status, err);
    if (rc == DIBS_OK)
        rc = judge_all(asks, count, status, &answer, answers, blocked, err);
    if (rc == DIBS_UNKNOWN)
        dibs__pg_distrust(pg);
    dibs__pg_answer_fini(&answer);
    for (size_t i = 0; i < ALL_LISTS; i++)
        dibs__pg_array_fini(&lists[i]);
    return rc;
}
