/* quorum_peer.c - the clients of a simulated quorum: what src/store/quorum does
 * with threads is done here with events; the decisions are the same functions. */
/* SPDX-License-Identifier: MIT */
#include "quorum.h"

#include <stdio.h>

enum { SEARCH_MS = 1000 }; /* for a free slot */

dibsx_nsec peer_clock(const world *w, const peer *pr)
{
    return (dibsx_nsec)((double)w->now * pr->rate) + pr->offset;
}

void peer_wake_at(world *w, const peer *pr, dibsx_nsec at)
{
    dibsx_nsec span = at - peer_clock(w, pr);

    world_post(w, &(mail){.timer = true,
                          .peer = pr->number,
                          .at = w->now + (span > 0 ? span : 0) + DIBSX_MS});
}

/* Where things are done in turn, what is a little late matters most. */
static int64_t late_ms(world *w)
{
    return w->capacity > 0 && world_chance(w, 700) ? 2 * LIMIT_MS : 4000;
}

void peer_send(world *w, peer *pr, mail ml)
{
    ml.peer = pr->number;
    ml.owner = pr->owner;
    ml.sent_at = peer_clock(w, pr);
    ml.posted_at = w->now;
    ml.at = w->now + world_between(w, 0, w->usual_ms) * DIBSX_MS;
    if (!w->healed && world_chance(w, w->late))
        ml.at = w->now + world_between(w, 30, late_ms(w)) * DIBSX_MS;
    if (w->healed || !world_chance(w, w->loss))
        world_post(w, &ml);
}

static void send_all(world *w, peer *pr, mail ml)
{
    for (size_t i = 0; i < w->count; i++) {
        ml.node = i;
        peer_send(w, pr, ml);
    }
}

void peer_start(world *w, int number)
{
    peer *pr = &w->peers[number];
    uint64_t turns = pr->turns;

    *pr = (peer){.number = number, .turns = turns, .skew.count = w->count};
    pr->rate = 1 + (double)world_between(w, -500, 500) / 1e6;
    pr->offset = world_between(w, 0, 1000000) * DIBSX_MS;
    pr->next_at = peer_clock(w, pr) + world_between(w, 0, 1000) * DIBSX_MS;
    peer_wake_at(w, pr, pr->next_at);
}

static void rest(world *w, peer *pr)
{
    pr->phase = RESTING;
    pr->renewal = 0;
    pr->repeat = 0;
    pr->next_at = peer_clock(w, pr) + world_between(w, 5, 300) * DIBSX_MS;
    peer_wake_at(w, pr, pr->next_at);
}

/* Belief ends before anything is sent. */
static void leave(world *w, peer *pr)
{
    bool tomb = dibs__lease_leave(&pr->lease);

    lane_clear(pr);
    send_all(w, pr, (mail){.kind = RELEASE, .tomb = tomb});
    rest(w, pr);
}

/* Asks for the name, or for the slot that is next. */
static void ask_nodes(world *w, peer *pr)
{
    dibsx_nsec now = peer_clock(w, pr);
    int64_t wall_us = dibs__skew_wall_us(&pr->skew, now);
    mail ml = {.kind = GRANT, .slot = pr->slots.slot, .ttl_ms = TTL_MS};

    pr->phase = GRANTING;
    pr->limit_at = now + LIMIT_MS * DIBSX_MS;
    pr->ballot = (dibs__ballot){.count = w->count};
    pr->fence = (uint64_t)(wall_us > 0 ? wall_us : node_wall_us(w, 0));
    pr->fence = dibs__slots_fence(&pr->slots, pr->fence);
    ml.round = ++pr->round;
    ml.fence = pr->fence;
    if (w->capacity == 0)
        send_all(w, pr, ml);
    for (ml.node = 0; w->capacity > 0 && ml.node < w->count; ml.node++)
        lane_add(w, pr, &ml, pr->limit_at, true);
    peer_wake_at(w, pr, pr->limit_at);
}

static void ask(world *w, peer *pr)
{
    char owner[DIBS_OWNER_SIZE];

    pr->owner = ++w->last_owner;
    pr->from_at = peer_clock(w, pr);
    pr->floor = w->last_fence;
    snprintf(owner, sizeof(owner), "%016llx%016llx",
             (unsigned long long)pr->owner * 0x9e3779b97f4a7c15u,
             (unsigned long long)pr->owner);
    dibs__slots_init(&pr->slots, w->capacity, owner);
    dibs__lease_begin(&pr->lease, owner, &(dibs__terms){.ttl_ms = TTL_MS});
    dibs__lease_asked(&pr->lease, pr->from_at);
    ask_nodes(w, pr);
}

static void judge(const world *w, peer *pr, dibs__ballot *bl)
{
    for (size_t i = 0; i < bl->count; i++)
        bl->votes[i].counts =
            w->mutant == MUTANT_NO_SKEW ||
            dibs__skew_trusts(&pr->skew, i, peer_clock(w, pr));
}

/* Time is up: who has not voted will not. */
static void close_ballot(dibs__ballot *bl)
{
    for (size_t i = 0; i < bl->count; i++)
        if (!bl->votes[i].in)
            bl->votes[i] = (dibs__vote){.in = true, .rc = DIBS_UNKNOWN};
}

static void defeat(world *w, peer *pr)
{
    dibs__answer ans = {0};

    dibs__lease_answered(&pr->lease, DIBS_UNKNOWN, &ans, peer_clock(w, pr));
    leave(w, pr);
}

/* The slot is taken: gives back what there is of it, and goes on to another when
 * those that gave it have let go. False when there is none. */
static bool move_on(world *w, peer *pr)
{
    dibsx_nsec now = peer_clock(w, pr);
    const dibs__ballot *bl = &pr->ballot;
    uint32_t granted = 0, doubtful = 0;
    mail ml = {.kind = RELEASE};

    for (size_t i = 0; i < bl->count; i++)
        if (!bl->votes[i].in || bl->votes[i].rc == DIBS_UNKNOWN)
            doubtful |= 1U << i;
        else if (bl->votes[i].rc == DIBS_OK)
            granted |= 1U << i;
    pr->slots.moves = false;
    if (dibs__ballot_status(bl) == DIBS_BUSY)
        dibs__slots_move(&pr->slots, bl, doubtful);
    if (!pr->slots.moves || now >= pr->from_at + SEARCH_MS * DIBSX_MS)
        return false;
    w->moves++;
    pr->phase = LEAVING;
    ml.round = ++pr->round;
    pr->awaited = granted;
    pr->limit_at = now + LIMIT_MS * DIBSX_MS;
    for (ml.node = 0; ml.node < bl->count; ml.node++)
        if ((granted | doubtful) & 1U << ml.node)
            lane_add(w, pr, &ml, pr->limit_at, granted & 1U << ml.node);
    peer_wake_at(w, pr, pr->limit_at);
    if (granted == 0)
        ask_nodes(w, pr);
    return true;
}

static void win(world *w, peer *pr, uint64_t fence)
{
    dibsx_nsec now = peer_clock(w, pr);
    dibs__answer ans = {.fence = fence,
                        .left_ms = dibs__ballot_left(&pr->ballot)};

    if (w->mutant == MUTANT_LATE_COUNT)
        pr->lease.sent_at = now;
    dibs__lease_answered(&pr->lease, DIBS_OK, &ans, now);
    if (!dibs__lease_valid(&pr->lease, now)) {
        leave(w, pr);
        return;
    }
    pr->phase = HOLDING;
    pr->fence = fence;
    pr->turns++;
    w->leases++;
    w->permits += w->capacity > 0;
    pr->next_at = now + world_between(w, 0, w->healed ? 500 : 5000) * DIBSX_MS;
    peer_wake_at(w, pr, pr->next_at);
    peer_wake_at(w, pr, dibs__lease_next(&pr->lease));
}

/* The mutant counts a majority of those that answered, once the rest is late. */
static bool
reachable_won(const world *w, const dibs__ballot *bl, uint64_t *fence)
{
    size_t answered =
        dibs__ballot_said(bl, DIBS_OK) + dibs__ballot_said(bl, DIBS_BUSY);

    if (w->mutant != MUTANT_REACHABLE || answered == 0 ||
        2 * dibs__ballot_said(bl, DIBS_OK) <= answered)
        return false;
    for (size_t i = 0; i < bl->count; i++)
        if (bl->votes[i].rc == DIBS_OK && bl->votes[i].fence > *fence)
            *fence = bl->votes[i].fence;
    return true;
}

static void raise(world *w, peer *pr, uint64_t fence)
{
    dibs__ballot granted = pr->ballot;
    mail ml = {.kind = RAISE, .fence = fence, .round = ++pr->round};

    w->split++;
    pr->phase = RAISING;
    pr->fence = fence;
    pr->limit_at = peer_clock(w, pr) + LIMIT_MS * DIBSX_MS;
    pr->ballot = (dibs__ballot){.count = w->count};
    for (size_t i = 0; i < w->count; i++) {
        pr->ballot.votes[i].in = true;
        pr->ballot.votes[i].rc = DIBS_UNAVAIL;
        if (!granted.votes[i].in || granted.votes[i].rc != DIBS_OK)
            continue;
        pr->ballot.votes[i].in = false;
        ml.node = i;
        peer_send(w, pr, ml);
    }
    peer_wake_at(w, pr, pr->limit_at);
}

static void decide(world *w, peer *pr)
{
    dibs__verdict verdict;
    uint64_t fence = 0;

    judge(w, pr, &pr->ballot);
    if (pr->phase == RAISING) {
        verdict = dibs__ballot_count(&pr->ballot);
        fence = pr->fence;
    } else {
        verdict = dibs__ballot_grants(&pr->ballot, &fence);
    }
    if (verdict == DIBS__SPLIT && w->mutant == MUTANT_ONE_PHASE)
        verdict = DIBS__WON;
    if (verdict == DIBS__WON) {
        win(w, pr, fence);
    } else if (verdict == DIBS__SPLIT) {
        raise(w, pr, fence);
    } else if (verdict == DIBS__DEFEAT && pr->phase == GRANTING &&
               !dibs__ballot_settled(&pr->ballot)) {
        return; /* not before it is known why */
    } else if (verdict == DIBS__DEFEAT) {
        if (pr->phase == GRANTING && w->capacity > 0 && move_on(w, pr))
            return;
        if (reachable_won(w, &pr->ballot, &fence)) {
            pr->ballot.count = 1;
            pr->ballot.votes[0] = (dibs__vote){.in = true,
                                               .counts = true,
                                               .left_ms = TTL_MS,
                                               .fence = fence};
            win(w, pr, fence);
        } else {
            defeat(w, pr);
        }
    }
}

static void renew(world *w, peer *pr)
{
    dibsx_nsec now = peer_clock(w, pr);

    dibs__lease_renewing(&pr->lease);
    pr->renewal = ++pr->round;
    pr->renewals = (dibs__ballot){.count = w->count};
    pr->renewed_at = now;
    pr->renew_limit_at = now + LIMIT_MS * DIBSX_MS;
    send_all(w, pr,
             (mail){.kind = RENEW,
                    .round = pr->renewal,
                    .fence = pr->fence,
                    .ttl_ms = TTL_MS});
    peer_wake_at(w, pr, pr->renew_limit_at);
}

static void fill(world *w, peer *pr)
{
    mail ml = {.kind = FILL,
               .slot = pr->slots.slot,
               .fence = pr->fence,
               .ttl_ms = TTL_MS};

    for (size_t i = 0; i < w->count; i++) {
        const dibs__vote *vote = &pr->renewals.votes[i];

        ml.node = i;
        if (!vote->in || !vote->counts || vote->rc != DIBS_LOST)
            continue;
        if (w->capacity > 0 && w->mutant != MUTANT_UNDER_WAY)
            lane_add(w, pr, &ml, peer_clock(w, pr) + LIMIT_MS * DIBSX_MS,
                     false);
        else
            peer_send(w, pr, ml);
    }
}

static void decide_renewal(world *w, peer *pr)
{
    dibs__ballot *bl = &pr->renewals;
    dibs__verdict verdict;
    size_t lost;
    dibs_status rc = DIBS_OK;

    judge(w, pr, bl);
    verdict = dibs__ballot_count(bl);
    lost = dibs__ballot_said(bl, DIBS_LOST);
    if (verdict == DIBS__OPEN)
        return;
    if (verdict == DIBS__DEFEAT)
        rc = lost > bl->count - dibs__majority(bl->count) ? DIBS_LOST
                                                          : DIBS_UNKNOWN;
    pr->renewal = 0;
    dibs__lease_renewed(&pr->lease, pr->renewed_at, rc, dibs__ballot_left(bl),
                        peer_clock(w, pr));
    if (rc == DIBS_OK)
        fill(w, pr);
    peer_wake_at(w, pr, dibs__lease_next(&pr->lease));
}

/* Asks again for the name that it holds, as one does that has not heard so. */
static void repeat(world *w, peer *pr)
{
    dibsx_nsec now = peer_clock(w, pr);

    w->repeats++;
    pr->repeat = ++pr->round;
    pr->repeats = (dibs__ballot){.count = w->count};
    pr->repeat_limit_at = now + LIMIT_MS * DIBSX_MS;
    send_all(w, pr,
             (mail){.kind = GRANT,
                    .round = pr->repeat,
                    .fence = (uint64_t)dibs__skew_wall_us(&pr->skew, now),
                    .ttl_ms = TTL_MS});
    peer_wake_at(w, pr, pr->repeat_limit_at);
}

/* A majority of the nodes has the lease as it is believed in. */
static bool is_whole(const world *w, const peer *pr)
{
    size_t sum = 0;

    for (size_t i = 0; i < w->count; i++)
        sum += w->nodes[i].held[0].owner == pr->owner &&
               w->nodes[i].held[0].fence == pr->lease.fence;
    return sum >= dibs__majority(w->count);
}

static void decide_repeat(world *w, peer *pr)
{
    dibs__ballot *bl = &pr->repeats;
    dibs__verdict verdict;
    uint64_t fence = 0;

    judge(w, pr, bl);
    verdict = dibs__ballot_grants(bl, &fence);
    if (verdict == DIBS__DOUBT && w->mutant == MUTANT_FICKLE)
        verdict = DIBS__SPLIT;
    else if (!dibs__ballot_settled(bl))
        return;
    pr->repeat = 0;
    w->doubts += verdict == DIBS__DOUBT;
    if (verdict != DIBS__WON && verdict != DIBS__SPLIT)
        return;
    if (fence != pr->lease.fence && is_whole(w, pr))
        w->wrong = "a lease that was asked for again gets another fence";
    for (size_t i = 0; i < w->count && verdict == DIBS__SPLIT; i++)
        if (bl->votes[i].in && bl->votes[i].rc == DIBS_OK)
            peer_send(w, pr, (mail){.kind = RAISE, .fence = fence, .node = i});
}

void peer_hear(world *w, const mail *ml)
{
    peer *pr = &w->peers[ml->peer];
    dibs__vote vote = {.in = true,
                       .rc = ml->rc,
                       .fence = ml->fence,
                       .left_ms = ml->left_ms,
                       .taken = ml->taken,
                       .again = ml->again};

    if (ml->sent_at > peer_clock(w, pr))
        return; /* of an earlier life, on another clock */
    if (ml->kind != RELEASE)
        (void)dibs__skew_seen(&pr->skew, ml->node, ml->wall_us, ml->sent_at,
                              peer_clock(w, pr), LONGEST_MS);
    if (ml->owner != pr->owner)
        return;
    lane_heard(w, pr, ml);
    if (pr->phase == LEAVING && ml->round == pr->round) {
        pr->awaited &= ~(1U << ml->node);
        if (pr->awaited == 0)
            ask_nodes(w, pr);
        return;
    }
    if ((pr->phase == GRANTING || pr->phase == RAISING) &&
        ml->round == pr->round && ml->kind != FILL) {
        pr->ballot.votes[ml->node] = vote;
        decide(w, pr);
    } else if (pr->renewal != 0 && ml->round == pr->renewal) {
        pr->renewals.votes[ml->node] = vote;
        decide_renewal(w, pr);
    } else if (pr->repeat != 0 && ml->round == pr->repeat) {
        pr->repeats.votes[ml->node] = vote;
        decide_repeat(w, pr);
    }
}

/* A client that holds: renews, hears that it has lost, or has done its work. */
static void look_at_lease(world *w, peer *pr, dibsx_nsec now)
{
    dibs__lease_todo todo = dibs__lease_due(&pr->lease, now);

    if (todo == DIBS__LEASE_ANNOUNCE) {
        w->lost++;
        leave(w, pr);
    } else if (now >= pr->next_at) {
        leave(w, pr);
    } else if (todo == DIBS__LEASE_RENEW) {
        renew(w, pr);
        if (w->capacity == 0 && pr->repeat == 0 && world_chance(w, 300))
            repeat(w, pr);
    } else {
        peer_wake_at(w, pr, dibs__lease_next(&pr->lease));
    }
}

void peer_look(world *w, peer *pr)
{
    dibsx_nsec now = peer_clock(w, pr);

    lane_look(w, pr);
    if (pr->phase == RESTING && now >= pr->next_at) {
        ask(w, pr);
    } else if ((pr->phase == GRANTING || pr->phase == RAISING) &&
               now >= pr->limit_at) {
        close_ballot(&pr->ballot);
        decide(w, pr);
    } else if (pr->phase == LEAVING && now >= pr->limit_at) {
        defeat(w, pr);
    } else if (pr->phase == HOLDING) {
        if (pr->renewal != 0 && now >= pr->renew_limit_at) {
            close_ballot(&pr->renewals);
            decide_renewal(w, pr);
        }
        if (pr->repeat != 0 && now >= pr->repeat_limit_at) {
            close_ballot(&pr->repeats);
            decide_repeat(w, pr);
        }
        if (pr->phase == HOLDING)
            look_at_lease(w, pr, now);
    }
}
