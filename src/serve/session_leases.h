/* session_leases.h - the leases of a session: by id, those that are over behind the others,
 * and those with something to do. Pure; the caller has their storage.
 *
 * A client may use many ids one after the other, and each is known for a while after its
 * lease has ended, so that nothing here looks at all of them. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_SESSION_LEASES_H
#define DIBS_SERVE_SESSION_LEASES_H

#include <dibs/types.h>
#include <stddef.h>

enum { DIBS__SESSION_ID_MAX = 64, DIBS__SESSION_ID_BUCKETS = 32 };

typedef enum dibs__lease_stage {
    DIBS__STAGE_WAITING,
    DIBS__STAGE_HELD,
    DIBS__STAGE_LOST,
    DIBS__STAGE_FREED
} dibs__lease_stage;

typedef enum dibs__session_todo {
    DIBS__SESSION_NOTHING,
    DIBS__SESSION_START,   /* an acquire; then dibs__session_answered() */
    DIBS__SESSION_CANCEL,  /* that acquire, whose answer is still to come */
    DIBS__SESSION_RELEASE, /* the lease */
    DIBS__SESSION_LEAVE    /* the lease, at the store, renewed */
} dibs__session_todo;

typedef struct dibs__session_lease {
    struct dibs__session_lease *next, *prev;
    struct dibs__session_lease *next_same; /* in the bucket of its id */
    struct dibs__session_lease *next_todo;
    bool queued; /* there is something to do with it, or was */
    bool over;   /* it has ended, and no acquire has to be answered */
    char id[DIBS__SESSION_ID_MAX + 1];
    dibs__lease_stage stage;
    dibs__session_todo todo;
    bool asking;     /* an acquire was started and has no answer */
    bool removed;    /* by its client */
    bool adopted;    /* its client had it before the acquire */
    dibs_status why; /* FREED: the refusal; DIBS_OK: it was given back */
    uint64_t fence;  /* HELD or after; 0 before */
} dibs__session_lease;

typedef struct dibs__session_leases {
    /* Leases that are over come last, in the order in which they ended; `over` is the first
     * of them. */
    dibs__session_lease *first, *last, *over;
    size_t live_count, over_count;
    dibs__session_lease *todo_first, *todo_last;
    dibs__session_lease *ids[DIBS__SESSION_ID_BUCKETS];
} dibs__session_leases;

/* A new one, which waits for nothing yet. */
void dibs__leases_add(dibs__session_leases *all, dibs__session_lease *le,
                      const char *id);
dibs__session_lease *
dibs__leases_find(const dibs__session_leases *all, const char *id);

/* Its stage has changed: one that has ended goes behind the others. */
void dibs__leases_moved(dibs__session_leases *all, dibs__session_lease *le);

void dibs__leases_want(dibs__session_leases *all, dibs__session_lease *le,
                       dibs__session_todo todo);

/* The next one with something to do, which is done once; NULL: none. */
dibs__session_lease *
dibs__leases_next(dibs__session_leases *all, dibs__session_todo *todo);

/* Takes out the one that has been over for longest, if more than `max` are. */
dibs__session_lease *
dibs__leases_take_old(dibs__session_leases *all, size_t max);

/* NULL, or what is wrong with the list. */
const char *dibs__leases_check(const dibs__session_leases *all);

#endif
