/* step.h - the parts that the steps share: sending, retries, answers and refusals. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_POSTGRES_STEP_H
#define DIBS_STORE_POSTGRES_STEP_H

#include "store/answer.h"
#include "store/postgres/postgres_store.h"
#include "store/refuse.h"

/* Asks a query on a connection of the pool, again where it is certain that nothing
 * changed. DIBS_OK: *out has the rows; free it with PQclear. */
DIBS_MUST_CHECK dibs_status dibs__pg_step(dibs__pg *pg, dibs__pg_pool *pool,
                                          dibs__pg_query query,
                                          const dibs__pg_args *args,
                                          dibsx_nsec deadline, PGresult **out,
                                          dibs_error *err);

/* The server gave an impossible answer: no connection that was made before is used
 * for a step again. */
void dibs__pg_distrust(dibs__pg *pg);

/* The same as dibs__pg_step() for what changes nothing: never DIBS_UNKNOWN. */
DIBS_MUST_CHECK dibs_status dibs__pg_look(dibs__pg *pg, dibs__pg_query query,
                                          const dibs__pg_args *args,
                                          dibsx_nsec deadline, PGresult **out,
                                          dibs_error *err);

/* The text that a function answers, word by word. */
typedef struct dibs__pg_answer {
    PGresult *rows;
    const char *at;
} dibs__pg_answer;

/* Runs a function. *status is the number that its answer begins with. End with
 * dibs__pg_answer_fini() in any case. */
DIBS_MUST_CHECK dibs_status dibs__pg_call(dibs__pg *pg, dibs__pg_query query,
                                          const dibs__pg_args *args,
                                          dibsx_nsec deadline,
                                          dibs__pg_answer *answer,
                                          int64_t *status, dibs_error *err);
void dibs__pg_answer_fini(dibs__pg_answer *answer);

/* The next number; false when there is none. */
bool dibs__pg_word(dibs__pg_answer *answer, int64_t low, int64_t high,
                   int64_t *out);

/* An answer that is none: it may have done anything. */
dibs_status dibs__pg_odd(dibs_error *err);

/* A span that the functions can count with. */
int64_t dibs__pg_span(int64_t wanted_ms);

const char *dibs__pg_mode(dibs__mode mode);

/* The text `who` of the asker, cut to the room of an entry. May be `out`. */
const char *dibs__pg_who(const char *who, char out[DIBS__WHO_MAX]);

/* Why no lease is asked for with replicas that must have it. */
#define DIBS__PG_NO_REPLICAS                                                   \
    "durability is async here: synchronous_commit of the server says whether " \
    "standbys must have a lease"

#define DIBS__PG_NO_CONVERSION                                                 \
    "a lease with an advisory lock can neither be converted nor handed on: "   \
    "release it and acquire it anew"

/* If a condition of an ask fails, no statement is sent. */
DIBS_MUST_CHECK dibs_status dibs__pg_check(const dibs__ask *ask,
                                           dibs_error *err);

/* The refusal of a name that lives as another kind, of which `answer` has the
 * capacity left. */
dibs_status
dibs__pg_kind(const dibs__ask *ask, dibs__pg_answer *answer, dibs_error *err);

#endif
