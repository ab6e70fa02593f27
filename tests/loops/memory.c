/* memory.c - allocation that may fail, in the place of the C library's, or of a
 * sanitizer's, which has its own. */
/* SPDX-License-Identifier: MIT */
#include "faults.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

#define SEEN __attribute__((visibility("default")))

#ifdef DIBS_SANITIZED
#define REAL(name) __interceptor_##name
#define COUNT(by)  ((void)0)
#else
#define REAL(name) __libc_##name
#define COUNT(by)                                                              \
    atomic_fetch_add_explicit(&faults_live, by, memory_order_relaxed)
#endif

extern void *REAL(malloc)(size_t size);
extern void *REAL(calloc)(size_t count, size_t size);
extern void *REAL(realloc)(void *block, size_t size);
extern void REAL(free)(void *block);

#ifdef DIBS_SANITIZED
/* The C library's own, which it keeps for threads to come: the sanitizer knows it
 * by the caller, and we stand between them. */
SEEN const char *__lsan_default_suppressions(void);
SEEN const char *__lsan_default_suppressions(void)
{
    return "leak:allocate_dtv\n";
}
#endif

static bool must_fail(void)
{
    int number = faults_error(FAULT_ALLOC, -1);

    if (number > 0)
        errno = number;
    return number > 0;
}

static void *counted(void *block)
{
    if (block)
        COUNT(1);
    return block;
}

SEEN void *malloc(size_t size)
{
    return must_fail() ? NULL : counted(REAL(malloc)(size));
}

SEEN void *calloc(size_t count, size_t size)
{
    return must_fail() ? NULL : counted(REAL(calloc)(count, size));
}

SEEN void *realloc(void *block, size_t size)
{
    void *moved;

    if (must_fail())
        return NULL;
    moved = REAL(realloc)(block, size);
    return block ? moved : counted(moved);
}

SEEN void free(void *block)
{
    if (block)
        COUNT(-1);
    REAL(free)(block);
}
