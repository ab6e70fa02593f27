/* fleet.h - several real servers, as the nodes of a quorum.
 *
 * Their wall clocks can be set, each for itself. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_REDIS_FLEET_H
#define DIBS_TESTS_REDIS_FLEET_H

#include "server.h"
#include <stdatomic.h>
#include <stdint.h>

enum { FLEET_MAX = 9, FLEET_URL_MAX = 512 };

typedef struct fleet_node {
    server sv;
    char clock_path[64];
    _Atomic(int64_t) *ahead_us; /* of its clock, shared with the server */
} fleet_node;

typedef struct fleet {
    size_t count;
    fleet_node nodes[FLEET_MAX];
} fleet;

/* Starts so many that write everything down before they answer, or keep nothing,
 * and vouches for each. False when one does not come up; why is on stderr. End
 * with fleet_stop(). */
bool fleet_start(fleet *fl, size_t count, bool durable);
void fleet_stop(fleet *fl);

/* The same, each on a host of its own. */
bool fleet_start_at(fleet *fl, size_t count, bool durable,
                    const char *const *hosts);

/* Says that a node has forgotten nothing, so that it votes from the first
 * moment. */
bool fleet_vouch(fleet_node *nd);

/* Starts one that was killed, with what it kept or with nothing. */
bool fleet_restart(fleet_node *nd, bool empty);

/* Sets its clock ahead of the true one. */
void fleet_set_clock(fleet_node *nd, int64_t ahead_ms);

/* The URL, with parameters after the "?" when they are not "". */
void fleet_url(const fleet *fl, const char *params, char out[FLEET_URL_MAX]);

#endif
