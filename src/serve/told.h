/* told.h - which grants and ends of leases the feed has told already.
 *
 * The look and the clients tell of the same leases, in either order; the feed takes each
 * grant and each end from the first. It counts those of clients too, for the charts.
 * Owns what it remembers: thousands, of which the oldest goes. Any thread. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_TOLD_H
#define DIBS_SERVE_TOLD_H

#include "serve/series.h"
#include <dibs/viewer.h>
#include <pthread.h>

/* Places, each for the latest few of those whose hash it is. */
enum { DIBS__TOLD_PLACES = 1024, DIBS__TOLD_DEPTH = 8 };

/* Counted since this was last taken: only the events of clients. */
typedef struct dibs__told_counts {
    int64_t granted, ended, lost;
    size_t wait_count;
    int64_t waits_ms[DIBS__SERIES_WAITS_MAX];
} dibs__told_counts;

typedef struct dibs__serve_told {
    pthread_mutex_t mutex;                              /* for all below */
    uint64_t keys[DIBS__TOLD_PLACES][DIBS__TOLD_DEPTH]; /* the latest first */
    dibs__told_counts counts;
    uint64_t missed; /* events that did not come, as far as they were counted */
} dibs__serve_told;

void dibs__told_init(dibs__serve_told *told);
void dibs__told_fini(dibs__serve_told *told);

/* Remembers the grant of a lease, or its end. False: the feed has it. */
bool dibs__told_add(dibs__serve_told *told, const char *name, uint64_t fence,
                    bool ended);

/* The same for what a client told, with its counts. */
bool dibs__told_event(dibs__serve_told *told, const dibs_lease_event *event);

/* Takes the counts; they begin anew. */
void dibs__told_take(dibs__serve_told *told, dibs__told_counts *out);

uint64_t dibs__told_missed(dibs__serve_told *told);

#endif
