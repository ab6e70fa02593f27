/* lock_acquire.c - getting the lock, with signals served and people told meanwhile.
 *
 * The main thread sits in dibs__lock_or_set_acquire(). Only when it has to wait is there
 * a second thread (signal_wait.h), which after a second says, on a terminal, who is in the
 * way. */
/* SPDX-License-Identifier: MIT */
#include "cli/lock_acquire.h"

#include "base/clock.h"
#include "base/fail.h"
#include "cli/signal_wait.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { TELL_AFTER_MS = 1000 };

typedef struct waiter {
    dibs_client *cl;
    dibs__lock_or_set *locks;
    const dibs__lock_request *request;
    dibs__signal_wait wait;
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
static void tell_people(void *arg)
{
    waiter *w = arg;

    (void)!dibs_lease_show(w->cl, dibs__lock_or_set_waiting(w->locks),
                           tell_holder, w, NULL);
}

static void cancel_wait(void *arg)
{
    dibs__lock_or_set_cancel(((waiter *)arg)->locks);
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
        if (w->wait.fatal || w->request->lock.wait_ms >= 0)
            return dibsx_fail(err, DIBS_TIMEOUT,
                              "%s was granted, but ended before that could be "
                              "confirmed",
                              w->request->names[0]);
    }
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

    waiter w = {.cl = cl,
                .locks = locks,
                .request = request,
                .wait = {.cancel = cancel_wait, .arg = &w}};
    if (!request->quiet && isatty(STDERR_FILENO)) {
        w.wait.tell = tell_people;
        w.wait.tell_at = dibsx_after_ms(dibsx_now(), TELL_AFTER_MS);
    }
    rc = dibs__signal_wait_begin(&w.wait, sig, err);
    if (rc != DIBS_OK)
        return rc;
    rc = acquire_confirmed(&w, err);
    dibs__signal_wait_end(&w.wait);
    *fatal = w.wait.fatal;
    return rc;
}
