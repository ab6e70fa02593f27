/* want.c - an acquire that a request waits for. Loop thread, and threads of the
 * client. */
/* SPDX-License-Identifier: MIT */
#include "serve/want.h"
#include "base/alloc.h"
#include "http/lasting.h"
#include "serve/daemon.h"
#include "serve/problem.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* The store may take some time beyond the wait; then the daemon gives up. */
enum { BEYOND_MS = 60000 };

/* The store grants at most so much to one that waited. */
enum { CLAIM_MS = 3000 };

typedef struct want {
    dibs__http_server *http;
    dibs_lock *lock;
    char name[DIBS_NAME_MAX + 1];
    pthread_mutex_t mutex; /* for all below */
    bool done;             /* the acquire has ended */
    bool gone;             /* the request has */
    bool taken;            /* the client has its token */
    dibs_error err;        /* of the acquire; DIBS_OK: granted */
} want;

int64_t dibs__serve_valid_ms(int64_t valid_ms)
{
    const int64_t less_ms = valid_ms - valid_ms / 100 - 2;

    return less_ms > 0 ? less_ms : 0;
}

void dibs__serve_answer_lease(dibs__http_exchange *ex, int status,
                              const dibs_lock *lock)
{
    const uint64_t fence = dibs_lock_fence(lock);
    char owner[DIBS_OWNER_SIZE], token[DIBS_OWNER_SIZE + 24];
    dibsx_json *js = dibs__http_answer(ex, status);

    dibs_lock_owner(lock, owner);
    snprintf(token, sizeof(token), "%s:%llu", owner, (unsigned long long)fence);
    dibsx_json_pair_text(js, "token", token);
    dibsx_json_pair_uint(js, "fence", fence);
    dibsx_json_pair_int(js, "valid_ms",
                        dibs__serve_valid_ms(dibs_lock_valid_ms(lock)));
}

void dibs__serve_answer_busy(dibs__http_exchange *ex, const dibs_error *err,
                             const char *name)
{
    dibs__serve *sv = dibs__http_arg(ex);
    dibsx_json *js = dibs__serve_fail(ex, err);
    dibs__serve_picture *picture;
    const dibs_lease_info *info;

    if (err->status != DIBS_BUSY && err->status != DIBS_TIMEOUT)
        return;
    picture = dibs__serve_look_take(&sv->look, 0);
    info = picture ? dibs__serve_picture_find(picture, name) : NULL;
    if (info && info->holder_count > 0) {
        dibsx_json_key(js, "holder");
        dibsx_json_open(js, '{');
        dibsx_json_pair_text(js, "host", info->holders[0].host);
        dibsx_json_pair_int(js, "pid", info->holders[0].pid);
        dibsx_json_pair_text(js, "label", info->holders[0].label);
        dibsx_json_pair_uint(js, "fence", info->holders[0].fence);
        dibsx_json_close(js, '}');
    }
    dibs__serve_picture_drop(picture);
}

/* Frees the handle, which gives back what it holds: on a thread that may block. */
static void free_want(want *wt)
{
    dibs_lock_free(wt->lock);
    pthread_mutex_destroy(&wt->mutex);
    dibsx_free(wt);
}

/* A grant that was waited for is a claim of some seconds; a renewal makes it last as
 * long as was asked for. Others need none, and all calls of a client wait for this one.
 * Returns whether the request has gone. */
static bool
end_acquire(want *wt, dibs_lock *lock, dibs_status rc, const dibs_error *err)
{
    dibs_error own = *err;
    bool gone;

    own.status = rc;
    if (rc == DIBS_OK && dibs_lock_valid_ms(lock) <= CLAIM_MS)
        own.status = dibs_lock_renew(lock, &own);
    pthread_mutex_lock(&wt->mutex);
    wt->err = own;
    wt->done = true;
    gone = wt->gone;
    /* The server is there as long as the request is. */
    if (!gone)
        dibs__http_wake(wt->http);
    pthread_mutex_unlock(&wt->mutex);
    return gone;
}

/* As dibs_async_fn. */
static void
acquired(dibs_lock *lock, dibs_status rc, const dibs_error *err, void *arg)
{
    want *wt = arg;

    if (end_acquire(wt, lock, rc, err))
        free_want(wt);
}

static void
given_back(dibs_lock *lock, dibs_status rc, const dibs_error *err, void *arg)
{
    (void)lock;
    (void)rc;
    (void)err;
    free_want(arg);
}

/* As dibs__http_later.ask. */
static bool ask_want(dibs__http_exchange *ex, void *arg, bool over)
{
    want *wt = arg;
    dibs_error err;
    bool done;

    pthread_mutex_lock(&wt->mutex);
    done = wt->done;
    err = wt->err;
    wt->taken = done && err.status == DIBS_OK;
    pthread_mutex_unlock(&wt->mutex);
    if (done && err.status == DIBS_OK) {
        dibs__serve_answer_lease(ex, 201, wt->lock);
        dibs_lock_leave(wt->lock);
    } else if (done) {
        dibs__serve_answer_busy(ex, &err, wt->name);
    } else if (over) {
        dibs__http_set(ex, "Retry-After", "1");
        (void)dibs__serve_refuse(ex, 503, "cancelled",
                                 "The daemon is shutting down; the place in "
                                 "the queue was given up");
    }
    return done || over;
}

/* As dibs__http_later.gone. Must not block: others give back. A claim whose renewal failed is
 * an error to the request, and still held. */
static void leave_want(void *arg)
{
    want *wt = arg;
    bool done, taken;

    pthread_mutex_lock(&wt->mutex);
    wt->gone = true;
    done = wt->done;
    taken = wt->taken;
    /* Once the mutex is free, the end of the acquire frees all of it. */
    if (!done)
        dibs_lock_cancel(wt->lock);
    pthread_mutex_unlock(&wt->mutex);
    if (!done)
        return;
    if (taken ||
        dibs_lock_release_async(wt->lock, given_back, wt, NULL) != DIBS_OK)
        free_want(wt);
}

void dibs__serve_want_begin(dibs__http_exchange *ex, dibs_lock *lock,
                            const char *name, int64_t wait_ms)
{
    want *wt = dibsx_zalloc(sizeof(*wt));
    dibs_error err = {0};

    if (!wt) {
        dibs_lock_free(lock);
        dibs__http_refuse(ex, 503, "There is no memory for the wait");
        return;
    }
    wt->http = dibs__http_server_of(ex);
    wt->lock = lock;
    pthread_mutex_init(&wt->mutex, NULL);
    snprintf(wt->name, sizeof(wt->name), "%s", name);
    if (dibs_lock_acquire_async(lock, acquired, wt, &err) != DIBS_OK) {
        free_want(wt);
        (void)dibs__serve_fail(ex, &err);
        return;
    }
    dibs__http_answer_later(ex, &(dibs__http_later){.ask = ask_want,
                                                    .gone = leave_want,
                                                    .arg = wt,
                                                    .wait_ms =
                                                        wait_ms + BEYOND_MS});
}
