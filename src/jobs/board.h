/* board.h - the jobs of a board in a store: records read, intents committed.
 *
 * All keys of a board begin with "job/{BOARD}/", so that one commit may change several.
 * Threads: those of the client; a board with a cache is for one thread. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_JOBS_BOARD_H
#define DIBS_JOBS_BOARD_H

#include "jobs/job_cache.h"
#include "jobs/tick.h"
#include <dibs/state.h>

/* The bell that a commit rings which makes work for nodes. */
#define DIBS__BOARD_BELL "ring"

typedef struct dibs__board {
    dibs_client *cl; /* borrowed */
    char name[DIBS__JOB_NAME_SIZE];
    dibs__job_cache *cache; /* borrowed; NULL: definitions are always read */
} dibs__board;

/* INVALID: this is no name of a board. */
DIBS_MUST_CHECK dibs_status dibs__board_init(dibs__board *board,
                                             dibs_client *cl, const char *name,
                                             dibs_error *err);

/* The key of "state/JOB", in a store. INVALID: it is too long. */
DIBS_MUST_CHECK dibs_status dibs__board_key(const dibs__board *board,
                                            const char *name,
                                            char out[DIBS_NAME_MAX + 1],
                                            dibs_error *err);

/* The store's wall clock. */
DIBS_MUST_CHECK dibs_status dibs__board_now(const dibs__board *board,
                                            int64_t *now_us, dibs_error *err);

/* Reads a state, a run or a definition. NOTFOUND: err names it and says what to do.
 * End the run with dibs__run_fini() in any case; free the job with
 * dibs__job_free(). */
DIBS_MUST_CHECK dibs_status dibs__board_state(const dibs__board *board,
                                              const char *job,
                                              dibs__job_state *out,
                                              dibs_error *err);
DIBS_MUST_CHECK dibs_status dibs__board_run(const dibs__board *board,
                                            const char *id, dibs__run *out,
                                            dibs_error *err);
DIBS_MUST_CHECK dibs_status dibs__board_job(const dibs__board *board,
                                            const char *job, const char *hash,
                                            dibs__job **out, dibs_error *err);

/* The version of a definition, for a commit that checks it. NOTFOUND as above. */
DIBS_MUST_CHECK dibs_status dibs__board_job_version(const dibs__board *board,
                                                    const char *job,
                                                    const char *hash,
                                                    uint64_t *out,
                                                    dibs_error *err);

/* Commits an intent, and sends it again unchanged while it has no answer. *doubt is set
 * if a try had none: STALE may then be by its own doing. */
DIBS_MUST_CHECK dibs_status dibs__board_commit(const dibs__board *board,
                                               const dibs__intent *in,
                                               bool *doubt, dibs_error *err);

/* The answer to one of several commits. */
typedef struct dibs__answer {
    dibs_status rc;
    uint64_t version; /* OK: of all that it wrote */
    size_t failed;    /* STALE: the first check that does not hold */
    bool doubt;       /* also in: an earlier try had no answer */
} dibs__answer;

/* Whether intents can be sent. INVALID: a record is too long, and will be; NOMEM. */
DIBS_MUST_CHECK dibs_status dibs__board_check(const dibs__intent *ins,
                                              size_t count, dibs_error *err);

/* Commits up to DIBS_COMMITS_MAX intents in one request, each for itself, and sends
 * those without an answer again. The first status that is not DIBS_OK; without memory
 * no intent was sent, and all answers say so. */
DIBS_MUST_CHECK dibs_status dibs__board_commit_many(const dibs__board *board,
                                                    const dibs__intent *ins,
                                                    size_t count,
                                                    dibs__answer *answers,
                                                    dibs_error *err);

/* Reads up to DIBS_GET_MANY_MAX states as of one moment; version 0: there is none. */
DIBS_MUST_CHECK dibs_status dibs__board_states(const dibs__board *board,
                                               const char *const *jobs,
                                               size_t count,
                                               dibs__job_state *out,
                                               dibs_error *err);

/* Calls `each` for all entries of an index ("runs/JOB") in order, page by page. Entries
 * that change meanwhile may be left out, or come twice. */
DIBS_MUST_CHECK dibs_status dibs__board_entries(const dibs__board *board,
                                                const char *index,
                                                dibs_index_fn *each, void *arg,
                                                dibs_error *err);

#endif
