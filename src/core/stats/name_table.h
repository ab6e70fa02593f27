/* name_table.h - the statistics of a client per name, in a table of bounded size.
 *
 * The name that was not used for longest makes room for a new one. Without memory
 * a name is not counted, and nothing else happens.
 *
 * Owns its names and their counts. Any thread. Locks: cl->mutex for everything
 * here. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_STATS_NAME_TABLE_H
#define DIBS_CORE_STATS_NAME_TABLE_H

#include "core/attach.h"
#include "core/client.h"
#include "core/stats/acquire_counts.h"

enum { DIBS__NAME_TABLE_MAX = 1024 };

typedef struct dibs__name_row {
    struct dibs__name_row *next; /* in its bucket */
    struct dibs__name_row *newer;
    struct dibs__name_row *older;
    dibs__counts all;
    dibs__counts fresh; /* of it, what is yet to be shared */
    uint64_t waiting;   /* set and used by dibs_name_stats_own() alone */
    char name[];        /* with the client's prefix */
} dibs__name_row;

typedef struct dibs__name_table {
    dibs__attached attached; /* first, so that one is the other */
    dibs__name_row *buckets[DIBS__NAME_TABLE_MAX];
    dibs__name_row *newest;
    dibs__name_row *oldest;
    size_t count;
} dibs__name_table;

/* NULL when memory is short; free takes NULL. */
dibs__name_table *dibs__name_table_new(void);
void dibs__name_table_free(dibs__name_table *table);

/* The record of a name; NULL: there is none. */
dibs__name_row *
dibs__name_table_find(const dibs__name_table *table, const char *name);

/* The same, made when there is none, and the newest now; NULL: no memory. */
dibs__name_row *dibs__name_table_use(dibs__name_table *table, const char *name);

/* The client's table, made when it is first needed; NULL: no memory. */
dibs__name_table *dibs__name_table_of(dibs_client *cl);

#endif
