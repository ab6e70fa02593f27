/* call_group.h - steps of several asynchronous calls, which a store does together.
 *
 * Each is of another name: a store does the steps of a group in any order. Filled and
 * sent by one runner, again and again.
 *
 * Locks: cl->mutex for everything here. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_CALL_GROUP_H
#define DIBS_CORE_CALL_GROUP_H

#include "core/lock/parting.h"
#include "core/lock/release.h"
#include "store/store.h"
#include <dibs/lock.h>

typedef struct dibs__call_group {
    size_t count;
    dibs_lock *locks[DIBS__STEPS_MAX]; /* each with a reference */
    const dibs__pending_release
        *releases[DIBS__STEPS_MAX]; /* NULL: an acquire */
    dibs__parting
        *partings[DIBS__STEPS_MAX];  /* whose release; NULL: a call's */
    uint64_t names[DIBS__STEPS_MAX]; /* their hashes */
    dibs__lease_step steps[DIBS__STEPS_MAX];
    char who[DIBS__STEPS_MAX][DIBS__WHO_MAX];
} dibs__call_group;

/* Whether there is no place for a step of this lock: all are taken, or its name is
 * there already. */
bool dibs__call_group_is_full(const dibs__call_group *gr,
                              const dibs_lock *lock);

/* Adds the release of a lock; the detail of an error goes to `err`. */
void dibs__call_group_leave(dibs__call_group *gr, dibs_lock *lock,
                            dibs__pending_release *release, dibs_error *err);

/* The same for a parting. */
void dibs__call_group_part(dibs__call_group *gr, dibs__parting *pt);

/* Adds the ask of an acquire. False as dibs__lock_ask_begin(): nothing was added. */
bool dibs__call_group_ask(dibs__call_group *gr, dibs_lock *lock);

/* Has the client's store do all steps; each has its answer then. The mutex is let go
 * meanwhile. */
void dibs__call_group_send(dibs__call_group *gr, dibs_client *cl);

#endif
