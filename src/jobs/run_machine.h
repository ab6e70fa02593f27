/* run_machine.h - what may happen to a run, as a function of its record. Pure.
 *
 *   PENDING --needs met--> READY --claim--> [CLAIMED --begin-->] RUNNING --> OK, FAILED,
 *      |                     ^ ^               | node died          |        CANCELLED
 *      |                     | +---------------+                    v
 *      |                     +-------- backoff is over ---------- RETRY
 *      +--wait, sleep, child--> WAITING --resumed, over, ended--> OK, FAILED
 *      +--a need failed--> SKIPPED    READY --start_deadline--> MISSED
 *                                     CLAIMED --lock busy--> SKIPPED, RETRY
 *   a run: QUEUED -> ACTIVE -> OK, FAILED, CANCELLED; MISSED, SKIPPED: nothing was begun
 *
 * A caller reads the records into a scene, lets one or more things happen, and writes the
 * scene as one intent. The store carries it out if none of the records has changed
 * meanwhile; otherwise the caller reads again. Nothing here knows a store or a clock:
 * now_us is the store's clock as the caller believes it, and where an error in it would
 * matter, the intent names the moment.
 *
 * Rules, of which each has its mistake in tests/sim:
 *   R1  Every change of a record names the version that was read.
 *   R2  A retry, a deadline and a wait that is over name the store's clock.
 *   R3  A result counts if the record still has the attempt's nonce.
 *   R4  A run of a job without `allow` ends in one commit with the job's state;
 *       the run that follows is READY by that commit and no sooner.
 *   R5  A run is taken over from the fence that was found gone, and from no other.
 *
 * Invariants, checked by dibs__run_check(); those of one record's form are dibs__run_flaw(),
 * those of its graph dibs__graph_flaw():
 *   I6  Attempts that were begun are at most those of the definition.
 *   I10 Of a job without `allow` one run lives; with `replace` or `queue` one more may
 *       follow it.
 *   I11 A step is opened by the commit that ends its last need (run_graph.h).
 *   I14 The indexes follow from the record (places.h).
 *   I15 A run that has ended has a ttl (places.h).
 *   I16 A run keeps the hash that it was made with. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_JOBS_RUN_MACHINE_H
#define DIBS_JOBS_RUN_MACHINE_H

#include "jobs/places.h"

/* Records are borrowed. */
typedef struct dibs__scene {
    const dibs__job *job; /* the definition that the run was made with */
    dibs__run *run;
    dibs__job_state *state; /* if dibs__scene_needs_state() */
    dibs__run *live; /* a start or tick that may follow it: of state->live */
    dibs__run *next; /* the run of state->follows, if there is one */
    const dibs__job *live_job, *next_job; /* of these; NULL: `job` */
    int64_t now_us;
    uint64_t chance; /* random, for the jitter of a retry */
    dibs__intent *in;
} dibs__scene;

typedef struct dibs__claimant {
    char node[DIBS__NODE_SIZE];
    uint64_t fence;
    char nonce[DIBS__NONCE_SIZE]; /* drawn anew for each claim */
} dibs__claimant;

typedef struct dibs__outcome {
    dibs__reason reason; /* NONE: it went well */
    int32_t exit_code;
    const void *result;
    size_t result_len;
} dibs__outcome;

/* Whether runs of the job need its state when they are started, claimed or ended. */
bool dibs__scene_needs_state(const dibs__job *job);

/* ... and the runs that live and follow, when one is started. */
bool dibs__scene_needs_live(const dibs__job *job);

/* Adds all that has changed to the intent. */
void dibs__scene_write(dibs__scene *sc);

/* All of these change the scene, and answer DIBS_OK; or they leave it as it was.
 *
 * A run that dibs__run_make() made is admitted. BUSY: `forbid`, and one lives;
 * `queue`, and another waits; `replace`, and it has too many open steps. */
dibs_status dibs__run_start(dibs__scene *sc, dibs_error *err);

/* A READY step is claimed; without a lock it begins by that. STALE: it is not READY;
 * FULL: max_running. And a claimed step begins, if it has this nonce: STALE. */
dibs_status dibs__run_claim(dibs__scene *sc, size_t step,
                            const dibs__claimant *who, dibs_error *err);
dibs_status dibs__run_begin(dibs__scene *sc, size_t step, const char *nonce,
                            dibs_error *err);

/* The claimant tells how its attempt ended, after its tree is dead. BUSY as a reason: the
 * lock of the job is held; STOPPED of one that has not begun: it is READY again. With on_lost: finish this may come after dibs__run_lost(), and
 * counts then too. STALE: the attempt is not the current one (R3); NOMEM. */
dibs_status dibs__run_end(dibs__scene *sc, size_t step, const char *nonce,
                          const dibs__outcome *outcome, dibs_error *err);

/* The lease with this fence is gone: its steps are READY, RETRY or at their end. STALE:
 * the step has another fence (R5). */
dibs_status
dibs__run_lost(dibs__scene *sc, size_t step, uint64_t fence, dibs_error *err);

/* Sweeps: a backoff is over, limits are passed, sleeps are over. The rest is
 * left; STALE: nothing is, but the indexes are written anew if the scene is. */
dibs_status dibs__run_retry(dibs__scene *sc, dibs_error *err);
dibs_status dibs__run_deadline(dibs__scene *sc, dibs_error *err);
dibs_status dibs__run_resume(dibs__scene *sc, dibs_error *err);

/* A WAITING step: its child as it is now, or that it cannot be made; and whether its
 * batch is complete. And whether its child was there in an earlier look. */
dibs_status dibs__run_child(dibs__scene *sc, size_t step,
                            const dibs__run *child, dibs_error *err);
dibs_status dibs__run_unmade(dibs__scene *sc, size_t step, dibs_error *err);
dibs_status
dibs__run_batch(dibs__scene *sc, size_t step, bool complete, dibs_error *err);
bool dibs__run_saw_child(const dibs__run_step *step);

/* NOTFOUND: no such bookmark; BUSY: the run has not come to it; STALE: it was resumed
 * before, or its time is over; err says by whom and when. */
dibs_status
dibs__run_bookmark(dibs__scene *sc, const char *bookmark, const void *data,
                   size_t len, const char *who, dibs_error *err);

/* The step that waits at a bookmark. Runs of old definitions have several of one name: then it
 * is the one with the caller's nonce (NULL: none), one that waits, or the first. */
bool dibs__run_find_bookmark(const dibs__scene *sc, const char *bookmark,
                             const char *nonce, size_t *out);

/* STALE: the run has ended. A second cancel also ends `when: always` steps. */
dibs_status
dibs__run_cancel(dibs__scene *sc, dibs__reason why, dibs_error *err);

/* The runs of `then` were made, for the end that the caller has read. A lost run may have
 * ended again since, and then still owes those of its new end. */
void dibs__run_followed(dibs__scene *sc, const dibs__run *ended);

/* Gives a new run, which is not admitted yet, the tick and the params of an older one, and
 * its ends of steps that are not `from` or below it. NULL: none. NOTFOUND: no such step; INVALID: as of dibs__run_fits();
 * NOMEM. */
dibs_status
dibs__run_rerun(const dibs__job *job, dibs__run *run, const dibs__run *older,
                const char *from, dibs_error *err);

/* The first invariant that does not hold, or NULL. */
const char *dibs__run_check(const dibs__job *job, const dibs__run *run);

/* The place of a step by its name; false: there is none. */
bool dibs__run_find(const dibs__run *run, const char *name, size_t *out);

#endif
