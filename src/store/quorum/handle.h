/* handle.h - what a handle on a quorum consists of. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_QUORUM_HANDLE_H
#define DIBS_STORE_QUORUM_HANDLE_H

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
    dibs__skew skew;
    uint64_t last_fence; /* the highest that was proposed or seen */
} dibs__quorum;

static inline dibs__quorum *dibs__quorum_of(struct dibs__store *st)
{
    return (dibs__quorum *)st;
}

extern const dibs__lease_ops dibs__quorum_lease_ops;
extern const dibs__value_ops dibs__quorum_value_ops;
extern const dibs__log_ops dibs__quorum_log_ops;

/* As the steps of store/lease.h. */
dibs_status
dibs__quorum_renew(struct dibs__store *st, dibs__renewal *items, size_t count,
                   dibsx_nsec deadline, dibs_error *err);
dibs_status
dibs__quorum_release(struct dibs__store *st, const dibs__leave *leave,
                     dibsx_nsec deadline, dibs_error *err);
dibs_status dibs__quorum_inspect(struct dibs__store *st, const char *name,
                                 dibsx_nsec deadline, dibs__entries_fn *each,
                                 void *arg, dibs_error *err);
dibs_status dibs__quorum_list(struct dibs__store *st, const char *begins,
                              dibsx_nsec deadline, dibs__entries_fn *each,
                              void *arg, dibs_error *err);
dibs_status
dibs__quorum_take(struct dibs__store *st, const char *name, uint64_t fence,
                  dibsx_nsec deadline, uint32_t *broken, dibs_error *err);
dibs_status
dibs__quorum_turn(struct dibs__store *st, const dibs__turn *turn,
                  dibsx_nsec deadline, dibs__answer *ans, dibs_error *err);
dibs_status
dibs__quorum_yield(struct dibs__store *st, const char *name, uint64_t fence,
                   dibsx_nsec deadline, uint32_t *asked, dibs_error *err);

/* As those of store/store.h. */
const char *dibs__quorum_cannot(const dibs__store *st, dibs__ability what);
dibs_status
dibs__quorum_audit(dibs__store *st, dibsx_nsec deadline, dibs_finding_fn *each,
                   void *arg, dibs_error *err);

/* DIBS_UNSUPPORTED with the reason. */
dibs_status dibs__quorum_unsupported(dibs__ability what, dibs_error *err);

#endif
