/* ballot.c - what the votes of the nodes of a quorum add up to: see ballot.h. */
/* SPDX-License-Identifier: MIT */
#include "store/quorum/ballot.h"

size_t dibs__majority(size_t count)
{
    return count / 2 + 1;
}

static bool has_status(const dibs__vote *vote, dibs_status rc)
{
    return vote->in && vote->counts && vote->rc == rc;
}

size_t dibs__ballot_said(const dibs__ballot *bl, dibs_status rc)
{
    size_t sum = 0;

    for (size_t i = 0; i < bl->count; i++)
        sum += has_status(&bl->votes[i], rc);
    return sum;
}

static size_t not_in(const dibs__ballot *bl)
{
    size_t sum = 0;

    for (size_t i = 0; i < bl->count; i++)
        sum += !bl->votes[i].in;
    return sum;
}

dibs__verdict dibs__ballot_count(const dibs__ballot *bl)
{
    size_t yes = dibs__ballot_said(bl, DIBS_OK);
    size_t majority = dibs__majority(bl->count);

    if (yes >= majority)
        return DIBS__WON;
    return yes + not_in(bl) >= majority ? DIBS__OPEN : DIBS__DEFEAT;
}

static size_t count_agreeing(const dibs__ballot *bl, uint64_t fence)
{
    size_t sum = 0;

    for (size_t i = 0; i < bl->count; i++)
        sum +=
            has_status(&bl->votes[i], DIBS_OK) && bl->votes[i].fence == fence;
    return sum;
}

/* The node may have given the owner this fence: all but those that had another for
 * it before it asked. One that has nothing may have lost it. */
static bool may_have(const dibs__vote *vote, uint64_t fence)
{
    return !vote->in || vote->rc != DIBS_OK || !vote->again ||
           vote->fence == fence;
}

/* The owner may hold it since an earlier ask, under another fence than this one. */
static bool may_be_held(const dibs__ballot *bl, uint64_t but)
{
    for (size_t i = 0; i < bl->count; i++) {
        const dibs__vote *vote = &bl->votes[i];
        size_t sum = 0;

        if (!vote->in || vote->rc != DIBS_OK || !vote->again ||
            vote->fence == but)
            continue;
        for (size_t k = 0; k < bl->count; k++)
            sum += may_have(&bl->votes[k], vote->fence);
        if (sum >= dibs__majority(bl->count))
            return true;
    }
    return false;
}

dibs__verdict dibs__ballot_grants(const dibs__ballot *bl, uint64_t *fence)
{
    dibs__verdict verdict = dibs__ballot_count(bl);
    uint64_t highest = 0;

    for (size_t i = 0; i < bl->count && verdict == DIBS__WON; i++) {
        const dibs__vote *vote = &bl->votes[i];

        if (!has_status(vote, DIBS_OK))
            continue;
        if (count_agreeing(bl, vote->fence) >= dibs__majority(bl->count)) {
            *fence = vote->fence;
            return DIBS__WON;
        }
        if (vote->fence > highest)
            highest = vote->fence;
    }
    if (verdict != DIBS__WON)
        return verdict;
    *fence = highest;
    return may_be_held(bl, highest) ? DIBS__DOUBT : DIBS__SPLIT;
}

/* How many have at least this. */
static size_t with_left(const dibs__ballot *bl, int64_t left_ms)
{
    size_t sum = 0;

    for (size_t i = 0; i < bl->count; i++)
        sum += has_status(&bl->votes[i], DIBS_OK) &&
               bl->votes[i].left_ms >= left_ms;
    return sum;
}

static size_t with_fence(const dibs__ballot *bl, uint64_t fence)
{
    size_t sum = 0;

    for (size_t i = 0; i < bl->count; i++)
        sum +=
            has_status(&bl->votes[i], DIBS_OK) && bl->votes[i].fence >= fence;
    return sum;
}

int64_t dibs__ballot_left(const dibs__ballot *bl)
{
    int64_t left_ms = 0;

    for (size_t i = 0; i < bl->count; i++)
        if (bl->votes[i].left_ms > left_ms &&
            with_left(bl, bl->votes[i].left_ms) >= dibs__majority(bl->count))
            left_ms = bl->votes[i].left_ms;
    return left_ms;
}

uint64_t dibs__ballot_fence(const dibs__ballot *bl)
{
    uint64_t fence = 0;

    for (size_t i = 0; i < bl->count; i++)
        if (bl->votes[i].fence > fence &&
            with_fence(bl, bl->votes[i].fence) >= dibs__majority(bl->count))
            fence = bl->votes[i].fence;
    return fence;
}

dibs_status dibs__ballot_failure(const dibs__ballot *bl)
{
    dibs_status common = DIBS_OK;
    bool unknown = false;

    for (size_t i = 0; i < bl->count; i++) {
        const dibs__vote *vote = &bl->votes[i];

        unknown = unknown || !vote->in || vote->rc == DIBS_UNKNOWN;
        if (has_status(vote, DIBS_OK) || has_status(vote, DIBS_BUSY))
            continue;
        common =
            common == DIBS_OK || common == vote->rc ? vote->rc : DIBS_UNAVAIL;
    }
    if (common == DIBS_DENIED || common == DIBS_INVALID ||
        common == DIBS_INTERNAL || common == DIBS_NOMEM)
        return common;
    return unknown ? DIBS_UNKNOWN : DIBS_UNAVAIL;
}

dibs_status dibs__ballot_status(const dibs__ballot *bl)
{
    size_t busy = dibs__ballot_said(bl, DIBS_BUSY);
    size_t mismatch = dibs__ballot_said(bl, DIBS_MISMATCH);
    size_t answered = busy + mismatch + dibs__ballot_said(bl, DIBS_OK);

    if (dibs__ballot_said(bl, DIBS_LOST) > 0)
        return DIBS_LOST;
    if (answered < dibs__majority(bl->count))
        return dibs__ballot_failure(bl);
    return mismatch > busy ? DIBS_MISMATCH : DIBS_BUSY;
}

bool dibs__ballot_settled(const dibs__ballot *bl)
{
    uint64_t fence;
    dibs__verdict verdict = dibs__ballot_grants(bl, &fence);
    dibs_status rc;

    if (verdict == DIBS__DOUBT)
        return not_in(bl) == 0;
    if (verdict != DIBS__DEFEAT)
        return verdict != DIBS__OPEN;
    rc = dibs__ballot_status(bl);
    return rc == DIBS_BUSY || rc == DIBS_MISMATCH || not_in(bl) == 0 ||
           dibs__ballot_said(bl, DIBS_LOST) >= dibs__majority(bl->count);
}
