/* skew.h - the clocks of the nodes of a quorum, as one client sees them. Pure.
 *
 * A node ends leases by its wall clock. One whose clock jumps has ended them too
 * early, or will end them too late: its votes do not count until the longest ttl
 * has passed. Nor do they while its clock is far from those of the others. Each
 * clock is held against the boot clock of this machine, which does not jump; how
 * far apart they are is known to within the time that the answer took. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_QUORUM_SKEW_H
#define DIBS_STORE_QUORUM_SKEW_H

#include "base/clock.h"
#include "store/quorum/ballot.h"

/* A jump, or a distance from the others, that is not borne. */
enum { DIBS__SKEW_MS = 500 };

typedef struct dibs__skew_node {
    bool known;
    dibsx_nsec least; /* by which it is ahead of the boot clock, */
    dibsx_nsec most;  /* ... at the moment of the latest answer */
    dibsx_nsec seen_at;
    dibsx_nsec ban_until;
} dibs__skew_node;

typedef struct dibs__skew {
    size_t count;
    dibs__skew_node nodes[DIBS__NODES_MAX];
} dibs__skew;

/* The node gave its clock in an answer to what was sent at `sent_at`. Returns by
 * how many ms its clock has jumped since it last did, 0 when it has not; then its
 * votes do not count for `ban_ms`. */
int64_t
dibs__skew_seen(dibs__skew *sk, size_t node, int64_t wall_us,
                dibsx_nsec sent_at, dibsx_nsec heard_at, int64_t ban_ms);

/* Whether votes of the node count at this moment. */
bool dibs__skew_trusts(const dibs__skew *sk, size_t node, dibsx_nsec now);

/* How far it is from the middle of all nodes, in ms. */
int64_t dibs__skew_off_ms(const dibs__skew *sk, size_t node);

/* The wall clock in the middle of those of the nodes; 0 while none is known. */
int64_t dibs__skew_wall_us(const dibs__skew *sk, dibsx_nsec now);

#endif
