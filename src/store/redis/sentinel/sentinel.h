/* sentinel.h - the sentinels, which know the primary.
 *
 * Each connection to the primary begins with a question to one of them: to the
 * one that answered last, or else to the next in order. The answer is a claim:
 * the server must confirm that it is the primary. The first sentinel that
 * answers also names the others.
 *
 * From the first connection on, a thread of the handle listens to one of them
 * for a change of the primary. That is a hint, which only makes things fast. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_SENTINEL_SENTINEL_H
#define DIBS_STORE_REDIS_SENTINEL_SENTINEL_H

#include "store/redis/wire/conn.h"

/* Pauses between attempts to find the primary are no longer than this, so that a
 * new one is used soon after it was chosen. */
#define DIBS__SENTINEL_PAUSE (100 * DIBSX_MS)

typedef struct dibs__sentinel dibs__sentinel;

/* Called when connections to the old primary must be dropped. Any thread. */
typedef void dibs__moved_fn(void *arg);

/* Touches no network. `conf` and `arg` are borrowed until dibs__sentinel_free().
 * NULL when memory is short. */
dibs__sentinel *dibs__sentinel_new(const dibs__redis_conf *conf,
                                   dibs__moved_fn *moved, void *arg);

/* `moved` is not called any more once stop has returned. No thread may connect
 * during free. Both take NULL. */
void dibs__sentinel_stop(dibs__sentinel *sn);
void dibs__sentinel_free(dibs__sentinel *sn);

/* Finds the primary and connects to it: one attempt. `demoted`: the last
 * connection proved to be to a replica. Any thread. Statuses as those of
 * dibs__conn_open(), and DIBS_INVALID: no sentinel knows the name.
 *
 * `moved` drops the connections that it finds. Once the new connection is where
 * `moved` finds it, the caller compares dibs__sentinel_moves() with *moves; if
 * they differ, it must drop the connection itself. */
DIBS_MUST_CHECK dibs_status
dibs__sentinel_connect(dibs__sentinel *sn, bool demoted, dibsx_nsec deadline,
                       uint64_t *moves, dibs__conn **out, dibs_error *err);
uint64_t dibs__sentinel_moves(const dibs__sentinel *sn);

/* Opens a connection to the sentinel with this number of those that are known;
 * DIBS_NOTFOUND beyond the last. Given up when `abort_fd` (-1 for none) becomes
 * readable. Close it with dibs__conn_close(). */
DIBS_MUST_CHECK dibs_status dibs__sentinel_open(dibs__sentinel *sn,
                                                size_t number, int abort_fd,
                                                dibsx_nsec deadline,
                                                dibs__conn **out,
                                                dibs_error *err);

/* The name by which the sentinels know the servers. */
const char *dibs__sentinel_name(const dibs__sentinel *sn);

#endif
