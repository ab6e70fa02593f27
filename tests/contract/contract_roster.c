/* contract_roster.c - rosters: seats, arrivals, generations and latches. */
/* SPDX-License-Identifier: MIT */
#include "contract.h"

#include <string.h>

enum { LONG_MS = 60000, ROLL_MAX = 40 };

/* Who sits on a roster: a seat on one of the handles. */
typedef struct member {
    contract *t;
    size_t handle;
    char id[DIBS_OWNER_SIZE];
    dibs__meet meet; /* change what is of interest; it has the last answer */
} member;

static member member_of(contract *t, size_t handle)
{
    member m = {.t = t, .handle = handle};

    contract_owner(m.id);
    m.meet = (dibs__meet){.name = t->name,
                          .ttl_ms = LONG_MS,
                          .who = "host:1 contract"};
    return m;
}

/* A party of a barrier. */
static member party_of(contract *t, size_t handle, uint32_t need)
{
    member m = member_of(t, handle);

    m.meet.need = need;
    m.meet.flags = DIBS__MEET_FIXED;
    return m;
}

static dibs_status meet(member *m, dibs__meet_verb verb)
{
    dibs__store *st = m->t->st[m->handle];
    dibs_error err = {0};
    dibs_status rc;

    m->meet.verb = verb;
    if (verb != DIBS__COUNT)
        m->meet.id = m->id;
    rc = st->ops->roster->meet(st, &m->meet, 1, contract_soon(), &err);
    if (rc != DIBS_OK)
        FAIL_OF(rc, "meet: status %d: %s", (int)rc, err.message);
    return m->meet.rc;
}

static void sit(member *m)
{
    assert_status(meet(m, DIBS__SIT), DIBS_OK);
    assert_true(m->meet.number > 0);
    m->meet.fence = m->meet.after = m->meet.number;
}

/* Sits, and uses the seat. */
static void sit_down(member *m)
{
    sit(m);
    assert_status(meet(m, DIBS__KEEP), DIBS_OK);
}

/* Counts an id of a latch of `need`. */
static dibs_status
count_down(member *m, const char *id, uint32_t need, uint64_t after)
{
    m->meet.id = id;
    m->meet.need = need;
    m->meet.after = after;
    return meet(m, DIBS__COUNT);
}

/* What a roll call has shown. */
typedef struct roll {
    dibs__roster_head head;
    size_t count;
    dibs__seat_entry seats[ROLL_MAX];
} roll;

static bool copy_seat(const dibs__seat_entry *seat, void *arg)
{
    roll *out = arg;

    out->seats[out->count++] = *seat;
    return out->count < ROLL_MAX;
}

static dibs_status call_roll(contract *t, const char *name, roll *out)
{
    dibs__store *st = t->st[CONTRACT_HANDLES - 1];
    dibs_error err = {0};

    memset(out, 0, sizeof(*out));
    return st->ops->roster->roll_call(st, name, contract_soon(), &out->head,
                                      copy_seat, out, &err);
}

/* Listens to the roster of `name`. */
static actor listener_of(contract *t, size_t handle, const char *name)
{
    char topic[DIBS__TOPIC_MAX];
    actor a = contract_actor(t, handle);
    dibs__store *st = t->st[handle];
    dibs_error err = {0};

    dibs__topic_of_roster(name, topic);
    dibs__topic_address(topic, a.owner);
    assert_status(st->ops->topic->ear(st, topic, true, contract_soon(), &err),
                  DIBS_OK);
    return a;
}

static uint64_t next_news(actor *a, dibs__notice_kind kind)
{
    uint64_t gen = 0;

    IN_TIME(actor_notified(a, kind, &gen));
    return gen;
}

static void a_seat_is_taken_once(void **state)
{
    contract *t = *state;
    member m = member_of(t, 0);
    uint64_t fence;
    roll all;

    assert_status(call_roll(t, t->name, &all), DIBS_NOTFOUND);
    sit(&m);
    fence = m.meet.fence;
    assert_int_equal(m.meet.live, 1);
    assert_status(call_roll(t, t->name, &all), DIBS_OK);
    assert_int_equal(all.count, 1);
    assert_false(all.seats[0].counts);
    IN_TIME(all.seats[0].left_ms <= DIBS__UNUSED_SEAT_MS);
    sit(&m);
    assert_int_equal(m.meet.fence, fence);
    assert_status(meet(&m, DIBS__KEEP), DIBS_OK);
    assert_status(call_roll(t, t->name, &all), DIBS_OK);
    assert_int_equal(all.count, 1);
    assert_int_equal(all.head.kind, DIBS__ROSTER_GROUP);
    assert_string_equal(all.seats[0].id, m.id);
    assert_string_equal(all.seats[0].who, "host:1 contract");
    assert_int_equal(all.seats[0].fence, fence);
    assert_true(all.seats[0].counts);
    IN_TIME(all.seats[0].left_ms > LONG_MS / 2);
}

static void a_seat_is_kept_by_its_fence(void **state)
{
    contract *t = *state;
    member m = member_of(t, 0), other = member_of(t, 1);

    assert_status(meet(&m, DIBS__KEEP), DIBS_LOST);
    sit_down(&m);
    sit_down(&other);
    assert_true(other.meet.fence > m.meet.fence);
    m.meet.fence++;
    assert_status(meet(&m, DIBS__KEEP), DIBS_LOST);
    assert_status(meet(&m, DIBS__LEAVE), DIBS_LOST);
    m.meet.fence--;
    assert_status(meet(&m, DIBS__LEAVE), DIBS_OK);
    assert_status(meet(&m, DIBS__KEEP), DIBS_LOST);
    assert_status(meet(&other, DIBS__KEEP), DIBS_OK);
    assert_int_equal(other.meet.live, 1);
}

static void a_seat_that_is_not_kept_ends(void **state)
{
    contract *t = *state;
    member m = member_of(t, 0), stays = member_of(t, 1);
    uint64_t fence;
    roll all;

    sit_down(&stays);
    m.meet.ttl_ms = 30;
    sit(&m);
    fence = m.meet.fence;
    contract_sleep_until(dibsx_after_ms(dibsx_now(), 30 + CONTRACT_DRIFT_MS));
    assert_status(call_roll(t, t->name, &all), DIBS_OK);
    assert_int_equal(all.count, 1);
    assert_status(meet(&m, DIBS__KEEP), DIBS_LOST);
    sit(&m);
    assert_true(m.meet.fence > fence);
}

static void a_keep_does_not_shorten_a_seat(void **state)
{
    contract *t = *state;
    member m = member_of(t, 0);

    m.meet.need = 1;
    sit_down(&m);
    m.meet.ttl_ms = 30;
    assert_status(meet(&m, DIBS__KEEP), DIBS_OK);
    IN_TIME(m.meet.left_ms > LONG_MS / 2);
}

/* What a leader counts on: not how many there are, but how long enough of them
 * will be there. */
static void keep_answers_how_long_enough_live(void **state)
{
    contract *t = *state;
    member m[3];

    for (size_t i = 0; i < 3; i++) {
        m[i] = member_of(t, i);
        m[i].meet.ttl_ms = (int64_t)(i + 1) * LONG_MS;
        sit_down(&m[i]);
    }
    for (uint32_t need = 1; need <= 3; need++) {
        m[2].meet.need = need;
        assert_status(meet(&m[2], DIBS__KEEP), DIBS_OK);
        assert_true(m[2].meet.left_ms <= (4 - (int64_t)need) * LONG_MS);
        IN_TIME(m[2].meet.left_ms > (3 - (int64_t)need) * LONG_MS);
    }
    m[2].meet.need = 4;
    assert_status(meet(&m[2], DIBS__KEEP), DIBS_OK);
    assert_int_equal(m[2].meet.left_ms, 0);
}

static void a_seat_counts_once_it_is_used_and_settled(void **state)
{
    contract *t = *state;
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), CONTRACT_BOUND_MS);
    member m = member_of(t, 0), slow = member_of(t, 1), fresh = member_of(t, 2);

    sit_down(&m);
    sit(&fresh);
    m.meet.need = 2;
    slow.meet.settle_ms = 30;
    sit_down(&slow);
    slow.meet.settle_ms = 0;
    while (meet(&m, DIBS__KEEP) == DIBS_OK && m.meet.left_ms == 0) {
        IN_TIME(dibsx_now() < end);
        contract_sleep_until(dibsx_now() + 5 * DIBSX_MS);
    }
    assert_int_equal(m.meet.live, 3);
    m.meet.need = 3;
    assert_status(meet(&m, DIBS__KEEP), DIBS_OK);
    assert_int_equal(m.meet.left_ms, 0);
}

static void a_seat_that_settles_does_not_count(void **state)
{
    contract *t = *state;
    enum { BRIEF_MS = 20 };
    member m = member_of(t, 0), slow = member_of(t, 1), brief = member_of(t, 2);
    roll all;

    sit_down(&m);
    slow.meet.settle_ms = LONG_MS;
    sit_down(&slow);
    /* It ends, and whatever a store keeps for its sake; the others stay. */
    brief.meet.ttl_ms = BRIEF_MS;
    sit(&brief);
    contract_sleep_until(dibsx_after_ms(dibsx_now(), 5 * BRIEF_MS));
    slow.meet.need = 2;
    assert_status(meet(&slow, DIBS__KEEP), DIBS_OK);
    assert_int_equal(slow.meet.left_ms, 0);
    assert_status(call_roll(t, t->name, &all), DIBS_OK);
    assert_int_equal(all.count, 2);
    assert_true(all.seats[0].counts);
    assert_false(all.seats[1].counts);
}

static void what_is_carried_out_too_late_is_refused(void **state)
{
    contract *t = *state;
    member m = member_of(t, 0), late = member_of(t, 1);

    sit_down(&m);
    m.meet.by_us = m.meet.clock_us - 1;
    m.meet.ttl_ms = 10 * (int64_t)LONG_MS;
    assert_status(meet(&m, DIBS__KEEP), DIBS_TIMEOUT);
    late.meet.by_us = m.meet.by_us;
    assert_status(meet(&late, DIBS__SIT), DIBS_TIMEOUT);
    m.meet.by_us = m.meet.clock_us + (int64_t)LONG_MS * 1000;
    m.meet.ttl_ms = 1;
    m.meet.need = 1;
    assert_status(meet(&m, DIBS__KEEP), DIBS_OK);
    assert_true(m.meet.left_ms <= LONG_MS);
    assert_int_equal(m.meet.live, 1);
}

/* Another run of a server is for the tests of that store. */
static void a_strict_roster_lasts_for_its_run(void **state)
{
    contract *t = *state;
    member m = member_of(t, 0), other = member_of(t, 1);

    m.meet.flags = other.meet.flags = DIBS__MEET_STRICT;
    sit_down(&m);
    sit_down(&other);
    m.meet.need = 2;
    assert_status(meet(&m, DIBS__KEEP), DIBS_OK);
    IN_TIME(m.meet.left_ms > 0);
}

static void the_last_arrival_opens(void **state)
{
    contract *t = *state;
    actor ear = listener_of(t, 2, t->name);
    member a = party_of(t, 0, 2), b = party_of(t, 1, 2);
    uint64_t gen;

    sit(&a);
    sit(&b);
    assert_status(meet(&a, DIBS__ARRIVE), DIBS_BUSY);
    gen = a.meet.number;
    assert_int_equal(a.meet.here, 1);
    assert_int_equal(a.meet.live, 2);
    IN_TIME(a.meet.left_ms > 0);
    assert_status(meet(&a, DIBS__ARRIVE), DIBS_BUSY);
    assert_int_equal(a.meet.here, 1);
    assert_status(meet(&b, DIBS__ARRIVE), DIBS_OK);
    assert_int_equal(b.meet.number, gen);
    assert_int_equal(next_news(&ear, DIBS__NOTICE_OPENED), gen);
    assert_status(meet(&a, DIBS__ARRIVE), DIBS_OK);
    assert_int_equal(a.meet.number, gen);
    a.meet.after = b.meet.after = gen;
    assert_status(meet(&b, DIBS__ARRIVE), DIBS_BUSY);
    assert_true(b.meet.number > gen);
    assert_status(meet(&a, DIBS__ARRIVE), DIBS_OK);
    assert_int_equal(next_news(&ear, DIBS__NOTICE_OPENED), b.meet.number);
}

static void a_late_arrival_of_an_older_call_counts_for_nothing(void **state)
{
    contract *t = *state;
    member a = party_of(t, 0, 2), b = party_of(t, 1, 2);
    uint64_t first;

    sit(&a);
    sit(&b);
    first = a.meet.after;
    assert_status(meet(&a, DIBS__ARRIVE), DIBS_BUSY);
    assert_status(meet(&b, DIBS__ARRIVE), DIBS_OK);
    a.meet.after = b.meet.after = b.meet.number;
    assert_status(meet(&a, DIBS__ARRIVE), DIBS_BUSY);
    a.meet.after = first;
    assert_status(meet(&a, DIBS__ARRIVE), DIBS_LOST);
    assert_status(meet(&a, DIBS__WITHDRAW), DIBS_LOST);
    assert_int_equal(a.meet.here, 1);
    assert_status(meet(&b, DIBS__ARRIVE), DIBS_OK);
}

static void a_call_that_was_withdrawn_is_not_counted(void **state)
{
    contract *t = *state;
    member a = party_of(t, 0, 2), b = party_of(t, 1, 2);
    uint64_t first, mark;

    sit(&a);
    sit(&b);
    first = a.meet.after;
    assert_status(meet(&a, DIBS__ARRIVE), DIBS_BUSY);
    assert_status(meet(&a, DIBS__WITHDRAW), DIBS_TIMEOUT);
    mark = a.meet.number;
    assert_true(mark > first);
    assert_int_equal(a.meet.here, 0);
    assert_status(meet(&a, DIBS__WITHDRAW), DIBS_TIMEOUT);
    assert_int_equal(a.meet.number, mark);
    /* Requests of that call that were under way. */
    assert_status(meet(&a, DIBS__ARRIVE), DIBS_TIMEOUT);
    assert_int_equal(a.meet.number, mark);
    assert_int_equal(a.meet.here, 0);
    assert_status(meet(&b, DIBS__ARRIVE), DIBS_BUSY);
    a.meet.after = mark;
    assert_status(meet(&a, DIBS__ARRIVE), DIBS_OK);
}

/* The arrival comes after the withdrawal, or never. */
static void a_withdrawal_may_overtake_its_arrival(void **state)
{
    contract *t = *state;
    member a = party_of(t, 0, 2), b = party_of(t, 1, 2);

    sit(&a);
    sit(&b);
    assert_status(meet(&a, DIBS__WITHDRAW), DIBS_TIMEOUT);
    assert_status(meet(&a, DIBS__ARRIVE), DIBS_TIMEOUT);
    assert_status(meet(&b, DIBS__ARRIVE), DIBS_BUSY);
    assert_int_equal(b.meet.here, 1);
}

static void a_withdrawal_may_be_too_late(void **state)
{
    contract *t = *state;
    member a = party_of(t, 0, 2), b = party_of(t, 1, 2);

    sit(&a);
    sit(&b);
    assert_status(meet(&a, DIBS__ARRIVE), DIBS_BUSY);
    assert_status(meet(&b, DIBS__ARRIVE), DIBS_OK);
    assert_status(meet(&a, DIBS__WITHDRAW), DIBS_OK);
    assert_int_equal(a.meet.number, b.meet.number);
}

static void a_withdrawal_can_break_the_generation(void **state)
{
    contract *t = *state;
    actor ear = listener_of(t, 2, t->name);
    member a = party_of(t, 0, 3), b = party_of(t, 1, 3);
    uint64_t gen;

    sit(&a);
    sit(&b);
    assert_status(meet(&a, DIBS__ARRIVE), DIBS_BUSY);
    assert_status(meet(&b, DIBS__ARRIVE), DIBS_BUSY);
    gen = b.meet.number;
    a.meet.flags |= DIBS__MEET_BREAK;
    assert_status(meet(&a, DIBS__WITHDRAW), DIBS_TIMEOUT);
    assert_int_equal(next_news(&ear, DIBS__NOTICE_BROKEN), gen);
    assert_status(meet(&b, DIBS__ARRIVE), DIBS_STALE);
    assert_int_equal(b.meet.number, gen);
    b.meet.after = gen;
    assert_status(meet(&b, DIBS__ARRIVE), DIBS_BUSY);
    assert_int_equal(b.meet.here, 1);
}

/* Of the broken ones the latest are known. */
static void an_outcome_that_is_too_old_is_lost(void **state)
{
    contract *t = *state;
    member a = party_of(t, 0, 3), b = party_of(t, 1, 3);

    sit(&a);
    sit(&b);
    b.meet.flags |= DIBS__MEET_BREAK;
    assert_status(meet(&a, DIBS__ARRIVE), DIBS_BUSY);
    for (int broken = 1; broken <= DIBS__BROKEN_KEPT + 1; broken++) {
        bool known = broken <= DIBS__BROKEN_KEPT;

        assert_status(meet(&b, DIBS__ARRIVE), DIBS_BUSY);
        assert_status(meet(&b, DIBS__WITHDRAW), DIBS_TIMEOUT);
        b.meet.after = b.meet.number;
        assert_status(meet(&a, DIBS__ARRIVE), known ? DIBS_STALE : DIBS_LOST);
    }
    assert_status(meet(&a, DIBS__WITHDRAW), DIBS_LOST);
    assert_status(meet(&b, DIBS__ARRIVE), DIBS_BUSY);
}

static void a_party_that_leaves_breaks_the_generation(void **state)
{
    contract *t = *state;
    actor ear = listener_of(t, 2, t->name);
    member a = party_of(t, 0, 3), b = party_of(t, 1, 3), c = party_of(t, 2, 3);

    sit_down(&a);
    sit(&b);
    sit(&c);
    assert_status(meet(&b, DIBS__ARRIVE), DIBS_BUSY);
    /* A seat that was not used breaks nothing. */
    assert_status(meet(&c, DIBS__LEAVE), DIBS_OK);
    assert_status(meet(&b, DIBS__ARRIVE), DIBS_BUSY);
    assert_status(meet(&a, DIBS__LEAVE), DIBS_OK);
    assert_status(meet(&b, DIBS__ARRIVE), DIBS_STALE);
    assert_int_equal(next_news(&ear, DIBS__NOTICE_BROKEN), b.meet.number);
}

static void a_party_that_leaves_quietly_makes_room(void **state)
{
    contract *t = *state;
    member a = party_of(t, 0, 2), b = party_of(t, 1, 2), c = party_of(t, 2, 2);

    sit_down(&a);
    sit_down(&b);
    assert_status(meet(&b, DIBS__ARRIVE), DIBS_BUSY);
    a.meet.flags |= DIBS__MEET_QUIET;
    assert_status(meet(&a, DIBS__LEAVE), DIBS_OK);
    assert_status(meet(&b, DIBS__ARRIVE), DIBS_BUSY);
    sit(&c);
    assert_status(meet(&c, DIBS__ARRIVE), DIBS_OK);
    assert_status(meet(&b, DIBS__ARRIVE), DIBS_OK);
    /* One that was counted breaks what gathers, however it leaves. */
    b.meet.after = b.meet.number;
    assert_status(meet(&b, DIBS__ARRIVE), DIBS_BUSY);
    b.meet.flags |= DIBS__MEET_QUIET;
    assert_status(meet(&b, DIBS__LEAVE), DIBS_OK);
    c.meet.after = c.meet.number;
    assert_status(meet(&c, DIBS__ARRIVE), DIBS_BUSY);
    assert_int_equal(c.meet.here, 1);
}

static void a_party_that_dies_breaks_the_generation(void **state)
{
    contract *t = *state;
    actor ear = listener_of(t, 2, t->name);
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), CONTRACT_BOUND_MS);
    member a = party_of(t, 0, 2), b = party_of(t, 1, 2);

    a.meet.ttl_ms = contract_brief_ms(100);
    sit(&b);
    sit_down(&a);
    IN_TIME(meet(&b, DIBS__ARRIVE) == DIBS_BUSY);
    while (meet(&b, DIBS__ARRIVE) == DIBS_BUSY) {
        IN_TIME(dibsx_now() < end);
        contract_sleep_until(dibsx_now() + 5 * DIBSX_MS);
    }
    assert_status(b.meet.rc, DIBS_STALE);
    assert_int_equal(next_news(&ear, DIBS__NOTICE_BROKEN), b.meet.number);
    assert_status(meet(&a, DIBS__ARRIVE), DIBS_LOST);
}

/* Many members whose time is up at once break one generation, not the next too. */
static void the_dead_break_one_generation(void **state)
{
    contract *t = *state;
    const int64_t ttl_ms = contract_brief_ms(200);
    member dead[4], b = party_of(t, 1, 5);

    for (size_t i = 0; i < 4; i++) {
        dead[i] = party_of(t, 0, 5);
        dead[i].meet.ttl_ms = ttl_ms;
        sit(&dead[i]);
        IN_TIME(meet(&dead[i], DIBS__KEEP) == DIBS_OK);
    }
    sit(&b);
    IN_TIME(meet(&b, DIBS__ARRIVE) == DIBS_BUSY && b.meet.live == 5);
    contract_sleep_until(
        dibsx_after_ms(dibsx_now(), ttl_ms + CONTRACT_DRIFT_MS));
    assert_status(meet(&b, DIBS__ARRIVE), DIBS_STALE);
    b.meet.after = b.meet.number;
    assert_status(meet(&b, DIBS__ARRIVE), DIBS_BUSY);
    assert_status(meet(&b, DIBS__ARRIVE), DIBS_BUSY);
    assert_int_equal(b.meet.live, 1);
}

static void a_barrier_has_as_many_seats_as_parties(void **state)
{
    contract *t = *state;
    member a = party_of(t, 0, 1), b = party_of(t, 1, 1), c = party_of(t, 2, 2);
    member d = member_of(t, 2);

    sit_down(&a);
    assert_status(meet(&b, DIBS__SIT), DIBS_BUSY);
    assert_status(meet(&c, DIBS__SIT), DIBS_MISMATCH);
    assert_int_equal(c.meet.parties, 1);
    assert_status(meet(&d, DIBS__SIT), DIBS_MISMATCH);
    assert_status(count_down(&d, "job", 1, 0), DIBS_MISMATCH);
    a.meet.need = 2;
    assert_status(meet(&a, DIBS__ARRIVE), DIBS_MISMATCH);
    a.meet.need = 1;
    assert_status(meet(&a, DIBS__ARRIVE), DIBS_OK);
    assert_status(meet(&a, DIBS__LEAVE), DIBS_OK);
    sit(&c);
    assert_int_equal(c.meet.parties, 2);
}

static void a_latch_counts_each_id_once(void **state)
{
    contract *t = *state;
    actor ear = listener_of(t, 2, t->name);
    member a = member_of(t, 0), b = member_of(t, 1);
    uint64_t gen;
    roll all;

    a.meet.need = 2;
    assert_status(meet(&a, DIBS__LOOK), DIBS_NOTFOUND);
    assert_status(count_down(&a, "job 1", 2, 0), DIBS_BUSY);
    gen = a.meet.number;
    assert_int_equal(a.meet.here, 1);
    assert_status(count_down(&b, "job 1", 2, 0), DIBS_BUSY);
    assert_int_equal(b.meet.here, 1);
    assert_status(count_down(&b, "job 1", 3, 0), DIBS_MISMATCH);
    assert_status(meet(&a, DIBS__LOOK), DIBS_BUSY);
    assert_status(count_down(&b, "job 2", 2, gen), DIBS_OK);
    assert_int_equal(next_news(&ear, DIBS__NOTICE_OPENED), gen);
    assert_status(meet(&a, DIBS__LOOK), DIBS_OK);
    assert_int_equal(a.meet.number, gen);
    assert_status(count_down(&a, "job 3", 2, 0), DIBS_OK);
    assert_int_equal(a.meet.here, 2);
    assert_status(call_roll(t, t->name, &all), DIBS_OK);
    assert_int_equal(all.head.kind, DIBS__ROSTER_LATCH);
    assert_int_equal(all.count, 2);
    assert_string_equal(all.seats[0].id, "job 1");
    assert_status(meet(&b, DIBS__SIT), DIBS_MISMATCH);
}

static void a_latch_that_was_reset_gathers_again(void **state)
{
    contract *t = *state;
    member a = member_of(t, 0);
    uint64_t gen;

    assert_status(meet(&a, DIBS__RESET), DIBS_NOTFOUND);
    assert_status(count_down(&a, "job", 1, 0), DIBS_OK);
    gen = a.meet.number;
    assert_status(meet(&a, DIBS__RESET), DIBS_OK);
    assert_true(a.meet.number > gen);
    assert_status(meet(&a, DIBS__LOOK), DIBS_BUSY);
    assert_status(count_down(&a, "job", 1, gen), DIBS_STALE);
    assert_int_equal(a.meet.here, 0);
    assert_status(count_down(&a, "job", 1, 0), DIBS_OK);
}

static void a_latch_is_kept_for_its_time(void **state)
{
    contract *t = *state;
    member a = member_of(t, 0);
    uint64_t gen;
    roll all;

    a.meet.ttl_ms = 30;
    assert_status(count_down(&a, "job", 2, 0), DIBS_BUSY);
    gen = a.meet.number;
    contract_sleep_until(dibsx_after_ms(dibsx_now(), 30 + CONTRACT_DRIFT_MS));
    assert_status(meet(&a, DIBS__LOOK), DIBS_NOTFOUND);
    assert_status(call_roll(t, t->name, &all), DIBS_NOTFOUND);
    a.meet.ttl_ms = LONG_MS;
    assert_status(count_down(&a, "job", 3, 0), DIBS_BUSY);
    assert_int_equal(a.meet.here, 1);
    assert_true(a.meet.number > gen);
}

static void one_step_does_many_items(void **state)
{
    contract *t = *state;
    dibs__store *st = t->st[0];
    char names[DIBS__MEET_MAX][96], ids[DIBS__MEET_MAX][DIBS_OWNER_SIZE];
    dibs__meet items[DIBS__MEET_MAX];
    dibs_error err = {0};

    for (size_t i = 0; i < DIBS__MEET_MAX; i++) {
        snprintf(names[i], sizeof(names[i]), "%s/%zu", t->name, i / 2);
        contract_owner(ids[i]);
        items[i] = (dibs__meet){.name = names[i],
                                .id = ids[i],
                                .verb = DIBS__SIT,
                                .ttl_ms = LONG_MS};
    }
    assert_status(st->ops->roster->meet(st, items, DIBS__MEET_MAX,
                                        contract_soon(), &err),
                  DIBS_OK);
    for (size_t i = 0; i < DIBS__MEET_MAX; i++) {
        assert_status(items[i].rc, DIBS_OK);
        assert_int_equal(items[i].live, i % 2 + 1);
        items[i].fence = items[i].number + (i == 7);
        items[i].verb = DIBS__KEEP;
    }
    assert_status(st->ops->roster->meet(st, items, DIBS__MEET_MAX,
                                        contract_soon(), &err),
                  DIBS_OK);
    for (size_t i = 0; i < DIBS__MEET_MAX; i++)
        assert_status(items[i].rc, i == 7 ? DIBS_LOST : DIBS_OK);
}

/* Names that share letters with each other's keys, and the longest one. */
static void each_name_is_a_roster_of_its_own(void **state)
{
    static const char *const forms[] = {
        "%s",  "{%s}", "{%s}~till", "%s~till", "%s{t}", "%s{t}~new",
        "%s}", "%s%%", "%s%%7D",    "{%s}%%",  "%s{}",  "%s*[a]?",
    };
    enum { FORMS = sizeof(forms) / sizeof(forms[0]) };
    contract *t = *state;
    char names[FORMS + 1][DIBS_NAME_MAX + 1];
    size_t len;

    for (size_t i = 0; i < FORMS; i++) {
        const char *at = strstr(forms[i], "%s");

        snprintf(names[i], sizeof(names[i]), "%s%.*s%s%s", t->name,
                 (int)(at - forms[i]), forms[i], "x", at + 2);
    }
    len = strlen(t->name);
    memcpy(names[FORMS], t->name, len);
    memset(names[FORMS] + len, '}', DIBS_NAME_MAX - len);
    names[FORMS][DIBS_NAME_MAX] = '\0';
    for (size_t i = 0; i <= FORMS; i++) {
        member a = party_of(t, 0, 1);
        actor ear = listener_of(t, 1, names[i]);

        a.meet.name = names[i];
        sit(&a);
        assert_int_equal(a.meet.live, 1);
        assert_status(meet(&a, DIBS__ARRIVE), DIBS_OK);
        assert_int_equal(next_news(&ear, DIBS__NOTICE_OPENED), a.meet.number);
    }
}

static bool count_seat(const dibs__seat_entry *seat, void *arg)
{
    assert_int_equal(strlen(seat->id), DIBS_NAME_MAX);
    ++*(size_t *)arg;
    return true;
}

/* An answer that is longer than that of any other step. */
static void a_roll_call_has_them_all(void **state)
{
    enum { IDS = 1024 };
    contract *t = *state;
    dibs__store *st = t->st[0];
    char ids[DIBS__MEET_MAX][DIBS_NAME_MAX + 1];
    dibs__meet items[DIBS__MEET_MAX];
    dibs__roster_head head;
    size_t count = 0;

    for (size_t i = 0; i < IDS; i += DIBS__MEET_MAX) {
        for (size_t k = 0; k < DIBS__MEET_MAX; k++) {
            snprintf(ids[k], sizeof(ids[k]), "%0*zu", DIBS_NAME_MAX, i + k);
            items[k] = (dibs__meet){.name = t->name,
                                    .id = ids[k],
                                    .verb = DIBS__COUNT,
                                    .need = 2 * IDS,
                                    .ttl_ms = LONG_MS};
        }
        CHECK(DIBS_OK, st->ops->roster->meet(st, items, DIBS__MEET_MAX,
                                             contract_soon(), err));
    }
    CHECK(DIBS_OK, st->ops->roster->roll_call(st, t->name, contract_soon(),
                                              &head, count_seat, &count, err));
    assert_int_equal(head.here, IDS);
    assert_int_equal(count, IDS);
}

/* What a list has shown. */
typedef struct shown {
    size_t count, stop; /* the callback ends the list at `stop` */
    dibs__roster_row rows[ROLL_MAX];
} shown;

static bool copy_row(const dibs__roster_row *row, void *arg)
{
    shown *out = arg;

    out->rows[out->count++] = *row;
    return out->count < out->stop;
}

static void
list_rosters(contract *t, dibs__roster_query query, size_t stop, shown *out)
{
    dibs__store *st = t->st[CONTRACT_HANDLES - 1];
    dibs_error err = {0};
    dibs_status rc;

    memset(out, 0, sizeof(*out));
    out->stop = stop;
    rc = st->ops->roster->rosters(st, &query, contract_soon(), copy_row, out,
                                  &err);
    if (rc != DIBS_OK)
        FAIL_OF(rc, "rosters: status %d: %s", (int)rc, err.message);
}

/* All of a kind that begin with the name of the test. */
static size_t list_kind(contract *t, dibs__roster_kind kind, shown *out)
{
    list_rosters(t, (dibs__roster_query){kind, t->name, "", ROLL_MAX}, ROLL_MAX,
                 out);
    return out->count;
}

static void
name_behind(const contract *t, const char *tail, char out[DIBS_NAME_MAX + 1])
{
    snprintf(out, DIBS_NAME_MAX + 1, "%.200s%.50s", t->name, tail);
}

static void a_list_has_the_groups_with_a_member(void **state)
{
    contract *t = *state;
    member m = member_of(t, 0), slow = member_of(t, 1);
    shown all;

    assert_int_equal(list_kind(t, DIBS__ROSTER_GROUP, &all), 0);
    sit(&m);
    assert_int_equal(list_kind(t, DIBS__ROSTER_GROUP, &all), 1);
    assert_string_equal(all.rows[0].name, t->name);
    assert_int_equal(all.rows[0].head.kind, DIBS__ROSTER_GROUP);
    assert_int_equal(all.rows[0].live, 1);
    assert_int_equal(all.rows[0].counts, 0);
    assert_status(meet(&m, DIBS__KEEP), DIBS_OK);
    slow.meet.settle_ms = LONG_MS;
    sit_down(&slow);
    assert_int_equal(list_kind(t, DIBS__ROSTER_GROUP, &all), 1);
    assert_int_equal(all.rows[0].live, 2);
    assert_int_equal(all.rows[0].counts, 1);
    assert_int_equal(list_kind(t, DIBS__ROSTER_BARRIER, &all), 0);
    assert_int_equal(list_kind(t, DIBS__ROSTER_LATCH, &all), 0);
    assert_status(meet(&m, DIBS__LEAVE), DIBS_OK);
    assert_status(meet(&slow, DIBS__LEAVE), DIBS_OK);
    assert_int_equal(list_kind(t, DIBS__ROSTER_GROUP, &all), 0);
}

static void a_list_has_what_barriers_and_latches_need(void **state)
{
    contract *t = *state;
    char latch[DIBS_NAME_MAX + 1];
    member p = party_of(t, 1, 3), l = member_of(t, 0);
    shown all;

    name_behind(t, "/latch", latch);
    l.meet.name = latch;
    sit_down(&p);
    assert_status(meet(&p, DIBS__ARRIVE), DIBS_BUSY);
    assert_status(count_down(&l, "x", 2, 0), DIBS_BUSY);
    assert_int_equal(list_kind(t, DIBS__ROSTER_GROUP, &all), 0);
    assert_int_equal(list_kind(t, DIBS__ROSTER_BARRIER, &all), 1);
    assert_string_equal(all.rows[0].name, t->name);
    assert_int_equal(all.rows[0].head.kind, DIBS__ROSTER_BARRIER);
    assert_int_equal(all.rows[0].head.gen, p.meet.number);
    assert_int_equal(all.rows[0].head.need, 3);
    assert_int_equal(all.rows[0].head.here, 1);
    assert_int_equal(all.rows[0].live, 1);
    assert_int_equal(list_kind(t, DIBS__ROSTER_LATCH, &all), 1);
    assert_string_equal(all.rows[0].name, latch);
    assert_int_equal(all.rows[0].head.gen, l.meet.number);
    assert_int_equal(all.rows[0].head.need, 2);
    assert_int_equal(all.rows[0].head.here, 1);
    assert_int_equal(all.rows[0].live, 0);
}

static void a_list_leaves_out_what_has_ended(void **state)
{
    const int64_t ttl_ms = contract_brief_ms(50);
    contract *t = *state;
    member gone = member_of(t, 0), dies = member_of(t, 0);
    member stays = member_of(t, 1), l = member_of(t, 0);
    char name[DIBS_NAME_MAX + 1], latch[DIBS_NAME_MAX + 1];
    shown all;

    name_behind(t, "/stays", name);
    name_behind(t, "/latch", latch);
    dies.meet.name = stays.meet.name = name;
    l.meet.name = latch;
    gone.meet.ttl_ms = dies.meet.ttl_ms = l.meet.ttl_ms = ttl_ms;
    sit(&gone);
    sit(&dies);
    sit_down(&stays);
    assert_status(count_down(&l, "x", 2, 0), DIBS_BUSY);
    contract_sleep_until(
        dibsx_after_ms(dibsx_now(), ttl_ms + CONTRACT_DRIFT_MS));
    assert_int_equal(list_kind(t, DIBS__ROSTER_GROUP, &all), 1);
    assert_string_equal(all.rows[0].name, name);
    assert_int_equal(all.rows[0].live, 1);
    assert_int_equal(all.rows[0].counts, 1);
    assert_int_equal(list_kind(t, DIBS__ROSTER_LATCH, &all), 0);
}

/* Pages go on behind a name, in the order of bytes, whatever is in names. */
static void a_list_comes_in_pages(void **state)
{
    enum { GROUPS = 11 };
    static const char *const tails[] = {"", "{tag}", "}{", "%7B"};
    contract *t = *state;
    member m[GROUPS];
    char names[GROUPS][DIBS_NAME_MAX + 1], begins[DIBS_NAME_MAX + 1];
    char tail[32];
    shown page;

    name_behind(t, "/g", begins);
    for (size_t i = 0; i < GROUPS; i++) {
        m[i] = member_of(t, i % 2);
        snprintf(tail, sizeof(tail), "/g%02zu%s", i, tails[i % 4]);
        name_behind(t, tail, names[i]);
        m[i].meet.name = names[i];
        sit_down(&m[i]);
    }
    for (size_t from = 0; from <= GROUPS; from += 4) {
        const dibs__roster_query query = {DIBS__ROSTER_GROUP, begins,
                                          from ? names[from - 1] : "", 4};

        list_rosters(t, query, ROLL_MAX, &page);
        assert_int_equal(page.count, from + 4 < GROUPS ? 4 : GROUPS - from);
        for (size_t i = 0; i < page.count; i++)
            assert_string_equal(page.rows[i].name, names[from + i]);
    }
    list_rosters(t, (dibs__roster_query){DIBS__ROSTER_GROUP, names[2], "", 4},
                 ROLL_MAX, &page);
    assert_int_equal(page.count, 1);
    assert_string_equal(page.rows[0].name, names[2]);
    list_rosters(t, (dibs__roster_query){DIBS__ROSTER_GROUP, begins, "", 4}, 1,
                 &page);
    assert_int_equal(page.count, 1);
}

int contract_roster(void)
{
    const struct CMUnitTest tests[] = {
        CONTRACT_TEST(a_seat_is_taken_once),
        CONTRACT_TEST(a_seat_is_kept_by_its_fence),
        CONTRACT_TEST(a_seat_that_is_not_kept_ends),
        CONTRACT_TEST(a_keep_does_not_shorten_a_seat),
        CONTRACT_TEST(keep_answers_how_long_enough_live),
        CONTRACT_TEST(a_seat_counts_once_it_is_used_and_settled),
        CONTRACT_TEST(a_seat_that_settles_does_not_count),
        CONTRACT_TEST(what_is_carried_out_too_late_is_refused),
        CONTRACT_TEST(a_strict_roster_lasts_for_its_run),
        CONTRACT_TEST(the_last_arrival_opens),
        CONTRACT_TEST(a_late_arrival_of_an_older_call_counts_for_nothing),
        CONTRACT_TEST(a_call_that_was_withdrawn_is_not_counted),
        CONTRACT_TEST(a_withdrawal_may_overtake_its_arrival),
        CONTRACT_TEST(a_withdrawal_may_be_too_late),
        CONTRACT_TEST(a_withdrawal_can_break_the_generation),
        CONTRACT_TEST(an_outcome_that_is_too_old_is_lost),
        CONTRACT_TEST(a_party_that_leaves_breaks_the_generation),
        CONTRACT_TEST(a_party_that_leaves_quietly_makes_room),
        CONTRACT_TEST(a_party_that_dies_breaks_the_generation),
        CONTRACT_TEST(the_dead_break_one_generation),
        CONTRACT_TEST(a_barrier_has_as_many_seats_as_parties),
        CONTRACT_TEST(a_latch_counts_each_id_once),
        CONTRACT_TEST(a_latch_that_was_reset_gathers_again),
        CONTRACT_TEST(a_latch_is_kept_for_its_time),
        CONTRACT_TEST(one_step_does_many_items),
        CONTRACT_TEST(each_name_is_a_roster_of_its_own),
        CONTRACT_TEST(a_roll_call_has_them_all),
        CONTRACT_TEST(a_list_has_the_groups_with_a_member),
        CONTRACT_TEST(a_list_has_what_barriers_and_latches_need),
        CONTRACT_TEST(a_list_leaves_out_what_has_ended),
        CONTRACT_TEST(a_list_comes_in_pages),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
