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
    uint64_t version;    /* of its value; 0: the store has none */
    char *text;          /* that the set points to */
    dibs__set_job *jobs; /* as dibs__board_set_jobs() found them */
    struct dibs__set_member *members;
} dibs__stored_set;

/* Reads a set without its jobs. NOTFOUND: there is none, and `out` has version 0. End
 * with dibs__stored_set_fini() in any case. */
DIBS_MUST_CHECK dibs_status dibs__board_set(const dibs__board *board,
                                            const char *name,
                                            dibs__stored_set *out,
                                            dibs_error *err);
void dibs__stored_set_fini(dibs__stored_set *stored);

/* Reads the jobs of the set `name` too. There may be some without a set: a load broke
 * off, or a job was removed meanwhile. */
DIBS_MUST_CHECK dibs_status dibs__board_set_jobs(const dibs__board *board,
                                                 const char *name,
                                                 dibs__stored_set *stored,
                                                 dibs_error *err);

/* For those that change a set: its value is checked and written, and a job enters it
 * or leaves it. */
void dibs__set_put(const dibs__job_set *set, uint64_t version,
                   dibs__intent *in);
void dibs__set_enter(const char *set, const char *job, const char *hash,
                     dibs__intent *in);
void dibs__set_leave(const char *set, const char *job, dibs__intent *in);

/* A job that leaves its set: never due again, and kept for a while with its history. */
void dibs__job_state_drop(dibs__job_state *state, dibs__intent *in);

typedef struct dibs__load_opts {
    const char *origin; /* "host:path" */
    const char *by;
    bool force;
    bool dry_run; /* decide, and change nothing */
} dibs__load_opts;

typedef struct dibs__load_sum {
    dibs__set_verdict verdict;
    size_t added, changed, removed, same;
    bool begun; /* the set is loading, even if the load then fails */
} dibs__load_sum;

/* Called for each job that is added ('+'), changed ('~') or removed ('-'). */
typedef void dibs__load_fn(void *arg, char mark, const char *job);

/* Loads a file. The set is marked as loading, and has version and hash of the file from
 * then on. Each job then changes by a commit of its own, which checks the set: its
 * definition, its state, when it is due, and its place in the set. DIBS_COMMITS_MAX of
 * them go into one request. At last jobs that are not in the file leave the set, and it is
 * marked as loaded.
 *
 * So a load that broke off leaves every job whole, as it was before or as the file has
 * it, and the set as loading. Any client that has the same file finishes it, or joins it
 * while it goes on; a file that wins over it replaces it.
 *
 * INVALID: refused, as a job is in another set; the verdict and `why` say whether the
 * version does not win. STALE: another client loads other content into the set at the
 * same time. */
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
