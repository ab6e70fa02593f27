/* rank.h - being run before others, for those who must act in time. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CLI_RANK_H
#define DIBS_CLI_RANK_H

#include <sched.h>

/* How the kernel runs a process. */
typedef struct dibs__rank {
    int policy;
    struct sched_param param;
    int nice;
} dibs__rank;

/* Raises this process as far as it may; *old is how it was. Only system calls
 * are made, here and below. */
void dibs__rank_raise(dibs__rank *old);

/* For a child of it. */
void dibs__rank_restore(const dibs__rank *old);

#endif
