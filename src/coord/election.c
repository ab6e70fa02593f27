/* election.c - election handles: new, campaign, wait, look, resign, free. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "coord/election.h"
#include "base/alloc.h"
#include "base/cond.h"
#include "base/opts.h"
#include "base/thread.h"
#include "base/uncancel.h"
#include "core/client.h"
#include "core/names.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    TTL_MIN_MS = 100,
    STOP_PART = 10,
    BEAT_PART = 6,
    BEAT_MAX_MS = 24 * 3600 * 1000,
    META_MAX = 64
};

/* "dibs.leader/" goes before the name, in a key. */
enum { NAME_ROOM = 12 };

static void keeper_lost(dibs_lock *lock, void *arg)
{
    dibs_election *el = arg;

    (void)lock;
    pthread_mutex_lock(&el->mutex);
    pthread_cond_broadcast(&el->cond);
    pthread_mutex_unlock(&el->mutex);
}

/* A leader does not yield. With this callback the doorbell is open, so that the news of
 * a revocation comes at once. */
static void ignore_yield(dibs_lock *lock, void *arg)
{
    (void)lock;
    (void)arg;
}

/* Ends the campaign; the work of a term has stopped. Locks: el->mutex. */
static void end_campaign(dibs_election *el)
{
    el->work_stopped = true;
    dibs__election_resign(&el->machine, false);
    dibs__election_publish(el);
    dibs__election_stopped(&el->machine, dibsx_now());
    pthread_cond_broadcast(&el->cond);
}

/* Ends the threads, and with them the campaign. Locks: none held. */
static void stop_threads(dibs_election *el)
{
    bool running;

    pthread_mutex_lock(&el->mutex);
    running = el->running;
    el->ending = true;
    el->running = false;
    end_campaign(el);
    dibs__election_interrupt(el);
    while (running && !el->heir_over) {
        pthread_mutex_unlock(&el->mutex);
        dibs_watch_cancel(el->heirs);
        pthread_mutex_lock(&el->mutex);
        if (!el->heir_over)
            dibsx_cond_wait(&el->cond, &el->mutex,
                            dibsx_after_ms(dibsx_now(), 20));
    }
    pthread_mutex_unlock(&el->mutex);
    if (!running)
        return;
    pthread_join(el->thread, NULL);
    pthread_join(el->heir_thread, NULL);
}

/* Every campaign ends before the client does. A thread of the program whose wait this
 * ends may free the election meanwhile: that ends after this. Locks: cl->mutex, let go
 * meanwhile. */
static void end_threads(dibs__handle *handle)
{
    dibs_election *el = (dibs_election *)(void *)handle;

    pthread_mutex_unlock(&el->cl->mutex);
    stop_threads(el);
    pthread_mutex_lock(&el->cl->mutex);
}

static const dibs__handle_kind kind = {.noun = "an election",
                                       .wake = end_threads};

/* A seat that was last kept two heartbeats ago still lives for more than stop_ms. */
static int64_t default_beat(const dibs_election_opts *opts)
{
    int64_t beat_ms = opts->ttl_ms / BEAT_PART;
    int64_t least_ms = opts->stop_ms + opts->stop_ms / 2 + 1;

    return beat_ms > least_ms ? beat_ms : least_ms;
}

static dibs_status
read_opts(const dibs_client *cl, const dibs_election_opts *given,
          dibs_election_opts *opts, dibs_error *err)
{
    dibs_status rc = dibsx_opts_copy(opts, sizeof(*opts), given,
                                     "DIBS_ELECTION_OPTS()", err);

    if (rc != DIBS_OK)
        return rc;
    if (opts->ttl_ms == 0)
        opts->ttl_ms = cl->ttl_ms;
    if (opts->stop_ms == 0)
        opts->stop_ms = opts->ttl_ms / STOP_PART;
    if (opts->flags & ~(uint32_t)(DIBS_ELECTION_STOPS | DIBS_ELECTION_ONCE |
                                  DIBS_ELECTION_QUICK))
        return dibsx_fail(err, DIBS_INVALID,
                          "dibs_election_opts.flags has unknown bits");
    if (opts->ttl_ms < TTL_MIN_MS)
        return dibsx_fail(err, DIBS_INVALID,
                          "ttl_ms of an election is at least %d, and not "
                          "%" PRId64,
                          (int)TTL_MIN_MS, opts->ttl_ms);
    if (opts->stop_ms < 0 || opts->stop_ms > opts->ttl_ms / 2)
        return dibsx_fail(err, DIBS_INVALID,
                          "stop_ms is at most a half of ttl_ms (%" PRId64
                          "), and not %" PRId64,
                          opts->ttl_ms / 2, opts->stop_ms);
    if (opts->heartbeat_ms > BEAT_MAX_MS)
        return dibsx_fail(err, DIBS_INVALID,
                          "heartbeat_ms is at most %d, and not %" PRId64,
                          (int)BEAT_MAX_MS, opts->heartbeat_ms);
    if (opts->heartbeat_ms == 0)
        opts->heartbeat_ms = default_beat(opts);
    if (opts->minimum_nodes > 0 && opts->heartbeat_ms <= opts->stop_ms)
        return dibsx_fail(err, DIBS_INVALID,
                          "heartbeat_ms is longer than stop_ms (%" PRId64
                          "), and not %" PRId64,
                          opts->stop_ms, opts->heartbeat_ms);
    return DIBS_OK;
}

static dibs_status set_names(dibs_election *el, const char *name,
                             const char *member, dibs_error *err)
{
    char full[DIBS_NAME_MAX + 1];
    dibs_status rc = dibs__name_full(el->cl, name, full, err);

    if (rc != DIBS_OK)
        return rc;
    if (strlen(full) > DIBS_NAME_MAX - NAME_ROOM)
        return dibsx_fail(err, DIBS_INVALID,
                          "the name of an election is longer than %d bytes",
                          DIBS_NAME_MAX - NAME_ROOM);
    snprintf(el->name, sizeof(el->name), "%s", name);
    if (!member) {
        snprintf(el->member, sizeof(el->member), "%s:%ld", el->cl->host,
                 (long)getpid());
        return DIBS_OK;
    }
    snprintf(el->member, sizeof(el->member), "%s", member);
    return dibs__member_check_name(member, err);
}

/* The member comes first in the metadata of the lease. */
static dibs_status make_lock(dibs_election *el, dibs_error *err)
{
    const dibs_election_opts *opts = &el->opts;
    char member[DIBS__MEMBER_META];
    const char *meta[META_MAX + 2] = {member};
    bool rings = !dibs__store_cannot(el->cl->st, DIBS__CAN_RING);

    dibs__member_write_name(el->member, member);
    for (size_t i = 0; opts->meta && opts->meta[i]; i++) {
        if (i == META_MAX)
            return dibsx_fail(err, DIBS_INVALID,
                              "an election has at most %d texts of metadata",
                              (int)META_MAX);
        meta[i + 1] = opts->meta[i];
    }
    return dibs_lock_new(
        el->cl, el->name,
        DIBS_LOCK_OPTS(.ttl_ms = opts->ttl_ms, .wait_ms = -1,
                       .priority = opts->priority, .meta = meta,
                       .renew_every_ms = opts->renew_every_ms,
                       .durability = opts->durability, .on_lost = keeper_lost,
                       .on_lost_arg = el,
                       .on_yield = rings ? ignore_yield : NULL),
        &el->lock, err);
}

static dibs_status make_watch(dibs_election *el, dibs_error *err)
{
    char key[DIBS_NAME_MAX + 16];

    if (dibs__store_cannot(el->cl->st, DIBS__CAN_TOPIC) ||
        dibs__store_cannot(el->cl->st, DIBS__CAN_QUEUE))
        return DIBS_OK;
    snprintf(key, sizeof(key), "dibs.heir/%s", el->name);
    return dibs_state_watch(el->cl, key, &el->heirs, err);
}

static dibs_status join_client(dibs_election *el, dibs_error *err)
{
    dibs_status rc;

    el->handle.kind = &kind;
    pthread_mutex_lock(&el->cl->mutex);
    rc = dibs__handle_join(el->cl, &el->handle, err);
    pthread_mutex_unlock(&el->cl->mutex);
    return rc;
}

static void free_parts(dibs_election *el)
{
    if (el->lost_fd >= 0)
        close(el->lost_fd);
    dibs_watch_free(el->heirs);
    dibs_lock_free(el->lock);
    pthread_cond_destroy(&el->cond);
    pthread_mutex_destroy(&el->mutex);
    dibsx_free(el);
}

static dibs_status
fill_election(dibs_election *el, const char *name,
              const dibs_election_opts *opts, dibs_error *err)
{
    dibs_status rc = read_opts(el->cl, opts, &el->opts, err);

    if (rc == DIBS_OK)
        rc = set_names(el, name, el->opts.member, err);
    if (rc == DIBS_OK)
        rc = make_lock(el, err);
    if (rc == DIBS_OK)
        rc = make_watch(el, err);
    if (rc == DIBS_OK)
        rc = dibs__election_seat_init(el, err);
    if (rc != DIBS_OK)
        return rc;
    el->opts.member = el->opts.durability = NULL;
    el->opts.meta = NULL;
    dibs__election_init(&el->machine,
                        &(dibs__election_terms){
                            .stop_ms = el->opts.stop_ms,
                            .needs_seats = el->opts.minimum_nodes > 0,
                            .says_stopped =
                                (el->opts.flags & DIBS_ELECTION_STOPS) != 0});
    return join_client(el, err);
}

dibs_status dibs_election_new(dibs_client *cl, const char *name,
                              const dibs_election_opts *opts,
                              dibs_election **out, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibs_status rc = dibs__client_usable(cl, err);
    dibs_election *el;

    *out = NULL;
    if (rc != DIBS_OK)
        return rc;
    el = dibsx_zalloc(sizeof(*el));
    if (!el)
        return dibsx_nomem(err, "an election");
    el->cl = cl;
    el->lost_fd = -1;
    if (!dibsx_cond_init(&el->cond)) {
        dibsx_free(el);
        return dibsx_nomem(err, "an election");
    }
    pthread_mutex_init(&el->mutex, NULL);
    rc = fill_election(el, name, opts, err);
    if (rc == DIBS_OK)
        *out = el;
    else
        free_parts(el);
    return rc;
}

void dibs_election_free(dibs_election *el)
{
    DIBSX_UNCANCEL;
    dibs_client *cl;
    bool last;

    if (!el || dibs__forked(el->cl->fork_number))
        return;
    cl = el->cl;
    stop_threads(el);
    pthread_mutex_lock(&cl->mutex);
    last = dibs__handle_leave(&el->handle);
    pthread_mutex_unlock(&cl->mutex);
    free_parts(el);
    if (last)
        dibs__client_free(cl);
}

/* Locks: el->mutex. */
static dibs_status start_threads(dibs_election *el, dibs_error *err)
{
    if (el->running)
        return DIBS_OK;
    if (el->ending)
        return dibsx_fail(err, DIBS_INVALID, "the client is closed");
    if (dibsx_thread_start(&el->heir_thread, dibs__election_hear, el) != 0)
        return dibsx_nomem(err, "a thread of an election");
    if (dibsx_thread_start(&el->thread, dibs__election_run, el) == 0) {
        el->running = true;
        return DIBS_OK;
    }
    /* The first one ends: the handle campaigns no more. */
    el->ending = true;
    while (!el->heir_over) {
        pthread_mutex_unlock(&el->mutex);
        dibs_watch_cancel(el->heirs);
        pthread_mutex_lock(&el->mutex);
        if (!el->heir_over)
            dibsx_cond_wait(&el->cond, &el->mutex,
                            dibsx_after_ms(dibsx_now(), 20));
    }
    pthread_join(el->heir_thread, NULL);
    return dibsx_nomem(err, "a thread of an election");
}

/* Locks: el->mutex. */
static dibs_status start_campaign(dibs_election *el, dibs_error *err)
{
    dibs_status rc = start_threads(el, err);

    if (rc != DIBS_OK || el->machine.wanted)
        return rc;
    el->once_over = false;
    el->work_stopped = false;
    el->refusal.status = DIBS_OK;
    dibs__election_start(&el->machine);
    pthread_cond_broadcast(&el->cond);
    return DIBS_OK;
}

static dibs_status check_handle(const dibs_election *el, dibs_error *err)
{
    if (!el)
        return dibsx_fail(err, DIBS_INVALID, "the election is NULL");
    return dibs__client_usable(el->cl, err);
}

dibs_status dibs_election_campaign(dibs_election *el, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibs_status rc = check_handle(el, err);

    if (rc != DIBS_OK)
        return rc;
    pthread_mutex_lock(&el->mutex);
    rc = start_campaign(el, err);
    pthread_mutex_unlock(&el->mutex);
    return rc;
}

/* Locks: el->mutex, let go meanwhile. The lock knows of a loss before the thread of the
 * election has seen it. */
static dibs_status
await_lead(dibs_election *el, dibsx_nsec deadline, dibs_error *err)
{
    for (;;) {
        dibsx_nsec now = dibsx_now();

        if (dibs__election_leads(&el->machine, now) &&
            dibs_lock_check(el->lock) == DIBS_OK)
            return DIBS_OK;
        if (el->once_over)
            return dibsx_fail(err, DIBS_LOST,
                              "the term of %s is over, and it campaigns once",
                              el->member);
        if (!el->machine.wanted)
            return dibsx_fail(err, DIBS_CANCELLED, "the campaign has ended");
        if (el->refusal.status != DIBS_OK)
            return dibsx_fail_at(err, el->refusal.status, el->refusal.origin,
                                 "%s", el->refusal.message);
        if (now >= deadline && el->machine.state == DIBS__ELECTION_SEATING)
            return dibsx_fail(err, DIBS_TIMEOUT,
                              "fewer than %u members of %s are counted yet",
                              (unsigned)el->opts.minimum_nodes, el->name);
        if (now >= deadline)
            return dibsx_fail(err, DIBS_TIMEOUT,
                              "%s did not become the leader of %s in time",
                              el->member, el->name);
        dibsx_cond_wait(&el->cond, &el->mutex, deadline);
    }
}

dibs_status
dibs_election_wait(dibs_election *el, int64_t wait_ms, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibsx_nsec deadline =
        wait_ms < 0 ? DIBSX_NEVER : dibsx_after_ms(dibsx_now(), wait_ms);
    dibs_status rc = check_handle(el, err);

    if (rc != DIBS_OK)
        return rc;
    pthread_mutex_lock(&el->mutex);
    rc = el->once_over ? DIBS_OK : start_campaign(el, err);
    if (rc == DIBS_OK)
        rc = await_lead(el, deadline, err);
    pthread_mutex_unlock(&el->mutex);
    return rc;
}

void dibs_election_stopped(dibs_election *el)
{
    DIBSX_UNCANCEL;
    dibsx_nsec now;

    if (check_handle(el, NULL) != DIBS_OK)
        return;
    pthread_mutex_lock(&el->mutex);
    now = dibsx_now();
    dibs__election_see_lease(el, now);
    dibs__election_stopped(&el->machine, now);
    dibs__election_publish(el);
    pthread_cond_broadcast(&el->cond);
    pthread_mutex_unlock(&el->mutex);
}

/* Locks: el->mutex, let go meanwhile. */
static dibs_status await_end(dibs_election *el, dibs_error *err)
{
    uint64_t releases = el->releases;
    dibs_status rc;

    dibs__election_interrupt(el);
    while (el->running && !el->machine.wanted &&
           (el->machine.state != DIBS__ELECTION_IDLE || el->seated))
        pthread_cond_wait(&el->cond, &el->mutex);
    rc = el->releases == releases ? DIBS_OK : el->released.status;
    if (rc == DIBS_OK || rc == DIBS_LOST)
        return DIBS_OK;
    return dibsx_fail_at(err, rc, el->released.origin, "%s",
                         el->released.message);
}

dibs_status dibs_election_resign(dibs_election *el, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibs_status rc = check_handle(el, err);

    if (rc != DIBS_OK)
        return rc;
    pthread_mutex_lock(&el->mutex);
    end_campaign(el);
    if (!el->running || !pthread_equal(pthread_self(), el->thread))
        rc = await_end(el, err);
    pthread_mutex_unlock(&el->mutex);
    return rc;
}
