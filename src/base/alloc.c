/* alloc.c - allocation with a failure hook for tests.
 *
 * Owns two process-wide counters, both atomic: any thread may allocate while a
 * test arms the hook. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static atomic_ulong made;
static atomic_ulong fail_at; /* 0: off */

/* Counts one allocation; true when it is the one that must fail. */
static bool must_fail(void)
{
    unsigned long n =
        atomic_fetch_add_explicit(&made, 1, memory_order_relaxed) + 1;

    return n == atomic_load_explicit(&fail_at, memory_order_relaxed);
}

/* The product, at least 1: nothing at all still gets an address of its own, as
 * NULL means failure. False on overflow. */
static bool bytes_of(size_t count, size_t size, size_t *bytes)
{
    if (__builtin_mul_overflow(count, size, bytes))
        return false;
    *bytes += *bytes == 0;
    return true;
}

void *dibsx_zalloc_n(size_t count, size_t size)
{
    size_t bytes;

    if (must_fail() || !bytes_of(count, size, &bytes))
        return NULL;
    return calloc(1, bytes);
}

void *dibsx_zalloc(size_t size)
{
    return dibsx_zalloc_n(1, size);
}

void *dibsx_realloc_n(void *ptr, size_t count, size_t size)
{
    size_t bytes;

    if (must_fail() || !bytes_of(count, size, &bytes))
        return NULL;
    return realloc(ptr, bytes);
}

char *dibsx_strdup(const char *text)
{
    size_t size;
    char *copy;

    if (!text)
        return NULL;
    size = strlen(text) + 1;
    copy = dibsx_zalloc(size);
    if (copy)
        memcpy(copy, text, size);
    return copy;
}

void dibsx_free(void *ptr)
{
    free(ptr);
}

/* The length of the mapping stands before the text. */
char *dibsx_secret_dup(const char *text)
{
    size_t len = text ? strlen(text) + 1 : 0;
    size_t size = sizeof(size) + len;
    char *page;

    if (!text || must_fail())
        return NULL;
    page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                -1, 0);
    if (page == MAP_FAILED)
        return NULL;
    /* A kernel that cannot do the one or the other is no reason to fail. */
    (void)madvise(page, size, MADV_DONTDUMP);
    (void)madvise(page, size, MADV_WIPEONFORK);
    memcpy(page, &size, sizeof(size));
    memcpy(page + sizeof(size), text, len);
    return page + sizeof(size);
}

/* The mapping of a secret. In a child process the page is empty, its length as well. */
static char *page_of(char *secret, size_t *size)
{
    char *page = secret - sizeof(*size);

    memcpy(size, page, sizeof(*size));
    return page;
}

void dibsx_secret_inherit(char *secret, bool inherited)
{
    size_t size = 0;
    char *page = secret ? page_of(secret, &size) : NULL;

    if (size > 0)
        (void)madvise(page, size,
                      inherited ? MADV_KEEPONFORK : MADV_WIPEONFORK);
}

void dibsx_secret_free(char *secret)
{
    size_t size = 0;
    char *page = secret ? page_of(secret, &size) : NULL;

    if (size == 0)
        return;
    explicit_bzero(page, size);
    munmap(page, size);
}

void dibsx_alloc_fail_at(unsigned long n)
{
    /* Off while the count restarts, so that no old count meets the new n. */
    atomic_store(&fail_at, 0);
    atomic_store(&made, 0);
    atomic_store(&fail_at, n);
}

unsigned long dibsx_alloc_count(void)
{
    return atomic_load(&made);
}
