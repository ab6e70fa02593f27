/* arena.h - memory that is freed all at once: a definition with all that it has. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_JOBS_ARENA_H
#define DIBS_JOBS_ARENA_H

#include <stdbool.h>
#include <stddef.h>

typedef struct dibs__arena dibs__arena;

/* Free with dibs__arena_free(); NULL when memory is short. */
dibs__arena *dibs__arena_new(void);
void dibs__arena_free(dibs__arena *arena);

/* Zeroed storage for `count` objects of `size` bytes; NULL when memory is short. Then
 * dibs__arena_ok() is false for good, so that a writer checks once, at the end. */
void *dibs__arena_take(dibs__arena *arena, size_t count, size_t size);
char *dibs__arena_text(dibs__arena *arena, const char *text);
bool dibs__arena_ok(const dibs__arena *arena);

/* How much memory it has. */
size_t dibs__arena_bytes(const dibs__arena *arena);

#endif
