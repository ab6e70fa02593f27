/* grant_roll.c - the parties of one name: their storage, order and invariants.
 *
 * Owns the array of a roll. Pure: it takes the time from the roll, does no I/O
 * and keeps no state of its own, so any thread may use it on a roll of its own.
 *
 * Invariants, held after every step and asserted by dibs__roll_check():
 *   (I1) an owner is one party
 *   (I2) holders, ghosts and waiters are of one kind, which is their capacity
 *        (0 for a lock)
 *   (I3) the holder of an exclusive lease holds alone
 *   (I4) the permits of all that hold are within the capacity
 *   (I5) a party that holds has a fence of its own, not above the watermark
 *   (I6) a waiter has no fence
 *   (I7) the head of the queue does not fit
 *   (I8) only a holder that asked for it, and has a doorbell, is notified of a
 *        refusal
 */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "store/grant.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A name with more parties than this is refused as if memory were short. */
enum { ROOM_FIRST = 8, ROOM_MAX = 1 << 17 };

void dibs__roll_fini(dibs__roll *roll)
{
    dibsx_free(roll->parties);
    memset(roll, 0, sizeof(*roll));
}

void dibs__roll_reset(dibs__roll *roll)
{
    roll->count = 0;
}

dibs__party *dibs__roll_add(dibs__roll *roll)
{
    dibs__party *party;

    if (roll->count == roll->room) {
        size_t room = roll->room ? roll->room * 2 : ROOM_FIRST;
        dibs__party *grown = NULL;

        if (room <= ROOM_MAX)
            grown = dibsx_realloc_n(roll->parties, room, sizeof(*grown));
        if (!grown)
            return NULL;
        roll->parties = grown;
        roll->room = room;
    }
    party = &roll->parties[roll->count++];
    memset(party, 0, sizeof(*party));
    return party;
}

dibs__party *dibs__roll_find(const dibs__roll *roll, const char *owner)
{
    for (size_t i = 0; i < roll->count; i++)
        if (strcmp(roll->parties[i].owner, owner) == 0)
            return &roll->parties[i];
    return NULL;
}

bool dibs__party_lives(const dibs__roll *roll, const dibs__party *party)
{
    return party->mark != DIBS__DROPPED && party->until_us > roll->now_us;
}

bool dibs__party_holds(const dibs__roll *roll, const dibs__party *party)
{
    return (party->role == DIBS__HOLDER || party->role == DIBS__GHOST) &&
           dibs__party_lives(roll, party);
}

static bool party_waits(const dibs__roll *roll, const dibs__party *party)
{
    return party->role == DIBS__WAITER && dibs__party_lives(roll, party);
}

/* A strict order of all that hold, by grant, and then of all that wait, by
 * service. Both parties are of the same roll. */
static bool comes_before(const dibs__party *a, const dibs__party *b)
{
    bool a_waits = a->role == DIBS__WAITER;
    bool b_waits = b->role == DIBS__WAITER;

    if (a_waits != b_waits)
        return b_waits;
    if (!a_waits && a->fence != b->fence)
        return a->fence < b->fence;
    if (a_waits && a->priority != b->priority)
        return a->priority > b->priority;
    if (a_waits && a->seq != b->seq)
        return a->seq < b->seq;
    return a < b;
}

bool dibs__roll_fits(const dibs__roll *roll, const dibs__party *party)
{
    bool held = false;
    bool exclusive = false;
    uint64_t permits = 0;

    if (roll->watermark >= INT64_MAX)
        return false; /* There is no fence left to give. */
    for (size_t i = 0; i < roll->count; i++) {
        const dibs__party *other = &roll->parties[i];

        if (other == party || !dibs__party_holds(roll, other))
            continue;
        held = true;
        if (other->mode == DIBS__EXCLUSIVE)
            exclusive = true;
        permits += other->permits;
    }
    if (party->mode == DIBS__PERMITS)
        return permits + party->permits <= party->capacity;
    return party->mode == DIBS__SHARED ? !exclusive : !held;
}

dibs__party *dibs__roll_next(const dibs__roll *roll)
{
    dibs__party *head = NULL;

    for (size_t i = 0; i < roll->count; i++) {
        dibs__party *party = &roll->parties[i];

        if (party_waits(roll, party) && (!head || comes_before(party, head)))
            head = party;
    }
    return head && dibs__roll_fits(roll, head) ? head : NULL;
}

uint32_t dibs__roll_ahead(const dibs__roll *roll, const dibs__party *party)
{
    uint32_t ahead = 0;

    for (size_t i = 0; i < roll->count; i++) {
        const dibs__party *other = &roll->parties[i];

        ahead +=
            party_waits(roll, other) && (!party || comes_before(other, party));
    }
    return ahead;
}

const dibs__party *dibs__roll_first_to_end(const dibs__roll *roll)
{
    const dibs__party *first = NULL;

    for (size_t i = 0; i < roll->count; i++) {
        const dibs__party *party = &roll->parties[i];

        if (dibs__party_holds(roll, party) &&
            (!first || party->until_us < first->until_us))
            first = party;
    }
    return first;
}

/* The one to show after `last`, or first when that is NULL. Looking for each
 * anew needs no memory, so that a listing cannot fail. */
static const dibs__party *
shown_after(const dibs__roll *roll, const dibs__party *last)
{
    const dibs__party *best = NULL;

    for (size_t i = 0; i < roll->count; i++) {
        const dibs__party *party = &roll->parties[i];

        if (party->role == DIBS__TOMB || !dibs__party_lives(roll, party))
            continue;
        if (last && !comes_before(last, party))
            continue;
        if (!best || comes_before(party, best))
            best = party;
    }
    return best;
}

static void
show_party(const dibs__roll *roll, const dibs__party *party, dibs__entry *out)
{
    memcpy(out->owner, party->owner, sizeof(out->owner));
    out->holder = party->role != DIBS__WAITER;
    out->claim = party->role == DIBS__HOLDER && party->claim;
    out->left = party->role == DIBS__GHOST;
    out->mode = party->mode;
    out->permits = party->permits;
    out->capacity = party->capacity;
    out->priority = party->priority;
    out->fence = party->fence;
    out->ttl_ms = party->ttl_ms;
    out->age_ms = (roll->now_us - party->since_us) / 1000;
    out->left_ms = (party->until_us - roll->now_us) / 1000;
    memcpy(out->who, party->who, sizeof(out->who));
}

size_t dibs__roll_show(const dibs__roll *roll, dibs__entry *out)
{
    const dibs__party *party = NULL;
    size_t count = 0;

    while ((party = shown_after(roll, party)))
        show_party(roll, party, &out[count++]);
    return count;
}

static void assert_that(bool truth, const dibs__party *party, const char *what)
{
    if (truth)
        return;
    fprintf(stderr, "dibs: broken roll: %s (owner %.32s, fence %llu)\n", what,
            party->owner, (unsigned long long)party->fence);
    abort();
}

static void check_party(const dibs__roll *roll, const dibs__party *party)
{
    bool holds = dibs__party_holds(roll, party);
    bool lock = party->mode != DIBS__PERMITS;
    bool wanted = party->notify && party->notice == DIBS__NOTICE_WANTED;

    assert_that(!wanted || (holds && party->role == DIBS__HOLDER &&
                            party->tell && party->bell[0]),
                party, "notified of a refusal, and should not be");
    if (!holds && !party_waits(roll, party))
        return;
    assert_that(lock == (party->capacity == 0), party,
                "mode and capacity differ");
    assert_that(party->permits > 0, party, "a party without permits");
    assert_that(!holds || party->fence > 0, party, "a holder without a fence");
    assert_that(!holds || party->fence <= roll->watermark, party,
                "a fence above the watermark");
    assert_that(holds || party->fence == 0, party, "a waiter with a fence");
}

static void
check_pair(const dibs__roll *roll, const dibs__party *a, const dibs__party *b)
{
    if (!dibs__party_lives(roll, a) || !dibs__party_lives(roll, b))
        return;
    assert_that(memcmp(a->owner, b->owner, sizeof(a->owner)) != 0, b,
                "an owner is there twice");
    if (a->role == DIBS__TOMB || b->role == DIBS__TOMB)
        return;
    assert_that(a->capacity == b->capacity, b, "two kinds");
    if (a->role == DIBS__WAITER || b->role == DIBS__WAITER)
        return;
    assert_that(a->mode != DIBS__EXCLUSIVE && b->mode != DIBS__EXCLUSIVE, b,
                "an exclusive lease beside another");
    assert_that(a->fence != b->fence, b, "a fence is there twice");
}

void dibs__roll_check(const dibs__roll *roll)
{
    uint64_t permits = 0;

    for (size_t i = 0; i < roll->count; i++) {
        const dibs__party *party = &roll->parties[i];

        check_party(roll, party);
        for (size_t j = 0; j < i; j++)
            check_pair(roll, &roll->parties[j], party);
        if (!dibs__party_holds(roll, party))
            continue;
        permits += party->permits;
        assert_that(party->mode != DIBS__PERMITS || permits <= party->capacity,
                    party, "more permits than the capacity");
    }
    if (dibs__roll_next(roll))
        assert_that(false, dibs__roll_next(roll), "the head of the queue fits");
}
