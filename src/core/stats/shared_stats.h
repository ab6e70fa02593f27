/* shared_stats.h - adds the counts of a client to those of others in the store.
 *
 * One value for each name, under a key of its own, is read, added to and written
 * back if no other client wrote meanwhile. A worker does that a few seconds after
 * something was counted, and dibs_close() once more; nothing else ever waits for
 * it. Only with dibs_client_opts.share_stats. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_STATS_SHARED_STATS_H
#define DIBS_CORE_STATS_SHARED_STATS_H

#include "core/client.h"

/* Before the name, after the client's prefix. A name that leaves no room for it
 * is not shared. */
#define DIBS__SHARED_STATS_KEY "dibs.stats/"

/* Something was counted. Locks: cl->mutex. */
void dibs__shared_stats_note(dibs_client *cl);

#endif
