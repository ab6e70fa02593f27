/* pipeline.h - a pipeline to one Redis server: a command in, its reply out.
 *
 * A pipeline is one connection that any number of threads share. The caller
 * drives the socket: it queues its command. If no thread leads, the caller
 * becomes the leader: it sends and reads until its own reply is in, hands
 * replies to other threads, and then passes the role on. A follower sends only
 * when few commands are in flight or many are queued. A single thread costs as
 * much as a plain client.
 *
 * Commands that were queued together and fit into one batch (batch.h) are sent
 * as one. A cluster would refuse that, as their keys are in different slots:
 * conf->unbatched turns it off.
 *
 * The first command that needs a connection makes it, within its deadline, name
 * resolution and TLS included. A connection that failed, or on which a command
 * timed out, is closed and never used again: later commands would get its late
 * replies. After a failure the next attempts are spread with full jitter. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_PIPE_PIPELINE_H
#define DIBS_STORE_REDIS_PIPE_PIPELINE_H

#include "base/clock.h"
#include "store/redis/pipe/batch.h"
#include "store/redis/wire/conf.h"
#include "store/redis/wire/driver.h"
#include "store/redis/wire/resp.h"
#include "store/redis/wire/socket.h"
#include <dibs/types.h>

typedef struct dibs__pipeline dibs__pipeline;
struct dibs__sentinel;

/* Touches no network. `conf` is borrowed until dibs__pipeline_free(). */
DIBS_MUST_CHECK dibs_status dibs__pipeline_new(const dibs__redis_conf *conf,
                                               dibs__pipeline **out,
                                               dibs_error *err);
void dibs__pipeline_free(dibs__pipeline *pl); /* NULL is a no-op */

/* Before the first call: the server is the primary that these sentinels name,
 * borrowed until dibs__pipeline_free(). While there is none, commands wait for
 * one until their deadline, or for conf->connect_timeout_ms. A command that a
 * replica refused is sent again to the primary. */
void dibs__pipeline_follow(dibs__pipeline *pl, struct dibs__sentinel *sentinel);

/* Drops the connection: commands that were sent on it are DIBS_UNKNOWN. Any
 * thread. */
void dibs__pipeline_drop(dibs__pipeline *pl);

/* The same, because a reply was impossible: the server may confuse its
 * clients. */
void dibs__pipeline_distrust(dibs__pipeline *pl);

/* Sends one command and waits for its reply. Any thread.
 *   DIBS_OK       *out is the reply, which may be an error reply; free it with
 *                 dibs__reply_free()
 *   DIBS_UNAVAIL  no byte of it was sent
 *   DIBS_UNKNOWN  it was sent, in whole or in part, and no reply came
 *   DIBS_DENIED   the server refused the password or the certificate was bad
 *   DIBS_REFUSED  the other side is no Redis, or only one side uses TLS
 *   DIBS_INVALID  there is no such database; a file cannot be used
 *   DIBS_NOMEM    nothing was sent
 * With every status but DIBS_OK and DIBS_UNKNOWN nothing was sent. */
DIBS_MUST_CHECK dibs_status dibs__pipeline_call(dibs__pipeline *pl,
                                                const dibs__words *words,
                                                dibsx_nsec deadline,
                                                redisReply **out,
                                                dibs_error *err);

/* The same for a command that may join a batch; all calls of a pipeline use one
 * batch. */
DIBS_MUST_CHECK dibs_status dibs__pipeline_join(
    dibs__pipeline *pl, const dibs__part *part, const dibs__words *words,
    dibsx_nsec deadline, redisReply **out, dibs_error *err);

/* A connection of a pipeline. */
typedef struct dibs__link {
    uint64_t number; /* of no other connection of this pipeline; 0: none */
    char own[DIBS__ADDRESS_TEXT]; /* the addresses of its ends; "": not known */
    char other[DIBS__ADDRESS_TEXT];
} dibs__link;

/* The connection that the next command would be sent on. */
void dibs__pipeline_link(dibs__pipeline *pl, dibs__link *out);

/* As dibs__pipeline_call(), on the connection of that number and on no other: what
 * the caller has learned on it is true of the server that runs the command.
 *   DIBS_STALE  that connection has ended; nothing was sent */
DIBS_MUST_CHECK dibs_status dibs__pipeline_call_on(
    dibs__pipeline *pl, uint64_t number, const dibs__words *words,
    dibsx_nsec deadline, redisReply **out, dibs_error *err);

/* Posts a command, bound to the connection that there is, and does not wait: the next
 * caller takes the reply, and sends the command if there was no room. Commands that are
 * queued later come after it at the server, unless that connection ends first. The
 * caller has set its bytes, deadline, storage for the reply and the error, and keeps
 * it until it is over. False when it was not posted: there is no connection, or too much
 * is under way. */
struct dibs__pending;
bool dibs__pipeline_post(dibs__pipeline *pl, struct dibs__pending *pd);

/* Whether a posted command is over, with a status as above, or DIBS_STALE; and a wait
 * until it is, by its deadline. One thread at a time waits for it. */
bool dibs__pipeline_is_over(dibs__pipeline *pl, const struct dibs__pending *pd);
void dibs__pipeline_await(dibs__pipeline *pl, struct dibs__pending *pd);

/* Posts a command on the connection of the number `only_on`, and leads: a thread that
 * wants the first answers of several pipelines polls them all. It leads until its
 * command is over, or it resigns. False when it was not posted: another thread leads,
 * that connection has ended, or too much is under way. */
bool dibs__pipeline_seize(dibs__pipeline *pl, struct dibs__pending *pd);

/* The leader's: what to poll for; receives what has come and hands it out, true when
 * the command is over, with which it leads no longer; leads no longer, though it is
 * not over: as after a post. */
struct pollfd;
void dibs__pipeline_watch(dibs__pipeline *pl, struct pollfd *out);
bool dibs__pipeline_take(dibs__pipeline *pl, const struct dibs__pending *pd);
void dibs__pipeline_resign(dibs__pipeline *pl);

/* Sends `count` commands, which are encoded one after the other in `bytes`,
 * with nothing between them, and waits for all replies. Statuses are as above,
 * for all of them together. */
DIBS_MUST_CHECK dibs_status dibs__pipeline_unit(dibs__pipeline *pl,
                                                const char *bytes, size_t len,
                                                int count, dibsx_nsec deadline,
                                                redisReply **out,
                                                dibs_error *err);

/* Sends commands together and waits for all of them; each has its own deadline and
 * status. The caller has set their bytes, deadline, storage for the replies and the
 * error, and the part in a batch. It must not matter in which order they are done. */
void dibs__pipeline_calls(dibs__pipeline *pl, struct dibs__pending *commands,
                          size_t count);

/* DIBS_OK, or the failure of the last attempt while there is no connection and
 * the next attempt is not due yet. */
DIBS_MUST_CHECK dibs_status dibs__pipeline_ready(dibs__pipeline *pl,
                                                 dibsx_nsec now,
                                                 dibs_error *err);

#endif
