/* fuzz_quorum_votes.c - what nodes of a quorum answer, whatever it is, through the
 * decisions that are made of it: the ballot, the search for a slot, the view of the
 * clocks, and the lease machine.
 *
 * The input is a head (nodes, slots, owner) and a record for each vote; what it comes
 * to is held against a second way to count. */
/* SPDX-License-Identifier: MIT */
#include "core/machine/lease.h"
#include "fuzz.h"
#include "store/quorum/ballot.h"
#include "store/quorum/skew.h"
#include "store/quorum/slots.h"

enum { TTL_MS = 10000, SENT_S = 1000 };

typedef struct input {
    const uint8_t *at;
    size_t left;
} input;

/* A number of so many bytes; 0 where the input has ended. */
static uint64_t number(input *in, size_t bytes)
{
    uint64_t value = 0;

    for (size_t i = 0; i < bytes; i++) {
        value = value << 8 | (in->left > 0 ? *in->at : 0);
        in->at += in->left > 0;
        in->left -= in->left > 0;
    }
    return value;
}

static dibs__vote read_vote(input *in)
{
    static const dibs_status said[] = {DIBS_OK,      DIBS_OK,
                                       DIBS_OK,      DIBS_BUSY,
                                       DIBS_LOST,    DIBS_UNAVAIL,
                                       DIBS_UNKNOWN, DIBS_MISMATCH,
                                       DIBS_OK,      DIBS_REFUSED,
                                       DIBS_STALE,   DIBS_DENIED};
    uint64_t flags = number(in, 1);
    size_t wide = flags & 8 ? 8 : 1; /* small numbers meet more often */
    dibs__vote vote = {.in = flags & 1, .counts = flags & 2};

    vote.again = flags & 4;
    vote.rc = said[number(in, 1) % (sizeof(said) / sizeof(said[0]))];
    vote.fence = number(in, wide);
    vote.left_ms = (int64_t)number(in, wide);
    vote.taken = number(in, wide);
    return vote;
}

static bool says_yes(const dibs__vote *vote)
{
    return vote->in && vote->counts && vote->rc == DIBS_OK;
}

static size_t
yeses(const dibs__ballot *bl, const uint64_t *fence, const int64_t *left_ms)
{
    size_t sum = 0;

    for (size_t i = 0; i < bl->count; i++)
        sum += says_yes(&bl->votes[i]) &&
               (!fence || bl->votes[i].fence == *fence) &&
               (!left_ms || bl->votes[i].left_ms >= *left_ms);
    return sum;
}

/* Nodes that had it under another fence before they were asked. */
static size_t elsewhere(const dibs__ballot *bl, uint64_t fence)
{
    size_t sum = 0;

    for (size_t i = 0; i < bl->count; i++)
        sum += bl->votes[i].in && bl->votes[i].rc == DIBS_OK &&
               bl->votes[i].again && bl->votes[i].fence != fence;
    return sum;
}

/* Some majority may believe in a fence other than this one. */
static bool doubtful(const dibs__ballot *bl, uint64_t but)
{
    for (size_t i = 0; i < bl->count; i++)
        if (bl->votes[i].in && bl->votes[i].rc == DIBS_OK &&
            bl->votes[i].again && bl->votes[i].fence != but &&
            bl->count - elsewhere(bl, bl->votes[i].fence) > bl->count / 2)
            return true;
    return false;
}

static void
check_fence(const dibs__ballot *bl, dibs__verdict verdict, uint64_t fence)
{
    size_t majority = bl->count / 2 + 1;

    if (verdict == DIBS__WON) {
        REQUIRE(yeses(bl, &fence, NULL) >= majority);
        return;
    }
    for (size_t i = 0; i < bl->count; i++)
        if (says_yes(&bl->votes[i])) {
            REQUIRE(bl->votes[i].fence <= fence);
            REQUIRE(yeses(bl, &bl->votes[i].fence, NULL) < majority);
        }
    REQUIRE(yeses(bl, &fence, NULL) > 0);
    REQUIRE((verdict == DIBS__DOUBT) == doubtful(bl, fence));
}

/* What is left is what a majority has, and no more. */
static void check_left(const dibs__ballot *bl)
{
    int64_t left_ms = dibs__ballot_left(bl), more_ms;
    size_t majority = bl->count / 2 + 1;

    REQUIRE(left_ms >= 0);
    REQUIRE(left_ms == 0 || yeses(bl, NULL, &left_ms) >= majority);
    for (size_t i = 0; i < bl->count; i++) {
        more_ms = bl->votes[i].left_ms;
        if (says_yes(&bl->votes[i]) && more_ms > left_ms)
            REQUIRE(yeses(bl, NULL, &more_ms) < majority);
    }
}

static dibs__verdict check_ballot(const dibs__ballot *bl, uint64_t *fence)
{
    size_t majority = bl->count / 2 + 1, open = 0;
    dibs__verdict verdict;
    dibs_status rc = dibs__ballot_status(bl);

    *fence = 0;
    verdict = dibs__ballot_grants(bl, fence);
    for (size_t i = 0; i < bl->count; i++)
        open += !bl->votes[i].in;
    if (yeses(bl, NULL, NULL) < majority) {
        REQUIRE(verdict == DIBS__OPEN || verdict == DIBS__DEFEAT);
        REQUIRE((verdict == DIBS__OPEN) ==
                (yeses(bl, NULL, NULL) + open >= majority));
        REQUIRE(dibs__ballot_left(bl) == 0 && dibs__ballot_fence(bl) == 0);
    } else {
        check_fence(bl, verdict, *fence);
        REQUIRE(dibs__ballot_fence(bl) <=
                (verdict == DIBS__WON ? UINT64_MAX : *fence));
    }
    REQUIRE(rc != DIBS_OK && rc < DIBS_FORKED);
    /* "Nothing was changed" is not said while somebody has not answered. */
    for (size_t i = 0; i < bl->count && rc == DIBS_UNAVAIL; i++)
        REQUIRE(bl->votes[i].in && bl->votes[i].rc != DIBS_UNKNOWN);
    if (open == 0)
        REQUIRE(dibs__ballot_settled(bl));
    check_left(bl);
    return verdict;
}

/* Further votes do not change what was won or lost. */
static void
check_final(dibs__ballot bl, dibs__verdict before, uint64_t won, input *in)
{
    uint64_t fence;
    dibs__verdict after;

    for (size_t i = 0; i < bl.count; i++)
        if (!bl.votes[i].in) {
            bl.votes[i] = read_vote(in);
            bl.votes[i].in = true;
        }
    after = check_ballot(&bl, &fence);
    REQUIRE(after != DIBS__OPEN);
    REQUIRE(before != DIBS__WON || (after == DIBS__WON && fence == won));
    REQUIRE(before != DIBS__DEFEAT || after == DIBS__DEFEAT);
}

/* The core believes in nothing else, and no longer. */
static void
check_belief(const dibs__ballot *bl, dibs__verdict verdict, uint64_t fence)
{
    const dibsx_nsec sent_at = SENT_S * DIBSX_SEC;
    dibs__answer ans = {.fence = fence, .left_ms = dibs__ballot_left(bl)};
    dibs__lease ls = {0};

    if (verdict != DIBS__WON)
        return;
    dibs__lease_begin(&ls, "0123456789abcdef0123456789abcdef",
                      &(dibs__terms){.ttl_ms = TTL_MS});
    dibs__lease_asked(&ls, sent_at);
    dibs__lease_answered(&ls, DIBS_OK, &ans, sent_at + 1);
    if (!dibs__lease_valid(&ls, sent_at + 1))
        return;
    REQUIRE(ls.fence == fence && fence != 0);
    REQUIRE(ls.valid_until < dibsx_after_ms(sent_at, TTL_MS));
    REQUIRE(ls.valid_until < dibsx_after_ms(sent_at, ans.left_ms));
}

static void check_slots(const dibs__ballot *bl, uint32_t capacity, input *in)
{
    char owner[] = "0123456789abcdef0123456789abcdef";
    uint64_t least = number(in, 8) & INT64_MAX, tried = 0, fence;
    dibs__slots sl;

    owner[0] = "0123456789abcdef"[number(in, 1) % 16];
    dibs__slots_init(&sl, capacity, owner);
    do {
        REQUIRE(sl.slot <= capacity && (sl.slot > 0) == (capacity > 0));
        REQUIRE(sl.slot == 0 || !(tried & (UINT64_C(1) << (sl.slot - 1))));
        fence = dibs__slots_fence(&sl, least);
        REQUIRE(fence >= least && fence - least < DIBS__NAME_SLOTS);
        REQUIRE(sl.slot == 0 || fence % DIBS__NAME_SLOTS == sl.slot - 1);
        tried |= sl.slot > 0 ? UINT64_C(1) << (sl.slot - 1) : 0;
        sl.moves = false;
        dibs__slots_move(&sl, bl, 0);
    } while (sl.moves);
}

/* Clocks as a node can tell them: up to 2^53 microseconds. */
static void check_clocks(size_t count, input *in)
{
    dibs__skew sk = {.count = count};
    dibsx_nsec now = SENT_S * DIBSX_SEC;

    for (int i = 0; i < 32 && in->left > 0; i++) {
        size_t node = number(in, 1) % count;
        int64_t wall_us = (int64_t)(number(in, 7) % (UINT64_C(1) << 53)) + 1;
        dibsx_nsec sent_at = now;

        now += (dibsx_nsec)number(in, 3) * 1000;
        (void)dibs__skew_seen(&sk, node, wall_us, sent_at, now, TTL_MS);
        REQUIRE(dibs__skew_wall_us(&sk, now) >= 0);
        (void)dibs__skew_trusts(&sk, node, now);
        (void)dibs__skew_off_ms(&sk, node);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input in = {.at = data, .left = size};
    dibs__ballot bl = {.count = 3 + 2 * (number(&in, 1) % 4)};
    uint32_t capacity = (uint32_t)(number(&in, 1) % (DIBS__NAME_SLOTS + 1));
    dibs__verdict verdict;
    uint64_t fence;

    REQUIRE(bl.count <= DIBS__NODES_MAX);
    for (size_t i = 0; i < bl.count; i++)
        bl.votes[i] = read_vote(&in);
    verdict = check_ballot(&bl, &fence);
    check_final(bl, verdict, fence, &in);
    check_belief(&bl, verdict, fence);
    check_slots(&bl, capacity, &in);
    check_clocks(bl.count, &in);
    return 0;
}
