/* job_cache.h - definitions that were read, so that a node does not read them again.
 *
 * A definition never changes: its hash is a part of its key, in the store and here. Which
 * definition is in force is not kept: the state of the job says so, and a run says with which
 * one it was made. Both are read each time, and their versions are checked by the commit. So
 * no run begins with a definition that the state has left.
 *
 * The cache keeps what was used last, up to a number of bytes. One thread's. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_JOBS_JOB_CACHE_H
#define DIBS_JOBS_JOB_CACHE_H

#include "jobs/definition.h"
#include <stddef.h>

/* A definition takes 4 KB at least. */
enum { DIBS__JOB_CACHE_BYTES = 16 * 1024 * 1024 };

typedef struct dibs__job_cache dibs__job_cache;

/* NULL: memory is short. Free it; definitions that others hold stay. */
dibs__job_cache *dibs__job_cache_new(size_t most_bytes);
void dibs__job_cache_free(dibs__job_cache *cache);

/* The caller frees it with dibs__job_free(). NULL: it is not kept. */
dibs__job *
dibs__job_cache_find(dibs__job_cache *cache, const char *job, const char *hash);

/* Keeps one that is not kept, if memory allows; the caller has its own as before. */
void dibs__job_cache_add(dibs__job_cache *cache, dibs__job *job,
                         const char *hash);

#endif
