/* lock_acquire.c - getting the lock, with signals served and people told meanwhile.
 *
 * The main thread sits in dibs__lock_or_set_acquire(). Only when it has to wait is there
 * a second thread, which takes the signals: a fatal one cancels the wait, TSTP
 * stops the process. After a second it says, on a terminal, who is in the way. */
/* SPDX-License-Identifier: MIT */
#include "cli/lock_acquire.h"

#include "base/clock.h"
#include "base/fail.h"
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { TELL_AFTER_MS = 1000, CANCEL_AGAIN_MS = 10 };

typedef struct waiter {
    dibs_client *cl;
    dibs__lock_or_set *locks;
    const dibs__lock_request *request;
    sigset_t set; /* the signals served, and the one that ends the thread */
    dibsx_nsec tell_at; /* when to say who is in the way */
    _Atomic int fatal;  /* the signal that ends the wait; 0: none */
} waiter;

static size_t place_of(const dibs_lease_info *info, const char *owner)
{
    for (size_t i = 0; i < info->waiter_count; i++)
        if (strcmp(info->waiters[i].owner, owner) == 0)
            return i;
    return info->waiter_count;
}

static bool tell_holder(const dibs_lease_info *info, void *arg)
{
    const waiter *w = arg;
    char owner[DIBS_OWNER_SIZE], span[32], ahead[48] = "";
    if (info->holder_count == 0)
        return false;
    const dibs_party *holder = &info->holders[0];
    bool labelled = holder->label[0] != '\0';
    dibs_lock_owner(dibs__lock_or_set_find(w->locks, info->name), owner);
    size_t place = place_of(info, owner);
    if (place > 0)
        (void)snprintf(ahead, sizeof ahead, ", %zu ahead", place);
    dibsx_duration_text(holder->left ? holder->left_ms : holder->age_ms, span,
                        sizeof span);
    dibs__cli_say("waiting for %s: %s %s%s%s pid %" PRId64 " for %s%s%s",
                  info->name, holder->left ? "kept closed by" : "held by",
                  holder->label, labelled ? " on " : "", holder->host,
                  holder->pid, holder->left ? "another " : "", span, ahead);
    return false;
}

/* Only a help for people, so that a store out of reach is not worth a word:
 * whoever waits hears of that. */
static void tell_if_due(waiter *w)
{
    if (dibsx_now() < w->tell_at)
        return;
    w->tell_at = DIBSX_NEVER;
    (void)!dibs_lease_show(w->cl, dibs__lock_or_set_waiting(w->locks),
                           tell_holder, w, NULL);
}

static int next_signal(const waiter *w)
{
    int64_t ms = dibsx_wait_ms(w->tell_at, dibsx_now());
    if (w->fatal)
        ms = CANCEL_AGAIN_MS;
    struct timespec span = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};
    return ms < 0 ? sigwaitinfo(&w->set, NULL)
                  : sigtimedwait(&w->set, NULL, &span);
}

static void *serve_signals(void *arg)
{
    waiter *w = arg;
    for (;;) {
        int number = next_signal(w);
        if (number == SIGRTMIN)
            return NULL;
        if (number == SIGTSTP)
            (void)dibs__signal_stop(false);
        if (number > 0 && dibs__signal_fatal(number) && !w->fatal)
            w->fatal = number;
        /* The wait may not have begun when the signal came: cancel until the
         * main thread says that it is over. */
        if (w->fatal)
            dibs__lock_or_set_cancel(w->locks);
        else
            tell_if_due(w);
    }
}

static bool confirmed(const waiter *w)
{
    return dibs__lock_or_set_valid_ms(w->locks) >= w->request->lock.ttl_ms / 2;
}

/* A lease that comes by hand-off is a short claim at first: too short to start
 * something under. If it ends before it is renewed, nothing is lost but time. */
static dibs_status acquire_confirmed(waiter *w, dibs_error *err)
{
    for (;;) {
        dibs_status rc = dibs__lock_or_set_acquire(w->locks, err);
        if (rc != DIBS_OK || confirmed(w))
            return rc;
        rc = dibs__lock_or_set_renew(w->locks, err);
        if (rc == DIBS_OK || confirmed(w))
            return DIBS_OK;
        (void)dibs__lock_or_set_release(w->locks, NULL);
        if (w->fatal || w->request->lock.wait_ms >= 0)
            return dibsx_fail(err, DIBS_TIMEOUT,
                              "%s was granted, but ended before that could be "
                              "confirmed",
                              w->request->names[0]);
    }
}

static dibs_status wait_served(waiter *w, dibs_error *err)
{
    pthread_t thread;
    int failed = pthread_create(&thread, NULL, serve_signals, w);
    if (failed)
        return dibsx_fail_at(err, DIBS_UNAVAIL, dibsx_errno_name(failed),
                             "cannot start a thread: %s", strerror(failed));
    dibs_status rc = acquire_confirmed(w, err);
    pthread_kill(thread, SIGRTMIN);
    pthread_join(thread, NULL);
    return rc;
}

/* A free lock needs no doorbell. In the statistics, though, a try before the wait
 * would count as one more refusal; and a limit of the wait is not one of a try, which
 * takes as long as a step may. */
static bool tries_first(const dibs__lock_request *request)
{
    return request->lock.wait_ms < 0 && request->lock.retries == 0 &&
           !request->counted;
}

dibs_status
dibs__cli_acquire(dibs_client *cl, dibs__lock_or_set *locks,
                  const dibs__lock_request *request, const dibs__signals *sig,
                  int *fatal, dibs_error *err)
{
    *fatal = 0;
    bool once = request->lock.wait_ms == 0 && request->lock.retries == 0;
    dibs_status rc = DIBS_BUSY;
    if (once || tries_first(request))
        rc = dibs__lock_or_set_try(locks, err);
    /* A grant that came too late is no reason to give up either. */
    bool away = dibs__lock_request_outwaits(request, rc) ||
                (request->patient && rc == DIBS_TIMEOUT);
    if (once || (rc != DIBS_BUSY && !away))
        return rc;

    bool talk = !request->quiet && isatty(STDERR_FILENO);
    waiter w = {.cl = cl,
                .locks = locks,
                .request = request,
                .set = sig->served};
    w.tell_at = talk ? dibsx_after_ms(dibsx_now(), TELL_AFTER_MS) : DIBSX_NEVER;
    sigaddset(&w.set, SIGRTMIN);
    sigset_t mask;
    pthread_sigmask(SIG_BLOCK, &w.set, &mask);
    rc = wait_served(&w, err);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    *fatal = w.fatal;
    return rc;
}
