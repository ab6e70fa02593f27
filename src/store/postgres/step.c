/* step.c - the parts that the steps share: sending, retries, answers and refusals.
 *
 * Owns nothing; any thread. */
/* SPDX-License-Identifier: MIT */
#include "store/postgres/step.h"
#include "base/fail.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { TRIES = 8 };

/* The connection of the doorbell, an idle one, or a new one. Where the doorbell's
 * serves, the pools close the others by and by: a client that only waits has one. */
static dibs_status
take_conn(dibs__pg *pg, dibs__pg_pool *pool, dibsx_nsec deadline,
          dibs__pg_conn **out, dibs_error *err)
{
    *out = NULL;
    if (dibsx_now() < deadline)
        *out = dibs__pg_doorbell_borrow(&pg->doorbell);
    if (*out) {
        dibs__pg_pool_trim(pg->steps);
        dibs__pg_pool_trim(&pg->renewals);
    }
    return *out ? DIBS_OK : dibs__pg_pool_take(pool, deadline, out, err);
}

static void give_conn(dibs__pg *pg, dibs__pg_conn *cn)
{
    if (cn->home)
        dibs__pg_pool_give(cn);
    else
        dibs__pg_doorbell_return(&pg->doorbell, cn);
}

void dibs__pg_distrust(dibs__pg *pg)
{
    dibs__pg_pool_distrust(pg->steps);
    dibs__pg_pool_distrust(&pg->renewals);
    dibs__pg_doorbell_distrust(&pg->doorbell);
}

dibs_status dibs__pg_step(dibs__pg *pg, dibs__pg_pool *pool,
                          dibs__pg_query query, const dibs__pg_args *args,
                          dibsx_nsec deadline, PGresult **out, dibs_error *err)
{
    dibs_status rc = DIBS_OK;
    bool again = true;

    *out = NULL;
    for (int i = 0; again && i < TRIES; i++) {
        dibs__pg_conn *cn;

        rc = take_conn(pg, pool, deadline, &cn, err);
        if (rc != DIBS_OK)
            return rc;
        rc = dibs__pg_conn_ask(cn, &pg->texts, query, args, deadline, out,
                               &again, err);
        give_conn(pg, cn);
    }
    return rc;
}

dibs_status
dibs__pg_look(dibs__pg *pg, dibs__pg_query query, const dibs__pg_args *args,
              dibsx_nsec deadline, PGresult **out, dibs_error *err)
{
    dibs_status rc =
        dibs__pg_step(pg, pg->steps, query, args, deadline, out, err);

    if (rc != DIBS_UNKNOWN)
        return rc;
    if (err)
        err->status = DIBS_UNAVAIL;
    return DIBS_UNAVAIL;
}

dibs_status dibs__pg_odd(dibs_error *err)
{
    return dibsx_fail(err, DIBS_UNKNOWN,
                      "the server answered what this store never does; run "
                      "`dibs store status`");
}

dibs_status
dibs__pg_call(dibs__pg *pg, dibs__pg_query query, const dibs__pg_args *args,
              dibsx_nsec deadline, dibs__pg_answer *answer, int64_t *status,
              dibs_error *err)
{
    dibs_status rc;

    *answer = (dibs__pg_answer){.at = ""};
    rc =
        dibs__pg_step(pg, pg->steps, query, args, deadline, &answer->rows, err);
    if (rc != DIBS_OK)
        return rc;
    if (dibs__pq.PQntuples(answer->rows) == 1)
        answer->at = dibs__pg_text(answer->rows, 0, 0);
    return dibs__pg_word(answer, 0, INT64_MAX, status) ? DIBS_OK
                                                       : dibs__pg_odd(err);
}

void dibs__pg_answer_fini(dibs__pg_answer *answer)
{
    if (answer->rows)
        dibs__pq.PQclear(answer->rows);
    *answer = (dibs__pg_answer){.at = ""};
}

bool dibs__pg_word(dibs__pg_answer *answer, int64_t low, int64_t high,
                   int64_t *out)
{
    char *end;

    errno = 0;
    *out = strtoll(answer->at, &end, 10);
    if (errno != 0 || end == answer->at || (*end && *end != ' ') ||
        *out < low || *out > high)
        return false;
    answer->at = *end ? end + 1 : end;
    return true;
}

int64_t dibs__pg_span(int64_t wanted_ms)
{
    /* Counted in microseconds beside the time since 1970. */
    return wanted_ms < DIBS__SPAN_MAX_MS ? wanted_ms : DIBS__SPAN_MAX_MS;
}

const char *dibs__pg_mode(dibs__mode mode)
{
    static const char *const words[] = {[DIBS__EXCLUSIVE] = "exclusive",
                                        [DIBS__SHARED] = "shared",
                                        [DIBS__PERMITS] = "permits"};

    return words[mode];
}

const char *dibs__pg_who(const char *who, char out[DIBS__WHO_MAX])
{
    size_t len = strnlen(who, DIBS__WHO_MAX);

    if (len < DIBS__WHO_MAX)
        return who;
    len = DIBS__WHO_MAX - 1;
    while (len > 0 && ((unsigned char)who[len] & 0xc0) == 0x80)
        len--;
    memcpy(out, who, len);
    out[len] = '\0';
    return out;
}

dibs_status dibs__pg_check(const dibs__ask *ask, dibs_error *err)
{
    if (ask->replicas > 0)
        return dibsx_fail(err, DIBS_UNSUPPORTED, "%s", DIBS__PG_NO_REPLICAS);
    return dibs__refuse_ask(ask, err);
}

dibs_status
dibs__pg_kind(const dibs__ask *ask, dibs__pg_answer *answer, dibs_error *err)
{
    int64_t capacity = 0;

    if (!dibs__pg_word(answer, 0, UINT32_MAX, &capacity))
        return dibs__pg_odd(err);
    return dibs__refuse_kind(ask, (uint32_t)capacity, err);
}
