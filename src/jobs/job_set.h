/* job_set.h - which of two versions of a set of jobs wins: that of a file, or that of
 * the store. Pure.
 *
 *     the same content          nothing to do
 *     a higher version          the file is loaded
 *     the same version          refused: two files claim it
 *     a lower version           older: the node serves what the store has
 *     no version                loaded if it is from the same file; else refused
 *
 * The same content under a higher version is loaded too, which changes the version
 * alone: a file between the two must not win later. A load that broke off is finished
 * by any node that has the same content. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_JOBS_JOB_SET_H
#define DIBS_JOBS_JOB_SET_H

#include "base/buf.h"
#include "jobs/definition.h"

typedef struct dibs__set_job {
    const char *name;
    const char *hash; /* the store's: its first digits */
} dibs__set_job;

/* A set as the store keeps it, or as a file has it. */
typedef struct dibs__job_set {
    const char *name;
    int64_t version;    /* 0: none */
    const char *hash;   /* of the whole */
    const char *origin; /* "host:path" */
    const char *by;     /* the store's: who loaded it */
    int64_t loaded_s;   /* the store's: when, in seconds since 1970 */
    bool loading;       /* the store's: the load has not ended */
    const dibs__set_job *jobs;
    size_t count;
} dibs__job_set;

typedef enum dibs__set_verdict {
    DIBS__SET_SAME,
    DIBS__SET_LOAD,
    DIBS__SET_REFUSED,
    DIBS__SET_OLDER
} dibs__set_verdict;

/* `stored` is NULL for a set that is new. With `force` the file wins in any case. */
dibs__set_verdict dibs__set_decide(const dibs__job_set *stored,
                                   const dibs__job_set *file, bool force);

/* Appends a sentence for a file that was refused or is older: which jobs differ, who
 * loaded the other set and when, and what to do. */
void dibs__set_explain(const dibs__job_set *stored, const dibs__job_set *file,
                       dibs__set_verdict verdict, dibsx_buf *out);

#endif
