/* lease.c - the lease steps, each a function of the schema: acquire, renew,
 * release, revoke, yield.
 *
 * Any thread. Acquires and releases of several threads are sent together. Renewals
 * have connections of their own. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/buf.h"
#include "base/fail.h"
#include "store/postgres/array.h"
#include "store/postgres/step.h"
#include <string.h>

/* Leases renewed by one statement: few enough that a step on one of the names does
 * not wait long behind the others. */
enum { BATCH = 128 };

static dibs_status
judge_ask(const dibs__ask *ask, int64_t status, dibs__pg_answer *answer,
          dibs__answer *ans, dibs_error *err)
{
    int64_t fence, flag, ahead = 0;
    dibs_status rc;

    if (status == DIBS_LOST)
        return dibs__refuse_left(ask->name, err);
    if (status == DIBS_MISMATCH)
        return dibs__pg_kind(ask, answer, err);
    if ((status != DIBS_OK && status != DIBS_BUSY) ||
        !dibs__pg_word(answer, 0, INT64_MAX, &fence))
        return dibs__pg_odd(err);
    ans->fence = (uint64_t)fence;
    ans->left_ms = dibs__pg_span(ask->ttl_ms);
    if (status == DIBS_OK && !*answer->at)
        return dibs__answer_grant(ask, ans, err);
    if (!dibs__pg_word(answer, 0, INT64_MAX, &ans->left_ms) ||
        !dibs__pg_word(answer, 0, 1, &flag))
        return dibs__pg_odd(err);
    if (status == DIBS_OK && ans->left_ms == 0)
        return dibs__refuse_left(ask->name, err);
    if (status == DIBS_OK) {
        ans->claim = flag == 1;
        return dibs__answer_grant(ask, ans, err);
    }
    ans->queued = flag == 1;
    if (!dibs__pg_word(answer, 0, UINT32_MAX, &ahead))
        return dibs__pg_odd(err);
    ans->ahead = (uint32_t)ahead;
    rc = dibs__answer_busy(ans, err);
    return rc == DIBS_OK ? dibs__refuse_held(ask->name, answer->at, err) : rc;
}

dibs_status
dibs__pg_acquire(struct dibs__store *st, const dibs__ask *ask,
                 dibsx_nsec deadline, dibs__answer *ans, dibs_error *err)
{
    char who[DIBS__WHO_MAX];
    dibs__pg_item item = {.ask = ask, .who = dibs__pg_who(ask->who, who)};
    dibs__pg_answer answer = {.at = item.answer};
    dibs_status rc = dibs__pg_check(ask, err);
    int64_t status;

    memset(ans, 0, sizeof(*ans));
    if (rc == DIBS_OK)
        rc = dibs__pg_combine(dibs__pg_of(st), &item, deadline, err);
    if (rc != DIBS_OK)
        return rc;
    if (!dibs__pg_word(&answer, 0, INT64_MAX, &status))
        return dibs__pg_odd(err);
    rc = judge_ask(ask, status, &answer, ans, err);
    if (rc == DIBS_UNKNOWN)
        dibs__pg_distrust(dibs__pg_of(st));
    return rc;
}

static dibs_status read_renewals(dibs__renewal *items, size_t count,
                                 const PGresult *rows, dibs_error *err)
{
    dibs__pg_answer answer = {.at = ""};
    dibs_status rc = DIBS_OK;

    if (dibs__pq.PQntuples(rows) == 1)
        answer.at = dibs__pg_text(rows, 0, 0);
    for (size_t i = 0; i < count && rc == DIBS_OK; i++) {
        int64_t number;

        if (!dibs__pg_word(&answer, -1, INT64_MAX, &number))
            return dibs__pg_odd(err);
        items[i].rc = number < 0 ? DIBS_LOST : DIBS_OK;
        items[i].left_ms = number < 0 ? 0 : number / 2;
        items[i].wanted = number > 0 && number % 2 == 1;
        if (number >= 0)
            rc = dibs__answer_renewal(&items[i], err);
    }
    return rc;
}

static dibs_status
renew_batch(dibs__pg *pg, dibs__pg_array lists[4], dibs__renewal *items,
            size_t count, dibsx_nsec deadline, dibs_error *err)
{
    dibs__pg_args args = {.count = 0};
    PGresult *rows = NULL;
    dibs_status rc;

    for (size_t i = 0; i < 4; i++)
        dibs__pg_array_begin(&lists[i]);
    for (size_t i = 0; i < count; i++) {
        dibs__pg_array_text(&lists[0], items[i].name);
        dibs__pg_array_text(&lists[1], items[i].owner);
        dibs__pg_array_int(&lists[2], (int64_t)items[i].fence);
        dibs__pg_array_int(&lists[3], dibs__pg_span(items[i].ttl_ms));
    }
    if (!dibs__pg_array_end(lists, 4, &args))
        return dibsx_nomem(err, "a batch of renewals");
    dibs__pg_arg_text(&args, dibs__pg_doorbell_address(&pg->doorbell));
    rc = dibs__pg_step(pg, &pg->renewals, DIBS__PG_RENEW, &args, deadline,
                       &rows, err);
    if (rc == DIBS_OK) {
        rc = read_renewals(items, count, rows, err);
        if (rc == DIBS_UNKNOWN)
            dibs__pg_distrust(pg);
    }
    dibs__pq.PQclear(rows);
    return rc;
}

dibs_status dibs__pg_renew(struct dibs__store *st, dibs__renewal *items,
                           size_t count, dibsx_nsec deadline, dibs_error *err)
{
    dibs__pg_array lists[4];
    dibs_error cause = {0};
    dibs_status rc = DIBS_OK;
    size_t done = 0;

    for (size_t i = 0; i < 4; i++)
        dibs__pg_array_init(&lists[i]);
    while (done < count && rc == DIBS_OK) {
        size_t few = count - done < BATCH ? count - done : BATCH;

        rc = renew_batch(dibs__pg_of(st), lists, items + done, few, deadline,
                         &cause);
        if (rc == DIBS_OK)
            done += few;
    }
    for (size_t i = 0; i < 4; i++)
        dibs__pg_array_fini(&lists[i]);
    if (rc == DIBS_OK)
        return rc;
    /* The leases of earlier batches were renewed. */
    return dibsx_fail_at(err, done > 0 ? DIBS_UNKNOWN : rc, cause.origin, "%s",
                         cause.message);
}

dibs_status dibs__pg_release(struct dibs__store *st, const dibs__leave *leave,
                             dibsx_nsec deadline, dibs_error *err)
{
    dibs__pg_item item = {.leave = leave};
    dibs__pg_answer answer = {.at = item.answer};
    dibs_status rc = dibs__pg_combine(dibs__pg_of(st), &item, deadline, err);
    int64_t status = DIBS_INTERNAL;

    if (rc != DIBS_OK)
        return rc;
    if (!dibs__pg_word(&answer, DIBS_OK, DIBS_LOST, &status) ||
        (status != DIBS_OK && status != DIBS_LOST))
        return dibs__pg_odd(err);
    if (status == DIBS_OK)
        return DIBS_OK;
    return dibs__refuse_absent(leave->name, err);
}

/* revoke and yield: by name and fence, answered with a number. */
static dibs_status
call_by_fence(struct dibs__store *st, dibs__pg_query query, const char *name,
              uint64_t fence, dibsx_nsec deadline, uint32_t *out,
              dibs_error *err)
{
    dibs__pg_args args = {.count = 0};
    dibs__pg_answer answer;
    int64_t status, number = 0;
    dibs_status rc;

    *out = 0;
    dibs__pg_arg_text(&args, name);
    dibs__pg_arg_int(&args, fence < INT64_MAX ? (int64_t)fence : INT64_MAX);
    rc = dibs__pg_call(dibs__pg_of(st), query, &args, deadline, &answer,
                       &status, err);
    if (rc == DIBS_OK && status == DIBS_OK &&
        !dibs__pg_word(&answer, 0, UINT32_MAX, &number))
        rc = dibs__pg_odd(err);
    dibs__pg_answer_fini(&answer);
    if (rc != DIBS_OK)
        return rc;
    *out = (uint32_t)number;
    if (status == DIBS_NOTFOUND)
        return dibsx_fail(err, DIBS_NOTFOUND, "nobody holds it");
    if (status == DIBS_STALE)
        return dibsx_fail(err, DIBS_STALE, "it is held under another fence");
    return status == DIBS_OK ? DIBS_OK : dibs__pg_odd(err);
}

dibs_status
dibs__pg_revoke(struct dibs__store *st, const char *name, uint64_t fence,
                dibsx_nsec deadline, uint32_t *broken, dibs_error *err)
{
    return call_by_fence(st, DIBS__PG_REVOKE, name, fence, deadline, broken,
                         err);
}

dibs_status
dibs__pg_yield(struct dibs__store *st, const char *name, uint64_t fence,
               dibsx_nsec deadline, uint32_t *asked, dibs_error *err)
{
    return call_by_fence(st, DIBS__PG_YIELD, name, fence, deadline, asked, err);
}

#define MEMBER(step, STEP) .step = dibs__pg_##step,

const dibs__lease_ops dibs__pg_lease_ops = {DIBS__LEASE_STEPS(MEMBER)};
