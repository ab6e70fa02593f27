/* client.c - opening, closing and asking about a client.
 *
 * Owns the store handle and the keeper. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "core/client.h"

#include "base/alloc.h"
#include "base/cond.h"
#include "base/event.h"
#include "base/fail.h"
#include "base/forget.h"
#include "base/opts.h"
#include "base/uncancel.h"
#include "core/attach.h"
#include "core/client_settings.h"
#include "core/durability.h"
#include "core/fork.h"
#include "core/lock/acquire.h"
#include "core/lock/handle.h"
#include "core/lock/lock_notices.h"
#include "core/lock/lock_opts.h"
#include "core/lock/release.h"
#include "core/log.h"
#include "core/names.h"
#include "core/reach.h"
#include "core/threads/keeper.h"
#include "store/check_url.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { TIMEOUT_MS = 5000, TIMEOUT_MAX_MS = 24 * 3600 * 1000 };

/* A mistake in it would show in the first outage. */
static dibs_status check_local_url(const char *url, dibs_error *err)
{
    dibs_error why = {0};

    if (!url || dibs__store_check_url(url, &why) == DIBS_OK)
        return DIBS_OK;
    return dibsx_fail_at(err, why.status, why.origin,
                         "local_url names no store: %s", why.message);
}

static dibs_status
read_opts(const dibs_client_opts *opts, dibs_client_opts *out, dibs_error *err)
{
    dibs_status rc =
        dibsx_opts_copy(out, sizeof(*out), opts, "DIBS_CLIENT_OPTS()", err);

    if (rc != DIBS_OK)
        return rc;
    if (out->ttl_ms != 0 && !dibs__ttl_ok(out->ttl_ms))
        return dibs__ttl_fail(err);
    if (out->on_unavailable < DIBS_AWAY_FAIL ||
        out->on_unavailable > DIBS_AWAY_OPEN)
        return dibsx_fail(err, DIBS_INVALID,
                          "on_unavailable is %d, which is no dibs_away",
                          (int)out->on_unavailable);
    if (out->timeout_ms < 0)
        return dibsx_fail(err, DIBS_INVALID, "timeout_ms is negative");
    if (out->lazy && out->open_wait_ms != 0)
        return dibsx_fail(err, DIBS_INVALID,
                          "open_wait_ms is set for a client that is lazy; set "
                          "one of them");
    if (out->renew_every_ms != 0 && out->renew_every_ms < DIBS__RENEW_MIN_MS)
        return dibsx_fail(err, DIBS_INVALID, "renew_every_ms is below %d",
                          DIBS__RENEW_MIN_MS);
    return check_local_url(out->local_url, err);
}

static dibs_status fill_client(dibs_client *cl, const char *url,
                               const dibs_client_opts *opts, dibs_error *err)
{
    char shown[512];
    dibs_status rc;

    dibsx_url_redact(url, shown, sizeof(shown));
    cl->url = dibsx_strdup(shown);
    cl->prefix = dibsx_strdup(opts->prefix ? opts->prefix : "");
    cl->label = dibsx_strdup(opts->label ? opts->label : "");
    if (opts->local_url)
        cl->local_url = dibsx_strdup(opts->local_url);
    if (!cl->url || !cl->prefix || !cl->label ||
        (opts->local_url && !cl->local_url))
        return dibsx_nomem(err, "the client");
    rc = dibs__text_check("the prefix", cl->prefix, err);
    if (rc != DIBS_OK)
        return rc;
    dibs__text_clean(cl->label);
    cl->ttl_ms = opts->ttl_ms ? opts->ttl_ms : DIBS__TTL_DEFAULT_MS;
    cl->renew_every_ms = opts->renew_every_ms;
    cl->timeout_ms = opts->timeout_ms ? opts->timeout_ms : TIMEOUT_MS;
    if (cl->timeout_ms > TIMEOUT_MAX_MS)
        return dibsx_fail(err, DIBS_INVALID, "timeout_ms is longer than a day");
    cl->on_unavailable = opts->on_unavailable;
    rc = dibs__durability_read(opts->durability, 0, &cl->replicas, err);
    if (rc != DIBS_OK)
        return rc;
    cl->log = opts->log;
    cl->log_arg = opts->log_arg;
    atomic_init(&cl->log_level, (int)opts->log_level);
    dibsx_host_name(cl->host);
    cl->pid = getpid();
    if (!dibsx_random(&cl->jitter, sizeof(cl->jitter)))
        return dibsx_fail(err, DIBS_UNAVAIL, "the kernel gives no randomness");
    cl->share_stats = opts->share_stats;
    return DIBS_OK;
}

/* With a fallback, or if the client is lazy, the store may be out of reach when
 * the client is opened. */
static dibs_status open_store(dibs_client *cl, const char *url,
                              const dibs_client_opts *opts, dibs_error *err)
{
    dibsx_nsec deadline = dibs__client_deadline(cl, dibsx_now());
    dibs_status rc = dibs__store_make(url, deadline, &cl->st, err);

    if (rc != DIBS_OK)
        return rc;
    cl->share_events =
        opts->share_events && !dibs__store_cannot(cl->st, DIBS__CAN_TOPIC);
    if (cl->st->ops->caution && cl->st->ops->caution(cl->st))
        dibs__log(cl, DIBS_LOG_WARN, "caution", "%s",
                  cl->st->ops->caution(cl->st));
    cl->lazy = opts->lazy || (cl->st->lazy && opts->open_wait_ms == 0);
    if (cl->lazy)
        return DIBS_OK;
    rc = dibs__reach_waiting(cl, opts->open_wait_ms, err);
    if (rc == DIBS_UNAVAIL && cl->on_unavailable != DIBS_AWAY_FAIL)
        return DIBS_OK;
    return rc;
}

/* Initialises a client. After a failure the caller frees it with
 * dibs__client_free(). */
static dibs_status init_client(dibs_client *cl, const char *url,
                               const dibs_client_opts *opts, dibs_error *err)
{
    dibs_status rc;

    pthread_mutex_init(&cl->mutex, NULL);
    dibs__lock_notices_init(cl);
    rc = dibs__keeper_init(cl, err);
    if (rc != DIBS_OK)
        return rc;
    if (!dibsx_cond_init(&cl->over))
        return dibsx_nomem(err, "the client");
    cl->fork_number = dibs__fork_number();
    if (cl->fork_number == 0)
        return dibsx_fail(err, DIBS_UNSUPPORTED,
                          "this kernel cannot tell a child process apart "
                          "(MADV_WIPEONFORK, Linux 4.14)");
    rc = fill_client(cl, url, opts, err);
    if (rc != DIBS_OK)
        return rc;
    return open_store(cl, url, opts, err);
}

dibs_status dibs_open(const char *url, const dibs_client_opts *opts,
                      dibs_client **out, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibs_client_opts want;
    dibs__client_settings settings;
    dibs_client *cl = NULL;
    dibs_status rc;

    *out = NULL;
    rc = read_opts(opts, &want, err);
    if (rc != DIBS_OK)
        return rc;
    rc = dibs__client_settings_read(&settings, url, &want, err);
    if (rc != DIBS_OK)
        goto out;
    cl = dibsx_zalloc(sizeof(*cl));
    if (!cl) {
        rc = dibsx_nomem(err, "the client");
        goto out;
    }
    rc = init_client(cl, settings.url, &want, err);
    if (rc != DIBS_OK)
        goto out;
    *out = cl;
    cl = NULL;
out:
    if (cl)
        dibs__client_free(cl);
    dibs__client_settings_fini(&settings);
    dibsx_forget();
    return rc;
}

void dibs__client_free(dibs_client *cl)
{
    dibs__keeper_fini(cl);
    dibs__attached_free(cl);
    dibsx_table_fini(&cl->by_owner);
    dibsx_table_fini(&cl->by_name);
    dibsx_table_fini(&cl->partings);
    dibsx_table_fini(&cl->traits);
    dibs__store_close(cl->fallback);
    dibs__store_close(cl->st);
    pthread_cond_destroy(&cl->over);
    pthread_mutex_destroy(&cl->mutex);
    dibsx_free(cl->url);
    dibsx_free(cl->prefix);
    dibsx_free(cl->label);
    dibsx_free(cl->local_url);
    dibsx_free(cl);
}

/* Releases the leases of handles that were not freed. A call that waits there
 * for a renewal is woken up: no thread sends renewals any more. Locks:
 * cl->mutex. */
static void release_all(dibs_client *cl)
{
    dibs_lock *lock;
    size_t at = 0;

    while ((lock = dibs__lock_any(cl, &at)) != NULL) {
        lock->refs++;
        dibs__lock_let_go(lock);
        dibs__lock_unlist(lock);
        pthread_cond_broadcast(&cl->over);
        dibs__lock_unref(lock);
    }
}

/* Ends the calls of locks and what they left behind: one that was under way may have
 * got a lease. Locks: cl->mutex, let go meanwhile. */
static void end_calls(dibs_client *cl)
{
    while (cl->acquires)
        pthread_cond_wait(&cl->over, &cl->mutex);
    release_all(cl);
    atomic_store(&cl->closed, true);
    while (cl->calls > 0)
        pthread_cond_wait(&cl->over, &cl->mutex);
    release_all(cl);
}

void dibs_close(dibs_client *cl)
{
    DIBSX_UNCANCEL;
    bool last;

    if (!cl || dibs__client_usable(cl, NULL) != DIBS_OK)
        return;
    pthread_mutex_lock(&cl->mutex);
    dibs__lock_acquire_close(cl);
    dibs__attached_close(cl);
    end_calls(cl);
    pthread_mutex_unlock(&cl->mutex);
    dibs__keeper_stop(cl);
    dibs__attached_stop(cl);
    pthread_mutex_lock(&cl->mutex);
    cl->ended = true;
    last = cl->handle_count == 0;
    pthread_mutex_unlock(&cl->mutex);
    if (last)
        dibs__client_free(cl);
}

dibs_status dibs_ping(dibs_client *cl, int64_t *took_us, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibsx_nsec start = dibsx_now();
    int64_t store_wall_us;
    dibs_status rc = dibs__reach_usable(cl, err);

    if (rc == DIBS_OK)
        rc = cl->st->ops->now(cl->st, dibs__client_deadline(cl, start),
                              &store_wall_us, err);
    if (took_us)
        *took_us = (dibsx_now() - start) / 1000;
    return rc;
}

dibs_status dibs_clock_compare(dibs_client *cl, int64_t *ahead_us,
                               int64_t *within_us, dibs_error *err)
{
    DIBSX_UNCANCEL;
    int64_t before_us, after_us, store_us = 0;
    dibs_status rc = dibs__reach_usable(cl, err);

    *ahead_us = 0;
    if (within_us)
        *within_us = 0;
    if (rc != DIBS_OK)
        return rc;
    before_us = dibsx_wall_us();
    rc = cl->st->ops->now(cl->st, dibs__client_deadline(cl, dibsx_now()),
                          &store_us, err);
    after_us = dibsx_wall_us();
    if (rc != DIBS_OK)
        return rc;
    *ahead_us = store_us - (before_us + (after_us - before_us) / 2);
    /* A quorum tells the time at its end of the round, by clocks that it has compared in the
     * same way: half of the round on top. */
    if (within_us)
        *within_us = after_us - before_us + 1;
    return rc;
}

void dibs_log_level_set(dibs_client *cl, dibs_log_level level)
{
    if (dibs__client_usable(cl, NULL) == DIBS_OK)
        atomic_store(&cl->log_level, (int)level);
}

int64_t dibs_keeper_lag_ms(dibs_client *cl)
{
    DIBSX_UNCANCEL;
    dibs__keeper *kp = &cl->keeper;
    dibsx_nsec lag;

    /* Without the mutex, for which a keeper that stands still may wait. */
    if (dibs__client_usable(cl, NULL) != DIBS_OK || !atomic_load(&kp->running))
        return 0;
    lag = dibsx_lag_ask(&kp->lag, dibsx_now());
    dibsx_event_set(kp->wake_fd);
    return lag / DIBSX_MS;
}

const char *dibs_url(const dibs_client *cl)
{
    return cl->url;
}

bool dibs_is_lazy(const dibs_client *cl)
{
    return cl->lazy;
}

dibs_status
dibs_audit(dibs_client *cl, dibs_finding_fn *each, void *arg, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibs_status rc = dibs__reach_usable(cl, err);

    if (rc != DIBS_OK)
        return rc;
    return cl->st->ops->audit(cl->st, dibs__client_deadline(cl, dibsx_now()),
                              each, arg, err);
}
