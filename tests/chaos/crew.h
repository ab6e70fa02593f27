/* crew.h - the workers of a run, as its runner has them: started, struck, healed,
 * and replaced when they end.
 *
 * All is called on the runner's main thread, but for crew_limit(). */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_CHAOS_CREW_H
#define DIBS_TESTS_CHAOS_CREW_H

#include "record.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/types.h>

struct crew_fault;

typedef struct member {
    _Atomic(pid_t) pid; /* 0: none */
    uint32_t life;
    const struct crew_fault *fault; /* that is on it, or NULL */
    fault_entry *entry;
    int64_t heal_ns;
    _Atomic(int64_t) *ahead_us; /* its wall clock, and its boot clock */
} member;

typedef struct crew {
    const char *self; /* the program, to be run as a worker */
    const char *folder;
    const char *shim; /* for clocks; NULL: cannot be set */
    run_file *run;
    fault_log *faults;
    pthread_mutex_t *mutex; /* of the fault log */
    member members[WORKERS_MAX];
} crew;

/* A fault on one worker. */
typedef struct crew_fault {
    const char *name;
    const char *what;
    int from; /* how long it lasts, in milliseconds */
    int to;
    bool of_ttl; /* ... in hundredths of the ttl */
    bool sleeps; /* sets its boot clock, which it must not share */
    void (*strike)(crew *cw, uint32_t number, uint64_t dice);
    void (*heal)(crew *cw, uint32_t number); /* NULL: it is over at once */
} crew_fault;

extern const crew_fault crew_faults[]; /* ended by one without a name */

void crew_start(crew *cw);

/* Replaces those that ended, and heals those whose time has come. */
void crew_tend(crew *cw);

/* Strikes whom the dice say, mostly one that holds. */
void crew_strike(crew *cw, const crew_fault *ft, uint64_t dice,
                 int64_t span_ms);
void crew_heal_all(crew *cw);

/* Waits until all have ended, which they were told to; one that does not is a
 * failure. */
void crew_end(crew *cw);

/* Has the program run in this mode, with the clocks of the first worker, and waits
 * for its end; one that fails is a failure. */
void crew_do(crew *cw, const char *mode);

/* Sets a limit of all workers, on any thread; RLIM_INFINITY lifts it. */
void crew_limit(crew *cw, int resource, rlim_t limit);

/* A new entry of the fault log, on any thread; NULL when it is full. */
fault_entry *crew_note(crew *cw, const char *name, uint32_t worker,
                       uint64_t dice, loss lost);

#endif
