/* worker.h - one process that takes, holds, reads, writes and gives back until
 * it is told to end or is ended. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_CHAOS_WORKER_H
#define DIBS_TESTS_CHAOS_WORKER_H

#include "record.h"

#include <dibs/dibs.h>
#include <pthread.h>

enum { HANDLES = 3 };

/* One thread does the work and writes the log; of the record of the hold that is
 * on, told_ns is written on the keeper's thread. Terms are written on a thread of the
 * election, and waits at the barrier on one that does nothing else. */
typedef struct worker {
    run_file *run;
    record_log *log;
    int bank;                   /* -1: none */
    _Atomic(int64_t) *ahead_us; /* its wall clock, and its boot clock */
    dibs_client *cl;
    /* Per key: one that waits, one that tries, one to read or to enter again. */
    dibs_lock *locks[KEYS][HANDLES];
    bool refused[KEYS][HANDLES]; /* the store has no such kind */
    bool no_values;
    uint64_t versions[VALUES];           /* as last seen */
    dibs_election *elections[ELECTIONS]; /* NULL: the store has none such */
    dibs_limit *limit;
    dibs_breaker *breaker;
    dibs_barrier *barrier; /* NULL: it does not come to it */
    pthread_t meeter;
    atomic_bool meets; /* until this is false */
    pthread_t pulse;
    atomic_bool beats; /* likewise */
    bool no_latches;
    int64_t next_latch_ns; /* seldom: the store keeps them for a day */
    uint64_t random;
} worker;

/* Works until the run is over, or the log is full; the exit status. `life`
 * numbers the processes that a worker has had. */
int worker_main(const char *folder, uint32_t number, uint32_t life);

/* Evenly from 0 to below - 1. */
uint64_t worker_pick(worker *wk, uint64_t below);

/* A record to be filled in; NULL when the log is full. */
record *worker_record(worker *wk);

/* One of an operation that begins now, NULL as above; and how it ended. */
record *worker_begin(worker *wk, operation op, uint32_t key);
void worker_end(worker *wk, record *rec, dibs_status rc);

/* Reads, writes or compares and sets one of the values. */
void worker_value(worker *wk);

/* Is a candidate from begin to end. */
void worker_election_begin(worker *wk);
void worker_election_end(worker *wk);

/* Writes down whether it leads now. */
void worker_election_look(worker *wk);

/* A leader resigns now and then, or hands its lead to another. */
void worker_election_turn(worker *wk);

/* Counts at a latch, waits for it, or takes tokens. */
void worker_latch(worker *wk);
void worker_limit(worker *wk);

/* From now on what the client asks for its breaker is written down. */
void worker_breaker_tap(worker *wk);

/* Calls a service that fails for a third of the time, behind a breaker. */
void worker_call(worker *wk);

/* The first workers wait at the barrier from begin to end. */
void worker_barrier_begin(worker *wk);
void worker_barrier_end(worker *wk);

/* From begin to end it is written down when the process was not run. */
void worker_pulse_begin(worker *wk);
void worker_pulse_end(worker *wk);

/* Ends the process when it is none that may be. */
void worker_must(dibs_status rc, const dibs_error *err);

/* Does to itself what it was asked to: see TRIAL_*. `held` is a lease that is
 * held, or NULL. */
void worker_trial(worker *wk, dibs_lock *held);
void worker_trial_prepare(void); /* at the start */

#endif
