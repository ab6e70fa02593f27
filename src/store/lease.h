/* lease.h - the lease steps of the store contract.
 *
 * Owners are unique per acquisition and every step is idempotent by owner, so a
 * step whose answer was lost is simply sent again. The rule by which a lease is
 * granted is in store/grant.h. Times that cross this border are spans, never
 * moments: each side counts on its own clock. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_LEASE_H
#define DIBS_STORE_LEASE_H

#include "base/clock.h"
#include "store/lease_args.h"
#include "store/lease_entry.h"
#include "store/notice.h"

struct dibs__store;

typedef struct dibs__lease_ops {
    /* Asks for a lease. First ends expired parties, serves the queue by the grant
     * rule, and notifies the waiters that it serves.
     *   DIBS_OK        the owner holds it: by this ask, or since an earlier one,
     *                  whose fence and time left it then gives
     *   DIBS_BUSY      not granted; with DIBS__ASK_QUEUE the owner has a place
     *                  for DIBS__PLACE_MS, else there is no trace of it
     *   DIBS_LOST      the owner has left: a tombstone stands; no trace. Or less
     *                  than a millisecond is left of its lease
     *   DIBS_MISMATCH  the name lives as another kind; no trace; err names both
     *   DIBS_UNAVAIL   with ask->replicas also: too few replicas acknowledged it,
     *                  so that the store gave it back
     *   DIBS_UNSUPPORTED  ask->replicas, and this store has none; no trace */
    dibs_status (*acquire)(struct dibs__store *st, const dibs__ask *ask,
                           dibsx_nsec deadline, dibs__answer *ans,
                           dibs_error *err);

    /* Renews many at once, each by owner and fence, to at least its ttl from
     * now. DIBS_OK: every item has its own rc. Else no item was renewed for
     * certain (DIBS_UNAVAIL) or perhaps some were (DIBS_UNKNOWN). */
    dibs_status (*renew)(struct dibs__store *st, dibs__renewal *items,
                         size_t count, dibsx_nsec deadline, dibs_error *err);

    /* Gives up whatever the owner has: its lease, its place, or a grant that it
     * has not heard of. Serves the queue and notifies.
     *   DIBS_OK    it had a lease; now it has nothing
     *   DIBS_LOST  it had no lease (a place, if any, is gone) */
    dibs_status (*release)(struct dibs__store *st, const dibs__leave *leave,
                           dibsx_nsec deadline, dibs_error *err);

    /* Asks for 1 to DIBS__ALL_MAX different names, each exclusively: all of them
     * or none. No flags but DIBS__ASK_TELL. NULL where the store never can.
     *   DIBS_OK           every name is held; each has its answer
     *   DIBS_BUSY, DIBS_LOST, DIBS_MISMATCH   none is, for what the first that was
     *                     not free would answer; that is *blocked
     *   DIBS_UNSUPPORTED  this store cannot do these names in one step */
    dibs_status (*acquire_all)(struct dibs__store *st, const dibs__ask *asks,
                               size_t count, dibsx_nsec deadline,
                               dibs__answer *answers, size_t *blocked,
                               dibs_error *err);

    /* Converts a held lease to another mode, or transfers it to another owner, in
     * place: no waiter comes between, and the time left does not shrink. An upgrade
     * (shared to exclusive) and another owner get a new fence; a downgrade keeps the
     * fence, and serves the queue. A conversion that was already made is answered
     * with its stored fence.
     *   DIBS_OK    ans->fence and ans->left_ms are those of the lease
     *   DIBS_BUSY  others share it; nothing changed
     *   DIBS_LOST  not held by this owner under this fence, or not for a
     *              millisecond */
    dibs_status (*convert)(struct dibs__store *st,
                           const dibs__conversion *conversion,
                           dibsx_nsec deadline, dibs__answer *ans,
                           dibs_error *err);

    /* Sends DIBS__NOTICE_YIELD to the holder with this fence, or to every holder
     * when it is 0. Changes nothing. *asked is how many have a doorbell.
     *   DIBS_NOTFOUND, DIBS_STALE   as revoke */
    dibs_status (*yield)(struct dibs__store *st, const char *name,
                         uint64_t fence, dibsx_nsec deadline, uint32_t *asked,
                         dibs_error *err);

    /* DIBS_NOTFOUND: nobody holds the name and nobody waits. */
    dibs_status (*inspect)(struct dibs__store *st, const char *name,
                           dibsx_nsec deadline, dibs__entries_fn *each,
                           void *arg, dibs_error *err);

    /* Every name in use that begins with `begins`, in order. A store that needs many
     * requests for a list may give each of them the time until `deadline`: it goes on
     * while the server answers. */
    dibs_status (*list)(struct dibs__store *st, const char *begins,
                        dibsx_nsec deadline, dibs__entries_fn *each, void *arg,
                        dibs_error *err);

    /* Ends the lease with this fence, or every lease of the name when it is 0;
     * notifies their holders, serves the queue.
     *   DIBS_OK        *broken leases ended
     *   DIBS_NOTFOUND  nobody holds it
     *   DIBS_STALE     held under other fences; nothing changed */
    dibs_status (*revoke)(struct dibs__store *st, const char *name,
                          uint64_t fence, dibsx_nsec deadline, uint32_t *broken,
                          dibs_error *err);
} dibs__lease_ops;

/* All of them, as X(step, STEP). The tables of the stores and the faults of the
 * fault store follow from this list. */
#define DIBS__LEASE_STEPS(X)                                                   \
    X(acquire, ACQUIRE)                                                        \
    X(renew, RENEW)                                                            \
    X(release, RELEASE)                                                        \
    X(acquire_all, ACQUIRE_ALL)                                                \
    X(convert, CONVERT)                                                        \
    X(yield, YIELD)                                                            \
    X(inspect, INSPECT)                                                        \
    X(list, LIST)                                                              \
    X(revoke, REVOKE)

/* Declares the function of a step, dibs__STORE_STEP. */
#define DIBS__LEASE_STEP(store, step)                                          \
    __typeof__(*((dibs__lease_ops *)0)->step) dibs__##store##_##step;

#endif
