/* executor_main.h - the process that has a guard for each command of a node. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_EXEC_EXECUTOR_MAIN_H
#define DIBS_EXEC_EXECUTOR_MAIN_H

/* In main(), before anything else: a process that was started as an executor is one
 * and does not return. */
void dibs__executor_play(int argc, char **argv);

#endif
