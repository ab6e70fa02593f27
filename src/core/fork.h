/* fork.h - telling a child process that its handles are its parent's.
 *
 * The kernel clears a page when the process forks, so that not even a raw clone
 * goes unnoticed and no handler need run in the child.
 *
 * Owns that page, one for the process. Any thread, without a lock. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_FORK_H
#define DIBS_CORE_FORK_H

#include <stdbool.h>
#include <stdint.h>

/* The number of this process among its forks, never 0; 0 when the system has no
 * page to give. A handle opened under another number belongs to a parent. */
uint64_t dibs__fork_number(void);

/* Whether something opened under `number` belongs to a parent. Cheap. */
bool dibs__forked(uint64_t number);

#endif
