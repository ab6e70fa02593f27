/* promise.h - what each store promises, as a table: the same as in
 * docs/guarantees.md, which a test compares. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_CHAOS_PROMISE_H
#define DIBS_TESTS_CHAOS_PROMISE_H

#include "record.h"

/* The invariants; README.md says what each is. */
typedef enum invariant {
    EXCLUSION,
    FENCE,
    BANK,
    ORDER,
    VALUES_KEPT,
    TOLD,
    ALIVE,
    LATCH,
    LIMIT,
    BARRIER,
    BREAKER,
    MAJORITY,
    INVARIANTS
} invariant;

typedef enum level {
    KEPT = 0, /* a breach is a violation */
    COUNTED,  /* not promised: breaches are counted */
    ABSENT    /* the store does not have such a thing */
} level;

const char *invariant_name(invariant what);

/* What holds there after faults in which so much may have been lost; where nothing
 * is said of that, what is said of less. An unknown topology promises all. */
level promised(const char *topology, loss lost, invariant what);

/* Whether there is a row of that name. */
bool promise_has(const char *topology);

/* Prints the table in Markdown. */
void promise_print(void);

#endif
