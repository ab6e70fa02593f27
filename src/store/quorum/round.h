/* round.h - something asked of all nodes of a quorum at once.
 *
 * The asker makes a round, and the round outlives its interest: slow nodes go
 * on with it, so everything they need is in it. It is embedded first in the
 * struct of a step, which is one allocation.
 *
 *   init, start -> wait, until the votes in are enough -> closed; drop
 *
 * Until it is closed the votes are under qm->mutex. From then on they do not
 * change, and belong to the asker. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_QUORUM_ROUND_H
#define DIBS_STORE_QUORUM_ROUND_H

#include "store/quorum/ballot.h"
#include "store/quorum/quorum_store.h"

typedef struct dibs__round dibs__round;

/* Asks one node, on a thread of that node, by rd->deadline. */
typedef dibs_status
dibs__round_fn(dibs__round *rd, size_t node, dibs__vote *vote, dibs_error *err);

/* Sends the request of the round to one node, without a wait; NULL: it could not.
 * `voter` is what is known of the node. */
typedef dibs__sent *
dibs__round_send_fn(dibs__round *rd, size_t node, const dibs__voter *voter);

/* Whether the votes in are enough; by the votes alone. Locks: qm->mutex. */
typedef bool dibs__enough_fn(const dibs__round *rd);

typedef enum dibs__slot_state {
    DIBS__SLOT_UNUSED,
    DIBS__SLOT_QUEUED,
    DIBS__SLOT_RUNNING,
    DIBS__SLOT_POSTED, /* the asker has sent it (post.h) */
    DIBS__SLOT_DONE
} dibs__slot_state;

typedef struct dibs__slot {
    dibs__job job;
    dibs__slot_state state;
    dibs_error err;
    int64_t took_us;  /* until its answer; 0: there was none */
    dibs__sent *sent; /* posted */
    dibsx_nsec sent_at;
} dibs__slot;

struct dibs__round {
    dibs__quorum *qm;
    dibs__round_fn *ask;
    dibs__round_send_fn *send; /* NULL: the threads of the nodes do it */
    const char *owner;         /* who asks for a lease; NULL: nobody does */
    bool
        goes_on; /* a node whose answer was late or lost is asked all the same */
    bool driven; /* the asker polls the nodes that it has sent it to */
    void (*free)(dibs__round *rd); /* frees further allocations; NULL: none */
    dibs__request_kind kind;
    bool judged; /* votes count only of nodes that may vote */
    bool closed;
    dibs__enough_fn *enough; /* of the asker that waits; NULL: none does yet */
    unsigned refs;
    dibsx_nsec deadline;
    dibsx_nsec span; /* until then, when it was made */
    pthread_cond_t cond;
    dibs__ballot ballot;
    dibs__slot slots[DIBS__NODES_MAX];
};

/* Zeroed storage becomes a round, which is then to be dropped. False when memory
 * is short: then it is as it was. */
bool dibs__round_init(dibs__round *rd, dibs__quorum *qm, dibs__round_fn *ask,
                      dibsx_nsec deadline);

/* Asks the nodes of a set, bit by bit, or all. */
#define DIBS__ALL_NODES UINT32_MAX
void dibs__round_start(dibs__round *rd, uint32_t nodes);

/* Waits until the votes are enough, all are in, or the time is up; closes the
 * round. Jobs that have not begun by then are cancelled when the time is up, or
 * by `cancel` for other reasons; else they go on. */
void dibs__round_wait(dibs__round *rd, dibs__enough_fn *enough);
void dibs__round_cancel(dibs__round *rd);

void dibs__round_drop(dibs__round *rd);

/* The usual test: a majority has said DIBS_OK, or cannot any more. */
bool dibs__round_decided(const dibs__round *rd);

/* The moment by which a node must have answered the asker of a lease of this
 * ttl. */
dibsx_nsec
dibs__round_limit(const dibs__quorum *qm, int64_t ttl_ms, dibsx_nsec deadline);

/* Fails with the status and `what`, followed by each node's answer in short. */
dibs_status dibs__round_fail(const dibs__round *rd, dibs_status rc,
                             const char *what, dibs_error *err);

#endif
