/* store.h - the contract between the library and a store.
 *
 * A store offers the nouns as tables of steps: leases (store/lease.h), values
 * (store/value.h), logs (store/log.h), topics (store/topic.h), rates (store/rate.h),
 * rosters (store/roster.h), meters (store/meter.h), queues (store/queue.h) and commits
 * (store/commit.h); no store need have all (store/ability.h). Every step is ONE atomic change of the store and one
 * round trip. A store keeps no policy: it never retries, never logs, never decides how
 * long to wait; the core does.
 *
 * Every step takes `deadline`, a moment on dibsx_now()'s clock, and returns soon
 * after it at the latest. Every step may answer, beside its own statuses:
 *   DIBS_UNAVAIL   certain that nothing changed
 *   DIBS_UNKNOWN   the request left this process and no answer came: it may
 *                  have been done, or may yet be
 *   DIBS_DENIED    permission refused; nothing changed
 *   DIBS_NOMEM     memory ran short here; nothing changed
 *   DIBS_INTERNAL  the store has impossible contents; nothing changed
 *
 * Threads: any step may be called from any thread at any time; no other step of this
 * handle delays `renew`. A handle is not used after fork. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_STORE_H
#define DIBS_STORE_STORE_H

#include "base/buf.h"
#include "base/clock.h"
#include "base/url.h"
#include "store/ability.h"
#include "store/commit.h"
#include "store/lease_step.h"
#include "store/log.h"
#include "store/meter.h"
#include "store/queue.h"
#include "store/quorum_steps.h"
#include "store/rate.h"
#include "store/roster.h"
#include "store/topic.h"
#include "store/value.h"
#include <dibs/client.h>
#include <dibs/store.h>

typedef struct dibs__store dibs__store;

typedef struct dibs__store_ops {
    const char *scheme; /* "sqlite", "memory", ... */

    /* Makes a handle; does not talk to the server yet. `url` is borrowed for the
     * call. DIBS_REFUSED and DIBS_DENIED say in err what to do about it. Closed
     * with close(). */
    dibs_status (*open)(const dibsx_url *url, dibsx_nsec deadline,
                        dibs__store **out, dibs_error *err);

    /* Makes sure that the server is there and fit; NULL where there is none. On
     * DIBS_UNAVAIL the handle is as good as before. */
    dibs_status (*reach)(dibs__store *st, dibsx_nsec deadline, dibs_error *err);

    /* No step is under way or will be. Leases and places stay in the store. */
    void (*close)(dibs__store *st);

    const dibs__lease_ops *lease;
    const dibs__leave_ops *leave; /* NULL: a release is waited for */

    /* Does acquires and releases of as many names, as if each had been asked for
     * alone, with all requests on their way at once. NULL: no quicker so. */
    void (*lease_group)(dibs__store *st, dibs__lease_step *steps, size_t count);

    const dibs__value_ops *value;
    const dibs__log_ops *log;
    const dibs__topic_ops *topic;
    const dibs__rate_ops *rate;
    const dibs__roster_ops *roster;
    const dibs__meter_ops *meter;
    const dibs__queue_ops *queue;
    const dibs__queue_admin_ops *queue_admin;
    const dibs__commit_ops *commit;

    /* Opens the doorbell if it is not open. Until then notices for this handle are
     * lost, which costs time and nothing else. *fd is readable when there are
     * notices; it stays the store's. On DIBS_UNAVAIL the store does not listen yet,
     * and goes on trying. After DIBS_OK it need not be called again. */
    dibs_status (*doorbell_open)(dibs__store *st, dibsx_nsec deadline, int *fd,
                                 dibs_error *err);

    /* Before that: the thread that listens offers `tap` each notice first. May be NULL. */
    void (*doorbell_tap)(dibs__store *st, dibs__notice_tap *tap, void *arg);
    /* Reads up to `max` notices without blocking; returns how many. Notices are
     * hints: any may be lost, late, repeated, or about a grant that is over. */
    size_t (*doorbell_read)(dibs__store *st, dibs__notice *notices, size_t max);

    /* Asks the store for its wall clock: the cheapest real round trip. */
    dibs_status (*now)(dibs__store *st, dibsx_nsec deadline,
                       int64_t *store_wall_us, dibs_error *err);

    /* The caution that every use of this store deserves, or NULL. Lives as long as
     * the handle. May be NULL itself. */
    const char *(*caution)(const dibs__store *st);

    /* Takes a line for the log of the client; false: there is none. May be NULL. */
    bool (*alarm)(dibs__store *st, dibs_error *out);

    /* Why the store cannot do something, NULL when it can; the steps that need it
     * answer DIBS_UNSUPPORTED. NULL where it can do everything. */
    const char *(*cannot)(const dibs__store *st, dibs__ability what);

    /* NULL: it cannot be a node of a quorum. */
    const dibs__quorum_steps_ops *vote;

    /* Looks the store over; changes nothing. */
    dibs_status (*audit)(dibs__store *st, dibsx_nsec deadline,
                         dibs_finding_fn *each, void *arg, dibs_error *err);

    /* Looks at the schema, or makes or upgrades it, as dibs_store_setup() has it;
     * the handle need not have been reached. NULL where there is none. */
    dibs_status (*setup)(dibs__store *st, dibs_store_task task,
                         dibsx_nsec deadline, dibs_store_state *out,
                         dibs_error *err);
} dibs__store_ops;

/* A store embeds this first and downcasts. */
struct dibs__store {
    const dibs__store_ops *ops;
    bool lazy; /* the URL asks for no contact when a client is opened */
};

/* Finds the store of the URL's scheme, opens it and reaches it. DIBS_INVALID for a scheme
 * that is not known, naming those that are. Close it with dibs__store_close(). */
DIBS_MUST_CHECK dibs_status dibs__store_open(const char *url,
                                             dibsx_nsec deadline,
                                             dibs__store **out,
                                             dibs_error *err);

/* The two halves of it, for a caller that can do without the server for a while, or
 * that is a store with others within and has the URL in parts. */
DIBS_MUST_CHECK dibs_status dibs__store_make(const char *url,
                                             dibsx_nsec deadline,
                                             dibs__store **out,
                                             dibs_error *err);
DIBS_MUST_CHECK dibs_status dibs__store_make_url(const dibsx_url *url,
                                                 dibsx_nsec deadline,
                                                 dibs__store **out,
                                                 dibs_error *err);
DIBS_MUST_CHECK dibs_status dibs__store_reach(dibs__store *st,
                                              dibsx_nsec deadline,
                                              dibs_error *err);

void dibs__store_close(dibs__store *st); /* NULL is a no-op */
/* Why it cannot; NULL when it can. */
const char *dibs__store_cannot(const dibs__store *st, dibs__ability what);

#endif
