/* ground.h - where a run takes place: a store with its servers, and what can be
 * done to them.
 *
 * A ground has one file, ground_NAME.c, and one line in the table of grounds.c. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_CHAOS_GROUND_H
#define DIBS_TESTS_CHAOS_GROUND_H

#include "crew.h"

/* A fault on the store. Strike and heal run on the thread of a lane, of which each
 * has one fault at a time; `lane` counts from 0. False: the store did not come
 * back, and the run has failed. */
typedef struct ground_fault {
    const char *name;
    const char *what;
    int from_ms; /* how long it lasts */
    int to_ms;
    unsigned lanes; /* as bits: in which it happens */
    unsigned flags;
    bool (*strike)(int lane, uint64_t dice);
    bool (*heal)(int lane); /* NULL: it is over at once */
} ground_fault;

enum {
    FAULT_LOSSY = 1,   /* may lose what the store had answered */
    FAULT_ROOT = 2,    /* takes root */
    FAULT_SPLIT = 4,   /* ... with two at once who answer for it */
    FAULT_APART = 8,   /* not in one run with those */
    FAULT_CLOCKS = 16, /* sets the boot clock of the workers */
    FAULT_ROLES = 32   /* servers change roles by it, and nothing is lost */
};

typedef struct ground {
    const char *name;     /* on the command line */
    const char *topology; /* the row of the promises */
    const char *durability;
    int64_t ttl_ms;
    int64_t wait_ms;
    int64_t timeout_ms;
    int gap_ms;  /* between faults of a lane, on average */
    int calm_ms; /* after the last fault, until all must be well */
    int lanes;
    bool
        patient; /* wait_ms outlasts every fault: no acquire that waits fails */
    bool net;    /* in a network of our own, if we may: net.h */
    bool local;  /* the store goes by the boot clock, which all have together */
    const ground_fault *faults; /* ended by one without a name */

    /* Starts the servers and writes the URL. End with end(). */
    bool (*begin)(crew *cw, char url[URL_ROOM]);
    void (*end)(void);

    /* Whether other servers are in charge than at the last call; NULL: that does
     * not happen. On a busy machine one may be taken for dead without a fault. */
    bool (*changed)(void);
    void (*settled)(void); /* those that are now are as they should be */
} ground;

/* NULL: there is none of that name. */
const ground *ground_find(const char *name);
const ground *ground_at(size_t i); /* NULL: past the last */

/* The ground of a URL whose servers are the user's own: nothing is done to
 * them. */
void ground_of_url(const char *url, ground *out);

extern const ground ground_sqlite, ground_redis, ground_sentinel_async,
    ground_sentinel_wait, ground_cluster, ground_redlock, ground_redlock3,
    ground_postgres, ground_postgres_standby, ground_postgres_sync;

#endif
