/* board_set.h - sets of jobs in a store: a jobs file is loaded, a job is removed. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_JOBS_BOARD_SET_H
#define DIBS_JOBS_BOARD_SET_H

#include "jobs/board.h"
#include "jobs/job_file.h"
#include "jobs/job_set.h"

/* A set as the store has it, with its storage. */
typedef struct dibs__stored_set {
    dibs__job_set set;
    uint64_t version; /* of its value; 0: the store has none */
    char *text;       /* that the set points to */
    dibs__set_job *jobs;
} dibs__stored_set;

/* NOTFOUND: there is none, and `out` has version 0. End with
 * dibs__stored_set_fini() in any case. */
DIBS_MUST_CHECK dibs_status dibs__board_set(const dibs__board *board,
                                            const char *name,
                                            dibs__stored_set *out,
                                            dibs_error *err);
void dibs__stored_set_fini(dibs__stored_set *stored);

typedef struct dibs__load_opts {
    const char *origin; /* "host:path" */
    const char *by;
    bool force;
    bool dry_run; /* decide, and change nothing */
} dibs__load_opts;

typedef struct dibs__load_sum {
    dibs__set_verdict verdict;
    size_t added, changed, removed, same;
} dibs__load_sum;

/* Called for each job that is added ('+'), changed ('~') or removed ('-'). */
typedef void dibs__load_fn(void *arg, char mark, const char *job);

/* Loads a file. The set is marked as loading, then each job changes in a commit of its
 * own, so that any client that has the same file can finish a load that broke off. INVALID:
 * refused, by its version or as a job is in another set; err or `why` says what to
 * do. */
DIBS_MUST_CHECK dibs_status dibs__board_load(const dibs__board *board,
                                             const dibs__job_file *file,
                                             const dibs__load_opts *opts,
                                             dibs__load_fn *each, void *arg,
                                             dibs__load_sum *sum,
                                             dibsx_buf *why, dibs_error *err);

/* Takes a job out of its set: it is never due again, and keeps its history. */
DIBS_MUST_CHECK dibs_status dibs__board_remove(const dibs__board *board,
                                               const char *job,
                                               dibs_error *err);

#endif
