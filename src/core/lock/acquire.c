/* acquire.c - an acquire under way: beginning, carrying out its steps, ending.
 *
 * Runs on the thread that acquires, or on a runner of asynchronous calls. */
/* SPDX-License-Identifier: MIT */
#include "core/lock/acquire.h"

#include "core/away.h"
#include "core/lock/enter.h"
#include "core/lock/fallback.h"
#include "core/lock/handle.h"
#include "core/lock/parting.h"
#include "core/lock/publish.h"
#include "core/lock/reentry.h"
#include "core/lock/release.h"
#include "core/log.h"
#include "core/reach.h"
#include "core/stats/record.h"
#include "core/stats/shared_events.h"
#include "core/who.h"
#include <inttypes.h>
#include <stdio.h>

/* Limit of the release after a wait that has ended. If the store does not get
 * it, the place in the queue or the grant expires. */
enum { GIVE_UP_MS = 250 };

/* If an ask of a waiter has no answer after this long, the log gets a line. */
enum { SILENT_MS = 2000 };

void dibs__lock_acquire_enlist(dibs_lock *lock, dibs__lock_acquire *room)
{
    dibs_client *cl = lock->cl;

    lock->acquire = room;
    room->next = cl->acquires;
    room->at = &cl->acquires;
    if (cl->acquires)
        cl->acquires->acquire->at = &room->next;
    cl->acquires = lock;
}

void dibs__lock_acquire_delist(dibs_lock *lock)
{
    const dibs__lock_acquire *room = lock->acquire;

    *room->at = room->next;
    if (room->next)
        room->next->acquire->at = room->at;
    lock->acquire = NULL;
    if (lock->cl->closing)
        pthread_cond_broadcast(&lock->cl->over);
}

dibs_status
dibs__lock_acquire_start(dibs_lock *lock, const dibs__acquire_caller *way,
                         bool *over)
{
    dibs_client *cl = lock->cl;
    const dibs_lock_opts *opts = &lock->traits->opts;
    const dibs__acquire_terms terms = {
        .wait_ms = way->wait_ms,
        .retries = way->retries,
        .retry_delay_ms = opts->retry_delay_ms,
        .listen = way->wait_ms != 0 || lock->traits->hears,
        .fallback = cl->on_unavailable != DIBS_AWAY_FAIL,
        .asks_again = dibs__store_cannot(cl->st, DIBS__CAN_QUEUE) != NULL,
    };
    dibs_status rc;

    *way->why = (dibs_error){0};
    dibs__count(&cl->stats.attempts);
    dibs__reentry_name(lock);
    rc = dibs__reentry_enter(lock, way->blocks && way->wait_ms < 0, over,
                             way->why);
    if (!*over) {
        rc = dibs__timer_ready(cl, way->why);
        *over = rc != DIBS_OK;
    }
    if (*over) {
        dibs__count_outcome(&lock->cl->stats, rc);
        dibs__record_acquired(lock, rc, 0, false);
        return rc;
    }
    way->room->wake = way->wake;
    way->room->why = way->why;
    dibs__acquire_start(&way->room->machine, &terms, &cl->jitter, dibsx_now());
    way->room->machine.cancelled = lock->stopped || cl->closing;
    dibs__count(&cl->stats.waiting);
    dibs__lock_acquire_enlist(lock, way->room);
    return DIBS_OK;
}

dibs__acquire_step dibs__lock_acquire_next(dibs_lock *lock)
{
    dibs__acquire *aq = &lock->acquire->machine;
    dibs__acquire_step step = dibs__acquire_next(aq, &lock->lease, dibsx_now());

    for (; aq->polls > 0; aq->polls--)
        dibs__count(&lock->cl->stats.polls);
    return step;
}

/* The first acquire that listens opens the doorbell; later ones keep the mutex. */
static void open_bell(dibs_lock *lock)
{
    dibs_client *cl = lock->cl;
    int64_t wait_ms = lock->acquire->machine.terms.wait_ms;
    dibsx_nsec now = dibsx_now();

    if (!cl->keeper.listening[0]) {
        pthread_mutex_unlock(&cl->mutex);
        dibs__notices_listen(cl, cl->st,
                             wait_ms == 0 ? dibs__client_deadline(cl, now)
                                          : dibsx_after_ms(now, wait_ms));
        pthread_mutex_lock(&cl->mutex);
    }
    dibs__acquire_listened(&lock->acquire->machine, dibsx_now());
}

/* A new owner, unless one asks already. */
static dibs_status begin_lease(dibs_lock *lock)
{
    char owner[DIBS_OWNER_SIZE];
    dibs_status rc;

    if (lock->lease.state != DIBS__LEASE_FREE)
        return DIBS_OK;
    rc = dibs__owner_new(lock->cl, owner, lock->acquire->why);
    if (rc != DIBS_OK)
        return rc;
    if (!lock->acquire->machine.on_fallback)
        dibs__lock_use_store(lock, lock->cl->st, DIBS_FALLBACK_NONE);
    dibs__lock_begin(lock, owner);
    return DIBS_OK;
}

void dibs__attempt_text(uint32_t tries, char out[DIBS__ATTEMPT_SIZE])
{
    out[0] = '\0';
    if (tries > 1)
        snprintf(out, DIBS__ATTEMPT_SIZE, " (attempt %" PRIu32 ")", tries);
}

void dibs__lock_ask_trace(const dibs_lock *lock)
{
    char attempt[DIBS__ATTEMPT_SIZE];

    dibs__attempt_text(lock->acquire->machine.tries, attempt);
    dibs__log(lock->cl, DIBS_LOG_TRACE, "asked", "%s%s", lock->name, attempt);
}

void dibs__lock_ask_trace_answer(const dibs_lock *lock, dibs_status rc,
                                 const dibs__answer *ans)
{
    if (rc == DIBS_BUSY && ans->queued)
        dibs__log(lock->cl, DIBS_LOG_TRACE, "queued", "%s, %" PRIu32 " ahead",
                  lock->name, ans->ahead);
    else if (rc == DIBS_BUSY)
        dibs__log(lock->cl, DIBS_LOG_TRACE, "busy", "%s", lock->name);
}

/* Sends the ask and logs it for the tracer. Locks: none held. */
static dibs_status
send_ask(dibs_lock *lock, dibs__store *st, dibs__lease_step *step)
{
    const dibs_client *cl = lock->cl;
    dibs_status rc;

    dibs__lock_ask_trace(lock);
    if (st == cl->st) {
        rc = dibs__reach_store(lock->cl, step->deadline, step->err);
        if (rc != DIBS_OK)
            return rc;
    }
    rc = st->ops->lease->acquire(st, &step->ask, step->deadline, &step->ans,
                                 step->err);
    dibs__log_alarm(cl, st);
    dibs__lock_ask_trace_answer(lock, rc, &step->ans);
    return rc;
}

/* Tells of a store that is away while an acquire waits for it, and of its return.
 * Too few replicas are no reason to fall back, and one to wait. */
static void note_away(dibs_lock *lock, dibs_status rc, const dibs__answer *ans)
{
    dibs_client *cl = lock->cl;
    const dibs__acquire *aq = &lock->acquire->machine;
    bool failed = rc == DIBS_UNAVAIL || rc == DIBS_UNKNOWN;

    if (lock->st != cl->st)
        return;
    if (!failed || (ans->under_replicated && aq->terms.fallback))
        dibs__away_ended(cl);
    else if (!aq->terms.fallback && dibs__acquire_waits(aq, dibsx_now()))
        dibs__away_failed(cl, lock->lease.sent_at, lock->acquire->why);
}

/* Applies the answer to the lease, the counters and the machine. */
static void
apply_answer(dibs_lock *lock, dibs_status rc, const dibs__answer *ans)
{
    dibs_client *cl = lock->cl;
    dibs__lease *ls = &lock->lease;
    dibsx_nsec now;

    note_away(lock, rc, ans);
    if (rc == DIBS_OK)
        lock->acked = ans->acked;
    else if (ans->under_replicated)
        dibs__count(&cl->stats.under_replicated);
    now = dibsx_now();
    dibs__lease_answered(ls, rc, ans, now);
    /* Queued and held already: the notice came before this answer. */
    if (rc == DIBS_BUSY && ls->state == DIBS__LEASE_HELD)
        dibs__count(&cl->stats.rings);
    if (ls->state == DIBS__LEASE_FREE)
        dibs__lock_unlist(lock);
    dibs__keeper_watch(cl, lock);
    dibs__acquire_answered(&lock->acquire->machine, ls, rc, ans, now);
}

/* Until the answer the deadline of the lease has nothing to watch but this. */
static void watch_silence(dibs_lock *lock, dibsx_nsec now)
{
    const dibs__acquire *aq = &lock->acquire->machine;

    if (lock->st == lock->cl->st && !aq->terms.fallback &&
        dibs__acquire_waits(aq, now))
        dibs__timer_set(lock->cl, &lock->due.deadline,
                        dibsx_after_ms(now, SILENT_MS));
}

void dibs__lock_acquire_overdue(dibs_lock *lock, dibsx_nsec now)
{
    if (lock->acquire && lock->acquire->machine.state == DIBS__ACQUIRE_ASKED &&
        now >= dibsx_after_ms(lock->lease.sent_at, SILENT_MS))
        lock->cl->silent_at = lock->lease.sent_at;
}

bool dibs__lock_ask_begin(dibs_lock *lock, dibs__lease_step *step,
                          char who[DIBS__WHO_MAX])
{
    dibs_client *cl = lock->cl;
    dibsx_nsec now;
    dibs_status rc = begin_lease(lock);

    *step = (dibs__lease_step){.err = lock->acquire->why};
    if (rc != DIBS_OK) {
        dibs__acquire_answered(&lock->acquire->machine, &lock->lease, rc,
                               &step->ans, dibsx_now());
        return false;
    }
    now = dibsx_now();
    step->deadline =
        dibs__acquire_ask_until(&lock->acquire->machine,
                                dibs__client_deadline(cl, now), now);
    dibs__lock_ask(lock, &step->ask);
    step->ask.alone = lock->lease.alone;
    dibs__who_text(lock, who);
    step->ask.who = who;
    if (lock->acquire->machine.terms.wait_ms != 0)
        step->ask.flags |= DIBS__ASK_QUEUE;
    dibs__lease_asked(&lock->lease, now);
    dibs__acquire_asked(&lock->acquire->machine, &lock->lease);
    dibs__keeper_watch(cl, lock);
    watch_silence(lock, now);
    *lock->acquire->why = (dibs_error){0};
    return true;
}

void dibs__lock_ask_answered(dibs_lock *lock, const dibs__lease_step *step)
{
    apply_answer(lock, step->rc, &step->ans);
}

/* Locks: cl->mutex, let go meanwhile. */
static void send_step(dibs_lock *lock, dibs__lease_step *step)
{
    dibs__store *st = lock->st;

    pthread_mutex_unlock(&lock->cl->mutex);
    step->rc = send_ask(lock, st, step);
    pthread_mutex_lock(&lock->cl->mutex);
}

/* An ask comes after the partings with its name. Locks: cl->mutex, let go meanwhile. */
static void settle_before(dibs_lock *lock)
{
    const dibs_client *cl = lock->cl;
    const dibs__acquire *aq = &lock->acquire->machine;
    dibsx_nsec now = dibsx_now();

    dibs__parting_settle(lock, aq->on_fallback ? cl->fallback : cl->st,
                         dibs__acquire_ask_until(aq,
                                                 dibs__client_deadline(cl, now),
                                                 now));
}

/* Asks again. Where the first ask left a place, the store has it whatever becomes of this
 * one. */
static void send_again(dibs_lock *lock, dibs__lease_step *step)
{
    bool queued = step->ans.queued;

    *step->err = (dibs_error){0};
    step->ans = (dibs__answer){0};
    send_step(lock, step);
    if (queued && step->rc == DIBS_UNAVAIL)
        step->rc = step->err->status = DIBS_UNKNOWN;
}

static void ask_store(dibs_lock *lock)
{
    const dibs_client *cl = lock->cl;
    char who[DIBS__WHO_MAX];
    dibs__lease_step step;
    uint64_t late;

    if (cl->partings.count > 0)
        settle_before(lock);
    if (!dibs__lock_ask_begin(lock, &step, who))
        return;
    late = cl->parted_late;
    send_step(lock, &step);
    if (cl->partings.count > 0)
        dibs__parting_after_ask(lock, lock->st, step.rc == DIBS_BUSY,
                                step.deadline);
    /* A release that was to be before it was not. */
    if (step.rc == DIBS_BUSY && cl->parted_late != late)
        send_again(lock, &step);
    dibs__lock_ask_answered(lock, &step);
}

/* Gives up the place in the queue, and a grant that may have come meanwhile. If
 * the store does not answer, its entry expires. */
static void leave_store(dibs_lock *lock)
{
    bool valid = dibs__lease_valid(&lock->lease, dibsx_now());
    dibs_status rc;

    /* A valid lease is an idle sticky one, from an earlier acquire. */
    rc = dibs__lock_give_up(lock, valid ? 0 : GIVE_UP_MS, NULL);
    dibs__acquire_left(&lock->acquire->machine, &lock->lease, rc, dibsx_now());
}

/* Counts an acquire once, however often it is tried. */
static void use_fallback(dibs_lock *lock)
{
    dibs_status rc =
        dibs__fallback_use(lock, lock->acquire->why, lock->acquire->why);

    if (rc == DIBS_OK && !lock->acquire->machine.fell_back)
        dibs__count(&lock->cl->stats.fallbacks);
    dibs__acquire_fell_back(&lock->acquire->machine, rc, dibsx_now());
}

void dibs__lock_acquire_do(dibs_lock *lock, dibs__acquire_step step)
{
    switch (step) {
    case DIBS__ACQUIRE_LISTEN:
        open_bell(lock);
        break;
    case DIBS__ACQUIRE_ASK:
        ask_store(lock);
        break;
    case DIBS__ACQUIRE_LEAVE:
        leave_store(lock);
        break;
    case DIBS__ACQUIRE_FALL_BACK:
        use_fallback(lock);
        break;
    case DIBS__ACQUIRE_SLEEP:
    case DIBS__ACQUIRE_DONE:
        break;
    }
}

dibs_status dibs__lock_acquire_end(dibs_lock *lock)
{
    dibs_client *cl = lock->cl;
    const dibs__acquire *aq = &lock->acquire->machine;

    dibs__acquire_explain(aq, lock->name, lock->acquire->why);
    dibs__lock_acquire_delist(lock);
    dibs__uncount(&cl->stats.waiting);
    dibs__count_outcome(&cl->stats, aq->rc);
    if (aq->rc == DIBS_OK) {
        dibs__count(&cl->stats.held);
        dibs__reentry_acquired(lock);
    }
    dibs__record_acquired(lock, aq->rc, dibsx_now() - aq->started_at,
                          aq->contended);
    if (aq->rc == DIBS_OK)
        dibs__shared_events_note(lock, DIBS_LEASE_ACQUIRED, lock->lease.fence,
                                 aq->started_at);
    return aq->rc;
}

dibsx_park *dibs__lock_acquire_rouse(dibs_lock *lock)
{
    dibs__lock_acquire *room = lock->acquire;

    if (room && room->wake)
        room->wake(lock);
    else if (room && dibsx_park_post(&room->sleeper, 1))
        return &room->sleeper;
    return NULL;
}

void dibs__lock_acquire_wake(dibs_lock *lock)
{
    dibsx_park *sleeper = dibs__lock_acquire_rouse(lock);

    if (sleeper)
        dibsx_park_wake(sleeper);
}

void dibs__lock_acquire_cancel(dibs_lock *lock)
{
    if (lock->acquire)
        lock->acquire->machine.cancelled = true;
    dibs__lock_acquire_wake(lock);
}

void dibs__lock_acquire_close(dibs_client *cl)
{
    dibs_lock *next;

    cl->closing = true;
    pthread_cond_broadcast(&cl->over); /* A set may be between two tries. */
    for (dibs_lock *lock = cl->acquires; lock; lock = next) {
        next = lock->acquire->next;
        dibs__lock_acquire_cancel(lock);
    }
}

/* A grant after retries is worth more than a trace: the number tells how busy
 * the name is. */
void dibs__lock_acquire_trace(const dibs_lock *lock, dibs_status rc,
                              dibsx_nsec started_at, uint32_t tries)
{
    const dibs_client *cl = lock->cl;
    int64_t waited_us = (dibsx_now() - started_at) / 1000;
    char attempt[DIBS__ATTEMPT_SIZE];

    dibs__attempt_text(tries, attempt);
    if (rc == DIBS_OK)
        dibs__log(cl, tries > 1 ? DIBS_LOG_INFO : DIBS_LOG_TRACE, "granted",
                  "%s under fence %" PRIu64 " after %" PRId64 " us%s",
                  lock->name, atomic_load(&lock->shown.fence), waited_us,
                  attempt);
    else if (rc == DIBS_TIMEOUT || rc == DIBS_CANCELLED)
        dibs__log(cl, DIBS_LOG_TRACE,
                  rc == DIBS_TIMEOUT ? "timeout" : "cancelled",
                  "%s after %" PRId64 " us%s", lock->name, waited_us, attempt);
}
