/* acquire.h - an acquire under way: what both of its drivers share.
 *
 * The acquire machine (machine/acquire.h) decides on the next step. The calling
 * thread (acquire_wait.c) or a runner (async.c) has the step done here.
 *
 * Owns the list of acquires under way.
 *
 * Locks: cl->mutex for everything here that does not say otherwise. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_LOCK_ACQUIRE_H
#define DIBS_CORE_LOCK_ACQUIRE_H

#include "core/lock/lock.h"

/* How an acquire is to be made. */
typedef struct dibs__acquire_caller {
    int64_t wait_ms;
    uint32_t retries;
    bool blocks;         /* the calling thread waits for it, on room->sleeper */
    dibs__wake_fn *wake; /* else: called when its sleep may be over */
    dibs__lock_acquire *room; /* its state, until the end */
    dibs_error *why;          /* the detail of an error, until the end */
} dibs__acquire_caller;

/* Begins an acquire on a handle that was entered. *over: it has ended already,
 * with the status returned; else drive it to DIBS__ACQUIRE_DONE and end it. */
dibs_status
dibs__lock_acquire_start(dibs_lock *lock, const dibs__acquire_caller *way,
                         bool *over);

/* The next step. DIBS__ACQUIRE_SLEEP is the driver's to do, until wake_at. */
dibs__acquire_step dibs__lock_acquire_next(dibs_lock *lock);

/* Does any other step. The mutex is let go meanwhile. */
void dibs__lock_acquire_do(dibs_lock *lock, dibs__acquire_step step);

/* DIBS__ACQUIRE_ASK in two halves, for a driver that sends the asks of many. Begin
 * fills `step`, whose texts are in `who` and in the lock. False: there is nothing to
 * send, and the acquire has its status already. Answered takes what the store
 * answered. Between them the mutex may be let go, and then the driver logs. */
bool dibs__lock_ask_begin(dibs_lock *lock, dibs__lease_step *step,
                          char who[DIBS__WHO_MAX]);
void dibs__lock_ask_answered(dibs_lock *lock, const dibs__lease_step *step);

/* Log lines of an ask, for the tracer. Locks: none held. */
void dibs__lock_ask_trace(const dibs_lock *lock);
void dibs__lock_ask_trace_answer(const dibs_lock *lock, dibs_status rc,
                                 const dibs__answer *ans);

/* The list of acquires under way, which a client that is being closed waits
 * for. Start and end maintain it; code that acquires another way does so
 * itself. */
void dibs__lock_acquire_enlist(dibs_lock *lock, dibs__lock_acquire *room);
void dibs__lock_acquire_delist(dibs_lock *lock);

/* The end, at DIBS__ACQUIRE_DONE: from here on the lease is the program's. */
dibs_status dibs__lock_acquire_end(dibs_lock *lock);

/* The deadline of the lock's lease has come: an ask may have had no answer for
 * long, which the keeper then logs. */
void dibs__lock_acquire_overdue(dibs_lock *lock, dibsx_nsec now);

/* Wakes an acquire of this lock that may be sleeping. Rouse leaves the last of it to
 * the caller: the thread at the park that it returns, if any, is to be woken, at best
 * when the mutex is free. */
void dibs__lock_acquire_wake(dibs_lock *lock);
dibsx_park *dibs__lock_acquire_rouse(dibs_lock *lock);

/* Ends the acquire that is under way, if one is. */
void dibs__lock_acquire_cancel(dibs_lock *lock);

/* Cancels all that are under way, those of sets too, and lets none begin any more. */
void dibs__lock_acquire_close(dibs_client *cl);

/* A whole acquire on the calling thread, with this wait in place of the handle's.
 * Locks: none held. */
DIBS_MUST_CHECK dibs_status dibs__lock_acquire_block(dibs_lock *lock,
                                                     int64_t wait_ms,
                                                     uint32_t retries,
                                                     dibs_error *err);

/* " (attempt 2)", for the log; "" in the first. */
enum { DIBS__ATTEMPT_SIZE = 24 };
void dibs__attempt_text(uint32_t tries, char out[DIBS__ATTEMPT_SIZE]);

/* Logs how it ended, in the try of that number. Locks: none held. */
void dibs__lock_acquire_trace(const dibs_lock *lock, dibs_status rc,
                              dibsx_nsec started_at, uint32_t tries);

#endif
