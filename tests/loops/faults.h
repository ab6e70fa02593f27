/* faults.h - calls into the system that fail when they are told to.
 *
 * The program defines malloc(), read(), connect() and the like itself (calls.c,
 * memory.c), so that its libraries call these as well. A call counts and may fail
 * only on a thread that takes part, or that was started by one which did. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_LOOPS_FAULTS_H
#define DIBS_LOOPS_FAULTS_H

#include <stdbool.h>

typedef enum fault_kind {
    FAULT_ALLOC,
    FAULT_READ,
    FAULT_WRITE,
    FAULT_CONNECT,
    FAULT_POLL,
    FAULT_OPEN, /* whatever makes a descriptor */
    FAULT_FSYNC,
    FAULT_LOCK, /* of a file */
    FAULT_MAP,
    FAULT_THREAD,
    FAULT_KINDS
} fault_kind;

/* Of as many sorts as the longest list of errors in faults.c has. */
enum { FAULT_SORTS = 4 };

/* The n-th call of a kind fails, and so do those after it, `span` in all. Which
 * error it is depends on the sort (0 to FAULT_SORTS - 1) and on what the call is
 * about. Restarts the counts. */
void faults_arm(fault_kind kind, unsigned long n, unsigned long span, int sort);

/* Nothing fails from here on; the counts stay. */
void faults_disarm(void);

/* How many calls of the kind were made by those who take part. */
unsigned long faults_count(fault_kind kind);

/* Whether the thread that calls takes part. */
void faults_take_part(bool yes);

const char *fault_name(fault_kind kind);

/* Blocks of memory that were allocated and not freed. With a sanitizer, which
 * looks itself, it is always 0. */
long faults_blocks(void);

/* For calls.c and memory.c: counts the call. The error it must fail with, 0 when
 * it must not; FAULT_END for the end of what is read. `fd` is -1 where there is
 * none. */
enum { FAULT_END = -1 };
int faults_error(fault_kind kind, int fd);
bool faults_taking_part(void);
extern _Atomic long faults_live;

#endif
