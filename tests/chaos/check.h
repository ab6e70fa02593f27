/* check.h - whether a history kept what was promised.
 *
 * The invariants are looked at one by one; each breach is counted, and the first
 * of each is told in words. Whether a breach is a violation is for promise.h. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_CHAOS_CHECK_H
#define DIBS_TESTS_CHAOS_CHECK_H

#include "promise.h"
#include "record.h"

#include <stdio.h>

/* One operation and who did it. */
typedef struct deed {
    const record *rec;
    uint32_t worker;
    uint32_t life;
} deed;

typedef struct deed_list {
    deed *list;
    size_t count;
} deed_list;

typedef struct history {
    const run_file *run;
    const fault_log *faults; /* NULL: none */
    const bank_log *bank;    /* NULL: none */
    const record_log **logs; /* in order of worker and life */
    size_t log_count;
    size_t log_room;
    deed *holds[KEYS]; /* that were relied on */
    size_t hold_counts[KEYS];
    deed *values[VALUES]; /* operations on each */
    size_t value_counts[VALUES];
    deed_list terms;   /* of the election */
    deed_list hands;   /* in which it was given up */
    deed_list latches; /* counts, waits and looks */
    deed_list takes;   /* of tokens */
    deed_list meets;   /* at the barrier */
    deed_list calls;   /* behind the breaker */
    deed_list permits; /* that its probes asked for */
    deed_list changes; /* of its state */
    deed_list pauses;  /* in which a process was not run */
    size_t operations;
    size_t errors; /* operations that failed, or may have */
    size_t breaches[INVARIANTS];
    size_t
        late;  /* of these, those that only say that something took too long */
    FILE *out; /* where breaches are told */
} history;

/* Adds a log, which is borrowed. Exits when there is no memory. */
void history_add(history *hs, const record_log *log);

/* Maps all files of a run's folder; false when it is none. */
bool history_open(history *hs, const char *folder);

/* Looks at everything; the breaches are in the history. */
void history_check(history *hs);
void history_fini(history *hs);

/* How many of the breaches are violations, in this topology and after these
 * faults, and how many are of what is not promised. */
size_t history_violations(const history *hs);
size_t history_counted(const history *hs);

/* What the store may have lost by the faults that were struck. */
loss history_loss(const history *hs);

/* The parts. */
void check_exclusion(history *hs, uint32_t key);
void check_fences(history *hs, uint32_t key);
void check_order(history *hs, uint32_t key);
void check_told(history *hs, uint32_t key);
void check_slept(history *hs, uint32_t key);
void check_bank(history *hs);
void check_value(history *hs, uint32_t value);
void check_alive(history *hs);
void check_election(history *hs);
void check_latches(history *hs);
void check_limit(history *hs);
void check_barrier(history *hs);
void check_seats_end(history *hs);
void check_breaker(history *hs);
void check_breaker_state(history *hs);
void check_permits(history *hs);

/* Counts a breach and says whether it is to be told: the first few are. The
 * beginning of the line is then printed. */
bool breach(history *hs, invariant what);

/* "+12.345678 s", since the run began. */
enum { MOMENT_ROOM = 32 };
const char *moment(const history *hs, int64_t at_ns, char out[MOMENT_ROOM]);

/* "worker 3.1, fence 17, relied on it from +1.2 s to +1.3 s". */
void tell_hold(const history *hs, const deed *dd);

/* Until when a hold was relied on. */
int64_t hold_end(const record *rec);

/* When the machine of a worker had last slept in that span; 0: it had not. */
int64_t
slept_at(const history *hs, uint32_t worker, int64_t from_ns, int64_t to_ns);

/* Whether a fault was on the worker, or on the store, in that span or shortly
 * before it; whether one on the worker was, and when the last such ended. */
bool was_disturbed(const history *hs, uint32_t worker, int64_t from_ns,
                   int64_t to_ns);
int64_t last_on_worker(const history *hs, uint32_t worker, int64_t from_ns,
                       int64_t to_ns);

/* In which a call at the barrier hears of an outcome; and whether calls that had the same
 * one did, of which the first to end comes first. */
int64_t barrier_hear_ns(const history *hs);
void check_heard(history *hs, const deed *list, size_t count);

/* Whether those who led, in their order, left spans without a leader after the last fault;
 * and whether one lost a term for nothing. */
void check_gaps(history *hs, uint32_t key, const deed *led, size_t count);
void check_reason(history *hs, const deed *dd);

/* By when a process had ended: the next life of its worker began; INT64_MAX: it has
 * none. */
int64_t life_end(const history *hs, const deed *dd);

/* How much of that span is left without those in which a fault was on the store, or shortly
 * before, or on the worker, or in which the worker was not run; ANYBODY: any worker. */
#define ANYBODY (NOBODY - 1)
int64_t
calm_in(const history *hs, uint32_t worker, int64_t from_ns, int64_t to_ns);

/* Whether there was any of these in that span. */
bool was_struck(const history *hs, uint32_t worker, int64_t from_ns,
                int64_t to_ns);

/* How many faults were on the store in that span. */
unsigned store_faults(const history *hs, int64_t from_ns, int64_t to_ns);

/* Zeroed; exits when there is none. */
void *must_have(size_t count, size_t size);

#endif
