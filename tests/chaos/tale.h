/* tale.h - a history that is written by hand, and what the checker says of it.
 *
 * All end the test when there is no memory. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_CHAOS_TALE_H
#define DIBS_TESTS_CHAOS_TALE_H

#include "check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* After the four above. */
#include <cmocka.h>

#define MS INT64_C(1000000)

typedef struct tale {
    run_file run;
    record_log *logs[2]; /* of workers 0 and 1 */
    fault_log *faults;
    bank_log *bank;
    history hs;
    char *text; /* what the checker said */
    size_t text_len;
} tale;

/* A test with a tale of its own as its state. */
#define TALE(fn) cmocka_unit_test_setup_teardown(fn, begin, end)
int begin(void **state);
int end(void **state);

/* A record in the log of worker 0 or 1. */
record *add(tale *tl, uint32_t worker, record rec);

void fault(tale *tl, const char *name, uint32_t worker, int64_t from,
           int64_t to, loss lost);

/* Has the checker look at it. */
void judge(tale *tl);

/* Nothing is found. */
void assert_good(tale *tl);

/* Found once, and told with these words. */
void assert_found(tale *tl, invariant what, const char *words);

#endif
