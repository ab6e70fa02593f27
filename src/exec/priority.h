/* priority.h - being run before others, for those who must act in time. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_EXEC_PRIORITY_H
#define DIBS_EXEC_PRIORITY_H

#include <sched.h>

/* How the kernel runs a process. */
typedef struct dibs__priority {
    int policy;
    struct sched_param param;
    int nice;
} dibs__priority;

/* Raises this process as far as it may; *old is how it was. Only system calls
 * are made, here and below. */
void dibs__priority_raise(dibs__priority *old);

/* For a child of it. */
void dibs__priority_restore(const dibs__priority *old);

#endif
