/* demo.h - the demonstration: a primary process and its workers, which share one
 * value under one lock and serve it over HTTP.
 *
 *     primary (log, status line, restarts)
 *       +- worker 1: HTTP on port + 1, operations of its own at the start
 *       +- worker 2: HTTP on port + 2, ...
 *       +- dibs serve, if a dashboard is wanted
 *
 * It uses the library as any program would: by its public headers. Workers are
 * this program, executed anew, so that each opens the store by itself. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_DEMO_DEMO_H
#define DIBS_DEMO_DEMO_H

#include <dibs/types.h>

/* The lock, and the values that it protects. */
#define DIBS__DEMO_LOCK   "locks:ADS_REDLOCK"
#define DIBS__DEMO_VALUE  "ADS_REDLOCK"
#define DIBS__DEMO_WARMUP "WARMUP_LAST_SUCCESSFUL"

enum { DIBS__DEMO_WORKERS_MAX = 64 };

/* Texts are borrowed. Nothing here has a default. */
typedef struct dibs__demo_opts {
    const char *url;      /* NULL: the embedded store */
    const char *data_url; /* where the values are; NULL: there too */
    const char *prefix;   /* or NULL */
    int64_t timeout_ms;   /* for one step of the store */
    int workers;
    int port;            /* worker N listens on port + N */
    int operations;      /* that each worker does when it starts */
    int64_t duration_ms; /* of each of them */
    int64_t every_ms;    /* between further ones; 0: there are none */
    int64_t ttl_ms;
    int64_t wait_ms; /* how long a request waits for the lock */
    int dashboard;   /* port of the daemon; 0: any; -1: without one */
    bool json;       /* log lines are JSON */
    bool colour;
    bool status; /* a live line at the bottom of the terminal */
} dibs__demo_opts;

/* Runs the primary until SIGINT or SIGTERM. To be called before any thread is
 * started. DIBS_BUSY: a port is in use. */
DIBS_MUST_CHECK dibs_status dibs__demo_primary(const dibs__demo_opts *opts,
                                               dibs_error *err);

/* Runs worker `id` until SIGTERM. Likewise. Failures are in the log as well. */
DIBS_MUST_CHECK dibs_status dibs__demo_worker(const dibs__demo_opts *opts,
                                              int id, dibs_error *err);

#endif
