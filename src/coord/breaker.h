/* breaker.h - the inside of a circuit breaker, shared by its two files: breaker.c has
 * the calls, breaker_work.c the worker's part. Locks: cl->mutex for everything here. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_COORD_BREAKER_H
#define DIBS_COORD_BREAKER_H

#include "coord/breaker_machine.h"
#include "coord/handle.h"
#include "core/client.h"
#include "core/worker.h"
#include <dibs/breaker.h>

struct dibs_breaker {
    dibs__handle handle; /* first, so that one is the other */
    dibs__job job;
    dibs__timer timer;
    dibs_client *cl;
    char name[DIBS_NAME_MAX + 1];
    char key[DIBS_NAME_MAX + 1]; /* with the client's prefix */
    int64_t slow_ms;
    dibs_breaker_fn *on_change;
    void *arg;
    dibs__breaker machine;
    /* On the coarse clock: until then calls need not look any further. */
    _Atomic dibsx_nsec refuse_until;
    struct dibs__breaker_request *reports; /* under way, newest first */
    bool ordered; /* the job is queued, or runs: as a call */
    bool ending;
    bool away;               /* the log knows that the store is */
    dibs_breaker_state said; /* to on_change */
};

/* The options, checked and with their defaults; also those that are the handle's. */
DIBS_MUST_CHECK dibs_status
dibs__breaker_rules_of(const dibs_breaker_opts *opts, dibs__breaker_rules *out,
                       dibs_breaker *br, dibs_error *err);

/* Sets the handle, the job and the timer up. */
void dibs__breaker_prepare(dibs_breaker *br, dibs_client *cl);

/* Orders the worker now, or for the moment at which something is due. Follows every
 * change of the machine. */
void dibs__breaker_arrange(dibs_breaker *br);

/* Each lets the mutex go while it waits for the store, and says to the machine how it
 * ended; send_put does not. */
dibs_status dibs__breaker_send_report(dibs_breaker *br, dibs_error *err);
/* The same behind all older reports, which have calls that were made before and may be
 * overtaken on a store with several connections; *sums as the store has them then. */
dibs_status
dibs__breaker_look(dibs_breaker *br, dibs__sums *sums, dibs_error *err);
dibs_status
dibs__breaker_send_put(dibs_breaker *br, const dibs__breaker_act *act,
                       uint64_t expected, uint64_t *version, dibs_error *err);

/* Does the next thing that is due; false when nothing is. */
bool dibs__breaker_act_once(dibs_breaker *br);

/* Says once that the store is away, and once that it is back. Lets the mutex go for
 * the log. */
void dibs__breaker_note(dibs_breaker *br, const dibs_error *err);

/* Closed, open or forced; half-open is open that has recovered. */
dibs_breaker_state dibs__breaker_public(const dibs__breaker *machine);

#endif
