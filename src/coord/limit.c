/* limit.c - rate limits: drives the machine of each in real time.
 *
 * A call that the stock of its limit can serve takes no lock; the clock of the machine
 * is coarse, as every call reads it. All others run under the
 * client's mutex, let go for the store. A worker of the client fetches for the stock,
 * and looks whether a store that was away is back. Locks: cl->mutex guards all of it. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/cond.h"
#include "base/opts.h"
#include "base/uncancel.h"
#include "coord/handle.h"
#include "coord/limit_machine.h"
#include "core/log.h"
#include "core/names.h"
#include "core/reach.h"
#include "core/worker.h"
#include <dibs/limit.h>
#include <inttypes.h>
#include <string.h>

#define US_PER_MS INT64_C(1000)

struct dibs_limit {
    dibs__handle handle; /* first, so that one is the other */
    dibs__job job;
    dibs_client *cl;
    char name[DIBS_NAME_MAX + 1]; /* with the client's prefix */
    int64_t burst;
    int64_t wait_us;
    dibs__limiter machine;
    pthread_cond_t cond;
    atomic_bool ordered; /* the job is queued, or runs */
    bool away;           /* the log knows that the store is */
    _Atomic int64_t retry_us;
    _Atomic int64_t remaining;
};

/* Ends every sleep. */
static void wake_limit(dibs__handle *handle)
{
    pthread_cond_broadcast(&((dibs_limit *)(void *)handle)->cond);
}

static const dibs__handle_kind kind = {.noun = "a limit", .wake = wake_limit};

/* Says once that the store is away, and once that it is back. Locks: cl->mutex, let go
 * for the log. */
static void note_store(dibs_limit *l, const dibs_error *err)
{
    bool away = l->machine.away;

    if (away == l->away)
        return;
    l->away = away;
    pthread_mutex_unlock(&l->cl->mutex);
    if (away)
        dibs__log(l->cl, DIBS_LOG_WARN, "limit",
                  "the store does not answer, so %s is %s: %s",
                  dibs__name_short(l->cl, l->name),
                  l->machine.policy == DIBS_AWAY_OPEN
                      ? "without a limit"
                      : "limited for this client alone",
                  err->message);
    else
        dibs__log(l->cl, DIBS_LOG_WARN, "limit",
                  "the store answers again: %s is shared",
                  dibs__name_short(l->cl, l->name));
    pthread_mutex_lock(&l->cl->mutex);
}

/* Locks: cl->mutex, let go meanwhile. */
static dibs_status send_draw(dibs_limit *l, const dibs__draw *draw,
                             dibs__drawn *drawn, dibs_error *err)
{
    dibs_client *cl = l->cl;
    dibsx_nsec deadline = dibs__client_deadline(cl, dibsx_now());
    dibs_status rc;

    *drawn = (dibs__drawn){0};
    pthread_mutex_unlock(&cl->mutex);
    rc = dibs__reach_store(cl, deadline, err);
    if (rc == DIBS_OK)
        rc = cl->st->ops->rate->draw(cl->st, draw, deadline, drawn, err);
    if (rc == DIBS_OK || rc == DIBS_BUSY)
        atomic_store(&l->remaining, drawn->remaining);
    pthread_mutex_lock(&cl->mutex);
    return rc;
}

/* Locks: cl->mutex, let go meanwhile. */
static void probe_store(dibs_limit *l)
{
    dibs_client *cl = l->cl;
    dibsx_nsec deadline = dibs__client_deadline(cl, dibsx_now());
    int64_t store_wall_us;
    dibs_error err = {0};
    dibs_status rc;

    pthread_mutex_unlock(&cl->mutex);
    rc = dibs__reach_store(cl, deadline, &err);
    if (rc == DIBS_OK)
        rc = cl->st->ops->now(cl->st, deadline, &store_wall_us, &err);
    pthread_mutex_lock(&cl->mutex);
    dibs__limiter_probed(&l->machine, dibsx_coarse_now(), rc == DIBS_OK);
    note_store(l, &err);
}

/* Thread: a worker. */
static void work(dibs_client *cl, dibs__job *job)
{
    dibs_limit *l =
        (dibs_limit *)(void *)((char *)job - offsetof(dibs_limit, job));
    dibsx_nsec sent_at = dibsx_coarse_now();
    dibs__drawn drawn;
    dibs__draw draw;

    if (dibs__limiter_probes(&l->machine, sent_at)) {
        probe_store(l);
    } else if (dibs__limiter_fetch(&l->machine, sent_at, &draw)) {
        dibs_status rc = send_draw(l, &draw, &drawn, NULL);

        dibs__limiter_fetched(&l->machine, draw.cost, sent_at,
                              dibsx_coarse_now(), rc, &drawn);
    }
    atomic_store(&l->ordered, false);
    pthread_cond_broadcast(&cl->over);
}

/* Without a worker the calls fetch for themselves. Locks: cl->mutex. */
static void order_work(dibs_limit *l)
{
    if (!atomic_exchange(&l->ordered, true) &&
        !dibs__worker_add(l->cl, &l->job))
        atomic_store(&l->ordered, false);
}

static dibs_status
copy_opts(const dibs_limit_opts *opts, dibs_limit_opts *out, dibs_error *err)
{
    dibs_status rc =
        dibsx_opts_copy(out, sizeof(*out), opts, "DIBS_LIMIT_OPTS()", err);

    if (rc != DIBS_OK)
        return rc;
    if (!opts)
        return dibsx_fail(err, DIBS_INVALID,
                          "a limit needs a count of tokens: give options");
    if (out->period_ms == 0)
        out->period_ms = 1000;
    if (out->burst == 0)
        out->burst = out->count;
    if (out->clients == 0)
        out->clients = 1;
    if (out->count < 1)
        return dibsx_fail(err, DIBS_INVALID,
                          "the count of a limit is below 1; give at least one "
                          "token in a period");
    if (out->period_ms < 1 || out->burst < 1 || out->clients < 1 ||
        out->chunk < DIBS_LIMIT_AUTO || out->chunk > out->burst)
        return dibsx_fail(err, DIBS_INVALID,
                          "period, burst and clients of a limit are at least "
                          "1, and a chunk is no more than the burst");
    if (out->on_unavailable < DIBS_AWAY_FAIL ||
        out->on_unavailable > DIBS_AWAY_OPEN)
        return dibsx_fail(err, DIBS_INVALID,
                          "on_unavailable is none of fail, local and open");
    return DIBS_OK;
}

/* One token is no stock: it would only be late. */
static int64_t choose_chunk(const dibs_limit_opts *opts)
{
    double tokens = (double)opts->count / (double)opts->period_ms *
                    (double)DIBS__LIMIT_CHUNK_MS;
    int64_t chunk = opts->burst / 4;

    if (opts->chunk != DIBS_LIMIT_AUTO)
        return opts->chunk;
    if (tokens < (double)chunk)
        chunk = (int64_t)tokens;
    return chunk > 1 ? chunk : 0;
}

/* The machine of the limit. A call may need all of the burst while the store is
 * away, so the share is checked with that. */
static dibs_status
make_machine(dibs_limit *l, const dibs_limit_opts *opts, dibs_error *err)
{
    dibs__draw rate, share,
        asked = {.name = l->name,
                 .cost = 1,
                 .least = 1,
                 .count = opts->count,
                 .burst = opts->burst,
                 .wait_us = INT64_MAX};
    dibs_status rc;

    if (__builtin_mul_overflow(opts->period_ms, US_PER_MS, &asked.period_us))
        return dibsx_fail(err, DIBS_INVALID, "the period is too long");
    rc = dibs__rate_check(&asked, &rate, err);
    if (rc != DIBS_OK)
        return rc;
    share = rate;
    if (opts->on_unavailable == DIBS_AWAY_LOCAL) {
        if (__builtin_mul_overflow(asked.period_us, opts->clients,
                                   &asked.period_us))
            return dibsx_fail(err, DIBS_INVALID, "the clients are too many");
        rc = dibs__rate_check(&asked, &share, err);
        share.burst = opts->burst / opts->clients;
        if (share.burst < 1)
            share.burst = 1;
    }
    dibs__limiter_init(&l->machine, &rate, choose_chunk(opts),
                       opts->on_unavailable, &share);
    return rc;
}

/* Adds the limit to its client. */
static dibs_status join_client(dibs_limit *l, dibs_error *err)
{
    dibs_status rc;

    pthread_mutex_lock(&l->cl->mutex);
    rc = dibs__handle_join(l->cl, &l->handle, err);
    pthread_mutex_unlock(&l->cl->mutex);
    return rc;
}

static dibs_status fill_limit(dibs_limit *l, dibs_client *cl, const char *name,
                              const dibs_limit_opts *opts, dibs_error *err)
{
    dibs_limit_opts want;
    dibs_status rc = copy_opts(opts, &want, err);

    l->handle.kind = &kind;
    l->cl = cl;
    l->job.run = work;
    l->burst = want.burst;
    if (rc == DIBS_OK)
        rc = dibs__name_full(cl, name, l->name, err);
    if (rc == DIBS_OK)
        rc = make_machine(l, &want, err);
    if (want.wait_ms < 0 ||
        __builtin_mul_overflow(want.wait_ms, US_PER_MS, &l->wait_us))
        l->wait_us = INT64_MAX;
    return rc;
}

dibs_status
dibs_limit_new(dibs_client *cl, const char *name, const dibs_limit_opts *opts,
               dibs_limit **out, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibs_status rc = dibs__client_usable(cl, err);
    const char *why;
    dibs_limit *l;

    *out = NULL;
    if (rc != DIBS_OK)
        return rc;
    why = dibs__store_cannot(cl->st, DIBS__CAN_RATE);
    if (why)
        return dibsx_fail(err, DIBS_UNSUPPORTED, "%s", why);
    l = dibsx_zalloc(sizeof(*l));
    if (!l)
        return dibsx_nomem(err, "a limit");
    rc = fill_limit(l, cl, name, opts, err);
    if (rc != DIBS_OK || !dibsx_cond_init(&l->cond)) {
        dibsx_free(l);
        return rc != DIBS_OK ? rc : dibsx_nomem(err, "a limit");
    }
    rc = join_client(l, err);
    if (rc == DIBS_OK) {
        *out = l;
        return DIBS_OK;
    }
    pthread_cond_destroy(&l->cond);
    dibsx_free(l);
    return rc;
}

/* Locks: cl->mutex, let go meanwhile. */
static dibs_status sleep_for(dibs_limit *l, int64_t sleep_us, dibs_error *err)
{
    dibsx_nsec now = dibsx_now();
    dibsx_nsec until = sleep_us < (DIBSX_NEVER - now) / 1000
                           ? now + sleep_us * 1000
                           : DIBSX_NEVER;

    for (; now < until; now = dibsx_now()) {
        if (l->cl->closing)
            return dibsx_fail(err, DIBS_CANCELLED, "the wait was cancelled");
        dibsx_cond_wait(&l->cond, &l->cl->mutex, until);
    }
    return DIBS_OK;
}

static dibs_status
fail_busy(dibs_limit *l, const dibs__take *take, dibs_error *err)
{
    int64_t retry_ms = (take->retry_us + US_PER_MS - 1) / US_PER_MS;
    char span[32];

    atomic_store(&l->retry_us, take->retry_us);
    dibsx_duration_text(retry_ms, span, sizeof(span));
    return dibsx_fail(err, DIBS_BUSY, "%s is over its limit; try again in %s",
                      dibs__name_short(l->cl, l->name), span);
}

/* Locks: cl->mutex, let go meanwhile. */
static dibs_status take_slowly(dibs_limit *l, int64_t n, dibs_error *err)
{
    dibs__take take = {.n = n, .wait_us = l->wait_us};
    dibs__take_todo todo = DIBS__TAKE_DRAW;
    dibs_error why = {0};
    dibs_status rc = DIBS_OK;

    while (todo == DIBS__TAKE_DRAW) {
        dibsx_nsec sent_at = dibsx_coarse_now();
        dibs__drawn drawn;
        dibs__draw draw;

        todo = dibs__limiter_next(&l->machine, &take, sent_at, &draw);
        if (todo != DIBS__TAKE_DRAW)
            break;
        rc = send_draw(l, &draw, &drawn, &why);
        todo = dibs__limiter_drawn(&l->machine, &take, sent_at,
                                   dibsx_coarse_now(), rc, &drawn);
        note_store(l, &why);
    }
    if (dibs__limiter_probes(&l->machine, dibsx_coarse_now()))
        order_work(l);
    if (todo == DIBS__TAKE_DONE)
        return sleep_for(l, take.sleep_us, err);
    if (todo == DIBS__TAKE_REFUSED)
        return fail_busy(l, &take, err);
    if (err)
        *err = why;
    return rc;
}

static dibs_status check_take(const dibs_limit *l, int64_t n, dibs_error *err)
{
    if (!l)
        return dibsx_fail(err, DIBS_INVALID, "the limit is NULL");
    if (n < 1)
        return dibsx_fail(err, DIBS_INVALID, "at least one token is taken");
    if (n > l->burst)
        return dibsx_fail(err, DIBS_INVALID,
                          "%" PRId64 " tokens at once are more than the burst "
                          "of %" PRId64 " ever allows; raise the burst",
                          n, l->burst);
    return dibs__client_usable(l->cl, err);
}

static dibs_status take_locked(dibs_limit *l, int64_t n, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibs_status rc;

    pthread_mutex_lock(&l->cl->mutex);
    dibs__handle_begin(&l->handle);
    if (l->cl->closing)
        rc = dibsx_fail(err, DIBS_CANCELLED, "the client is being closed");
    else
        rc = take_slowly(l, n, err);
    dibs__handle_end(&l->handle);
    pthread_mutex_unlock(&l->cl->mutex);
    return rc;
}

static void order_fetch(dibs_limit *l)
{
    DIBSX_UNCANCEL;

    if (atomic_load(&l->ordered))
        return;
    pthread_mutex_lock(&l->cl->mutex);
    order_work(l);
    pthread_mutex_unlock(&l->cl->mutex);
}

dibs_status dibs_limit_take(dibs_limit *l, int64_t n, dibs_error *err)
{
    dibs_status rc = check_take(l, n, err);
    bool low;

    if (rc != DIBS_OK)
        return rc;
    if (l->machine.chunk == 0 ||
        !dibs__limiter_spend(&l->machine, n, dibsx_coarse_now(), &low))
        return take_locked(l, n, err);
    if (low)
        order_fetch(l);
    return DIBS_OK;
}

int64_t dibs_limit_retry_ms(const dibs_limit *l)
{
    return l ? (atomic_load(&l->retry_us) + US_PER_MS - 1) / US_PER_MS : 0;
}

int64_t dibs_limit_remaining(const dibs_limit *l)
{
    return l ? atomic_load(&l->remaining) : 0;
}

void dibs_limit_free(dibs_limit *l)
{
    DIBSX_UNCANCEL;
    dibs_client *cl;
    bool last;

    if (!l || dibs__forked(l->cl->fork_number))
        return;
    cl = l->cl;
    pthread_mutex_lock(&cl->mutex);
    while (atomic_load(&l->ordered))
        pthread_cond_wait(&cl->over, &cl->mutex);
    last = dibs__handle_leave(&l->handle);
    pthread_mutex_unlock(&cl->mutex);
    pthread_cond_destroy(&l->cond);
    dibsx_free(l);
    if (last)
        dibs__client_free(cl);
}
