/* worker.c - the life of a worker: connect, warm up, serve, operate, stop.
 *
 * Two threads of its own, besides those of the library and the HTTP server: the
 * main thread reads signals, which are blocked everywhere, and stops the rest; the
 * life thread does the work, in steps that a stop can interrupt. */
/* SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "base/thread.h"
#include "demo/api.h"
#include "demo/operation.h"
#include "demo/store_name.h"
#include "demo/warmup.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* Requests under way have this long to end by themselves; the rest of the five seconds
 * is for the store. */
enum { GRACE_MS = 2000 };

typedef struct life {
    dibs__demo_work work;
    dibs__http_server *server;
    int signal_fd;
    int failed_fd; /* readable when the life thread gave up */
    pthread_t thread;
    dibs_error err; /* why; the main thread reads it after the join */
} life;

static dibs_status connect_store(dibs__demo_work *work, dibs_error *err)
{
    const char *name = dibs__demo_store_name(work->opts->url);
    dibs_status rc = dibs__demo_work_open(work, err);

    if (rc != DIBS_OK)
        return rc;
    dibs__demo_say(&work->log, DIBS__DEMO_PLAIN, "connected",
                   DIBS__DEMO_FACTS({"url", dibs_url(work->locks), 0}),
                   "Connected to %s", name);
    rc = dibs_ping(work->locks, NULL, err);
    if (rc == DIBS_OK && work->data != work->locks)
        rc = dibs_ping(work->data, NULL, err);
    if (rc == DIBS_OK)
        dibs__demo_say(&work->log, DIBS__DEMO_PLAIN, "established", NULL,
                       "%s connection established", name);
    return rc;
}

/* Until the next moment of all workers of this machine, so that they ask at once and
 * there is a queue to see. */
static dibs_status await_next(dibs__demo_work *work, dibs_error *err)
{
    const dibsx_nsec every = work->opts->every_ms * DIBSX_MS;
    const dibsx_nsec left = every - dibsx_now() % every;

    return dibs__demo_sleep(work, NULL, left / DIBSX_MS + 1, err);
}

/* One after the other; those of all workers contend. A failure of one is in the
 * log and not the end of the worker. */
static void operate(dibs__demo_work *work)
{
    dibs_status rc = DIBS_OK;
    dibs_error err = {0};
    dibs__demo_ad ad;
    char name[64];

    for (int i = 1; rc != DIBS_CANCELLED; i++) {
        if (i > work->opts->operations &&
            (work->opts->every_ms == 0 || await_next(work, &err) != DIBS_OK))
            break;
        snprintf(name, sizeof(name), "Cache Update Operation %d", i);
        rc = dibs__demo_operate(work, name, work->opts->duration_ms, -1, &ad,
                                &err);
    }
}

static void *life_main(void *arg)
{
    life *lf = arg;
    dibs_error err = {0};
    dibs_status rc = connect_store(&lf->work, &err);

    if (rc == DIBS_OK)
        rc = dibs__demo_warm_up(&lf->work, &err);
    if (rc == DIBS_OK)
        rc = dibs__demo_api_start(&lf->work, &lf->server, &err);
    if (rc == DIBS_OK) {
        operate(&lf->work);
    } else if (rc != DIBS_CANCELLED) {
        lf->err = err;
        (void)eventfd_write(lf->failed_fd, 1);
    }
    return NULL;
}

static dibs_status life_init(life *lf, dibs_error *err)
{
    sigset_t served, blocked;

    sigemptyset(&served);
    sigaddset(&served, SIGTERM);
    /* Signals of a terminal go to all of its processes: the primary acts on
     * them. */
    blocked = served;
    sigaddset(&blocked, SIGINT);
    sigaddset(&blocked, SIGHUP);
    sigaddset(&blocked, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &blocked, NULL);
    lf->signal_fd = signalfd(-1, &served, SFD_CLOEXEC);
    lf->failed_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (lf->signal_fd < 0 || lf->failed_fd < 0)
        return dibsx_fail_at(err, DIBS_INTERNAL, dibsx_errno_name(errno),
                             "cannot open a signalfd: %s", strerror(errno));
    return DIBS_OK;
}

static void life_fini(life *lf)
{
    if (lf->signal_fd >= 0)
        close(lf->signal_fd);
    if (lf->failed_fd >= 0)
        close(lf->failed_fd);
}

static void await_end(const life *lf)
{
    struct pollfd fds[] = {{.fd = lf->signal_fd, .events = POLLIN},
                           {.fd = lf->failed_fd, .events = POLLIN}};

    while (poll(fds, 2, -1) < 0)
        continue;
}

static dibs_status live(life *lf, dibs_error *err)
{
    int failed = dibsx_thread_start(&lf->thread, life_main, lf);

    if (failed)
        return dibsx_fail_at(err, DIBS_INTERNAL, dibsx_errno_name(failed),
                             "cannot start a thread: %s", strerror(failed));
    await_end(lf);
    dibs__demo_work_stop(&lf->work);
    pthread_join(lf->thread, NULL);
    dibs__demo_api_stop(&lf->work, lf->server, GRACE_MS);
    if (lf->err.status == DIBS_OK)
        return DIBS_OK;
    *err = lf->err;
    return err->status;
}

dibs_status
dibs__demo_worker(const dibs__demo_opts *opts, int id, dibs_error *err)
{
    life lf = {.signal_fd = -1, .failed_fd = -1};
    dibs_status rc = life_init(&lf, err);

    if (rc == DIBS_OK)
        rc = dibs__demo_work_init(&lf.work, id, opts, err);
    if (rc == DIBS_OK) {
        rc = live(&lf, err);
        if (rc != DIBS_OK)
            dibs__demo_say(&lf.work.log, DIBS__DEMO_BAD, "failed",
                           DIBS__DEMO_FACTS(
                               {"status", dibs_status_name(rc), 0}),
                           "Cannot go on: %s", err->message);
        else
            dibs__demo_say(&lf.work.log, DIBS__DEMO_PLAIN, "stopped", NULL,
                           "Stopped");
        dibs__demo_work_fini(&lf.work);
    }
    life_fini(&lf);
    return rc;
}
