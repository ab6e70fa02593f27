/* lease.c - the lease steps over a quorum: acquire and release.
 *
 * An acquire asks all nodes at once under a proposed fence. When a majority
 * gives that fence, one round trip has been enough. When it gives different
 * ones, the highest is written back to a majority where the owner still holds;
 * if the owner may hold the lease under another fence since an earlier ask,
 * nothing is written back. The time left counts from before the first node was
 * asked, as in the core. A lease that was not won is given back. A permit is a
 * slot of its name, for which the nodes are asked as for a name (slots.h). Any
 * thread. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/fail.h"
#include "store/quorum/round.h"
#include "store/quorum/slots.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* If less than this part of a lease is left when it is won, it is given
 * back. */
enum { PART_LEFT = 2, TRIES = 2 };

typedef struct asking {
    dibs__round rd;
    dibs__ask ask; /* with texts of its own: */
    char name[DIBS_NAME_MAX + 1];
    char owner[DIBS_OWNER_SIZE];
    char who[DIBS__WHO_MAX];
    uint64_t fence;
    dibsx_nsec moved_from_at; /* the first slot was asked for; 0: this is it */
    dibs__slots *slots;       /* the asker's, which still waits */
} asking;

typedef struct leaving {
    dibs__round rd;
    dibs__leave leave; /* with texts of its own: */
    char name[DIBS_NAME_MAX + 1];
    char owner[DIBS_OWNER_SIZE];
    uint32_t awaited; /* nodes */
    bool stays;       /* the owner goes on to ask for another slot */
} leaving;

/* On a thread of the node. */
static dibs_status
grant_at(dibs__round *rd, size_t node, dibs__vote *vote, dibs_error *err)
{
    const asking *as = (const asking *)rd;
    struct dibs__store *st = rd->qm->nodes[node].st;
    dibs__node_word word = {0};
    dibs__answer ans = {0};
    dibs__voter voter;
    dibs_status rc = DIBS_STALE;

    /* A release of an earlier slot may be under way, and would end this one. */
    if (as->moved_from_at > 0 &&
        dibs__node_silent_since(rd->qm, node, as->moved_from_at))
        return dibsx_fail(err, DIBS_UNAVAIL, "it may not have let go yet");
    for (int i = 0; i < 2 && rc == DIBS_STALE; i++) {
        dibsx_nsec sent_at;

        rc = dibs__node_know(rd->qm, node, i > 0, rd->deadline, &voter, err);
        if (rc != DIBS_OK)
            return rc;
        sent_at = dibsx_now();
        rc = st->ops->vote->grant(st, &voter, &as->ask, as->fence, false,
                                  rd->deadline, &ans, &word, err);
        dibs__node_heard(rd->qm, node, &word, sent_at);
    }
    vote->fence = ans.fence;
    vote->left_ms = ans.left_ms;
    vote->taken = word.taken;
    vote->again = word.again;
    return rc;
}

/* By the asker itself. */
static dibs__sent *
send_grant(dibs__round *rd, size_t node, const dibs__voter *voter)
{
    const asking *as = (const asking *)rd;
    struct dibs__store *st = rd->qm->nodes[node].st;

    return st->ops->vote->post->grant(st, voter, &as->ask, as->fence,
                                      rd->deadline);
}

/* The write-back, on a thread of the node. */
static dibs_status
raise_at(dibs__round *rd, size_t node, dibs__vote *vote, dibs_error *err)
{
    const asking *as = (const asking *)rd;
    struct dibs__store *st = rd->qm->nodes[node].st;
    dibs__renewal item = {.name = as->name,
                          .owner = as->owner,
                          .fence = as->fence};
    dibsx_nsec sent_at = dibsx_now();
    dibs__node_word word = {0};
    dibs__voter voter;
    dibs_status rc;

    dibs__node_voter(rd->qm, node, &voter);
    rc = st->ops->vote->renew(st, &voter, &item, 1, rd->deadline, &word, err);
    dibs__node_heard(rd->qm, node, &word, sent_at);
    vote->fence = as->fence;
    vote->left_ms = item.left_ms;
    return rc == DIBS_OK ? item.rc : rc;
}

/* On a thread of the node, after the jobs before it. */
static dibs_status
release_at(dibs__round *rd, size_t node, dibs__vote *vote, dibs_error *err)
{
    const leaving *lv = (const leaving *)rd;
    struct dibs__store *st = rd->qm->nodes[node].st;
    dibs__leave leave = lv->leave;

    bool doubtful;

    (void)vote;
    dibs__node_await_late(rd->qm, node, leave.owner);
    doubtful = dibs__node_doubtful(rd->qm, node, leave.owner);
    /* A tombstone would keep the owner out of its next slot. */
    if (lv->stays && doubtful && !(lv->awaited & (1U << node)))
        return DIBS_OK;
    leave.unanswered = leave.unanswered || (doubtful && !lv->stays);
    return st->ops->lease->release(st, &leave, rd->slots[node].job.deadline,
                                   err);
}

/* By the asker itself. The node does it after all that the asker has posted before. If
 * anything else may be under way, a tombstone is needed, which this does not leave. */
static dibs__sent *
send_release(dibs__round *rd, size_t node, const dibs__voter *voter)
{
    const leaving *lv = (const leaving *)rd;
    struct dibs__store *st = rd->qm->nodes[node].st;

    if (dibs__node_doubtful(rd->qm, node, NULL))
        return NULL;
    return st->ops->vote->post->release(st, voter, &lv->leave, rd->deadline);
}

static asking *asking_new(dibs__quorum *qm, const dibs__ask *ask,
                          dibs__round_fn *fn, dibsx_nsec deadline)
{
    asking *as = dibsx_zalloc(sizeof(*as));

    if (!as || !dibs__round_init(&as->rd, qm, fn, deadline)) {
        dibsx_free(as);
        return NULL;
    }
    as->rd.judged = true;
    as->ask = *ask;
    as->ask.name = as->name;
    as->ask.owner = as->owner;
    as->ask.who = as->who;
    snprintf(as->name, sizeof(as->name), "%s", ask->name);
    snprintf(as->owner, sizeof(as->owner), "%s", ask->owner);
    snprintf(as->who, sizeof(as->who), "%s", ask->who);
    return as;
}

static leaving *
leaving_new(dibs__quorum *qm, const dibs__leave *leave, dibsx_nsec deadline)
{
    leaving *lv = dibsx_zalloc(sizeof(*lv));

    if (!lv || !dibs__round_init(&lv->rd, qm, release_at, deadline)) {
        dibsx_free(lv);
        return NULL;
    }
    lv->leave = *leave;
    lv->leave.name = lv->name;
    lv->leave.owner = lv->owner;
    snprintf(lv->name, sizeof(lv->name), "%s", leave->name);
    snprintf(lv->owner, sizeof(lv->owner), "%s", leave->owner);
    return lv;
}

/* The fence to propose: the median of the nodes' clocks, so that most of them
 * have given nothing above it. */
static uint64_t propose_fence(dibs__quorum *qm, const dibs__slots *slots)
{
    uint64_t fence;
    int64_t wall_us;

    pthread_mutex_lock(&qm->mutex);
    wall_us = dibs__skew_wall_us(&qm->skew, dibsx_now());
    fence = (uint64_t)(wall_us > 0 ? wall_us : dibsx_wall_us());
    if (fence <= qm->last_fence)
        fence = qm->last_fence + 1;
    fence = dibs__slots_fence(slots, fence);
    qm->last_fence = fence;
    pthread_mutex_unlock(&qm->mutex);
    return fence;
}

static void note_fence(dibs__quorum *qm, uint64_t fence)
{
    pthread_mutex_lock(&qm->mutex);
    if (fence > qm->last_fence)
        qm->last_fence = fence;
    pthread_mutex_unlock(&qm->mutex);
}

/* The nodes whose votes pass the test. */
static uint32_t
nodes_that(const dibs__ballot *bl, bool (*is)(const dibs__vote *))
{
    uint32_t nodes = 0;

    for (size_t i = 0; i < bl->count; i++)
        if (is(&bl->votes[i]))
            nodes |= 1U << i;
    return nodes;
}

static bool has_granted(const dibs__vote *vote)
{
    return vote->in && vote->rc == DIBS_OK;
}

static bool may_grant(const dibs__vote *vote)
{
    return !vote->in || vote->rc == DIBS_UNKNOWN;
}

/* Writes the highest fence back to a majority. */
static dibs__verdict
write_back(asking *as, uint64_t fence, dibsx_nsec deadline, int64_t *left_ms)
{
    dibs__quorum *qm = as->rd.qm;
    uint32_t nodes = nodes_that(&as->rd.ballot, has_granted);
    dibs__verdict verdict = DIBS__DEFEAT;
    asking *raise = asking_new(qm, &as->ask, raise_at,
                               dibs__round_limit(qm, as->ask.ttl_ms, deadline));

    if (!raise)
        return verdict;
    raise->fence = fence;
    dibs__round_start(&raise->rd, nodes);
    dibs__round_wait(&raise->rd, dibs__round_decided);
    verdict = dibs__ballot_count(&raise->rd.ballot);
    *left_ms = dibs__ballot_left(&raise->rd.ballot);
    dibs__round_drop(&raise->rd);
    return verdict == DIBS__WON ? verdict : DIBS__DEFEAT;
}

/* All nodes that are awaited have answered. */
static bool awaited_in(const dibs__round *rd)
{
    const leaving *lv = (const leaving *)rd;
    bool in = true;

    for (size_t i = 0; i < rd->ballot.count; i++)
        if (lv->awaited & (1U << i))
            in = in && rd->ballot.votes[i].in;
    return in;
}

/* Gives back what nodes have granted. With `gone` also releases at nodes that
 * may yet grant, without waiting for them: a release that arrives there first
 * leaves a tombstone, except when the owner goes on to another slot. True when
 * all nodes that granted it have released it. */
static bool give_back(asking *as, bool gone, dibsx_nsec deadline)
{
    dibs__quorum *qm = as->rd.qm;
    const dibs__leave leave = {.name = as->name, .owner = as->owner};
    uint32_t awaited = nodes_that(&as->rd.ballot, has_granted);
    uint32_t others = gone ? nodes_that(&as->rd.ballot, may_grant) : 0;
    leaving *lv;
    bool clean;

    if (gone && !as->slots->moves)
        others |= as->slots->doubtful;
    if ((awaited | others) == 0)
        return true;
    lv = leaving_new(qm, &leave, dibs__round_limit(qm, INT64_MAX, deadline));
    if (!lv)
        return false;
    lv->awaited = awaited;
    lv->stays = as->slots->moves;
    dibs__round_start(&lv->rd, awaited | others);
    dibs__round_wait(&lv->rd, awaited_in);
    clean = true;
    for (size_t i = 0; i < qm->count; i++)
        if (awaited & (1U << i))
            clean = clean && (lv->rd.ballot.votes[i].rc == DIBS_OK ||
                              lv->rd.ballot.votes[i].rc == DIBS_LOST);
    dibs__round_drop(&lv->rd);
    return clean;
}

static dibs_status
check_supported(const dibs__quorum *qm, const dibs__ask *ask, dibs_error *err)
{
    if (ask->mode == DIBS__SHARED)
        return dibs__quorum_unsupported(DIBS__CAN_SHARE, err);
    if (ask->mode == DIBS__PERMITS && ask->permits > 1)
        return dibs__quorum_unsupported(DIBS__CAN_COUNT, err);
    if (ask->mode == DIBS__PERMITS && ask->capacity > DIBS__NAME_SLOTS)
        return dibsx_fail(err, DIBS_UNSUPPORTED,
                          "a name has up to %d permits at a quorum, where each "
                          "is a slot of its own",
                          DIBS__NAME_SLOTS);
    if (ask->priority != 0)
        return dibs__quorum_unsupported(DIBS__CAN_QUEUE, err);
    if (ask->flags & DIBS__ASK_TELL)
        return dibs__quorum_unsupported(DIBS__CAN_RING, err);
    if (ask->replicas > 0)
        return dibs__quorum_unsupported(DIBS__CAN_REPLICATE, err);
    if (ask->ttl_ms <= 0)
        return dibsx_fail(err, DIBS_INVALID, "the ttl must be positive");
    if (ask->ttl_ms > qm->longest_ms) {
        char asked[32], longest[32];

        dibsx_duration_text(ask->ttl_ms, asked, sizeof(asked));
        dibsx_duration_text(qm->longest_ms, longest, sizeof(longest));
        return dibsx_fail(err, DIBS_INVALID,
                          "a ttl of %s is longer than the longest of this "
                          "quorum, %s; all its clients set that with "
                          "longest_ttl=",
                          asked, longest);
    }
    return DIBS_OK;
}

static bool grants_settled(const dibs__round *rd)
{
    return dibs__ballot_settled(&rd->ballot);
}

/* Fails with a node's word on the holder, and how many nodes have granted
 * it. */
static dibs_status
fail_busy(const asking *as, dibs__answer *ans, dibs_error *err)
{
    const dibs__ballot *bl = &as->rd.ballot;
    const char *who = "it is held by others";
    char count[48];

    for (size_t i = 0; i < bl->count; i++) {
        const dibs__vote *vote = &bl->votes[i];

        if (!vote->in || vote->rc != DIBS_BUSY)
            continue;
        who = as->rd.slots[i].err.message;
        if (vote->fence > ans->fence)
            ans->fence = vote->fence;
        if (vote->left_ms > ans->left_ms)
            ans->left_ms = vote->left_ms;
    }
    snprintf(count, sizeof(count), " (%zu of %zu servers said so)",
             dibs__ballot_said(bl, DIBS_BUSY), bl->count);
    /* The holder's name, whole, is worth more than the count. */
    if (strlen(who) + strlen(count) >= sizeof(err->message))
        count[0] = '\0';
    return dibsx_fail(err, DIBS_BUSY, "%s%s", who, count);
}

/* The round was not won, or too little time is left: gives back every grant. */
static dibs_status lose_round(asking *as, const char *what, dibsx_nsec deadline,
                              dibs__answer *ans, dibs_error *err)
{
    dibs_status rc = dibs__ballot_status(&as->rd.ballot);
    bool gone, clean;

    /* A majority had granted it. */
    if (dibs__ballot_count(&as->rd.ballot) == DIBS__WON)
        rc = DIBS_UNAVAIL;
    gone = rc != DIBS_UNAVAIL && rc != DIBS_UNKNOWN;
    if (rc == DIBS_BUSY)
        dibs__slots_move(as->slots, &as->rd.ballot,
                         nodes_that(&as->rd.ballot, may_grant));
    dibs__round_cancel(&as->rd);
    clean = give_back(as, gone, deadline);
    if (!clean && as->slots->moves) {
        /* A request under way could end the next lease of the same owner: it
         * must not go on. */
        as->slots->moves = false;
        (void)give_back(as, gone, deadline);
    }
    /* A minority where the owner has left says nothing of the others. */
    if ((rc == DIBS_UNAVAIL && !clean) ||
        (rc == DIBS_LOST && dibs__ballot_said(&as->rd.ballot, DIBS_LOST) <
                                dibs__majority(as->rd.ballot.count)))
        rc = DIBS_UNKNOWN;
    if (rc == DIBS_BUSY)
        return fail_busy(as, ans, err);
    return dibs__round_fail(&as->rd, rc, what, err);
}

/* Most of the ttl has passed while the nodes were asked. */
static bool too_little(int64_t left_ms, dibsx_nsec from_at)
{
    int64_t took_ms = (dibsx_now() - from_at) / DIBSX_MS + 1;

    return took_ms > left_ms / PART_LEFT;
}

/* *again: nothing of it is left, and the caller may ask once more. */
static dibs_status
decide_round(asking *as, dibsx_nsec from_at, dibsx_nsec deadline,
             dibs__answer *ans, bool *again, dibs_error *err)
{
    uint64_t fence = 0;
    dibs__verdict verdict = dibs__ballot_grants(&as->rd.ballot, &fence);
    int64_t left_ms = dibs__ballot_left(&as->rd.ballot);
    dibs_status rc;

    *again = false;
    note_fence(as->rd.qm, fence);
    if (verdict == DIBS__DOUBT)
        return dibs__round_fail(&as->rd, DIBS_UNKNOWN,
                                "the owner may hold it under another fence "
                                "already",
                                err);
    if (verdict == DIBS__SPLIT)
        verdict = write_back(as, fence, deadline, &left_ms);
    if (verdict != DIBS__WON)
        return lose_round(as, "no majority was reached", deadline, ans, err);
    if (too_little(left_ms, from_at)) {
        rc = lose_round(as, "the nodes were too slow", deadline, ans, err);
        *again = rc == DIBS_UNAVAIL;
        return rc;
    }
    ans->fence = fence;
    ans->left_ms = left_ms;
    return DIBS_OK;
}

static dibs_status
acquire_once(dibs__quorum *qm, const dibs__ask *ask, dibs__slots *slots,
             dibsx_nsec moved_from_at, dibsx_nsec deadline, dibs__answer *ans,
             bool *again, dibs_error *err)
{
    dibsx_nsec from_at = dibsx_now();
    asking *as = asking_new(qm, ask, grant_at,
                            dibs__round_limit(qm, ask->ttl_ms, deadline));
    dibs_status rc;

    *again = false;
    *ans = (dibs__answer){.fence = 0};
    if (!as)
        return dibsx_nomem(err, "a round of votes");
    as->fence = propose_fence(qm, slots);
    as->slots = slots;
    as->moved_from_at = moved_from_at;
    as->rd.owner = as->owner;
    as->rd.send = moved_from_at == 0 ? send_grant : NULL;
    as->ask.priority = (int32_t)slots->slot;
    dibs__round_start(&as->rd, DIBS__ALL_NODES);
    dibs__round_wait(&as->rd, grants_settled);
    rc = decide_round(as, from_at, deadline, ans, again, err);
    dibs__round_drop(&as->rd);
    return rc;
}

/* The core counts what is left from before the first try, which is earlier than
 * any node does. */
dibs_status
dibs__quorum_acquire(struct dibs__store *st, const dibs__ask *ask,
                     dibsx_nsec deadline, dibs__answer *ans, dibs_error *err)
{
    dibs__quorum *qm = dibs__quorum_of(st);
    dibs_status rc = check_supported(qm, ask, err);
    dibsx_nsec from_at = dibsx_now(), moved_from_at = 0;
    dibs__slots slots;

    if (rc != DIBS_OK)
        return rc;
    dibs__slots_init(&slots, dibs__ask_capacity(ask), ask->owner);
    do {
        bool again = true;

        slots.moves = false;
        for (int i = 0; i < TRIES && again; i++)
            rc = acquire_once(qm, ask, &slots, moved_from_at, deadline, ans,
                              &again, err);
        moved_from_at = from_at;
    } while (slots.moves && dibsx_now() < deadline);
    return rc;
}

/* So many nodes have nothing of it that it was not a lease. */
static bool was_none(const dibs__ballot *bl)
{
    return dibs__ballot_said(bl, DIBS_LOST) >
           bl->count - dibs__majority(bl->count);
}

static bool release_decided(const dibs__round *rd)
{
    return dibs__ballot_count(&rd->ballot) == DIBS__WON ||
           was_none(&rd->ballot);
}

static dibs_status judge_release(const dibs__round *rd, dibs_error *err)
{
    const dibs__ballot *bl = &rd->ballot;
    dibs_status rc = DIBS_UNAVAIL;

    if (dibs__ballot_count(bl) == DIBS__WON)
        return DIBS_OK;
    if (was_none(bl))
        return dibs__round_fail(rd, DIBS_LOST, "it was not held", err);
    for (size_t i = 0; i < bl->count; i++)
        if (bl->votes[i].rc != DIBS_UNAVAIL)
            rc = DIBS_UNKNOWN;
    return dibs__round_fail(rd, rc, "no majority was reached", err);
}

dibs_status
dibs__quorum_release(struct dibs__store *st, const dibs__leave *leave,
                     dibsx_nsec deadline, dibs_error *err)
{
    dibs__quorum *qm = dibs__quorum_of(st);
    leaving *lv;
    dibs_status rc;

    if (leave->keep_ms > qm->longest_ms)
        return dibsx_fail(err, DIBS_INVALID,
                          "to be kept for longer than longest_ttl");
    lv = leaving_new(qm, leave, dibs__round_limit(qm, INT64_MAX, deadline));
    if (!lv)
        return dibsx_nomem(err, "a round of votes");
    lv->rd.send = send_release;
    lv->rd.goes_on = true;
    dibs__round_start(&lv->rd, DIBS__ALL_NODES);
    dibs__round_wait(&lv->rd, release_decided);
    rc = judge_release(&lv->rd, err);
    dibs__round_drop(&lv->rd);
    return rc;
}
