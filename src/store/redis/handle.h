/* handle.h - what a handle on a Redis server consists of. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_HANDLE_H
#define DIBS_STORE_REDIS_HANDLE_H

#include "store/redis/bell.h"
#include "store/redis/durable.h"
#include "store/redis/route.h"
#include "store/redis/sentinel.h"
#include "store/store.h"

typedef struct dibs__redis {
    dibs__store base;
    dibs__redis_conf conf;
    dibs__sentinel *sentinel; /* NULL: none has a say */
    dibs__cluster *cluster;   /* NULL: it is none */
    dibs__route *steps;
    dibs__route *renewals; /* so that no other step holds them up */
    dibs__durable durable;
    dibs__redis_bell bell;
} dibs__redis;

static inline dibs__redis *dibs__redis_of(struct dibs__store *st)
{
    return (dibs__redis *)st;
}

extern const dibs__lease_ops dibs__redis_lease_ops;
extern const dibs__value_ops dibs__redis_value_ops;
extern const dibs__log_ops dibs__redis_log_ops;
extern const dibs__vote_ops dibs__redis_vote_ops;

/* As the steps of store/lease.h. */
dibs_status
dibs__redis_renew(struct dibs__store *st, dibs__renewal *items, size_t count,
                  dibsx_nsec deadline, dibs_error *err);
dibs_status dibs__redis_inspect(struct dibs__store *st, const char *name,
                                dibsx_nsec deadline, dibs__entries_fn *each,
                                void *arg, dibs_error *err);
dibs_status dibs__redis_list(struct dibs__store *st, const char *begins,
                             dibsx_nsec deadline, dibs__entries_fn *each,
                             void *arg, dibs_error *err);

dibs_status
dibs__redis_take(struct dibs__store *st, const char *name, uint64_t fence,
                 dibsx_nsec deadline, uint32_t *broken, dibs_error *err);
dibs_status
dibs__redis_yield(struct dibs__store *st, const char *name, uint64_t fence,
                  dibsx_nsec deadline, uint32_t *asked, dibs_error *err);
dibs_status
dibs__redis_turn(struct dibs__store *st, const dibs__turn *turn,
                 dibsx_nsec deadline, dibs__answer *ans, dibs_error *err);
dibs_status dibs__redis_acquire_all(struct dibs__store *st,
                                    const dibs__ask *asks, size_t count,
                                    dibsx_nsec deadline, dibs__answer *answers,
                                    size_t *blocked, dibs_error *err);

/* As audit of store/store.h: of one server (NULL: the only one), and of a
 * cluster. */
DIBS_MUST_CHECK dibs_status dibs__redis_audit_at(dibs__redis *rd,
                                                 const dibs__place *place,
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
dibs__redis_survey(dibs__redis *rd, dibsx_nsec deadline, dibs_finding_fn *each,
                   void *arg, dibs_error *err);

#endif
