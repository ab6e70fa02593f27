/* alloc.h - allocation for everything in dibs, with a failure hook for tests.
 *
 * All of it but secrets is freed with dibsx_free(). None of it is a cancellation point. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_BASE_ALLOC_H
#define DIBS_BASE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>

/* Zeroed storage for one object, or NULL. */
void *dibsx_zalloc(size_t size);

/* Zeroed storage for `count` objects; NULL also when the product overflows. */
void *dibsx_zalloc_n(size_t count, size_t size);

/* Resizes to `count` objects of `size` bytes; what is new is not zeroed. NULL
 * leaves `ptr` as it was. */
void *dibsx_realloc_n(void *ptr, size_t count, size_t size);

/* A copy; NULL for NULL and when memory is short. */
char *dibsx_strdup(const char *text);

/* NULL is a no-op. */
void dibsx_free(void *ptr);

/* A copy of a secret, on pages of its own which no core file and no child process
 * has; NULL for NULL and when memory is short. dibsx_secret_free() wipes it. */
char *dibsx_secret_dup(const char *text);
void dibsx_secret_free(char *secret);

/* Whether the next child process has it after all, which is to go on with the work of
 * this one. NULL is a no-op. */
void dibsx_secret_inherit(char *secret, bool inherited);

/* Tests: from now on the n-th allocation of the process fails, once (n counts
 * from 1; 0 switches it off). The counter is the number made since then. */
void dibsx_alloc_fail_at(unsigned long n);
unsigned long dibsx_alloc_count(void);

#endif
