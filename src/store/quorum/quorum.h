/* quorum.h - the quorum store: several independent servers, of which a majority
 * must agree.
 *
 *     redlock://user:password@h1:p1,h2:p2,h3:p3/db?param=value
 *
 * Three to nine nodes, an odd number, each a server of its own. Parameters:
 * longest_ttl (a duration; no lease lasts longer), node_timeout (what a node may
 * take to answer), tls=1, and those of a redis: URL, for all nodes alike. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_QUORUM_QUORUM_H
#define DIBS_STORE_QUORUM_QUORUM_H

#include "store/store.h"

extern const dibs__store_ops dibs__quorum_ops;

#endif
