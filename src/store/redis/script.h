/* script.h - the scripts of the steps, and how one is run.
 *
 * A script is run by its SHA-1. A server that does not have it gets its text
 * with the same command once more, so that no other command comes between. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_SCRIPT_H
#define DIBS_STORE_REDIS_SCRIPT_H

#include "store/redis/cluster/route.h"
#include "store/redis/pipe/pending.h"
#include "store/redis/wire/conn.h"

/* Each is the file of its name in lua/. */
#define DIBS__SCRIPTS(X)                                                       \
    X(acquire)                                                                 \
    X(acquire_all)                                                             \
    X(acquire_free)                                                            \
    X(renew)                                                                   \
    X(renew_one_key)                                                           \
    X(release)                                                                 \
    X(release_unqueued)                                                        \
    X(batch)                                                                   \
    X(revoke)                                                                  \
    X(convert)                                                                 \
    X(yield)                                                                   \
    X(inspect)                                                                 \
    X(scan)                                                                    \
    X(get)                                                                     \
    X(put)                                                                     \
    X(add)                                                                     \
    X(del)                                                                     \
    X(value_info)                                                              \
    X(commit)                                                                  \
    X(get_many)                                                                \
    X(index_first)                                                             \
    X(append)                                                                  \
    X(log_bounds)                                                              \
    X(log_trim)                                                                \
    X(logs)                                                                    \
    X(tell)                                                                    \
    X(draw)                                                                    \
    X(rates)                                                                   \
    X(meter)                                                                   \
    X(meet)                                                                    \
    X(roll_call)                                                               \
    X(rosters)                                                                 \
    X(queue_push)                                                              \
    X(queue_put)                                                               \
    X(queue_take)                                                              \
    X(queue_work)                                                              \
    X(queue_tend)                                                              \
    X(queue_leave)                                                             \
    X(queue_set)                                                               \
    X(queue_stats)                                                             \
    X(queue_peek)                                                              \
    X(queue_purge)                                                             \
    X(queue_redrive)                                                           \
    X(queue_remove)                                                            \
    X(quorum_free)                                                             \
    X(quorum_grant)                                                            \
    X(quorum_renew)

#define DIBS__SCRIPT_ID(name) DIBS__SCRIPT_##name,

typedef enum dibs__script {
    DIBS__SCRIPTS(DIBS__SCRIPT_ID) DIBS__SCRIPT_COUNT
} dibs__script;

/* Puts the scripts together; before anything below. Any thread; the first
 * success is for good. */
DIBS_MUST_CHECK dibs_status dibs__script_load(dibs_error *err);

/* Begins the command that runs a script: `key_count`, a number as text, says how
 * many of the words that follow are keys. */
void dibs__script_begin(dibs__words *words, dibs__script script,
                        const char *key_count);

/* Runs it. DIBS_OK: *out is its answer, which is no error; free it with
 * dibs__reply_free(). *out is NULL otherwise. In a cluster the keys are those of
 * one slot, else it is DIBS_UNSUPPORTED; DIBS__KEY_FENCE stands for the fence of
 * that slot. */
DIBS_MUST_CHECK dibs_status dibs__script_run(dibs__route *rt,
                                             dibs__script script,
                                             dibs__words *words,
                                             dibsx_nsec deadline,
                                             redisReply **out, dibs_error *err);

/* The same on one connection of the only server (route.h); DIBS_STALE: that one has
 * ended. */
DIBS_MUST_CHECK dibs_status dibs__script_run_on(
    dibs__route *rt, uint64_t number, dibs__script script, dibs__words *words,
    dibsx_nsec deadline, redisReply **out, dibs_error *err);

/* The same for a script that may join a batch (batch.h): a plain acquire,
 * without mode and priority, and release_unqueued. */
DIBS_MUST_CHECK dibs_status
dibs__script_join(dibs__route *rt, dibs__script script, dibs__words *words,
                  dibsx_nsec deadline, redisReply **out, dibs_error *err);

/* Makes it a command for dibs__route_calls(). `whole`: with the text of the script,
 * as the server does not have it. `joins`: it may join a batch. The words become bytes
 * in `room`, which has dibs__words_room() for them, or with `whole` more. */
size_t
dibs__script_room(dibs__script script, const dibs__words *words, bool whole);
void dibs__script_pend(dibs__script script, dibs__words *words, bool whole,
                       bool joins, char *room, dibs__pending *pd);

/* The reply of such a command: true when the server lacks the script. Else *rc is
 * DIBS_OK, or the status of the error that the reply was. */
bool dibs__script_is_lacking(const redisReply *reply, dibs_status *rc,
                             dibs_error *err);

/* Sends it on a connection that the caller has for itself, in a cluster as `carry`
 * of route.h; *out may be an error. Statuses as those of dibs__conn_ask(). */
DIBS_MUST_CHECK dibs_status dibs__script_send_on(
    dibs__conn *cn, bool asking, dibs__script script, dibs__words *words,
    dibsx_nsec deadline, redisReply **out, dibs_error *err);

/* Runs it; `carry` sends it, in a cluster to the server of its keys. `rt` is
 * NULL when there is only one server. */
DIBS_MUST_CHECK dibs_status dibs__script_carry(
    dibs__route *rt, dibs__words *words, dibs__carry_fn *carry, void *arg,
    dibsx_nsec deadline, redisReply **out, dibs_error *err);

/* The same for a plain command, whose word `key_at` is a key; 0: it has none. */
DIBS_MUST_CHECK dibs_status dibs__command_run(dibs__route *rt,
                                              const dibs__words *words,
                                              int key_at, dibsx_nsec deadline,
                                              redisReply **out,
                                              dibs_error *err);

/* Appends the command that runs a script to `out`, for dibs__route_unit(). */
DIBS_MUST_CHECK dibs_status dibs__script_append(dibs__route *rt,
                                                dibs__words *words,
                                                dibsx_buf *out,
                                                dibs_error *err);

/* Runs a script without keys on one server (route.h). */
DIBS_MUST_CHECK dibs_status dibs__script_run_at(
    dibs__route *rt, const dibs__endpoint *endpoint, dibs__script script,
    dibs__words *words, dibsx_nsec deadline, redisReply **out, dibs_error *err);

#endif
