/* child.h - a worker as its primary sees it: a process, what it says, how it
 * died. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_DEMO_CHILD_H
#define DIBS_DEMO_CHILD_H

#include "base/buf.h"
#include "base/clock.h"
#include "demo/merge.h"
#include <sys/types.h>

typedef struct dibs__demo_child {
    pid_t pid;      /* 0: it does not run */
    int fd;         /* what it says; -1 when that has ended */
    dibsx_buf part; /* of a line whose end is not in yet */
    dibsx_nsec started_at;
    dibsx_nsec restart_at; /* DIBSX_NEVER while it runs */
    int failures;          /* in a row */
} dibs__demo_child;

/* Passes on what has come, in whole lines. */
void dibs__demo_child_hear(dibs__demo_child *child, dibs__demo_merge *merge);

/* "killed by signal 9 (Killed)", "exit code 69" */
void dibs__demo_child_cause(int status, char *out, size_t size);

/* How long to wait before it is started again: longer each time, unless it has
 * lived for a while. */
int64_t dibs__demo_child_pause_ms(dibs__demo_child *child, dibsx_nsec now);

#endif
