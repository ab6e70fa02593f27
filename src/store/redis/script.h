/* script.h - the scripts of the steps, and how one is run.
 *
 * A script is run by its SHA-1. A server that does not have it gets its text
 * with the same command once more, so that no other command can come between. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_SCRIPT_H
#define DIBS_STORE_REDIS_SCRIPT_H

#include "store/redis/link.h"

#define DIBS__SCRIPTS(X)                                                       \
    X(acquire)                                                                 \
    X(acquire_all)                                                             \
    X(acquire_many)                                                            \
    X(free)                                                                    \
    X(renew)                                                                   \
    X(release)                                                                 \
    X(alone)                                                                   \
    X(alone_many)                                                              \
    X(take)                                                                    \
    X(turn)                                                                    \
    X(yield)                                                                   \
    X(inspect)                                                                 \
    X(scan)                                                                    \
    X(get)                                                                     \
    X(put)                                                                     \
    X(add)                                                                     \
    X(del)                                                                     \
    X(heads)                                                                   \
    X(append)

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
 * dibs__reply_free(). *out is NULL otherwise. */
DIBS_MUST_CHECK dibs_status dibs__script_run(dibs__link *ln,
                                             dibs__script script,
                                             dibs__words *words,
                                             dibsx_nsec deadline,
                                             redisReply **out, dibs_error *err);

/* The same for one of those that others may be put together with (group.h): a
 * plain acquire, without mode and priority, and alone. */
DIBS_MUST_CHECK dibs_status
dibs__script_join(dibs__link *ln, dibs__script script, dibs__words *words,
                  dibsx_nsec deadline, redisReply **out, dibs_error *err);

/* The same for a plain command. */
DIBS_MUST_CHECK dibs_status dibs__command_run(dibs__link *ln,
                                              const dibs__words *words,
                                              dibsx_nsec deadline,
                                              redisReply **out,
                                              dibs_error *err);

#endif
