/* test_quorum_slots.c - semaphores over five servers: a permit is a slot of its
 * name, and there are never more holders than slots, whichever nodes are lost. */
/* SPDX-License-Identifier: MIT */
#include "quorum_world.h"

#include "store/store.h"

#include <dibs/monitor.h>
#include <inttypes.h>

const char quorum_params[] = "longest_ttl=30s&node_timeout=5s";

enum { SLOTS = 3 };

static dibs_lock *permit(dibs_client *cl, uint32_t capacity)
{
    return world_lock(cl, "pool",
                      DIBS_LOCK_OPTS(.ttl_ms = 3000, .mode = DIBS_PERMITS,
                                     .capacity = capacity));
}

/* The fields of the name at a node: two for it, and two for each holder. */
static int fields_at(quorum *q, size_t node)
{
    char *text = server_ask(&q->fl.nodes[node].sv, "HLEN", "pool", NULL);
    int count = text ? (int)strtol(text, NULL, 10) : 0;

    free(text);
    return count;
}

/* Waits until each node has so many holders. */
static void await_holders(quorum *q, int count)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), WORLD_BOUND_MS);

    for (size_t i = 0; i < QUORUM_NODES; i++)
        while (fields_at(q, i) != (count ? 2 * count + 2 : 0)) {
            if (dibsx_now() > end)
                MISSED("node %zu has %d fields", i, fields_at(q, i));
            world_sleep_ms(10);
        }
}

/* All slots, by turns of the two clients. */
static void take_all(quorum *q, dibs_lock *locks[SLOTS])
{
    for (size_t i = 0; i < SLOTS; i++) {
        locks[i] = permit(i % 2 ? q->other : q->one, SLOTS);
        CHECK(DIBS_OK, dibs_lock_try(locks[i], err));
    }
}

static void free_all(dibs_lock *locks[SLOTS])
{
    for (size_t i = 0; i < SLOTS; i++)
        dibs_lock_free(locks[i]);
}

/* There is none for another, unless the lease of a holder has ended. */
static void expect_full(dibs_lock *locks[SLOTS], dibs_lock *more)
{
    dibs_status rc = dibs_lock_try(more, NULL);

    for (size_t i = 0; rc == DIBS_OK && i < SLOTS; i++)
        IN_TIME(dibs_lock_check(locks[i]) == DIBS_OK);
    CHECK(DIBS_BUSY, rc);
}

static bool note_shown(const dibs_lease_info *info, void *arg)
{
    size_t *holders = arg;

    assert_string_equal(info->name, "pool");
    assert_int_equal(info->capacity, SLOTS);
    assert_int_equal(info->waiter_count, 0);
    for (size_t i = 0; i < info->holder_count; i++) {
        assert_string_equal(info->holders[i].mode, "permits");
        assert_int_equal(info->holders[i].permits, 1);
        assert_int_equal(info->holders[i].priority, 0);
        for (size_t k = 0; k < i; k++)
            assert_true(info->holders[i].fence != info->holders[k].fence);
    }
    *holders += info->holder_count;
    return true;
}

static void there_are_as_many_as_slots(void **state)
{
    quorum *q = *state;
    dibs_lock *locks[SLOTS], *more = permit(q->other, SLOTS);
    size_t shown = 0, listed = 0;

    take_all(q, locks);
    expect_full(locks, more);
    await_holders(q, SLOTS);
    CHECK(DIBS_OK, dibs_lease_show(q->one, "pool", note_shown, &shown, err));
    CHECK(DIBS_OK, dibs_lease_list(q->one, "po", note_shown, &listed, err));
    IN_TIME(shown == SLOTS);
    IN_TIME(listed == SLOTS);
    dibs_lock_free(more);
    free_all(locks);
    await_holders(q, 0);
}

/* Whichever it is, at the first attempt. */
static void a_slot_that_is_free_is_found(void **state)
{
    quorum *q = *state;
    dibs_lock *locks[SLOTS], *more = permit(q->other, SLOTS);

    take_all(q, locks);
    for (size_t i = 0; i < 4 * SLOTS; i++) {
        dibs_lock *given = locks[i % SLOTS];

        CHECK(DIBS_OK, dibs_lock_release(given, err));
        CHECK(DIBS_OK, dibs_lock_try(more, err));
        locks[i % SLOTS] = more;
        expect_full(locks, given);
        locks[i % SLOTS] = given;
        CHECK(DIBS_OK, dibs_lock_release(more, err));
        CHECK(DIBS_OK, dibs_lock_try(given, err));
    }
    dibs_lock_free(more);
    free_all(locks);
}

/* Waits for so long at the most. */
static dibs_lock *patient(dibs_client *cl, int64_t wait_ms)
{
    return world_lock(cl, "pool",
                      DIBS_LOCK_OPTS(.ttl_ms = 3000, .wait_ms = wait_ms,
                                     .mode = DIBS_PERMITS, .capacity = SLOTS));
}

static void who_waits_gets_one_by_and_by(void **state)
{
    quorum *q = *state;
    dibs_lock *locks[SLOTS];
    dibs_lock *hasty = patient(q->other, 50);
    dibs_lock *more = patient(q->other, WORLD_BOUND_MS);

    take_all(q, locks);
    CHECK(DIBS_TIMEOUT, dibs_lock_acquire(hasty, err));
    CHECK(DIBS_OK, dibs_lock_release(locks[1], err));
    CHECK(DIBS_OK, dibs_lock_acquire(more, err));
    dibs_lock_free(more);
    dibs_lock_free(hasty);
    free_all(locks);
}

/* Waits until the nodes have what the holder has. */
static void await_filled(quorum *q, const dibs_lock *lock)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), WORLD_BOUND_MS);
    char owner[DIBS_OWNER_SIZE], fence[32];

    dibs_lock_owner(lock, owner);
    snprintf(fence, sizeof(fence), "%" PRIu64 " ", dibs_lock_fence(lock));
    for (size_t i = 0; i < QUORUM_NODES; i++) {
        char *text = NULL;

        while (!text || strncmp(text, fence, strlen(fence)) != 0) {
            if (dibsx_now() > end)
                MISSED("node %zu has %s, not %s", i, text, fence);
            free(text);
            world_sleep_ms(10);
            text = quorum_field(q, i, "pool", owner);
        }
        free(text);
    }
}

/* Nodes that come back without anything get the slots as the others have them, so
 * that those may be lost next. */
static void slots_outlive_nodes(void **state)
{
    quorum *q = *state;
    dibs_lock *locks[SLOTS], *more = permit(q->other, SLOTS);

    server_pause(&q->fl.nodes[0].sv);
    server_pause(&q->fl.nodes[1].sv);
    take_all(q, locks);
    expect_full(locks, more);
    server_resume(&q->fl.nodes[0].sv);
    server_resume(&q->fl.nodes[1].sv);
    for (size_t i = 0; i < 2; i++)
        assert_true(server_tell(&q->fl.nodes[i].sv, "DEL", "pool", NULL));
    for (size_t i = 0; i < SLOTS; i++)
        CHECK(DIBS_OK, dibs_lock_renew(locks[i], err));
    for (size_t i = 0; i < SLOTS; i++)
        await_filled(q, locks[i]);
    server_pause(&q->fl.nodes[3].sv);
    server_pause(&q->fl.nodes[4].sv);
    expect_full(locks, more);
    for (size_t i = 0; i < SLOTS; i++)
        CHECK(DIBS_OK, dibs_lock_renew(locks[i], err));
    CHECK(DIBS_OK, dibs_lock_release(locks[0], err));
    CHECK(DIBS_OK, dibs_lock_try(more, err));
    server_resume(&q->fl.nodes[3].sv);
    server_resume(&q->fl.nodes[4].sv);
    dibs_lock_free(more);
    free_all(locks);
}

/* Breaks the leases with this fence, or all: so many. */
static void break_slots(quorum *q, uint64_t fence, uint32_t count)
{
    uint32_t broken = 0;
    dibs_status rc =
        dibs_lease_break(q->other, "pool", fence, NULL, &broken, NULL);

    IN_TIME(rc != DIBS_NOTFOUND && rc != DIBS_STALE); /* ended by then */
    CHECK(DIBS_OK, rc);
    IN_TIME(broken == count);
}

static void all_or_one_can_be_broken(void **state)
{
    quorum *q = *state;
    dibs_lock *locks[SLOTS];

    take_all(q, locks);
    await_holders(q, SLOTS);
    break_slots(q, dibs_lock_fence(locks[1]), 1);
    world_await(locks[1], DIBS_LOCK_LOST, WORLD_BOUND_MS);
    break_slots(q, 0, SLOTS - 1);
    await_holders(q, 0);
    free_all(locks);
}

/* When time is up between one and the next, those before were broken all the same:
 * DIBS_UNAVAIL would say that nothing has changed. */
static void what_was_broken_is_not_denied(void **state)
{
    quorum *q = *state;
    dibs__store *st = NULL;

    CHECK(DIBS_OK,
          dibs__store_open(q->url, dibsx_after_ms(dibsx_now(), WORLD_BOUND_MS),
                           &st, err));
    for (int i = 0; i < 200; i++) {
        dibsx_nsec span = i % 50 * (DIBSX_MS / 20);
        dibs_lock *locks[SLOTS];
        uint32_t broken = 0;
        dibs_status rc;

        for (size_t k = 0; k < SLOTS; k++) {
            locks[k] = permit(q->one, SLOTS);
            CHECK(DIBS_OK, world_try_until(locks[k], WORLD_BOUND_MS));
        }
        rc = st->ops->lease->revoke(st, "pool", 0, dibsx_now() + span, &broken,
                                    NULL);
        assert_true(rc != DIBS_UNAVAIL || broken == 0);
        free_all(locks);
    }
    dibs__store_close(st);
}

static void other_numbers_and_kinds_are_told_apart(void **state)
{
    quorum *q = *state;
    dibs_lock *one = permit(q->one, SLOTS);
    dibs_lock *another = permit(q->other, SLOTS + 1);
    dibs_lock *alone =
        world_lock(q->other, "pool", DIBS_LOCK_OPTS(.ttl_ms = 3000));

    CHECK(DIBS_OK, dibs_lock_try(one, err));
    CHECK(DIBS_MISMATCH, dibs_lock_try(another, err));
    CHECK(DIBS_MISMATCH, dibs_lock_try(alone, err));
    CHECK(DIBS_OK, dibs_lock_release(one, err));
    CHECK(DIBS_OK, dibs_lock_try(alone, err));
    CHECK(DIBS_MISMATCH, dibs_lock_try(one, err));
    dibs_lock_free(alone);
    dibs_lock_free(another);
    dibs_lock_free(one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        QUORUM_TEST(there_are_as_many_as_slots),
        QUORUM_TEST(a_slot_that_is_free_is_found),
        QUORUM_TEST(who_waits_gets_one_by_and_by),
        QUORUM_TEST(slots_outlive_nodes),
        QUORUM_TEST(all_or_one_can_be_broken),
        QUORUM_TEST(what_was_broken_is_not_denied),
        QUORUM_TEST(other_numbers_and_kinds_are_told_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
