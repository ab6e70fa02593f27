/* redis_store.h - the parts of a handle on a Redis server. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_REDIS_STORE_H
#define DIBS_STORE_REDIS_REDIS_STORE_H

#include "store/redis/bell/doorbell.h"
#include "store/redis/cluster/route.h"
#include "store/redis/replica_wait.h"
#include "store/redis/sentinel/sentinel.h"
#include "store/store.h"
#include <stdatomic.h>

enum { DIBS__QUEUE_WAYS = 64 };

typedef struct dibs__redis {
    dibs__store base;
    dibs__redis_conf conf;
    dibs__sentinel *sentinel; /* NULL: no sentinels */
    dibs__cluster *cluster;   /* NULL: no cluster */
    dibs__route *steps;
    dibs__route *renewals; /* so that no other step delays them */
    dibs__replica_wait replica_wait;
    dibs__redis_doorbell bell;
    /* So many pushes and reserves go the long way, before the short one is tried again;
     * each for some queues. */
    atomic_uchar queue_ways[2][DIBS__QUEUE_WAYS];
} dibs__redis;

static inline dibs__redis *dibs__redis_of(struct dibs__store *st)
{
    return (dibs__redis *)st;
}

/* The command by which a script tells a topic. */
static inline const char *dibs__redis_publish(const dibs__redis *rd)
{
    return rd->cluster ? "SPUBLISH" : "PUBLISH";
}

extern const dibs__lease_ops dibs__redis_lease_ops;
void dibs__redis_lease_group(struct dibs__store *st, dibs__lease_step *steps,
                             size_t count);
extern const dibs__leave_ops dibs__redis_leave_ops;
extern const dibs__value_ops dibs__redis_value_ops;
extern const dibs__commit_ops dibs__redis_commit_ops;
extern const dibs__log_ops dibs__redis_log_ops;
extern const dibs__topic_ops dibs__redis_topic_ops;
extern const dibs__rate_ops dibs__redis_rate_ops;
extern const dibs__meter_ops dibs__redis_meter_ops;
extern const dibs__roster_ops dibs__redis_roster_ops;
extern const dibs__queue_ops dibs__redis_queue_ops;
extern const dibs__queue_admin_ops dibs__redis_queue_admin_ops;
extern const dibs__quorum_steps_ops dibs__redis_vote_ops;
extern const dibs__vote_post_ops dibs__redis_vote_post_ops;

/* The lease steps, each in the file of its kind. */
#define DIBS__REDIS_STEP(step, STEP) DIBS__LEASE_STEP(redis, step)
DIBS__LEASE_STEPS(DIBS__REDIS_STEP)

/* As the list of store/quorum_steps.h. */
dibs_status dibs__redis_list_within(struct dibs__store *st, const char *begins,
                                    dibsx_nsec deadline, dibs__entries_fn *each,
                                    void *arg, dibs_error *err);

/* As audit of store/store.h: of one server (NULL: the only one), and of a
 * cluster. */
DIBS_MUST_CHECK dibs_status dibs__redis_audit_at(dibs__redis *rd,
                                                 const dibs__endpoint *endpoint,
                                                 dibsx_nsec deadline,
                                                 dibs_finding_fn *each,
                                                 void *arg, dibs_error *err);
DIBS_MUST_CHECK dibs_status dibs__redis_audit_cluster(dibs__redis *rd,
                                                      dibsx_nsec deadline,
                                                      dibs_finding_fn *each,
                                                      void *arg,
                                                      dibs_error *err);
/* The part of it that is about sentinels. */
dibs_status
dibs__redis_audit_sentinel(dibs__redis *rd, dibsx_nsec deadline,
                           dibs_finding_fn *each, void *arg, dibs_error *err);

#endif
