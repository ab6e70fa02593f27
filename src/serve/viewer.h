/* viewer.h - hears what clients tell of their leases, while anybody listens to events.
 *
 *     somebody listens --> views --> told to `heard`;  nobody has for a while --> rests
 *
 * A page that is loaded anew closes its stream and opens the next: the viewer goes on
 * meanwhile, so that nothing is missed.
 *
 * Owns its thread, and a client of its own: one that listens has a doorbell, and leases
 * that requests take through the daemon's client would seem to listen too. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_VIEWER_H
#define DIBS_SERVE_VIEWER_H

#include "serve/life.h"
#include "serve/log.h"
#include "serve/serve.h"
#include <dibs/viewer.h>

/* Called on the viewer's thread. */
typedef void dibs__viewer_fn(void *arg, const dibs_lease_event *event);

typedef struct dibs__serve_viewer {
    const dibs__serve_opts *opts; /* borrowed, as the next */
    dibs__serve_log *log;         /* says once why it hears nothing */
    dibs__viewer_fn *heard;
    void *arg;

    dibs_client *cl;       /* of the thread; NULL until it is wanted */
    dibs__serve_life life; /* its mutex is for all below */
    dibs_viewer *viewer;   /* NULL: it does not view */
    bool wanted;
    dibsx_nsec rest_at; /* when it rests, unless it is wanted */
} dibs__serve_viewer;

/* End with dibs__serve_viewer_fini(), which may also follow a failure. */
DIBS_MUST_CHECK dibs_status dibs__serve_viewer_init(
    dibs__serve_viewer *viewer, const dibs__serve_opts *opts,
    dibs__serve_log *log, dibs__viewer_fn *heard, void *arg, dibs_error *err);
void dibs__serve_viewer_fini(dibs__serve_viewer *viewer);

/* A stop without a start is a no-op. */
DIBS_MUST_CHECK dibs_status dibs__serve_viewer_start(dibs__serve_viewer *viewer,
                                                     dibs_error *err);
void dibs__serve_viewer_stop(dibs__serve_viewer *viewer);

/* Whether anybody listens. Any thread; does not block. */
void dibs__serve_viewer_want(dibs__serve_viewer *viewer, bool wanted);

#endif
