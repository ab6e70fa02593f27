/* backstop.h - the process between dibs and the guard, which ends the tree when
 * neither of them does. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_EXEC_BACKSTOP_H
#define DIBS_EXEC_BACKSTOP_H

#include "exec/guard.h"

/* Forks the guard and watches over it. Never returns; runs in a process of its
 * own, forked from dibs. */
_Noreturn void
dibs__backstop_main(const dibs__guard_spec *job, dibs__guard_page *page,
                    int sock, pid_t group);

#endif
