/* script.h - one use of the library, step by step, with another client beside it.
 *
 * The subject takes part in the faults, its peer does not: what the subject says
 * is held against what the peer sees in the store. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_LOOPS_SCRIPT_H
#define DIBS_LOOPS_SCRIPT_H

#include "pace.h"

#include <dibs/dibs.h>

/* Of the leases. What is not given back is free again after it, or after the claim
 * of a lease that was waited for, whatever is longer. */
#define TTL_MS pace_ms(300)
enum { CLAIM_MS = 3000 };

/* Each run has names of its own, so that the next need not wait for what it has
 * left behind. */
enum { NAMES = 256 };

/* What coordinates keeps something of each name in the store: it has few of them, and all
 * are used once before the faults begin. */
enum { COORD_NAMES = 8 };

/* The value that it changes. */
#define SCRIPT_VALUE "loops-value"

typedef struct name {
    char text[32];
    uint64_t fence;  /* the highest that was given */
    int64_t free_at; /* by when it must be free again, in ms; 0: now */
} name;

typedef struct script {
    const char *url;
    dibs_client *peer;
    name alone[NAMES];
    name queue[NAMES];
    uint64_t version; /* of the value, likewise */
    bool quorum;      /* the store has no values, and no queue to be seen */
    unsigned only;    /* of what coordinates one, chosen by this; 0: all */
    unsigned turn;    /* how many runs there were */
    unsigned granted; /* steps of the subject that succeeded */
    unsigned refused; /* ... that did not */
    unsigned breaches;
    unsigned late;    /* of these, those that a slow machine explains */
    const char *what; /* which fault is on, for messages */
    dibs_status also; /* what may be told beside the usual */
    bool verbose;     /* every step is told */
} script;

/* Opens the peer of a zeroed script; close with script_fini(). */
dibs_status script_init(script *sc, const char *url, dibs_error *err);
void script_fini(script *sc);

/* The subject's part, from open to close, faults or not. */
void script_run(script *sc);

/* Its part with a store that coordinates (script_coord.c, script_queue.c), on an open
 * client. */
void script_coord(script *sc, dibs_client *cl);

/* Without faults: the names can be had again in time, and the peer is well. */
void script_settle(script *sc);

/* The subject's answer to a step; `also` is a further one that is fine. */
dibs_status script_told(script *sc, const char *step, dibs_status rc,
                        dibs_status also, const dibs_error *err);

/* Counts a breach and prints it. */
void script_breach(script *sc, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Likewise, of a step that had this status. */
void script_breach_of(script *sc, dibs_status rc, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
