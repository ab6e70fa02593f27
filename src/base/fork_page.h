/* fork_page.h - memory that the kernel clears in the child of a fork.
 *
 * Not even a raw clone goes unnoticed, and no handler need run in the child. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_BASE_FORK_PAGE_H
#define DIBS_BASE_FORK_PAGE_H

#include <stddef.h>

/* Zeroed memory of `size` bytes, which is zeroed again in every child of a fork. The
 * process keeps it until it ends. NULL when the system has none to give. Any
 * thread. */
void *dibsx_fork_page_map(size_t size);

#endif
