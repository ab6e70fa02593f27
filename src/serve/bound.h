/* bound.h - what a session has besides leases: its seat at a barrier, its part in a
 * queue. Each is a handle of the library with calls that block, on threads of their
 * own, and ends with its session.
 *
 * Kinds have structs of their own that begin with a dibs__bound. A bound is freed by the
 * thread of the table, after its session has ended and no call uses it. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_BOUND_H
#define DIBS_SERVE_BOUND_H

#include "serve/session.h"

enum {
    DIBS__BOUND_PER_SESSION = 64,
    DIBS__BOUND_CALLS_MAX = 256 /* that block at the same time */
};

typedef struct dibs__bound dibs__bound;

typedef struct dibs__bound_kind {
    /* Makes calls end soon. Locks: the table's mutex. */
    void (*cancel)(dibs__bound *bound);
    /* Frees the handle and the bound; may block. No call uses it any more. */
    void (*free)(dibs__bound *bound);
} dibs__bound_kind;

struct dibs__bound {
    const dibs__bound_kind *kind;
    dibs__bound *next;
    struct dibs__serve_bounds *table;
    char session[DIBS__SESSION_ID_SIZE];
    char caller[DIBS__SERVE_WHO_MAX];
    char name[DIBS_NAME_MAX + 1];
    size_t users; /* threads and requests that use it */
    bool over;    /* its session has ended, or it is of no use */
};

typedef struct dibs__serve_bounds {
    dibs__serve_sessions *sessions; /* borrowed, as the next */
    dibs_client *client;            /* of the store that has these nouns */
    dibs__sessions_wake_fn *wake;
    void *wake_arg;
    pthread_t thread;
    bool made, runs;

    pthread_mutex_t
        mutex; /* for all below; taken before that of the sessions */
    pthread_cond_t cond;
    bool stop;
    size_t calls;
    dibs__bound *first;
} dibs__serve_bounds;

/* End with dibs__bounds_fini() when no routes run, before the sessions end. */
DIBS_MUST_CHECK dibs_status dibs__bounds_init(dibs__serve_bounds *table,
                                              dibs__serve_sessions *sessions,
                                              dibs_client *client,
                                              dibs__sessions_wake_fn *wake,
                                              void *wake_arg, dibs_error *err);
void dibs__bounds_fini(dibs__serve_bounds *table);

/* Makes a bound with its handle. It is zeroed but for its head. */
typedef dibs__bound *
dibs__bound_make_fn(dibs__serve_bounds *table, const char *name,
                    const void *arg, dibs_error *err);

/* The bound of a session, a kind and a name, made if there is none and `make` is not
 * NULL. It stays until dibs__bound_let_go().
 *   DIBS_LOST      there is no such session of the caller
 *   DIBS_NOTFOUND  there is no such bound, and `make` is NULL
 *   DIBS_FULL      the session has too many */
DIBS_MUST_CHECK dibs_status dibs__bound_take(
    dibs__serve_bounds *table, const char *session, const char *caller,
    const dibs__bound_kind *kind, const char *name, dibs__bound_make_fn *make,
    const void *arg, dibs__bound **out, dibs_error *err);
void dibs__bound_let_go(dibs__bound *bound);

/* Runs a call that may block on a thread of its own, with `bound` in use. DIBS_FULL:
 * too many are under way. `arg` is the function's. Locks: mutex. */
typedef void dibs__bound_call_fn(dibs__bound *bound, void *arg);
DIBS_MUST_CHECK dibs_status dibs__bound_call(dibs__bound *bound,
                                             dibs__bound_call_fn *call,
                                             void *arg, dibs_error *err);

/* How long the client of a session may believe in something of it that is valid for
 * `valid_ms`; 0: the session has ended. */
int64_t dibs__bound_told_ms(dibs__bound *bound, int64_t valid_ms);

/* Answers that wait have news. */
void dibs__bound_wake(const dibs__bound *bound);

#endif
