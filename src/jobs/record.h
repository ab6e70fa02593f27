/* record.h - the record of a run, as the store keeps it. Pure.
 *
 * A run is one execution of a job, made by a tick, by hand or by another run. It has a
 * step for each step of its definition, in the same order. The record holds all that a
 * node needs to go on with it, so that any node can; run_machine.h has the rules by which
 * it changes.
 *
 * The store's form is JSON. A record that breaks an invariant of its form is refused:
 * another program may have written it. Times are microseconds of the store's wall clock,
 * 0 for none; ticks are seconds since 1970. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_JOBS_RECORD_H
#define DIBS_JOBS_RECORD_H

#include "base/buf.h"
#include "base/json.h"
#include "jobs/run_step.h"

/* The state of a run whose record cannot be read, in lists. */
#define DIBS__RUN_UNREADABLE "UNREADABLE"

enum { DIBS__TICK_TEXT_SIZE = 33 };

typedef struct dibs__run {
    char id[DIBS__RUN_ID_SIZE]; /* the key has it, not the JSON */
    uint64_t version;           /* as read; 0: the store has none */
    char job[DIBS__JOB_NAME_SIZE];
    char hash[DIBS__JOB_HASH_SIZE];
    dibs__cause cause;
    char origin[DIBS__RUN_ID_SIZE];   /* the run that caused it */
    char parent[DIBS__JOB_NAME_SIZE]; /* of CHILD: the step of it */
    char batch[DIBS__JOB_NAME_SIZE];
    int64_t tick_s; /* of TICK, and of a rerun of one; else 0 */
    dibs__run_state state;
    dibs__reason reason;
    int64_t made_us, begun_us, ended_us;
    int64_t start_by_us; /* no attempt is begun later */
    int64_t end_by_us;   /* run_timeout; 0 again when it was dealt with */
    uint32_t cancels;    /* 1: cancelled; 2: and nothing runs after it */
    bool follows;        /* QUEUED until the run that lives has ended */
    bool counted;        /* among those that run, for max_running */
    bool owes;           /* ended, and runs of `then` are still to be made, or
                            runs of its steps to be cancelled */
    uint64_t merged;     /* ticks for which it runs too */
    dibs__pair *params;  /* names and values, freed with the run */
    size_t param_count;
    dibs__run_step *steps;
    size_t step_count;
    dibs__run_attempt attempts[DIBS__RUN_ATTEMPTS_KEPT]; /* the last ones */
    size_t attempt_count;

    /* Not in the JSON, see places.h: what the store has of it in indexes; 0: none. */
    int64_t deadline_at, resume_at, listed_at;
    bool was_final, was_counted;
    bool changed; /* since it was read */
} dibs__run;

/* Zeros, with an id; end with dibs__run_fini(). */
void dibs__run_init(dibs__run *run, const char *id);
void dibs__run_fini(dibs__run *run);

/* A new run with the steps of a definition, all PENDING; the caller sets the rest. The
 * same end. NOMEM. */
DIBS_MUST_CHECK dibs_status dibs__run_make(dibs__run *run, const char *id,
                                           const dibs__job *job,
                                           const char *hash, dibs_error *err);

/* When it was to begin: its own tick, or when it was made. A rerun is not late by the
 * tick of the run before it. */
int64_t dibs__run_due_us(const dibs__run *run);

/* The node that has a step, or had it last, or "": the record of a step that has ended names
 * none, but its attempts do. */
const char *dibs__run_node_of(const dibs__run *run, size_t step);

/* "2026-11-15T02:00:00Z" of its tick, or "". */
void dibs__run_tick_text(const dibs__run *run, char out[DIBS__TICK_TEXT_SIZE]);

/* Copies name and value. INVALID: too many; NOMEM. */
DIBS_MUST_CHECK dibs_status dibs__run_param(dibs__run *run, const char *name,
                                            const char *value, dibs_error *err);

/* Copies a result, of which at most DIBS__RUN_RESULT_MAX bytes are kept. NOMEM. */
DIBS_MUST_CHECK dibs_status dibs__step_result(dibs__run_step *step,
                                              const void *data, size_t len,
                                              dibs_error *err);

/* Fills a zeroed run, whose id the caller knows. INVALID: this is no record; err says
 * why, and the run is as dibs__run_init() leaves it. The same end. */
DIBS_MUST_CHECK dibs_status dibs__run_read(dibs__run *run, const char *id,
                                           const void *json, size_t len,
                                           dibs_error *err);

/* Appends the JSON form; the buffer's maximum bounds it. */
void dibs__run_write(const dibs__run *run, dibsx_buf *out);

/* The members of an object for a run whose record cannot be read: lists show it between the
 * others. `why` is the reason. */
void dibs__run_json_unreadable(dibsx_json *js, const char *id, const char *job,
                               const char *why);

/* Whether the record, which grows while the run goes on, has room to its end. Results do
 * not count: those that do not fit are dropped. INVALID: its params are too long; NOMEM. */
DIBS_MUST_CHECK dibs_status dibs__run_fits(const dibs__run *run,
                                           dibs_error *err);

/* The first breach of the form, or NULL. */
const char *dibs__run_flaw(const dibs__run *run);

/* The ids of runs: of a tick, and of one made by another run or a step of it. */
void dibs__run_id_of_tick(const char *job, int64_t tick_s,
                          char out[DIBS__RUN_ID_SIZE]);
void dibs__run_id_after(const char *job, const char *origin, const char *step,
                        char out[DIBS__RUN_ID_SIZE]);

#endif
