/* test_session_machine.c - sessions of the sidecar: what is told, and what ends. */
/* SPDX-License-Identifier: MIT */
#include "serve/session_machine.h"
#include "unit.h"
#include <string.h>

enum { TTL_MS = 6000, MAX = 3 };

static dibs__session session;
static dibs__session_lease fresh[16];

static void begin(void)
{
    memset(fresh, 0, sizeof(fresh));
    dibs__session_init(&session, TTL_MS, MAX, 0);
}

static dibs__session_put put(int i, const char *id, dibsx_nsec now)
{
    dibs__session_lease *found;

    return dibs__session_put_lease(&session, &fresh[i], id, now, &found);
}

static void want(const char *id, dibs__session_todo todo)
{
    dibs__session_todo got;
    const dibs__session_lease *le = dibs__session_next(&session, &got);

    assert_int_equal(got, todo);
    if (todo == DIBS__SESSION_NOTHING)
        assert_null(le);
    else
        assert_string_equal(le->id, id);
    assert_null(dibs__session_check(&session));
}

static void hold(int i, const char *id)
{
    assert_int_equal(put(i, id, 0), DIBS__PUT_NEW);
    want(id, DIBS__SESSION_START);
    dibs__session_answered(&session, &fresh[i], DIBS_OK, 7);
}

static void test_ids(void **state)
{
    char id[DIBS__SESSION_ID_MAX + 2];

    (void)state;
    memset(id, 'a', sizeof(id));
    id[DIBS__SESSION_ID_MAX + 1] = '\0';
    assert_false(dibs__session_id_ok(id));
    id[DIBS__SESSION_ID_MAX] = '\0';
    assert_true(dibs__session_id_ok(id));
    assert_true(dibs__session_id_ok("Az09._-"));
    assert_false(dibs__session_id_ok(""));
    assert_false(dibs__session_id_ok("a/b"));
    assert_false(dibs__session_id_ok("a b"));
}

static void test_told_is_the_lesser(void **state)
{
    (void)state;
    begin();
    assert_int_equal(dibs__session_told_ms(&session, 0, 30000), 6000 - 60 - 2);
    assert_int_equal(dibs__session_told_ms(&session, 0, 1000), 1000 - 10 - 2);
    assert_int_equal(dibs__session_told_ms(&session, 5000 * DIBSX_MS, 30000),
                     1000 - 12);
    assert_int_equal(dibs__session_told_ms(&session, 0, 2), 0);
    assert_int_equal(dibs__session_told_until(&session, DIBSX_MS, 1000),
                     1001 * DIBSX_MS);
    assert_int_equal(dibs__session_told_until(&session, DIBSX_MS, 0), 0);
}

static void test_session_ends_a_ttl_after_the_last_beat(void **state)
{
    (void)state;
    begin();
    hold(0, "a");
    assert_int_equal(put(1, "b", 0), DIBS__PUT_NEW);
    want("b", DIBS__SESSION_START);
    assert_true(dibs__session_beat(&session, 5000 * DIBSX_MS));
    dibs__session_tick(&session, 10999 * DIBSX_MS);
    want(NULL, DIBS__SESSION_NOTHING);
    assert_false(dibs__session_beat(&session, 11000 * DIBSX_MS));
    assert_int_equal(session.end, DIBS__SESSION_EXPIRED);
    want("b", DIBS__SESSION_CANCEL);
    want("a", DIBS__SESSION_RELEASE);
    want(NULL, DIBS__SESSION_NOTHING);
    assert_int_equal(dibs__session_told_ms(&session, 0, 30000), 0);
    assert_int_equal(put(2, "c", 0), DIBS__PUT_ENDED);
    /* The cancel came too late. */
    dibs__session_answered(&session, &fresh[1], DIBS_OK, 8);
    want("b", DIBS__SESSION_RELEASE);
}

static void test_drain_leaves(void **state)
{
    (void)state;
    begin();
    hold(0, "a");
    assert_int_equal(put(1, "b", 0), DIBS__PUT_NEW);
    dibs__session_adopting(&fresh[1]);
    assert_int_equal(put(2, "c", 0), DIBS__PUT_NEW);
    want("c", DIBS__SESSION_START);
    dibs__session_finish(&session, DIBS__SESSION_DRAINED);
    dibs__session_finish(&session, DIBS__SESSION_CLOSED);
    want("c", DIBS__SESSION_CANCEL);
    want("b", DIBS__SESSION_CANCEL);
    want("a", DIBS__SESSION_LEAVE);
    assert_int_equal(session.end, DIBS__SESSION_DRAINED);
    /* It was being taken over from another daemon. */
    dibs__session_answered(&session, &fresh[1], DIBS_OK, 8);
    want("b", DIBS__SESSION_LEAVE);
    /* The client was told that nothing changed. */
    dibs__session_answered(&session, &fresh[2], DIBS_OK, 9);
    want("c", DIBS__SESSION_RELEASE);
}

static void test_put_again_is_one_acquire(void **state)
{
    (void)state;
    begin();
    assert_int_equal(put(0, "a", 0), DIBS__PUT_NEW);
    assert_int_equal(put(1, "a", 0), DIBS__PUT_KNOWN);
    want("a", DIBS__SESSION_START);
    assert_int_equal(put(1, "a", 0), DIBS__PUT_KNOWN);
    want(NULL, DIBS__SESSION_NOTHING);
    dibs__session_answered(&session, &fresh[0], DIBS_BUSY, 0);
    assert_int_equal(fresh[0].stage, DIBS__STAGE_FREED);
    assert_int_equal(fresh[0].why, DIBS_BUSY);
    assert_int_equal(put(1, "a", 0), DIBS__PUT_KNOWN);
    want(NULL, DIBS__SESSION_NOTHING);
}

static void test_removed_before_it_was_put(void **state)
{
    (void)state;
    begin();
    assert_true(dibs__session_remove(&session, &fresh[0], "a"));
    assert_false(dibs__session_remove(&session, &fresh[1], "a"));
    assert_int_equal(put(1, "a", 0), DIBS__PUT_KNOWN);
    want(NULL, DIBS__SESSION_NOTHING);
    /* Put and removed before it was started: nothing is to be cancelled. */
    assert_int_equal(put(1, "b", 0), DIBS__PUT_NEW);
    assert_false(dibs__session_remove(&session, &fresh[2], "b"));
    want(NULL, DIBS__SESSION_NOTHING);
}

static void test_lost_is_final(void **state)
{
    (void)state;
    begin();
    hold(0, "a");
    dibs__session_lost(&session, &fresh[0]);
    assert_false(dibs__session_remove(&session, &fresh[1], "a"));
    dibs__session_finish(&session, DIBS__SESSION_CLOSED);
    assert_int_equal(fresh[0].stage, DIBS__STAGE_LOST);
    want(NULL, DIBS__SESSION_NOTHING);
}

static void test_bounds(void **state)
{
    static const char *const ids[] = {"a", "b", "c", "d", "e"};

    (void)state;
    begin();
    for (int i = 0; i < MAX; i++)
        hold(i, ids[i]);
    assert_int_equal(put(MAX, "d", 0), DIBS__PUT_FULL);
    assert_false(dibs__session_remove(&session, &fresh[MAX], "b"));
    want("b", DIBS__SESSION_RELEASE);
    hold(MAX, "d");
    assert_null(dibs__session_forgotten(&session));
    for (int i = 0; i < 3; i++)
        assert_true(dibs__session_remove(&session, &fresh[8 + i], &"xyz"[i]));
    /* Ids "xyz", "yz", "z": one more than are kept, and the oldest goes. */
    assert_ptr_equal(dibs__session_forgotten(&session), &fresh[1]);
    assert_null(dibs__session_forgotten(&session));
    assert_null(dibs__session_find(&session, "b"));
    assert_non_null(dibs__session_find(&session, "a"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ids),
        cmocka_unit_test(test_told_is_the_lesser),
        cmocka_unit_test(test_session_ends_a_ttl_after_the_last_beat),
        cmocka_unit_test(test_drain_leaves),
        cmocka_unit_test(test_put_again_is_one_acquire),
        cmocka_unit_test(test_removed_before_it_was_put),
        cmocka_unit_test(test_lost_is_final),
        cmocka_unit_test(test_bounds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
