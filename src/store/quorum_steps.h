/* quorum_steps.h - the steps that a store offers as a node of a quorum.
 *
 * Beside the lease steps a node of a quorum answers four. A grant is as
 * `acquire` without a queue, but the fence is proposed: the node gives the
 * higher of that and one above the last it gave. Afterwards the fence can be
 * raised to the one that the quorum has agreed on. Giving up is the `release`
 * of store/lease.h.
 *
 * A node that may have forgotten its grants does not vote until the longest ttl
 * in use has passed since it started. From then on it gives no fence below that
 * moment. It detects a start by its run id. It is trusted to have kept its
 * grants if the last asker before the start saw that it wrote everything down
 * before it answered. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_QUORUM_STEPS_H
#define DIBS_STORE_QUORUM_STEPS_H

#include "base/clock.h"
#include "store/lease_args.h"
#include "store/lease_entry.h"

struct dibs__store;

enum { DIBS__RUN_ID_SIZE = 41 };

enum { DIBS__NAME_SLOTS = 64 }; /* the most that a name has */

/* A node refuses fences that are further ahead of its wall clock than this. The
 * longest ttl must not be below it. */
enum { DIBS__AHEAD_MS = 1000 };

/* The asker's knowledge of a node. */
typedef struct dibs__voter {
    char run_id[DIBS__RUN_ID_SIZE]; /* "": nothing yet */
    uint64_t link;      /* the connection on which the run id was learned, with
                           nothing between that could lead it to another run; 0 */
    bool durable;       /* writes everything down before it answers */
    int64_t longest_ms; /* no lease of any client lasts longer */
} dibs__voter;

/* A node's report on itself, with every answer; zero when it gave none. */
typedef struct dibs__node_word {
    int64_t wall_us;     /* its clock */
    int64_t sits_out_ms; /* until it votes */
    uint64_t taken;      /* DIBS_BUSY: slots of the name, the first in bit 0 */
    bool again;          /* DIBS_OK: the owner had it before this ask */
} dibs__node_word;

typedef struct dibs__sent dibs__sent; /* the store's own */
struct pollfd;

/* Votes that the asker sends itself and whose answers it polls for, those of all nodes
 * at once. Only what the short scripts do: a plain lock, and its release. */
typedef struct dibs__vote_post_ops {
    /* Sends it on the connection voter->link. From then on the caller receives there
     * for all threads, until `take` is true, or `resign`. The other arguments are
     * borrowed until the end. NULL: nothing was sent, and the step has to do it. */
    dibs__sent *(*grant)(struct dibs__store *st, const dibs__voter *voter,
                         const dibs__ask *ask, uint64_t fence,
                         dibsx_nsec deadline);
    dibs__sent *(*release)(struct dibs__store *st, const dibs__voter *voter,
                           const dibs__leave *leave, dibsx_nsec deadline);

    /* `watch` tells what to poll for. `take` receives what has come, and is true when
     * the answer is in, or never will be. `resign` ends that before: the next asker
     * of this node receives the answer. */
    void (*watch)(struct dibs__store *st, struct pollfd *out);
    bool (*take)(struct dibs__store *st, const dibs__sent *sent);
    void (*resign)(struct dibs__store *st);

    /* After `resign`: whether `take` would be true, and a wait for that, by its
     * deadline. */
    bool (*is_over)(struct dibs__store *st, const dibs__sent *sent);
    void (*await)(struct dibs__store *st, dibs__sent *sent);

    /* Ends it, and frees it.
     *   DIBS_BUSY, DIBS_STALE  nothing has changed: the step has to do it
     *   others                 as those of the step */
    dibs_status (*end)(struct dibs__store *st, dibs__sent *sent,
                       dibs__answer *ans, dibs__node_word *word,
                       dibs_error *err);
} dibs__vote_post_ops;

typedef struct dibs__quorum_steps_ops {
    /* Fills `voter` for this node, except the longest ttl. */
    dibs_status (*meet)(struct dibs__store *st, dibsx_nsec deadline,
                        dibs__voter *voter, dibs_error *err);

    /* Asks for a plain exclusive lease, of a name, or with DIBS__PERMITS of the
     * slot ask->priority of those that it has, 1 to ask->capacity.
     *   DIBS_OK        the owner holds it here: by this ask under the fence
     *                  given, or since an earlier one under the stored fence
     *   DIBS_BUSY, DIBS_LOST, DIBS_MISMATCH   as acquire
     *   DIBS_STALE     the node has been started since: meet it again
     *   DIBS_REFUSED   it does not vote just now, or not on this fence
     * `fill`: the owner holds a majority under `fence`, and this node, which lacks
     * it or has another for it, gives exactly that. */
    dibs_status (*grant)(struct dibs__store *st, const dibs__voter *voter,
                         const dibs__ask *ask, uint64_t fence, bool fill,
                         dibsx_nsec deadline, dibs__answer *ans,
                         dibs__node_word *word, dibs_error *err);

    /* Renews as the renew of store/lease.h; with a ttl of 0 raises a lower fence
     * of the owner's lease to the one given, and does nothing else.
     *   DIBS_STALE, DIBS_REFUSED   as grant, for all of them */
    dibs_status (*renew)(struct dibs__store *st, const dibs__voter *voter,
                         dibs__renewal *items, size_t count,
                         dibsx_nsec deadline, dibs__node_word *word,
                         dibs_error *err);

    /* As the list of store/lease.h, and `deadline` is that of the whole: a node does
     * nothing else meanwhile. */
    dibs_status (*list)(struct dibs__store *st, const char *begins,
                        dibsx_nsec deadline, dibs__entries_fn *each, void *arg,
                        dibs_error *err);

    const dibs__vote_post_ops *post;
} dibs__quorum_steps_ops;

#endif
