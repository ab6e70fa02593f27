/* notices.h - notices of the store, dispatched to the parts of a client that asked
 * for them.
 *
 * A handler lives inside its owner, such as the table of lock owners, and stays
 * registered until the client is freed. The keeper reads the doorbells and
 * dispatches; it does not know what a notice is about. A handler recognises its
 * own notices by their address, the owner of a lease or the address of a topic.
 *
 *   (1) The keeper passes a notice to every handler, in the order in which they were
 *       registered: several parts of a client may listen to one topic. A notice that
 *       no handler recognises is dropped, as it is about something that has ended.
 *       Only a grant may not reach the keeper: if a thread of the store listens, the
 *       handler that recognises the grant hears it there, at once and alone.
 *   (2) DIBS__NOTICE_MISSED has no address, and every handler acts on it.
 *
 * Locks: cl->mutex for everything here but listen. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_NOTICES_H
#define DIBS_CORE_NOTICES_H

#include "base/park.h"
#include "store/store.h"
#include <dibs/client.h>

typedef struct dibs__notice_handler dibs__notice_handler;

/* Thread: the keeper, which does nothing else meanwhile: no function waits for
 * the store. Each but hear_at_once may let the mutex go to call the program back, and must then have
 * a reference on what it uses afterwards. */
struct dibs__notice_handler {
    dibs__notice_handler *next;
    /* Acts on the notice, if it is addressed to this handler. */
    void (*hear)(dibs_client *cl, dibs__notice_handler *handler,
                 const dibs__notice *notice);
    /* Acts on the notice of a grant at once, if it is addressed to this handler, without
     * a call of the program; false: the keeper is to hear it. The thread at *sleeper, if
     * any, is woken when the mutex is free. NULL: never. Thread: the store's that
     * listens. */
    bool (*hear_at_once)(dibs_client *cl, dibs__notice_handler *handler,
                         const dibs__notice *notice, dibsx_park **sleeper);
    /* Notices may have been lost: whatever waits for one asks the store. */
    void (*hear_missed)(dibs_client *cl, dibs__notice_handler *handler);
};

void dibs__notices_register(dibs_client *cl, dibs__notice_handler *handler);

/* Opens the doorbell of the store (or of the fallback) for the keeper. On failure
 * waits still end, by polling. Locks: none held. */
void dibs__notices_listen(dibs_client *cl, dibs__store *st,
                          dibsx_nsec deadline);

/* For the keeper. The mutex may be let go meanwhile. */
void dibs__notices_dispatch(dibs_client *cl, const dibs__notice *notice);

#endif
