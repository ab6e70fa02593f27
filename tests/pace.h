/* pace.h - what is "in time" on this machine: the one place that decides.
 *
 * A test is written for an idle machine. The judge (judge.c), which runs it,
 * measures how much slower the machine is just now and says so in DIBS_PACE;
 * spans that only have to be long enough grow by that. A test that was not in time
 * all the same ends with PACE_MISSED. Then the judge decides: if the machine was
 * slow meanwhile, the test is repeated, else it has failed. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_PACE_H
#define DIBS_TESTS_PACE_H

#include <dibs/types.h>

#include <stdbool.h>
#include <stdint.h>

enum { PACE_MISSED = 75 }; /* exit code: not in time */

/* A span for a machine that is as slow as this one: at least `span_ms`. Any
 * thread. */
int64_t pace_ms(int64_t span_ms);

/* Whether a machine that is too slow can be why a call has this status: something
 * ran out of time. */
static inline bool pace_explains(dibs_status rc)
{
    return rc == DIBS_TIMEOUT || rc == DIBS_LOST || rc == DIBS_BROKEN ||
           rc == DIBS_UNAVAIL || rc == DIBS_UNKNOWN;
}

/* Ends the program with PACE_MISSED, and says why. Any thread. */
_Noreturn void pace_missed(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* What should have been in time was not, which a slow machine explains. */
#define MISSED(...) pace_missed(__FILE__, __LINE__, __VA_ARGS__)

/* True, or the program ends: for what only lateness can make false. */
#define IN_TIME(condition) ((condition) ? (void)0 : MISSED("%s", #condition))

#endif
