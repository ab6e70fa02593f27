/* grant.c - the steps of the grant rule: acquire, renew, release, revoke, convert,
 * yield.
 *
 * Pure: works on the caller's roll, at the caller's time, on any thread. Yield only
 * sends notices. Every other step ends expired parties, makes its own change, and
 * serves the queue:
 *
 *               ask, fits                         time, release, break
 *     (nobody) -------------------> HOLDER -----------------------> (nobody)
 *        |  ask                    ^      | release that keeps others out
 *        v          queue served   |      v
 *      WAITER ---------------------'    GHOST --------------------> (nobody)
 *        |                                        time, break
 *        '-- time, release, refused ask -> (nobody)
 *
 * A release with an unanswered request behind it leads to TOMB instead of to
 * nobody, at once or after GHOST, and TOMB ends by time alone. A conversion replaces
 * a HOLDER by a HOLDER. The invariants are in store/grant_roll.c.
 */
/* SPDX-License-Identifier: MIT */
#include "store/grant.h"
#include "base/fail.h"
#include "store/refuse.h"
#include <string.h>

static int64_t after_ms(int64_t now_us, int64_t span_ms)
{
    int64_t span_us;
    int64_t until_us;

    if (__builtin_mul_overflow(span_ms, (int64_t)1000, &span_us) ||
        __builtin_add_overflow(now_us, span_us, &until_us))
        return INT64_MAX;
    return until_us;
}

static int64_t min_us(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Cuts a text that does not fit. */
static void copy_text(char *out, size_t size, const char *text)
{
    size_t len = strnlen(text, size - 1);

    memcpy(out, text, len);
    out[len] = '\0';
}

/* A party that was dropped and comes back in the same step is an update. */
static void mark_changed(dibs__party *party)
{
    if (party->mark != DIBS__ADDED)
        party->mark = DIBS__CHANGED;
}

/* A party that was added in this step leaves no trace: the last party moves to its
 * index. Loops that drop therefore run backwards. */
static void drop_party(dibs__roll *roll, dibs__party *party)
{
    if (party->mark == DIBS__ADDED)
        *party = roll->parties[--roll->count];
    else
        party->mark = DIBS__DROPPED;
}

/* A ghost becomes its tombstone, if one follows it; others leave nothing. */
static void end_party(dibs__roll *roll, dibs__party *party)
{
    int64_t from_us = min_us(party->until_us, roll->now_us);
    int64_t until_us = after_ms(from_us, DIBS__TOMB_MS);

    if (party->role == DIBS__GHOST && party->claim && until_us > roll->now_us) {
        party->role = DIBS__TOMB;
        party->claim = false;
        party->until_us = until_us;
        mark_changed(party);
    } else
        drop_party(roll, party);
}

static void prune_roll(dibs__roll *roll)
{
    for (size_t i = roll->count; i-- > 0;) {
        dibs__party *party = &roll->parties[i];

        if (party->mark != DIBS__DROPPED && !dibs__party_lives(roll, party))
            end_party(roll, party);
    }
}

static bool
has_role(const dibs__roll *roll, const dibs__party *party, dibs__role role)
{
    return party && party->role == role && dibs__party_lives(roll, party);
}

/* A blank party of the owner, which replaces `old` if there is one. NULL when
 * memory is short. */
static dibs__party *
blank_party(dibs__roll *roll, dibs__party *old, const char *owner)
{
    dibs__mark mark = old ? old->mark : DIBS__ADDED;
    dibs__party *party = old ? old : dibs__roll_add(roll);

    if (!party)
        return NULL;
    memset(party, 0, sizeof(*party));
    party->mark = mark;
    mark_changed(party);
    copy_text(party->owner, sizeof(party->owner), owner);
    return party;
}

static uint64_t next_fence(dibs__roll *roll)
{
    uint64_t fence = roll->watermark + 1;

    if (roll->now_wall_us > 0 && (uint64_t)roll->now_wall_us > fence)
        fence = (uint64_t)roll->now_wall_us;
    roll->watermark = fence;
    return fence;
}

static void give_lease(dibs__roll *roll, dibs__party *party, bool asking)
{
    int64_t span_ms = asking ? party->ttl_ms : DIBS__CLAIM_MS;

    party->role = DIBS__HOLDER;
    party->fence = next_fence(roll);
    party->claim = !asking;
    party->since_us = roll->now_us;
    party->until_us = after_ms(roll->now_us, span_ms);
    party->notify = !asking;
    party->notice = DIBS__NOTICE_GRANTED;
    mark_changed(party);
}

/* Ends every step. `asker` may be NULL. */
static void serve_queue(dibs__roll *roll, const dibs__party *asker)
{
    dibs__party *party;

    while ((party = dibs__roll_next(roll)))
        give_lease(roll, party, party == asker);
#ifndef NDEBUG
    dibs__roll_check(roll);
#endif
}

/* Notifies the holders that want to know of a refusal; `asker` may be one of them.
 * A holder with a new grant gets the notice of the grant instead, and learns of
 * waiters when it renews. */
static void notify_wanted(dibs__roll *roll, const dibs__party *asker)
{
    for (size_t i = 0; i < roll->count; i++) {
        dibs__party *party = &roll->parties[i];

        if (party == asker || !has_role(roll, party, DIBS__HOLDER) ||
            !party->tell || !party->bell[0] || party->notify)
            continue;
        party->notify = true;
        party->notice = DIBS__NOTICE_WANTED;
    }
}

static dibs_status fail_used_up(dibs_error *err)
{
    return dibsx_fail(err, DIBS_INTERNAL,
                      "the fences of this store are used up");
}

/* If a condition of an ask fails, the step changes nothing. */
static dibs_status
check_ask(const dibs__roll *roll, const dibs__ask *ask, dibs_error *err)
{
    if (dibs__refuse_ask(ask, err) != DIBS_OK)
        return DIBS_INVALID;
    return roll->watermark >= INT64_MAX ? fail_used_up(err) : DIBS_OK;
}

/* Whether an owner that asks again still has a lease: an answer has whole milliseconds,
 * and one that says none would be no lease. */
static bool holds_on(const dibs__roll *roll, const dibs__party *mine)
{
    return has_role(roll, mine, DIBS__HOLDER) &&
           mine->until_us - roll->now_us >= 1000;
}

static dibs_status answer_granted(const dibs__roll *roll,
                                  const dibs__party *mine, dibs__answer *ans)
{
    ans->fence = mine->fence;
    ans->claim = mine->claim;
    ans->left_ms = (mine->until_us - roll->now_us) / 1000;
    return DIBS_OK;
}

/* A party of another kind than the ask: all parties that hold or wait have the kind
 * of the name. */
static const dibs__party *
find_other_kind(const dibs__roll *roll, const dibs__ask *ask)
{
    for (size_t i = 0; i < roll->count; i++) {
        const dibs__party *party = &roll->parties[i];

        if (party->role != DIBS__TOMB && dibs__party_lives(roll, party) &&
            party->capacity != dibs__ask_capacity(ask))
            return party;
    }
    return NULL;
}

static uint64_t next_seq(const dibs__roll *roll)
{
    uint64_t seq = 0;

    for (size_t i = 0; i < roll->count; i++)
        if (roll->parties[i].seq > seq)
            seq = roll->parties[i].seq;
    return seq + 1;
}

/* Gives the asker a place at the end of the queue, or refreshes the one it has.
 * NULL when memory is short. */
static dibs__party *join_queue(dibs__roll *roll, dibs__party *mine,
                               const dibs__ask *ask, const char *bell)
{
    uint64_t seq = next_seq(roll);

    if (!has_role(roll, mine, DIBS__WAITER)) {
        mine = blank_party(roll, mine, ask->owner);
        if (!mine)
            return NULL;
        mine->role = DIBS__WAITER;
        mine->mode = ask->mode;
        mine->permits = ask->mode == DIBS__PERMITS ? ask->permits : 1;
        mine->capacity = dibs__ask_capacity(ask);
        mine->priority = ask->priority;
        mine->seq = seq;
        mine->tell = (ask->flags & DIBS__ASK_TELL) != 0;
        mine->ttl_ms = ask->ttl_ms;
        mine->since_us = roll->now_us;
        copy_text(mine->who, sizeof(mine->who), ask->who);
    }
    mine->until_us = after_ms(roll->now_us, DIBS__PLACE_MS);
    copy_text(mine->bell, sizeof(mine->bell), bell);
    mark_changed(mine);
    return mine;
}

static dibs_status
refuse_ask(dibs__roll *roll, dibs__party *mine, const dibs__ask *ask,
           dibs__answer *ans, dibs_error *err)
{
    const dibs__party *first;

    ans->queued = (ask->flags & DIBS__ASK_QUEUE) != 0;
    ans->ahead = dibs__roll_ahead(roll, mine);
    if (!ans->queued) {
        /* It may have held back waiters that fit. */
        drop_party(roll, mine);
        serve_queue(roll, NULL);
    }
    notify_wanted(roll, NULL);
    ans->fence = roll->watermark;
    first = dibs__roll_first_to_end(roll);
    if (first) /* A span to wait, so it is rounded up. */
        ans->left_ms = (first->until_us - roll->now_us - 1) / 1000 + 1;
    return dibs__refuse_held(ask->name, first ? first->who : "", err);
}

dibs_status
dibs__grant_acquire(dibs__roll *roll, const dibs__ask *ask, const char *bell,
                    dibs__answer *ans, dibs_error *err)
{
    const dibs__party *other;
    dibs__party *mine;
    dibs_status rc;

    memset(ans, 0, sizeof(*ans));
    rc = check_ask(roll, ask, err);
    if (rc != DIBS_OK)
        return rc;

    prune_roll(roll);
    mine = dibs__roll_find(roll, ask->owner);
    if (has_role(roll, mine, DIBS__HOLDER)) {
        serve_queue(roll, NULL);
        return holds_on(roll, mine) ? answer_granted(roll, mine, ans)
                                    : dibs__refuse_left(ask->name, err);
    }
    if (has_role(roll, mine, DIBS__GHOST) || has_role(roll, mine, DIBS__TOMB)) {
        serve_queue(roll, NULL);
        return dibs__refuse_left(ask->name, err);
    }
    other = find_other_kind(roll, ask);
    if (other) {
        uint32_t capacity = other->capacity;

        if (has_role(roll, mine, DIBS__WAITER))
            drop_party(roll, mine);
        serve_queue(roll, NULL);
        return dibs__refuse_kind(ask, capacity, err);
    }
    mine = join_queue(roll, mine, ask, bell);
    if (!mine)
        return dibsx_nomem(err, "a place in a queue");
    if ((ask->flags & DIBS__ASK_BARGE) && dibs__roll_fits(roll, mine))
        give_lease(roll, mine, true);
    serve_queue(roll, mine);
    if (mine->role == DIBS__HOLDER)
        return answer_granted(roll, mine, ans);
    return refuse_ask(roll, mine, ask, ans, err);
}

static void
extend_lease(const dibs__roll *roll, dibs__party *mine, int64_t ttl_ms)
{
    int64_t until_us = after_ms(roll->now_us, ttl_ms);

    if (until_us <= mine->until_us && !mine->claim)
        return;
    if (until_us > mine->until_us)
        mine->until_us = until_us;
    mine->claim = false;
    mark_changed(mine);
}

/* The client that renews is the one to notify: a transferred lease has no doorbell
 * until its first renewal. */
static void set_bell(dibs__party *mine, const char *bell)
{
    if (!bell[0] || strcmp(mine->bell, bell) == 0)
        return;
    copy_text(mine->bell, sizeof(mine->bell), bell);
    mark_changed(mine);
}

void dibs__grant_renew(dibs__roll *roll, dibs__renewal *item, const char *bell)
{
    dibs__party *mine;
    bool held;

    prune_roll(roll);
    mine = dibs__roll_find(roll, item->owner);
    held = has_role(roll, mine, DIBS__HOLDER) && mine->fence == item->fence;
    if (held) {
        extend_lease(roll, mine, item->ttl_ms);
        set_bell(mine, bell);
    }
    serve_queue(roll, NULL);

    item->rc = held ? DIBS_OK : DIBS_LOST;
    item->left_ms = held ? (mine->until_us - roll->now_us) / 1000 : 0;
    item->wanted = held && dibs__roll_ahead(roll, NULL) > 0;
}

/* A ghost that is released again keeps its time. */
static void
leave_ghost(const dibs__roll *roll, dibs__party *mine, const dibs__leave *leave)
{
    bool again = mine->role == DIBS__GHOST;

    if (!again)
        mine->until_us = after_ms(roll->now_us, leave->keep_ms);
    mine->role = DIBS__GHOST;
    mine->claim = leave->unanswered || (again && mine->claim);
    mark_changed(mine);
}

/* False when memory is short. */
static bool leave_tomb(dibs__roll *roll, dibs__party *mine, const char *owner)
{
    mine = blank_party(roll, mine, owner);
    if (!mine)
        return false;
    mine->role = DIBS__TOMB;
    mine->since_us = roll->now_us;
    mine->until_us = after_ms(roll->now_us, DIBS__TOMB_MS);
    return true;
}

dibs_status
dibs__grant_release(dibs__roll *roll, const dibs__leave *leave, dibs_error *err)
{
    dibs__party *mine;
    bool held;
    bool ghost;

    prune_roll(roll);
    mine = dibs__roll_find(roll, leave->owner);
    held = has_role(roll, mine, DIBS__HOLDER);
    ghost = has_role(roll, mine, DIBS__GHOST);
    if (ghost || (held && leave->keep_ms > 0))
        leave_ghost(roll, mine, leave);
    else if (leave->unanswered) {
        if (!leave_tomb(roll, mine, leave->owner))
            return dibsx_nomem(err, "a tombstone");
    } else if (held || has_role(roll, mine, DIBS__WAITER))
        drop_party(roll, mine);
    serve_queue(roll, NULL);

    if (held || ghost)
        return DIBS_OK;
    return dibs__refuse_absent(leave->name, err);
}

static dibs_status fail_not_held(bool held, dibs_error *err)
{
    if (!held)
        return dibsx_fail(err, DIBS_NOTFOUND, "nobody holds it");
    return dibsx_fail(err, DIBS_STALE, "it is held under another fence");
}

dibs_status dibs__grant_revoke(dibs__roll *roll, uint64_t fence,
                               uint32_t *broken, dibs_error *err)
{
    bool held = false;

    *broken = 0;
    prune_roll(roll);
    for (size_t i = roll->count; i-- > 0;) {
        dibs__party *party = &roll->parties[i];

        if (!dibs__party_holds(roll, party))
            continue;
        held = true;
        if (fence != 0 && party->fence != fence)
            continue;
        party->notify = party->role == DIBS__HOLDER;
        party->notice = DIBS__NOTICE_BROKEN;
        end_party(roll, party);
        (*broken)++;
    }
    serve_queue(roll, NULL);

    return *broken > 0 ? DIBS_OK : fail_not_held(held, err);
}

/* Any other that holds; NULL when `mine` is alone. */
static const dibs__party *
find_other_holder(const dibs__roll *roll, const dibs__party *mine)
{
    for (size_t i = 0; i < roll->count; i++) {
        const dibs__party *party = &roll->parties[i];

        if (party != mine && dibs__party_holds(roll, party))
            return party;
    }
    return NULL;
}

/* Gives the party of the old owner to the new one, which has no live party. Its
 * client has asked nothing yet, so it has no doorbell. NULL when memory is short. */
static dibs__party *hand_over(dibs__roll *roll, const dibs__party *mine,
                              const dibs__conversion *conversion)
{
    dibs__party next = *mine;
    dibs__party *heir = dibs__roll_find(roll, conversion->to_owner);

    heir = blank_party(roll, heir, conversion->to_owner);
    if (!heir)
        return NULL;
    memcpy(next.owner, heir->owner, sizeof(next.owner));
    next.mark = heir->mark;
    next.bell[0] = '\0';
    next.tell = next.notify = false;
    *heir = next;
    drop_party(roll, dibs__roll_find(roll, conversion->owner));
    return dibs__roll_find(roll, conversion->to_owner);
}

/* If a condition of a conversion fails, the lease stays as it is. */
static dibs_status
check_conversion(dibs__roll *roll, const dibs__party *mine,
                 const dibs__conversion *conversion, dibs_error *err)
{
    const dibs__party *heir = dibs__roll_find(roll, conversion->to_owner);
    const dibs__party *other = NULL;

    if ((mine->mode == DIBS__PERMITS) != (conversion->mode == DIBS__PERMITS))
        return dibsx_fail(err, DIBS_INVALID,
                          "a lock cannot be turned into permits, nor permits "
                          "into a lock");
    if (has_role(roll, heir, DIBS__GHOST) || has_role(roll, heir, DIBS__TOMB))
        return dibsx_fail(err, DIBS_LOST,
                          "the new owner has left `" DIBS__NAME_SHOWN "`",
                          conversion->name);
    if (heir && heir != mine && dibs__party_lives(roll, heir))
        return dibsx_fail(err, DIBS_INVALID,
                          "the new owner has a part in `" DIBS__NAME_SHOWN
                          "` already",
                          conversion->name);
    if (conversion->mode == DIBS__EXCLUSIVE)
        other = find_other_holder(roll, mine);
    if (other) {
        notify_wanted(roll, mine);
        return dibs__refuse_shared(conversion->name, other->who, err);
    }
    return roll->watermark >= INT64_MAX ? fail_used_up(err) : DIBS_OK;
}

static dibs_status
convert_lease(dibs__roll *roll, dibs__party *mine,
              const dibs__conversion *conversion, dibs_error *err)
{
    bool stays = strcmp(conversion->owner, conversion->to_owner) == 0;
    bool more =
        mine->mode == DIBS__SHARED && conversion->mode == DIBS__EXCLUSIVE;
    dibs_status rc = check_conversion(roll, mine, conversion, err);

    if (rc != DIBS_OK)
        return rc;
    if (!stays)
        mine = hand_over(roll, mine, conversion);
    if (!mine)
        return dibsx_nomem(err, "a new owner");
    if (!stays || more) {
        mine->fence = next_fence(roll);
        mine->since_us = roll->now_us;
    }
    mine->mode = conversion->mode;
    extend_lease(roll, mine, conversion->ttl_ms);
    mark_changed(mine);
    return DIBS_OK;
}

dibs_status
dibs__grant_convert(dibs__roll *roll, const dibs__conversion *conversion,
                    dibs__answer *ans, dibs_error *err)
{
    dibs__party *mine;
    dibs_status rc = DIBS_OK;
    bool held;

    memset(ans, 0, sizeof(*ans));
    prune_roll(roll);
    mine = dibs__roll_find(roll, conversion->owner);
    held =
        has_role(roll, mine, DIBS__HOLDER) && mine->fence == conversion->fence;
    if (held)
        rc = convert_lease(roll, mine, conversion, err);
    serve_queue(roll, NULL);
    if (rc != DIBS_OK)
        return rc;

    /* Else an earlier request, whose answer was lost, may have done it. */
    mine = dibs__roll_find(roll, conversion->to_owner);
    if (holds_on(roll, mine) && (held || (mine->mode == conversion->mode &&
                                          mine->fence > conversion->fence)))
        return answer_granted(roll, mine, ans);
    return dibs__refuse_fence(conversion->name, err);
}

dibs_status dibs__grant_yield(dibs__roll *roll, uint64_t fence, uint32_t *asked,
                              dibs_error *err)
{
    bool held = false;
    bool found = false;

    *asked = 0;
    for (size_t i = 0; i < roll->count; i++) {
        dibs__party *party = &roll->parties[i];

        if (!dibs__party_holds(roll, party))
            continue;
        held = true;
        if (fence != 0 && party->fence != fence)
            continue;
        found = true;
        party->notify = party->role == DIBS__HOLDER && party->bell[0];
        party->notice = DIBS__NOTICE_YIELD;
        *asked += party->notify;
    }
    return found ? DIBS_OK : fail_not_held(held, err);
}
