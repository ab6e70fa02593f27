/* dashboard.h - the daemon beside the workers, whose dashboard shows their lock.
 *
 * The primary opens the port, so that one in use is seen before the daemon starts, and
 * makes a token for this one daemon. If it cannot start, the workers go on. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_DEMO_DASHBOARD_H
#define DIBS_DEMO_DASHBOARD_H

#include "demo/demo.h"
#include "demo/log.h"
#include <sys/types.h>

enum { DIBS__DEMO_TOKEN_SIZE = 48 };

typedef struct dibs__demo_dashboard {
    const dibs__demo_log *log; /* borrowed */
    pid_t pid;                 /* 0: it does not run */
    int fd;                    /* its log; -1 when that has ended */
    dibsx_buf part;            /* of a line whose end is not in yet */
    int port;
    char token[DIBS__DEMO_TOKEN_SIZE];
    char why[256]; /* it says that it cannot go on */
} dibs__demo_dashboard;

/* Release with dibs__demo_dashboard_fini(). */
void dibs__demo_dashboard_init(dibs__demo_dashboard *db,
                               const dibs__demo_log *log);
void dibs__demo_dashboard_fini(dibs__demo_dashboard *db);

/* Starts the daemon, or says why there is none. */
void dibs__demo_dashboard_start(dibs__demo_dashboard *db,
                                const dibs__demo_opts *opts);

/* Reads its log: says where the dashboard is when it is ready. */
void dibs__demo_dashboard_hear(dibs__demo_dashboard *db);

/* Takes note of its end, and says why, unless it was to end. */
void dibs__demo_dashboard_reap(dibs__demo_dashboard *db, bool wanted);

#endif
