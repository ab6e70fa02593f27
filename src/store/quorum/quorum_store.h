/* quorum_store.h - what a handle on a quorum consists of. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_QUORUM_QUORUM_STORE_H
#define DIBS_STORE_QUORUM_QUORUM_STORE_H

#include "store/quorum/node.h"
#include "store/quorum/skew.h"
#include "store/store.h"

typedef struct dibs__quorum {
    dibs__store base;
    size_t count; /* of nodes */
    dibs__node nodes[DIBS__NODES_MAX];
    int64_t longest_ms;      /* no lease lasts longer */
    int64_t node_timeout_ms; /* what a node may take to answer */
    int bell_fd;             /* never rings */
    pthread_mutex_t mutex;   /* for what follows, and for the nodes */
    bool stopping;
    bool driven; /* a round polls its nodes itself; one at a time does */
    int turn_fd; /* readable once that round is over by other votes; -1: none yet */
    dibs__skew skew;
    uint64_t last_fence; /* the highest that was proposed or seen */
} dibs__quorum;

static inline dibs__quorum *dibs__quorum_of(struct dibs__store *st)
{
    return (dibs__quorum *)st;
}

extern const dibs__value_ops dibs__quorum_value_ops;
extern const dibs__log_ops dibs__quorum_log_ops;
extern const dibs__topic_ops dibs__quorum_topic_ops;
extern const dibs__rate_ops dibs__quorum_rate_ops;
extern const dibs__meter_ops dibs__quorum_meter_ops;
extern const dibs__roster_ops dibs__quorum_roster_ops;

/* The lease steps; acquire_all is none of them. */
#define DIBS__QUORUM_STEP(step, STEP) DIBS__LEASE_STEP(quorum, step)
DIBS__LEASE_STEPS(DIBS__QUORUM_STEP)

/* As those of store/store.h. */
const char *dibs__quorum_cannot(const dibs__store *st, dibs__ability what);
dibs_status
dibs__quorum_audit(dibs__store *st, dibsx_nsec deadline, dibs_finding_fn *each,
                   void *arg, dibs_error *err);

/* DIBS_UNSUPPORTED with the reason. */
dibs_status dibs__quorum_unsupported(dibs__ability what, dibs_error *err);

#endif
