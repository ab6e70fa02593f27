/* tally.h - the statistics of a client per name, in a table of bounded size.
 *
 * The name that was not used for longest makes room for a new one. Without memory
 * a name is not counted, and nothing else happens.
 *
 * Owns its names and their counts. Any thread. Locks: cl->mutex for everything
 * here. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_TALLY_H
#define DIBS_CORE_TALLY_H

#include "core/attach.h"
#include "core/client.h"
#include "core/counts.h"

enum { DIBS__TALLY_NAMES = 1024 };

typedef struct dibs__tally_name {
    struct dibs__tally_name *next; /* in its bucket */
    struct dibs__tally_name *newer;
    struct dibs__tally_name *older;
    dibs__counts all;
    dibs__counts fresh; /* of it, what is yet to be shared */
    uint64_t waiting;   /* set and used by dibs_name_stats_own() alone */
    char name[];        /* with the client's prefix */
} dibs__tally_name;

typedef struct dibs__tally {
    dibs__attached attached; /* first, so that one is the other */
    dibs__tally_name *buckets[DIBS__TALLY_NAMES];
    dibs__tally_name *newest;
    dibs__tally_name *oldest;
    size_t count;
} dibs__tally;

/* NULL when memory is short; free takes NULL. */
dibs__tally *dibs__tally_new(void);
void dibs__tally_free(dibs__tally *tally);

/* The record of a name; NULL: there is none. */
dibs__tally_name *dibs__tally_find(const dibs__tally *tally, const char *name);

/* The same, made when there is none, and the newest now; NULL: no memory. */
dibs__tally_name *dibs__tally_use(dibs__tally *tally, const char *name);

/* The client's table, made when it is first needed; NULL: no memory. */
dibs__tally *dibs__tally_of(dibs_client *cl);

#endif
