/* node_zones.h - new zone data: the next ticks of all jobs are found anew, some in each
 * look, by the first node that has it. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_NODE_NODE_ZONES_H
#define DIBS_NODE_NODE_ZONES_H

#include "node/node_inside.h"

/* Looks at the version of the zone data once in a ttl. */
void dibs__node_look_at_zones(dibs__node *node);

void dibs__node_free_zones(dibs__node *node);

/* Whether a version is later; "": it is not known. */
bool dibs__tzdata_newer(const char *version, const char *than);

#endif
