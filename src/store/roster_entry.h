/* roster_entry.h - rosters and seats as the steps of store/roster.h show them. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_ROSTER_ENTRY_H
#define DIBS_STORE_ROSTER_ENTRY_H

#include "store/lease_entry.h"
#include <dibs/types.h>

enum { DIBS__ROSTER_LIST_MAX = 1000 }; /* rosters that a list may end after */

typedef enum dibs__roster_kind {
    DIBS__ROSTER_GROUP = 0,
    DIBS__ROSTER_BARRIER = 1,
    DIBS__ROSTER_LATCH = 2
} dibs__roster_kind;

/* A roster without its seats. */
typedef struct dibs__roster_head {
    dibs__roster_kind kind;
    uint64_t gen;
    uint32_t need;
    uint32_t here;
} dibs__roster_head;

typedef struct dibs__seat_entry {
    char id[DIBS_NAME_MAX + 1];
    uint64_t fence; /* 0: an id that a latch counted */
    bool arrived;   /* in the generation that gathers */
    bool counts;    /* it is used, and has settled */
    int64_t left_ms;
    char who[DIBS__WHO_MAX];
} dibs__seat_entry;

/* Called for each seat; false: no more. */
typedef bool dibs__seat_fn(const dibs__seat_entry *seat, void *arg);

/* Which rosters a list is to have. */
typedef struct dibs__roster_query {
    dibs__roster_kind kind;
    const char *begins; /* their names begin with it */
    const char *after;  /* they come behind this name; "": from the first */
    size_t max;         /* a list may end after DIBS__ROSTER_LIST_MAX already */
} dibs__roster_query;

/* A roster of a list. */
typedef struct dibs__roster_row {
    char name[DIBS_NAME_MAX + 1];
    dibs__roster_head head;
    uint32_t live;   /* seats; of a latch 0, as the next */
    uint32_t counts; /* seats that are used, and have settled */
} dibs__roster_row;

/* Called for each roster; false: no more. */
typedef bool dibs__roster_fn(const dibs__roster_row *row, void *arg);

/* The rosters of one list, where a short list costs the store less than a long one. */
static inline size_t dibs__roster_max(const dibs__roster_query *query)
{
    return query->max < DIBS__ROSTER_LIST_MAX ? query->max
                                              : DIBS__ROSTER_LIST_MAX;
}

#endif
