/* share.h - what a client has counted, added to what others have, in the store.
 *
 * One value for each name, under a key of its own, is read, added to and written
 * back if nobody else wrote meanwhile. A thread of its own does that a few seconds
 * after something was counted, and once more when the client is closed; nothing
 * else ever waits for it. Only with dibs_client_opts.share_stats. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_SHARE_H
#define DIBS_CORE_SHARE_H

#include "core/client.h"

/* Before the name, after the client's prefix. A name that leaves no room for it
 * is not shared. */
#define DIBS__SHARE_KEY "dibs.stats/"

typedef struct dibs__share {
    pthread_t thread;
    pthread_cond_t cond; /* on the monotonic clock */
    bool running;
    bool wanted; /* there is something to share */
    bool stopping;
    dibsx_nsec stop_until; /* when the last round must have ended */
} dibs__share;

/* A client that shares. Ended by stop, which waits for the last round, but not
 * longer than the client's timeout; free takes a client that does not share. */
DIBS_MUST_CHECK dibs_status dibs__share_init(dibs_client *cl, dibs_error *err);
void dibs__share_stop(dibs_client *cl);
void dibs__share_free(dibs_client *cl);

/* Something was counted. Locks: cl->mutex. */
void dibs__share_note(dibs_client *cl);

#endif
