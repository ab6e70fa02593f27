/* replica_wait.h - steps that count only once replicas have acknowledged them.
 *
 * WAIT counts the writes of its own connection, and it blocks that connection.
 * So such a step borrows a connection for itself, runs on it, waits for the
 * replicas there, and gives it back; a few are kept for the next. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_REPLICA_WAIT_H
#define DIBS_STORE_REDIS_REPLICA_WAIT_H

#include "base/rand.h"
#include "store/redis/pipe/connect.h"
#include "store/redis/script.h"
#include <pthread.h>

enum { DIBS__REPLICA_WAIT_KEPT = 8 };

typedef struct dibs__replica_wait {
    const dibs__redis_conf *conf; /* borrowed, as are the next two */
    dibs__sentinel *sentinel;     /* NULL: no sentinels */
    dibs__route *route;           /* of a cluster; NULL: no cluster */
    pthread_mutex_t mutex;
    struct {
        dibs__conn *cn;
        dibs__endpoint endpoint; /* in a cluster */
    } kept[DIBS__REPLICA_WAIT_KEPT];
    size_t count;
    struct dibs__loan *loans; /* connections that are borrowed */
    dibsx_prng jitter;
} dibs__replica_wait;

/* A connection that is borrowed for a step, from run to done. */
typedef struct dibs__loan {
    dibs__replica_wait *rw;
    struct dibs__loan *next;
    dibs__conn *cn; /* NULL: nothing is borrowed */
    dibs__endpoint endpoint;
    bool failed;  /* it cannot be used again */
    bool dropped; /* it may not be; locks: rw->mutex */
} dibs__loan;

/* The caller owns the struct; end with fini, when nothing is borrowed. */
void dibs__replica_wait_init(dibs__replica_wait *rw,
                             const dibs__redis_conf *conf);
void dibs__replica_wait_fini(dibs__replica_wait *rw);

/* No connection that was made before is used for a further step. Any thread. */
void dibs__replica_wait_drop(dibs__replica_wait *rw);

/* Runs a script on a connection of its own, in a cluster on the server that
 * serves its keys. Statuses as dibs__script_run(). With DIBS_OK end with
 * dibs__replica_wait_done(), else nothing is borrowed. */
DIBS_MUST_CHECK dibs_status dibs__replica_wait_run(
    dibs__replica_wait *rw, dibs__script script, dibs__words *words,
    dibsx_nsec deadline, dibs__loan *loan, redisReply **out, dibs_error *err);

/* The same on the connection of `shared`, if that leads there; then nothing is
 * borrowed, and a wait on it is for this script too. */
DIBS_MUST_CHECK dibs_status dibs__replica_wait_run_on(
    dibs__loan *shared, dibs__script script, dibs__words *words,
    dibsx_nsec deadline, dibs__loan *loan, redisReply **out, dibs_error *err);

/* Waits until so many replicas have acknowledged the scripts, at most for
 * limit_ms. DIBS_OK: *acked is their number, which may be lower. DIBS_UNKNOWN:
 * no answer came. DIBS_UNSUPPORTED, DIBS_DENIED: the server lacks WAIT, or
 * forbids it. */
DIBS_MUST_CHECK dibs_status
dibs__replica_wait_wait(dibs__loan *loan, uint32_t replicas, int64_t limit_ms,
                        dibsx_nsec deadline, uint32_t *acked, dibs_error *err);

void dibs__replica_wait_done(
    dibs__loan *loan); /* a no-op when nothing is borrowed */

/* The time to wait for replicas of a lease of this ttl: a part of it, and of
 * the time until the deadline. */
int64_t dibs__replica_wait_patience_ms(int64_t ttl_ms, dibsx_nsec deadline);

#endif
