/* sharing.h - rounds in which a client shares through the store what it gathered.
 *
 *     idle --due--> timer set --pause_ms--> a round on a worker --> idle
 *                        ^                        |
 *                        +------ no worker -------+      close: the last round, then none
 *
 *   (1) There is one round at a time.
 *   (2) Nothing waits for a round but dibs_close(), which waits for the one that is under
 *       way and then does the last.
 *
 * Lives in the struct of its owner, as the first member, and is freed with it when the
 * client is. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_STATS_SHARING_H
#define DIBS_CORE_STATS_SHARING_H

#include "core/attach.h"
#include "core/timer.h"
#include "core/worker.h"

typedef struct dibs__sharing dibs__sharing;

typedef struct dibs__sharing_ops {
    int pause_ms; /* from what is first gathered to the round */
    int close_ms; /* how long the last round may take; 0: as any other */
    /* Locks: cl->mutex, let go meanwhile. */
    void (*share)(dibs_client *cl, dibs__sharing *sh, dibsx_nsec deadline);
    /* Locks: none. */
    void (*free)(dibs_client *cl, dibs__sharing *sh);
} dibs__sharing_ops;

struct dibs__sharing {
    dibs__attached attached; /* first, so that one is the other */
    const dibs__sharing_ops *ops;
    dibs__timer timer; /* when the next round is due */
    dibs__job round;
    bool under_way; /* a worker is in a round */
    bool stopping;
};

/* Memory of `size` bytes, zero, that begins with a dibs__sharing and lives with the
 * client; NULL: no memory. Locks: cl->mutex. */
void *
dibs__sharing_new(dibs_client *cl, size_t size, const dibs__sharing_ops *ops);

/* Something is to be shared: a round comes. Locks: cl->mutex. */
void dibs__sharing_due(dibs_client *cl, dibs__sharing *sh);

#endif
