/* watcher.c - waits until a version changes; see watcher.h. */
/* SPDX-License-Identifier: MIT */
#include "coord/watcher.h"
#include "base/alloc.h"
#include "base/cond.h"
#include "core/log.h"

static dibs__watcher *watcher_of(dibs__handle *handle)
{
    return (dibs__watcher *)(void *)handle;
}

void dibs__watcher_wake(dibs__handle *handle)
{
    pthread_cond_signal(&watcher_of(handle)->cond);
}

void dibs__watcher_hear(dibs__handle *handle, const dibs__notice *notice)
{
    if (notice->kind == DIBS__NOTICE_CHANGED &&
        dibs__watch_told(&watcher_of(handle)->machine, notice->fence))
        dibs__watcher_wake(handle);
}

void dibs__watcher_hear_missed(dibs__handle *handle)
{
    dibs__watch_missed(&watcher_of(handle)->machine);
    dibs__watcher_wake(handle);
}

dibs_status dibs__watcher_start(dibs__watcher *w, dibs_error *err)
{
    dibs_client *cl = w->cl;
    dibs_status rc;

    if (!dibsx_cond_init(&w->cond))
        return dibsx_nomem(err, "a watch");
    dibs__watch_init(&w->machine);
    pthread_mutex_lock(&cl->mutex);
    rc = dibs__handle_join(cl, &w->handle, err);
    pthread_mutex_unlock(&cl->mutex);
    if (rc != DIBS_OK)
        pthread_cond_destroy(&w->cond);
    return rc;
}

dibs_status dibs__watcher_begin(dibs__watcher *w, dibs_error *err)
{
    dibs_status rc;

    if (!w)
        return dibsx_fail(err, DIBS_INVALID, "the watch is NULL");
    rc = dibs__client_usable(w->cl, err);
    if (rc != DIBS_OK)
        return rc;
    pthread_mutex_lock(&w->cl->mutex);
    if (w->waiting) {
        pthread_mutex_unlock(&w->cl->mutex);
        return dibsx_fail(err, DIBS_INVALID,
                          "another thread waits for this watch; make one for "
                          "each thread");
    }
    w->waiting = true;
    w->cancelled = false;
    dibs__handle_begin(&w->handle);
    return DIBS_OK;
}

void dibs__watcher_end(dibs__watcher *w)
{
    w->waiting = false;
    dibs__handle_end(&w->handle);
    pthread_mutex_unlock(&w->cl->mutex);
}

/* Locks: cl->mutex, let go meanwhile. */
static void listen_topic(dibs__watcher *w)
{
    dibs_client *cl = w->cl;
    dibsx_nsec sent_at = dibsx_now();
    dibs_error err = {0};
    dibs_status rc =
        dibs__handle_listen(&w->handle, dibs__client_deadline(cl, sent_at),
                            &err);
    bool is_new = rc == DIBS_DENIED && !w->deaf;

    w->deaf = rc == DIBS_DENIED;
    dibs__watch_eared(&w->machine, sent_at, dibsx_now(), rc);
    if (!is_new)
        return;
    pthread_mutex_unlock(&cl->mutex);
    dibs__log(cl, DIBS_LOG_WARN, w->words->area,
              "cannot listen to %s, so changes come later: %s", w->name,
              err.message);
    pthread_mutex_lock(&cl->mutex);
}

static dibs_status fail_late(const dibs__watcher *w, dibs_error *err)
{
    if (w->away)
        return dibsx_fail_at(err, w->failure.status, w->failure.origin, "%s",
                             w->failure.message);
    return dibsx_fail(err, DIBS_TIMEOUT, "%s%s did not change in time",
                      w->words->thing, w->name);
}

dibs_status dibs__watcher_await(dibs__watcher *w, dibsx_nsec deadline,
                                bool *fetch, dibs_error *err)
{
    dibs_client *cl = w->cl;

    for (;;) {
        dibsx_nsec until, now = dibsx_now();

        if (w->cancelled || cl->closing)
            return dibsx_fail(err, DIBS_CANCELLED, "the wait was cancelled");
        switch (dibs__watch_next(&w->machine, now, &until)) {
        case DIBS__WATCH_EAR:
            listen_topic(w);
            break;
        case DIBS__WATCH_LOOK:
            *fetch = false;
            return DIBS_OK;
        case DIBS__WATCH_FETCH:
            *fetch = true;
            return DIBS_OK;
        case DIBS__WATCH_SLEEP:
            if (now >= deadline)
                return fail_late(w, err);
            dibsx_cond_wait(&w->cond, &cl->mutex,
                            until < deadline ? until : deadline);
            break;
        }
    }
}

dibs_status dibs__watcher_note(dibs__watcher *w, dibs_status rc,
                               const dibs_error *failure, dibs_error *err)
{
    dibs_client *cl = w->cl;
    bool failed = rc != DIBS_OK && rc != DIBS_NOTFOUND;
    bool is_new = failed && !w->away;

    w->away = failed;
    if (!failed)
        return DIBS_OK;
    w->failure = *failure;
    if (is_new) {
        pthread_mutex_unlock(&cl->mutex);
        dibs__log(cl, DIBS_LOG_WARN, w->words->area,
                  "cannot %s %s, and will try again: %s", w->words->look,
                  w->name, failure->message);
        pthread_mutex_lock(&cl->mutex);
    }
    return dibsx_is_away(rc) ? DIBS_OK : fail_late(w, err);
}

void dibs__watcher_cancel(dibs__watcher *w)
{
    dibs_client *cl;

    if (!w || dibs__client_usable(w->cl, NULL) != DIBS_OK)
        return;
    cl = w->cl;
    pthread_mutex_lock(&cl->mutex);
    w->cancelled = true;
    pthread_cond_signal(&w->cond);
    pthread_mutex_unlock(&cl->mutex);
}

void dibs__watcher_free(dibs__watcher *w)
{
    dibs_client *cl;
    bool last;

    if (!w || dibs__forked(w->cl->fork_number))
        return;
    cl = w->cl;
    pthread_mutex_lock(&cl->mutex);
    last = dibs__handle_leave(&w->handle);
    pthread_mutex_unlock(&cl->mutex);
    pthread_cond_destroy(&w->cond);
    dibsx_free(w);
    if (last)
        dibs__client_free(cl);
}
