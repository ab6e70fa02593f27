/* notices.c - dispatches the notices of the store; see notices.h.
 *
 * Owns the list of handlers, which only grows: the mutex may be let go while the
 * keeper is inside it. */
/* SPDX-License-Identifier: MIT */
#include "core/notices.h"

#include "base/event.h"
#include "core/client.h"
#include "core/log.h"

void dibs__notices_register(dibs_client *cl, dibs__notice_handler *handler)
{
    dibs__notice_handler **end = &cl->notice_handlers;

    while (*end)
        end = &(*end)->next;
    handler->next = NULL;
    *end = handler;
}

static void dispatch_missed(dibs_client *cl)
{
    for (dibs__notice_handler *at = cl->notice_handlers; at; at = at->next)
        at->hear_missed(cl, at);
}

void dibs__notices_dispatch(dibs_client *cl, const dibs__notice *notice)
{
    if (notice->kind == DIBS__NOTICE_MISSED) {
        dispatch_missed(cl);
        return;
    }
    for (dibs__notice_handler *at = cl->notice_handlers; at; at = at->next)
        at->hear(cl, at, notice);
}

/* As dibs__notice_tap, for grants: a thread may be asleep until then. The store is
 * closed, and its thread ends, after the tables of the client are gone: a closed client
 * hears nothing. */
static bool hear_at_once(void *arg, const dibs__notice *notice)
{
    dibs_client *cl = arg;
    dibsx_park *sleeper = NULL;
    bool heard = false;

    if (notice->kind != DIBS__NOTICE_GRANTED)
        return false;
    pthread_mutex_lock(&cl->mutex);
    if (!atomic_load(&cl->closed))
        for (dibs__notice_handler *at = cl->notice_handlers; at && !heard;
             at = at->next)
            heard =
                at->hear_at_once && at->hear_at_once(cl, at, notice, &sleeper);
    pthread_mutex_unlock(&cl->mutex);
    if (sleeper)
        dibsx_park_wake(sleeper);
    return heard;
}

void dibs__notices_listen(dibs_client *cl, dibs__store *st, dibsx_nsec deadline)
{
    dibs__keeper *kp = &cl->keeper;
    size_t i = st == cl->st ? 0 : 1;
    dibs_error err;
    int fd = -1;
    dibs_status rc;
    bool is_new, open, failed;

    pthread_mutex_lock(&cl->mutex);
    open = kp->listening[i];
    pthread_mutex_unlock(&cl->mutex);
    if (open)
        return;
    if (st->ops->doorbell_tap)
        st->ops->doorbell_tap(st, hear_at_once, cl);
    rc = st->ops->doorbell_open(st, deadline, &fd, &err);
    pthread_mutex_lock(&cl->mutex);
    kp->listening[i] = kp->listening[i] || rc == DIBS_OK;
    /* If there was no contact yet, the ask that follows tells what is wrong. */
    failed = rc != DIBS_OK && (i > 0 || atomic_load(&cl->reached));
    is_new = failed && !kp->bell_failed;
    kp->bell_failed = failed;
    if (fd >= 0 && kp->bell_fds[i] != fd) {
        kp->bells[i] = st;
        kp->bell_fds[i] = fd;
        dibsx_event_set(kp->wake_fd);
    }
    pthread_mutex_unlock(&cl->mutex);
    if (is_new)
        dibs__log(cl, DIBS_LOG_WARN, "bell",
                  "cannot open the doorbell, waits are slower: %s",
                  err.message);
}
