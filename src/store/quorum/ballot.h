/* ballot.h - the result of the votes of the nodes of a quorum. Pure.
 *
 *   1. A majority is of the nodes that are configured, never of those that
 *      answer.
 *   2. A lease is won under a fence that a majority gave or took over, and on
 *      nodes where its owner holds.
 *   3. Its time is what a majority of the nodes leaves it.
 *   4. If the owner had the lease before it asked, a majority may have a fence
 *      that others rely on already. No other fence replaces that one: the votes show
 *      whether there is one, or the result is in doubt.
 *   5. A vote that does not count (of a node that sat out, whose clock jumped, or
 *      that is another node under a second name) equals no vote.
 *
 * Two majorities have a node in common. It grants a name to one owner at a
 * time, and no fence below one it has given or taken over. So two owners
 * neither hold at the same time nor in another order than that of their
 * fences. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_QUORUM_BALLOT_H
#define DIBS_STORE_QUORUM_BALLOT_H

#include <dibs/types.h>

enum { DIBS__NODES_MIN = 3, DIBS__NODES_MAX = 9 };

typedef struct dibs__vote {
    bool in;     /* the vote was cast, or never will be */
    bool counts; /* if not, it is a failure, whatever it says */
    dibs_status rc;
    bool again; /* DIBS_OK: the owner had it before it asked */
    uint64_t fence;
    int64_t left_ms;
    uint64_t taken; /* DIBS_BUSY: slots of the name */
} dibs__vote;

typedef struct dibs__ballot {
    size_t count; /* of nodes */
    dibs__vote votes[DIBS__NODES_MAX];
} dibs__ballot;

typedef enum dibs__verdict {
    DIBS__OPEN,  /* it depends on votes that are not in */
    DIBS__WON,   /* a majority said DIBS_OK */
    DIBS__SPLIT, /* a majority said DIBS_OK, under different fences */
    DIBS__DOUBT, /* the same, but the owner may hold it already, under one
                    of those fences, and the nodes that know it are silent */
    DIBS__DEFEAT /* no majority can say DIBS_OK any more */
} dibs__verdict;

size_t dibs__majority(size_t count);

/* How many said this, of those that count. */
size_t dibs__ballot_said(const dibs__ballot *bl, dibs_status rc);

/* Whether a majority said DIBS_OK: never DIBS__SPLIT or DIBS__DOUBT. */
dibs__verdict dibs__ballot_count(const dibs__ballot *bl);

/* The same for grants. WON: *fence is that of a majority; SPLIT: the highest,
 * which a majority must take over; DOUBT: it must not be. */
dibs__verdict dibs__ballot_grants(const dibs__ballot *bl, uint64_t *fence);

/* Whether further votes would change nothing for the asker of a grant: it is
 * won, or it is lost and the reason is known. */
bool dibs__ballot_settled(const dibs__ballot *bl);

/* The time that a majority of the nodes that said DIBS_OK leaves, and the fence
 * that a majority of them has; 0 while there is no majority. */
int64_t dibs__ballot_left(const dibs__ballot *bl);
uint64_t dibs__ballot_fence(const dibs__ballot *bl);

/* The status of a ballot that was not won; votes that are not in count as
 * failures. DIBS_BUSY: a majority answered, and some nodes hold for others. */
dibs_status dibs__ballot_status(const dibs__ballot *bl);

/* The status when too few nodes answered: DIBS_UNAVAIL when nothing was
 * changed. If all failed for one reason that lasts, the status of that
 * reason. */
dibs_status dibs__ballot_failure(const dibs__ballot *bl);

#endif
