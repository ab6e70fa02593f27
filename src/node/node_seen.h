/* node_seen.h - things that a node remembers from one look to the next. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_NODE_NODE_SEEN_H
#define DIBS_NODE_NODE_SEEN_H

#include "base/clock.h"
#include "jobs/run_step.h"

enum {
    DIBS__NODE_ALIVE_MAX = 64,
    DIBS__NODE_OTHERS_MAX = 256,
    DIBS__NODE_KNOWN_MAX = 2048
};

/* Another node, as its lease was seen: it lasts until then at least. */
typedef struct dibs__node_alive {
    char id[DIBS__NODE_SIZE];
    dibsx_nsec until;
} dibs__node_alive;

/* A step of another node that was seen alive: it is looked at again then. */
typedef struct dibs__node_known {
    uint64_t hash; /* of the entry of `live`; 0: none */
    dibsx_nsec until;
} dibs__node_known;

/* Where the claims of the next look go on. */
typedef struct dibs__claim_place {
    size_t look;   /* the index, by its number in a view; 0: at the front */
    int64_t from;  /* its number there, */
    uint32_t skip; /* and how many entries with it are done */
    bool rang;     /* a bell did since the front */
} dibs__claim_place;

#endif
