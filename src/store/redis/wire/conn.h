/* conn.h - one connection to a server: connected, after its handshake, ready
 * for commands.
 *
 * In the handshake the server accepted the password, selected the database and
 * took the name of the client; where sentinels name the primary, it confirmed
 * that it is one. A connection that failed once is closed and not used again.
 *
 * Two ways to use it: dibs__conn_ask() and dibs__conn_hear() wait for one
 * reply, for a thread that has the connection to itself; the rest is for a
 * pipeline, where one thread may receive while another sends. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_WIRE_CONN_H
#define DIBS_STORE_REDIS_WIRE_CONN_H

#include "base/clock.h"
#include "store/redis/wire/conf.h"
#include "store/redis/wire/driver.h"
#include "store/redis/wire/endpoint.h"
#include "store/redis/wire/resolve.h"
#include "store/redis/wire/resp.h"
#include "store/redis/wire/socket.h"

typedef struct dibs__conn dibs__conn;

/* Resolves, connects, and does the handshakes of TLS and of Redis within the
 * deadline. `rs` is for the host of `conf` and not used for a unix socket.
 * Close with dibs__conn_close().
 *   DIBS_UNAVAIL  no connection, or the server is not ready
 *   DIBS_DENIED   the password, the user or a certificate was not accepted
 *   DIBS_REFUSED  the other side is no Redis, or only one side uses TLS
 *   DIBS_INVALID  there is no such database; a file cannot be used
 *   DIBS_NOMEM */
DIBS_MUST_CHECK dibs_status dibs__conn_open(const dibs__redis_conf *conf,
                                            dibs__resolver *rs,
                                            dibsx_nsec deadline,
                                            dibs__conn **out, dibs_error *err);
void dibs__conn_close(dibs__conn *cn); /* NULL is a no-op */

/* The same to an endpoint, with the settings of `conf`, whose own endpoint is
 * ignored. Aborted with DIBS_UNAVAIL as soon as `abort_fd` (-1 for none) is
 * readable; only a handshake of TLS goes on until its end. */
DIBS_MUST_CHECK dibs_status dibs__conn_open_at(
    const dibs__redis_conf *conf, const dibs__endpoint *endpoint, int abort_fd,
    dibsx_nsec deadline, dibs__conn **out, dibs_error *err);

/* Sends a command and waits for one reply, which may be an error reply; free it
 * with dibs__reply_free(). DIBS_UNAVAIL when no byte was sent, else
 * DIBS_UNKNOWN. */
DIBS_MUST_CHECK dibs_status dibs__conn_ask(dibs__conn *cn,
                                           const dibs__words *words,
                                           dibsx_nsec deadline,
                                           redisReply **out, dibs_error *err);

/* Sends a command without waiting for its reply, which dibs__conn_hear() takes.
 * Statuses as those of dibs__conn_ask(). */
DIBS_MUST_CHECK dibs_status dibs__conn_tell(dibs__conn *cn,
                                            const dibs__words *words,
                                            dibsx_nsec deadline,
                                            dibs_error *err);

/* Waits for a reply that was not asked for, such as a published message.
 * DIBS_TIMEOUT when none came; DIBS_CANCELLED when `abort_fd` (-1 for none)
 * became readable; any other status: the connection is lost. */
DIBS_MUST_CHECK dibs_status dibs__conn_hear(dibs__conn *cn, int abort_fd,
                                            dibsx_nsec deadline,
                                            redisReply **out, dibs_error *err);

/* Ends the stream in both directions, so that calls on this connection return
 * soon. Any thread. */
void dibs__conn_sever(dibs__conn *cn);

/* Its own address and that of the other side, as a server writes them. False for
 * a unix socket, whose ends have no addresses of their own. */
bool dibs__conn_ends(const dibs__conn *cn, char own[DIBS__ADDRESS_TEXT],
                     char other[DIBS__ADDRESS_TEXT]);

/* Whether the server has closed an idle connection, or sent an unexpected
 * reply. */
bool dibs__conn_gone(dibs__conn *cn);

/* The descriptor to poll, beside others, before dibs__conn_receive(). */
int dibs__conn_fd(const dibs__conn *cn);

/* Whether something has come that no poll will tell of. */
bool dibs__conn_has_more(const dibs__conn *cn);

/* Gives bytes to the kernel without blocking: how many, 0 when there is no room,
 * -1 when it failed. dibs__conn_given() counts the bytes that may have left. */
ssize_t
dibs__conn_send(dibs__conn *cn, const char *bytes, size_t len, dibs_error *err);
uint64_t dibs__conn_given(const dibs__conn *cn);
void dibs__conn_await_room(dibs__conn *cn, dibsx_nsec until);

typedef enum dibs__expect {
    DIBS__EXPECT_INPUT,
    DIBS__EXPECT_SOON, /* a single answer: it pays to look for it (spin.h) */
    DIBS__EXPECT_ROOM, /* or room to send, with which it comes back */
    DIBS__EXPECT_NONE  /* it does not wait */
} dibs__expect;

/* Takes what has arrived, waiting for it a while but not past the deadline: 1
 * when something came, 0 when nothing did, -1 when it failed. */
int dibs__conn_receive(dibs__conn *cn, dibs__expect expect, dibsx_nsec deadline,
                       dibs_error *err);

/* The next reply of what was received; *out is NULL when none is complete.
 * False when it failed. */
bool dibs__conn_next(dibs__conn *cn, redisReply **out, dibs_error *err);

/* The halves of an opening, between which conn_open.c does the handshake of
 * Redis. The first connects, with TLS; statuses as those of dibs__conn_open().
 * The second ends the use of `abort_fd`, which until then ends every wait. */
DIBS_MUST_CHECK dibs_status dibs__conn_start(const dibs__redis_conf *conf,
                                             dibs__resolver *rs, int abort_fd,
                                             dibsx_nsec deadline,
                                             dibs__conn **out, dibs_error *err);
void dibs__conn_settle(dibs__conn *cn);

#endif
