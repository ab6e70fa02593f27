/* counts.h - what the daemon counts of itself: requests by route, and reloads.
 *
 * The loop counts, any thread reads. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_COUNTS_H
#define DIBS_SERVE_COUNTS_H

#include "base/buf.h"
#include "serve/buckets.h"
#include <pthread.h>
#include <stdint.h>

enum {
    DIBS__SERVE_COUNTED_ROUTES = 128,
    DIBS__SERVE_COUNTED_CODES = 16 /* of one route */
};

typedef struct dibs__serve_counted {
    const char *route; /* its path, borrowed from the table */
    struct {
        int code;
        uint64_t count;
    } codes[DIBS__SERVE_COUNTED_CODES];
    uint64_t buckets[DIBS__SERVE_WAIT_ENDS + 1]; /* the last one has the rest */
    uint64_t sum_us;
} dibs__serve_counted;

/* The ways to end a lease by force, in the order of their names in counts.c. */
enum { DIBS__SERVE_BREAKS = 4 };

typedef struct dibs__serve_counts {
    pthread_mutex_t mutex;
    dibs__serve_counted routes[DIBS__SERVE_COUNTED_ROUTES];
    size_t count;
    uint64_t sum;      /* of all requests */
    bool reloaded;     /* the latest reload worked, or there was none */
    bool jobs_refused; /* after that, by the store: the jobs before stay */
    int64_t reloaded_wall_us;
    uint64_t audit_failures;
    uint64_t broken[DIBS__SERVE_BREAKS]; /* leases */
} dibs__serve_counts;

void dibs__serve_counts_init(dibs__serve_counts *counts);
void dibs__serve_counts_fini(dibs__serve_counts *counts);

/* `route` NULL: the request had none. */
void dibs__serve_counts_add(dibs__serve_counts *counts, const char *route,
                            int code, int64_t took_us);
void dibs__serve_counts_reload(dibs__serve_counts *counts, bool worked);
void dibs__serve_counts_jobs(dibs__serve_counts *counts, bool refused);

/* The trail did not take a change. */
void dibs__serve_counts_audit(dibs__serve_counts *counts);

/* So many leases were ended by force. */
void dibs__serve_counts_broken(dibs__serve_counts *counts, const char *action,
                               uint32_t leases);

/* How many requests were counted. */
uint64_t dibs__serve_counts_sum(dibs__serve_counts *counts);

/* Appends the metrics of them. */
void dibs__serve_counts_put(dibs__serve_counts *counts, dibsx_buf *out);

#endif
