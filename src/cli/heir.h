/* heir.h - the part of `dibs elect` in a transfer of the lead.
 *
 * A transfer names a candidate, the heir, in the value "dibs.heir/NAME". A thread
 * watches it. If this process is the heir and waits, the thread ends the wait, so that
 * the caller asks again with the highest priority. If this process leads, the thread
 * looks until the heir is at the head of the queue; then it asks for the end of the
 * command, and the caller gives the lease back after that.
 *
 * Candidates of the library do the same in src/coord/election_heir.c. The two share no
 * code: there a machine decides under the mutex of a handle, and the term ends by it;
 * here the lease is one of `dibs run`, and ends after a tree of processes. All they have
 * in common is the search for the heir, which each has in the types of its layer. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CLI_HEIR_H
#define DIBS_CLI_HEIR_H

#include "cli/lock_or_set.h"
#include "cli/run/inputs.h"
#include <pthread.h>

enum { DIBS__HEIR_SIZE = 64, DIBS__HEIR_KEY_SIZE = DIBS_NAME_MAX + 16 };

typedef enum dibs__heir_phase {
    DIBS__HEIR_RESTS,
    DIBS__HEIR_ASKS,       /* the caller waits for `locks` */
    DIBS__HEIR_ASKS_FIRST, /* ... with the highest priority */
    DIBS__HEIR_LEADS       /* the command runs */
} dibs__heir_phase;

typedef struct dibs__heir_watch {
    dibs_client *cl;
    const char *name;         /* of the election; borrowed, as the rest */
    const char *member;       /* this process, as others see it */
    dibs__lock_or_set *locks; /* may change while it rests */
    dibs__run_inputs *inputs; /* yield_fd ends the command */
    char key[DIBS__HEIR_KEY_SIZE];
    char heir[DIBS__HEIR_SIZE]; /* the last one that was named; "": none. The
                                   thread's */
    dibs_watch *watch;          /* NULL: it does not run */
    pthread_t thread;
    pthread_cond_t cond;
    pthread_mutex_t mutex; /* guards all that follows */
    dibs__heir_phase phase;
    bool urged;  /* this process is the heir, and has not asked again yet */
    bool called; /* the end of the command was asked for */
    bool ending;
    bool over;
} dibs__heir_watch;

/* Where the store has no values or no queue it does nothing: nobody can transfer
 * there. End with dibs__heir_watch_fini(). */
DIBS_MUST_CHECK dibs_status dibs__heir_watch_init(
    dibs__heir_watch *hw, dibs_client *cl, const char *name, const char *member,
    dibs__lock_or_set *locks, dibs__run_inputs *inputs, dibs_error *err);
void dibs__heir_watch_fini(dibs__heir_watch *hw);

/* Changes the phase. A lead begins without a request for its end. */
void dibs__heir_watch_enter(dibs__heir_watch *hw, dibs__heir_phase phase);

/* Whether this process is to ask with the highest priority, as it was named. */
bool dibs__heir_watch_urged(dibs__heir_watch *hw);

/* The key of the value that names an heir. */
void dibs__heir_key(const char *name, char out[DIBS__HEIR_KEY_SIZE]);

/* The place in the queue of the candidate `member`. SIZE_MAX: it is not there. */
DIBS_MUST_CHECK dibs_status dibs__heir_place(dibs_client *cl, const char *name,
                                             const char *member, size_t *place,
                                             dibs_error *err);

#endif
