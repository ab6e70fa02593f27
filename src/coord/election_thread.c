/* election_thread.c - the thread of an election: drives the machine in real time.
 *
 * It waits for the lease, announces what was gained and lost, and gives the lease back.
 * While it leads it makes no call to the store: the renewer renews, and a worker tells
 * the watches. So nothing delays the news of a loss. */
/* SPDX-License-Identifier: MIT */
#include "base/cond.h"
#include "coord/election.h"
#include "core/client.h"
#include "core/lock/term.h"
#include "core/log.h"
#include <inttypes.h>
#include <string.h>

enum { AWAY_REST_MS = 250, REFUSED_REST_MS = 1000 };

/* A leader looks at its lease so many times in a ttl. */
enum { LOOKS_PER_TTL = 6 };

/* A lease that comes by hand-off is a short claim at first. One of a fallback store
 * would be a second leader. Locks: none held. */
static dibs_status confirm_lease(dibs_election *el, dibs_error *err)
{
    int64_t half_ms = el->opts.ttl_ms / 2;

    if (dibs_lock_fallback(el->lock) != DIBS_FALLBACK_NONE) {
        (void)dibs_lock_release(el->lock, NULL);
        return dibsx_fail(
            err, DIBS_UNAVAIL,
            "the store is away, and an election cannot fall back");
    }
    if (dibs_lock_valid_ms(el->lock) < half_ms &&
        dibs_lock_renew(el->lock, err) != DIBS_OK &&
        dibs_lock_valid_ms(el->lock) < half_ms) {
        (void)dibs_lock_release(el->lock, NULL);
        return DIBS_UNAVAIL;
    }
    return DIBS_OK;
}

/* Waits in the queue, at its head if the leader asked for that. Locks: el->mutex, let
 * go meanwhile. */
static dibs_status acquire_lease(dibs_election *el, dibs_error *err)
{
    int32_t priority = el->urged ? INT32_MAX : el->opts.priority;
    dibs_status rc;

    el->asking = true;
    el->highest = priority == INT32_MAX;
    el->urged = false;
    pthread_mutex_unlock(&el->mutex);
    dibs__lock_set_priority(el->lock, priority);
    rc = dibs_lock_acquire(el->lock, err);
    pthread_mutex_lock(&el->mutex);
    el->asking = false;
    pthread_cond_broadcast(&el->cond);
    pthread_mutex_unlock(&el->mutex);
    if (rc == DIBS_OK)
        rc = confirm_lease(el, err);
    pthread_mutex_lock(&el->mutex);
    return rc;
}

static int64_t rest_after(dibs_status rc)
{
    switch (rc) {
    case DIBS_CANCELLED:
    case DIBS_LOST:
        return DIBS__ELECTION_REST_MS;
    case DIBS_UNAVAIL:
    case DIBS_UNKNOWN:
    case DIBS_TIMEOUT:
        return AWAY_REST_MS;
    default:
        return REFUSED_REST_MS;
    }
}

/* Locks: el->mutex, let go meanwhile. */
static void ask_lease(dibs_election *el)
{
    dibs_error err = {0};
    dibs_status rc = acquire_lease(el, &err);
    dibsx_nsec now = dibsx_now();
    bool is_new = el->refusal.status == DIBS_OK;

    el->refusal.status = DIBS_OK;
    if (rc == DIBS_OK) {
        el->urged = false;
        dibs__election_granted(&el->machine, dibs_lock_fence(el->lock),
                               dibs__lock_valid_until(el->lock), now);
        return;
    }
    dibs__election_refused(&el->machine, rest_after(rc), now);
    if (rest_after(rc) < REFUSED_REST_MS)
        return;
    el->refusal = err;
    el->refusal.status = rc;
    pthread_cond_broadcast(&el->cond);
    pthread_mutex_unlock(&el->mutex);
    if (is_new)
        dibs__log(el->cl, DIBS_LOG_WARN, "elect",
                  "cannot campaign for %s, and will try again: %s", el->name,
                  err.message);
    pthread_mutex_lock(&el->mutex);
}

/* Locks: el->mutex, let go meanwhile. */
static void release_lease(dibs_election *el)
{
    dibs_error err = {0};
    dibs_status rc;

    pthread_mutex_unlock(&el->mutex);
    rc = dibs_lock_release(el->lock, &err);
    dibs__leader_tell(el->cl, el->name, 0);
    pthread_mutex_lock(&el->mutex);
    err.status = rc;
    el->released = err;
    el->releases++;
    dibs__election_released(&el->machine, dibsx_now());
    pthread_cond_broadcast(&el->cond);
}

/* Locks: el->mutex, let go meanwhile. */
static void tell_gained(dibs_election *el)
{
    uint64_t term = el->machine.term;

    pthread_cond_broadcast(&el->cond);
    pthread_mutex_unlock(&el->mutex);
    dibs__log(el->cl, DIBS_LOG_INFO, "elect", "%s leads %s, term %" PRIu64,
              el->member, el->name, term);
    dibs__leader_tell(el->cl, el->name, term);
    if (el->opts.on_gained)
        el->opts.on_gained(el, term, el->opts.arg);
    pthread_mutex_lock(&el->mutex);
}

static const char *why_text(dibs__election_why why)
{
    static const char *const texts[] = {
        [DIBS__ELECTION_EXPIRED] = "its lease was not renewed in time",
        [DIBS__ELECTION_TAKEN] = "the store gave its lease up",
        [DIBS__ELECTION_FEW] = "too few members live",
        [DIBS__ELECTION_RESIGNED] = "it resigned"};

    return texts[why];
}

/* Locks: el->mutex, let go meanwhile. */
static void tell_lost(dibs_election *el)
{
    uint64_t term = el->machine.term;
    dibs__election_why why = el->machine.why;

    pthread_cond_broadcast(&el->cond);
    pthread_mutex_unlock(&el->mutex);
    dibs__lock_renew_no_more(el->lock);
    if (el->opts.on_lost)
        el->opts.on_lost(el, term, (dibs_lost_why)why, el->opts.arg);
    dibs__log(el->cl, DIBS_LOG_INFO, "elect",
              "%s leads %s no more, term %" PRIu64 ": %s", el->member, el->name,
              term, why_text(why));
    pthread_mutex_lock(&el->mutex);
    if (el->opts.flags & DIBS_ELECTION_ONCE) {
        el->once_over = true;
        dibs__election_resign(&el->machine, false);
    }
    if (el->work_stopped)
        dibs__election_stopped(&el->machine, dibsx_now());
}

/* Locks: el->mutex, let go meanwhile. */
static void sleep_until(dibs_election *el, dibsx_nsec wake_at, dibsx_nsec now)
{
    dibsx_nsec look_at = dibsx_after_ms(now, el->opts.ttl_ms / LOOKS_PER_TTL);

    dibsx_cond_wait(&el->cond, &el->mutex,
                    wake_at < look_at ? wake_at : look_at);
}

static bool is_over(const dibs_election *el)
{
    return el->ending && el->machine.state == DIBS__ELECTION_IDLE;
}

void *dibs__election_run(void *arg)
{
    dibs_election *el = arg;

    pthread_mutex_lock(&el->mutex);
    while (!is_over(el)) {
        dibsx_nsec now = dibsx_now(), wake_at;
        dibs__election_todo todo;

        dibs__election_see_lease(el, now);
        todo = dibs__election_next(&el->machine, now, &wake_at);
        dibs__election_publish(el);
        switch (todo) {
        case DIBS__ELECTION_ASK:
            ask_lease(el);
            dibs__election_seat_hurry(el);
            break;
        case DIBS__ELECTION_RELEASE:
            release_lease(el);
            break;
        case DIBS__ELECTION_TELL_GAINED:
            tell_gained(el);
            break;
        case DIBS__ELECTION_TELL_LOST:
            tell_lost(el);
            break;
        case DIBS__ELECTION_SLEEP:
            pthread_cond_broadcast(&el->cond);
            if (!dibs__election_seat_sync(el) && !is_over(el))
                sleep_until(el, wake_at, now);
            break;
        }
    }
    pthread_cond_broadcast(&el->cond);
    pthread_mutex_unlock(&el->mutex);
    return NULL;
}
