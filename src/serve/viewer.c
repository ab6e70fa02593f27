/* viewer.c - hears what clients tell of their leases; see viewer.h. */
/* SPDX-License-Identifier: MIT */
#include "serve/viewer.h"
#include "base/cond.h"
#include <dibs/client.h>

enum { RETRY_MS = 2000, LINGER_MS = 10000 };

dibs_status
dibs__serve_viewer_init(dibs__serve_viewer *viewer,
                        const dibs__serve_opts *opts, dibs__serve_log *log,
                        dibs__viewer_fn *heard, void *arg, dibs_error *err)
{
    *viewer = (dibs__serve_viewer){.opts = opts,
                                   .log = log,
                                   .heard = heard,
                                   .arg = arg};
    return dibs__life_init(&viewer->life, "the viewer of leases", err);
}

void dibs__serve_viewer_fini(dibs__serve_viewer *viewer)
{
    dibs__life_fini(&viewer->life);
}

/* Locks: viewer->life.mutex. */
static bool is_wanted(const dibs__serve_viewer *viewer)
{
    return !viewer->life.stop &&
           (viewer->wanted || dibsx_now() < viewer->rest_at);
}

static dibs_status open_client(dibs__serve_viewer *viewer, dibs_error *err)
{
    const dibs_client_opts client = {.size = sizeof(client),
                                     .prefix = viewer->opts->prefix,
                                     .label = "serve",
                                     .timeout_ms = viewer->opts->timeout_ms,
                                     .lazy = true};

    return viewer->cl ? DIBS_OK
                      : dibs_open(viewer->opts->url, &client, &viewer->cl, err);
}

/* Until nobody has listened for a while, or it fails. Locks: viewer->life.mutex, let go
 * meanwhile. */
static dibs_status view(dibs__serve_viewer *viewer, dibs_error *err)
{
    dibs_viewer *vw = NULL;
    dibs_status rc;

    pthread_mutex_unlock(&viewer->life.mutex);
    rc = open_client(viewer, err);
    if (rc == DIBS_OK)
        rc = dibs_viewer_new(viewer->cl, &vw, err);
    pthread_mutex_lock(&viewer->life.mutex);
    viewer->viewer = vw;
    while (rc == DIBS_OK && is_wanted(viewer)) {
        dibs_lease_event event;

        pthread_mutex_unlock(&viewer->life.mutex);
        rc = dibs_viewer_next(vw, LINGER_MS, &event, err);
        if (rc == DIBS_OK)
            viewer->heard(viewer->arg, &event);
        else if (rc == DIBS_TIMEOUT)
            rc = DIBS_OK;
        pthread_mutex_lock(&viewer->life.mutex);
    }
    viewer->viewer = NULL;
    pthread_mutex_unlock(&viewer->life.mutex);
    dibs_viewer_free(vw);
    pthread_mutex_lock(&viewer->life.mutex);
    return rc;
}

/* A store that has no messages ends the thread: the look is all there is. */
static void *viewer_main(void *arg)
{
    dibs__serve_viewer *viewer = arg;
    dibs_status rc = DIBS_OK, said = DIBS_OK;

    pthread_mutex_lock(&viewer->life.mutex);
    while (!viewer->life.stop && rc != DIBS_UNSUPPORTED) {
        dibs_error err = {0};
        const dibsx_nsec until = rc == DIBS_OK || rc == DIBS_CANCELLED
                                     ? DIBSX_NEVER
                                     : dibsx_after_ms(dibsx_now(), RETRY_MS);

        while (!viewer->life.stop && dibsx_now() < until &&
               (until != DIBSX_NEVER || !viewer->wanted))
            dibsx_cond_wait(&viewer->life.cond, &viewer->life.mutex, until);
        rc = is_wanted(viewer) ? view(viewer, &err) : DIBS_OK;
        if (rc != DIBS_OK && rc != DIBS_CANCELLED && rc != said)
            dibs__serve_say(viewer->log, DIBS_LOG_WARN, "viewer", NULL,
                            "clients are not heard about their leases, and "
                            "events have what the look sees: %s",
                            err.message);
        said = rc;
    }
    pthread_mutex_unlock(&viewer->life.mutex);
    dibs_close(viewer->cl);
    return NULL;
}

dibs_status
dibs__serve_viewer_start(dibs__serve_viewer *viewer, dibs_error *err)
{
    return dibs__life_start(&viewer->life, viewer_main, viewer,
                            "the thread that views leases", err);
}

void dibs__serve_viewer_stop(dibs__serve_viewer *viewer)
{
    if (viewer->life.runs) {
        pthread_mutex_lock(&viewer->life.mutex);
        viewer->life.stop = true;
        dibs_viewer_cancel(viewer->viewer);
        pthread_mutex_unlock(&viewer->life.mutex);
    }
    dibs__life_stop(&viewer->life);
}

void dibs__serve_viewer_want(dibs__serve_viewer *viewer, bool wanted)
{
    pthread_mutex_lock(&viewer->life.mutex);
    viewer->wanted = wanted;
    viewer->rest_at = dibsx_after_ms(dibsx_now(), LINGER_MS);
    pthread_cond_broadcast(&viewer->life.cond);
    pthread_mutex_unlock(&viewer->life.mutex);
}
