/* fleet.h - several real servers, as the nodes of a quorum. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_REDIS_FLEET_H
#define DIBS_TESTS_REDIS_FLEET_H

#include "server.h"

enum { FLEET_MAX = 9, FLEET_URL_MAX = 512 };

typedef struct fleet {
    size_t count;
    server nodes[FLEET_MAX];
} fleet;

/* Starts so many that write everything down before they answer, or keep nothing,
 * and vouches for each. False when one does not come up; why is on stderr. End
 * with fleet_stop(). */
bool fleet_start(fleet *fl, size_t count, bool durable);
void fleet_stop(fleet *fl);

/* Says that a node has forgotten nothing, so that it votes from the first
 * moment. */
bool fleet_vouch(const server *sv);

/* Starts one that was killed, with nothing of what it had. */
bool fleet_restart_empty(server *sv);

/* The URL, with parameters after the "?" when they are not "". */
void fleet_url(const fleet *fl, const char *params, char out[FLEET_URL_MAX]);

#endif
