/* parting.h - partings: releases for which nobody waits.
 *
 *             post                  answer
 *     begin ---------> POSTED ----------------> over
 *       |                | 10 ms, or not done
 *       |  cannot        v          answer
 *       +-------------> READY --> RUNNING ----> over
 *                        ^           |
 *                        +-----------+ it is to be sent again
 *
 * Where the store can, the releasing thread posts the command (lease_step.h) and goes on.
 * Elsewhere, and while its runner has work, the runner sends it.
 *
 *   (1) A parting is in the client's table of them until it is over. The close of the
 *       client waits for that; the handle may be acquired, or freed, meanwhile.
 *   (2) An ask of this client for the name comes after it: the ask is behind it on the
 *       connection (`sent`), or the asking thread sends it first, or waits for that.
 *   (3) If a posted release was not done, it is sent again and cl->parted_late counts
 *       it: an ask that was refused meanwhile is repeated.
 *
 * Owns the partings. Any thread. Locks: cl->mutex for everything here. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_LOCK_PARTING_H
#define DIBS_CORE_LOCK_PARTING_H

#include "core/lock/lock.h"
#include "core/lock/release.h"
#include "core/runner.h"

typedef enum dibs__parting_state {
    DIBS__PARTING_POSTED, /* until the alarm, or an ask for the name */
    DIBS__PARTING_READY,  /* in its runner's list */
    DIBS__PARTING_RUNNING /* a thread is doing it */
} dibs__parting_state;

typedef struct dibs__parting {
    dibs__call_node node; /* first: in its runner's list */
    dibs__runner *runner;
    dibsx_table_node by_name; /* in the client's table */
    dibs__parting_state state;
    dibs__pending_release release;
    dibs__sent *sent;  /* posted, and its answer was not taken; or NULL */
    bool alone;        /* it is sent again, and by itself */
    dibs__timer alarm; /* POSTED */
    dibs_error why;
} dibs__parting;

/* Releases the lock; the call that was begun with the runner ends with the parting. `run`
 * does it on the runner: dibs__parting_run(), or a group. Not DIBS_OK: nothing happened.
 * The mutex is let go meanwhile. */
DIBS_MUST_CHECK dibs_status
dibs__parting_begin(dibs_lock *lock, dibs__runner *rn,
                    bool (*run)(dibs__call_node *node), dibs_error *err);

/* Sends it, or takes its answer. The mutex is let go meanwhile. */
void dibs__parting_run(dibs__parting *pt);

/* It was sent with a group, and has its answer. The mutex may be let go. */
void dibs__parting_answered(dibs__parting *pt, dibs_status rc);

/* Whether there is a parting with the name of the lock. */
bool dibs__parting_exists(const dibs_lock *lock);

/* Sends partings with the name of the lock that have not been sent on a connection, or
 * waits for the thread that does, until a moment. `st`: those of this store; NULL: all.
 * The mutex is let go meanwhile. */
void dibs__parting_settle(dibs_lock *lock, const dibs__store *st,
                          dibsx_nsec until);

/* An ask for the name was answered, and refused or not: takes the answers of partings
 * that were before it. If it was refused, what was not done is done now. The mutex may be
 * let go. */
void dibs__parting_after_ask(dibs_lock *lock, const dibs__store *st,
                             bool refused, dibsx_nsec until);

#endif
