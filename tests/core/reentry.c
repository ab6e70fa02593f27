/* reentry.c - the same owner again: counted, not asked for; and never a wait for
 * oneself. */
/* SPDX-License-Identifier: MIT */
#include "core.h"

#include <poll.h>
#include <pthread.h>
#include <string.h>

#define REENTRANT(...)                                                         \
    DIBS_LOCK_OPTS(.flags = DIBS_LOCK_REENTRANT, .ttl_ms = 60000, __VA_ARGS__)

static bool count_name(const dibs_lease_info *info, void *arg)
{
    *(size_t *)arg = info->holder_count;
    return true;
}

/* How many hold the name, as the store has it. */
static size_t holders(dibs_client *cl, const char *name)
{
    size_t count = 0;
    dibs_error err;
    dibs_status rc = dibs_lease_show(cl, name, count_name, &count, &err);

    if (rc != DIBS_OK)
        assert_status(rc, DIBS_NOTFOUND);
    return count;
}

static void the_same_handle_counts(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    dibs_lock *lock = core_lock(cl, name, REENTRANT());
    uint64_t fence;

    (void)state;
    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    fence = dibs_lock_fence(lock);
    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    assert_int_equal(dibs_lock_depth(lock), 3);
    assert_int_equal(dibs_lock_fence(lock), fence);
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    assert_int_equal(dibs_lock_fence(lock), fence);
    assert_int_equal(holders(cl, name), 1);
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    assert_int_equal(holders(cl, name), 0);
    assert_int_equal(dibs_lock_depth(lock), 0);
    CHECK(DIBS_LOST, dibs_lock_release(lock, err));
    dibs_lock_free(lock);
    dibs_close(cl);
}

static void another_handle_of_the_owner_enters(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    dibs_lock *outer = core_lock(cl, name, REENTRANT());
    dibs_lock *inner = core_lock(cl, name, REENTRANT(.wait_ms = -1));
    char a[DIBS_OWNER_SIZE], b[DIBS_OWNER_SIZE];

    (void)state;
    CHECK(DIBS_OK, dibs_lock_acquire(outer, err));
    CHECK(DIBS_OK, dibs_lock_acquire(inner, err));
    assert_int_equal(dibs_lock_fence(inner), dibs_lock_fence(outer));
    IN_TIME(dibs_lock_state_get(inner) == DIBS_LOCK_HELD);
    CHECK(DIBS_OK, dibs_lock_check(inner));
    dibs_lock_owner(outer, a);
    dibs_lock_owner(inner, b);
    assert_string_equal(a, b);
    assert_int_equal(holders(cl, name), 1);
    CHECK(DIBS_OK, dibs_lock_release(inner, err));
    assert_int_equal(dibs_lock_state_get(inner), DIBS_LOCK_FREE);
    assert_int_equal(dibs_lock_fence(inner), 0);
    assert_int_equal(holders(cl, name), 1);
    CHECK(DIBS_OK, dibs_lock_release(outer, err));
    assert_int_equal(holders(cl, name), 0);
    dibs_lock_free(inner);
    dibs_lock_free(outer);
    dibs_close(cl);
}

static void the_order_of_release_does_not_matter(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    dibs_lock *outer = core_lock(cl, name, REENTRANT());
    dibs_lock *inner = core_lock(cl, name, REENTRANT());
    uint64_t fence;

    (void)state;
    CHECK(DIBS_OK, dibs_lock_acquire(outer, err));
    CHECK(DIBS_OK, dibs_lock_acquire(inner, err));
    fence = dibs_lock_fence(inner);
    CHECK(DIBS_OK, dibs_lock_release(outer, err));
    assert_int_equal(holders(cl, name), 1);
    CHECK(DIBS_LOST, dibs_lock_release(outer, err));
    CHECK(DIBS_OK, dibs_lock_acquire(outer, err));
    assert_int_equal(dibs_lock_fence(outer), fence);
    CHECK(DIBS_OK, dibs_lock_release(outer, err));
    dibs_lock_free(outer);
    assert_int_equal(dibs_lock_fence(inner), fence);
    assert_int_equal(holders(cl, name), 1);
    CHECK(DIBS_OK, dibs_lock_release(inner, err));
    assert_int_equal(holders(cl, name), 0);
    dibs_lock_free(inner);
    dibs_close(cl);
}

static void freeing_the_last_handle_gives_back(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    dibs_lock *outer = core_lock(cl, name, REENTRANT());
    dibs_lock *inner = core_lock(cl, name, REENTRANT());

    (void)state;
    CHECK(DIBS_OK, dibs_lock_acquire(outer, err));
    CHECK(DIBS_OK, dibs_lock_acquire(outer, err));
    CHECK(DIBS_OK, dibs_lock_acquire(inner, err));
    dibs_lock_free(outer);
    CHECK(DIBS_OK, dibs_lock_check(inner));
    dibs_lock_free(inner);
    assert_int_equal(holders(cl, name), 0);
    dibs_close(cl);
}

typedef struct visitor {
    dibs_lock *lock;
    dibs_status rc;
    dibs_error err;
} visitor;

static void *visit(void *arg)
{
    visitor *vs = arg;

    vs->rc = dibs_lock_acquire(vs->lock, &vs->err);
    return NULL;
}

static dibs_status acquire_elsewhere(dibs_lock *lock)
{
    visitor vs = {.lock = lock};
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, visit, &vs), 0);
    pthread_join(thread, NULL);
    return vs.rc;
}

static void another_thread_is_another_owner(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    dibs_lock *mine = core_lock(cl, name, REENTRANT());
    dibs_lock *theirs = core_lock(cl, name, REENTRANT());

    (void)state;
    CHECK(DIBS_OK, dibs_lock_acquire(mine, err));
    assert_status(acquire_elsewhere(theirs), DIBS_BUSY);
    assert_status(acquire_elsewhere(mine), DIBS_INVALID);
    assert_int_equal(dibs_lock_depth(mine), 1);
    CHECK(DIBS_OK, dibs_lock_release(mine, err));
    assert_int_equal(holders(cl, name), 0);
    dibs_lock_free(mine);
    dibs_lock_free(theirs);
    dibs_close(cl);
}

static void an_owner_may_be_named(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    dibs_lock *mine = core_lock(cl, name, REENTRANT(.identity = "request-7"));
    dibs_lock *again = core_lock(cl, name, REENTRANT(.identity = "request-7"));
    dibs_lock *other = core_lock(cl, name, REENTRANT(.identity = "request-8"));

    (void)state;
    CHECK(DIBS_OK, dibs_lock_acquire(mine, err));
    assert_status(acquire_elsewhere(again), DIBS_OK);
    CHECK(DIBS_BUSY, dibs_lock_try(other, err));
    assert_int_equal(dibs_lock_fence(again), dibs_lock_fence(mine));
    dibs_lock_free(mine);
    CHECK(DIBS_BUSY, dibs_lock_try(other, err));
    dibs_lock_free(again);
    CHECK(DIBS_OK, dibs_lock_try(other, err));
    dibs_lock_free(other);
    dibs_close(cl);
}

static void without_re_entry_a_wait_for_oneself_is_an_error(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    dibs_lock *a = core_lock(cl, name, DIBS_LOCK_OPTS(.wait_ms = -1));
    dibs_lock *b = core_lock(cl, name, DIBS_LOCK_OPTS(.wait_ms = -1));

    (void)state;
    CHECK(DIBS_OK, dibs_lock_acquire(a, err));
    CHECK(DIBS_INVALID, dibs_lock_acquire(a, err));
    CHECK(DIBS_INVALID, dibs_lock_acquire(b, err));
    CHECK(DIBS_BUSY, dibs_lock_try(b, err));
    CHECK(DIBS_OK, dibs_lock_release(a, err));
    CHECK(DIBS_OK, dibs_lock_acquire(b, err));
    dibs_lock_free(a);
    dibs_lock_free(b);
    dibs_close(cl);
}

static bool is_lost(void *arg)
{
    return dibs_lock_state_get(arg) == DIBS_LOCK_LOST;
}

static void count_call(dibs_lock *lock, void *arg)
{
    (void)lock;
    __atomic_fetch_add((int *)arg, 1, __ATOMIC_SEQ_CST);
}

static bool both_called(void *arg)
{
    return __atomic_load_n((int *)arg, __ATOMIC_SEQ_CST) == 2;
}

/* Redisson #4706: a failed entry left the count higher than the releases to come. */
static void a_loss_reaches_all_and_the_count_starts_anew(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    int calls = 0;
    dibs_lock *outer =
        core_lock(cl, name,
                  REENTRANT(.on_lost = count_call, .on_lost_arg = &calls));
    dibs_lock *inner =
        core_lock(cl, name,
                  REENTRANT(.on_lost = count_call, .on_lost_arg = &calls));
    uint64_t fence;

    (void)state;
    CHECK(DIBS_OK, dibs_lock_acquire(outer, err));
    CHECK(DIBS_OK, dibs_lock_acquire(inner, err));
    CHECK(DIBS_OK, dibs_lock_acquire(inner, err));
    fence = dibs_lock_fence(outer);
    CHECK(DIBS_OK, dibs_lease_break(cl, name, 0, "test", NULL, err));
    CHECK(DIBS_LOST, dibs_lock_renew(outer, err));
    core_until(is_lost, outer);
    core_until(is_lost, inner);
    core_until(both_called, &calls);
    CHECK(DIBS_OK, dibs_lock_acquire(inner, err));
    assert_true(dibs_lock_fence(inner) > fence);
    assert_int_equal(dibs_lock_depth(inner), 1);
    CHECK(DIBS_LOST, dibs_lock_release(outer, err));
    assert_int_equal(holders(cl, name), 1);
    CHECK(DIBS_OK, dibs_lock_release(inner, err));
    assert_int_equal(holders(cl, name), 0);
    dibs_lock_free(outer);
    dibs_lock_free(inner);
    dibs_close(cl);
}

static bool lost_fd_says(dibs_lock *lock)
{
    struct pollfd fd = {.fd = dibs_lock_lost_fd(lock), .events = POLLIN};

    return poll(&fd, 1, 0) == 1;
}

/* What the handle itself has lost is over once it has entered through another. */
static void a_loss_is_over_for_who_enters_through_another(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    dibs_lock *host = core_lock(cl, name, REENTRANT());
    dibs_lock *guest = core_lock(cl, name, REENTRANT());

    (void)state;
    CHECK(DIBS_OK, dibs_lock_acquire(guest, err));
    CHECK(DIBS_OK, dibs_lease_break(cl, name, 0, "test", NULL, err));
    CHECK(DIBS_LOST, dibs_lock_renew(guest, err));
    core_until(is_lost, guest);
    assert_true(lost_fd_says(guest));
    CHECK(DIBS_OK, dibs_lock_acquire(host, err));
    CHECK(DIBS_OK, dibs_lock_acquire(guest, err));
    assert_int_equal(dibs_lock_fence(guest), dibs_lock_fence(host));
    assert_false(lost_fd_says(guest));
    CHECK(DIBS_OK, dibs_lock_release(guest, err));
    assert_int_equal(dibs_lock_state_get(guest), DIBS_LOCK_FREE);
    assert_false(lost_fd_says(guest));
    CHECK(DIBS_OK, dibs_lock_release(host, err));
    assert_int_equal(holders(cl, name), 0);
    dibs_lock_free(guest);
    dibs_lock_free(host);
    dibs_close(cl);
}

static void who_entered_often_leaves_for_good(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    dibs_lock *reader =
        core_lock(cl, name,
                  DIBS_LOCK_OPTS(.flags = DIBS_LOCK_REENTRANT, .ttl_ms = 1000,
                                 .mode = DIBS_SHARED));
    dibs_stats stats = {.size = sizeof(stats)};
    uint64_t before;

    (void)state;
    for (int i = 0; i < 3; i++)
        CHECK(DIBS_OK, dibs_lock_acquire(reader, err));
    for (int i = 0; i < 3; i++)
        CHECK(DIBS_OK, dibs_lock_release(reader, err));
    dibs_stats_get(cl, &stats);
    before = stats.renewed + stats.renewals_failed;
    assert_int_equal(stats.held, 0);
    /* A renewal would be due after a third of the ttl. */
    poll(NULL, 0, 500);
    dibs_stats_get(cl, &stats);
    assert_int_equal(stats.renewed + stats.renewals_failed, before);
    assert_int_equal(stats.lost, 0);
    assert_int_equal(holders(cl, name), 0);
    dibs_lock_free(reader);
    dibs_close(cl);
}

static void a_reader_enters_its_own_write_lock(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    dibs_lock *writer = core_lock(cl, name, REENTRANT());
    dibs_lock *reader = core_lock(cl, name, REENTRANT(.mode = DIBS_SHARED));

    (void)state;
    CHECK(DIBS_OK, dibs_lock_acquire(writer, err));
    CHECK(DIBS_OK, dibs_lock_acquire(reader, err));
    CHECK(DIBS_OK, dibs_lock_release(writer, err));
    CHECK(DIBS_OK, dibs_lock_check(reader));
    CHECK(DIBS_OK, dibs_lock_release(reader, err));
    assert_int_equal(holders(cl, name), 0);
    dibs_lock_free(writer);
    dibs_lock_free(reader);
    dibs_close(cl);
}

/* A downgrade takes away what the next writer would enter. */
static void a_downgraded_lease_is_no_writers(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    dibs_lock *writer = core_lock(cl, name, REENTRANT());
    dibs_lock *second = core_lock(cl, name, REENTRANT());
    dibs_lock *reader = core_lock(cl, name, REENTRANT(.mode = DIBS_SHARED));
    dibs_error why = {0};

    (void)state;
    CHECK(DIBS_OK, dibs_lock_acquire(writer, err));
    CHECK(DIBS_OK, dibs_lock_downgrade(writer, err));
    CHECK(DIBS_INVALID, dibs_lock_acquire(writer, &why));
    assert_non_null(strstr(why.message, "upgrade"));
    CHECK(DIBS_BUSY, dibs_lock_try(second, err));
    CHECK(DIBS_OK, dibs_lock_acquire(reader, err));
    CHECK(DIBS_OK, dibs_lock_acquire(reader, err));
    assert_int_equal(dibs_lock_fence(reader), dibs_lock_fence(writer));
    CHECK(DIBS_OK, dibs_lock_upgrade(writer, err));
    CHECK(DIBS_OK, dibs_lock_acquire(writer, err));
    CHECK(DIBS_OK, dibs_lock_release(writer, err));
    CHECK(DIBS_OK, dibs_lock_release(reader, err));
    CHECK(DIBS_OK, dibs_lock_release(reader, err));
    CHECK(DIBS_OK, dibs_lock_release(writer, err));
    dibs_lock_free(writer);
    dibs_lock_free(second);
    dibs_lock_free(reader);
    dibs_close(cl);
}

static void no_downgrade_while_a_writer_is_inside(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    dibs_lock *writer = core_lock(cl, name, REENTRANT());
    dibs_lock *second = core_lock(cl, name, REENTRANT());
    dibs_lock *reader = core_lock(cl, name, REENTRANT(.mode = DIBS_SHARED));

    (void)state;
    CHECK(DIBS_OK, dibs_lock_acquire(writer, err));
    CHECK(DIBS_OK, dibs_lock_acquire(writer, err));
    CHECK(DIBS_INVALID, dibs_lock_downgrade(writer, err));
    CHECK(DIBS_OK, dibs_lock_release(writer, err));
    CHECK(DIBS_OK, dibs_lock_acquire(second, err));
    CHECK(DIBS_INVALID, dibs_lock_downgrade(writer, err));
    CHECK(DIBS_OK, dibs_lock_check(second));
    CHECK(DIBS_OK, dibs_lock_release(second, err));
    CHECK(DIBS_OK, dibs_lock_acquire(reader, err));
    CHECK(DIBS_OK, dibs_lock_downgrade(writer, err));
    dibs_lock_free(reader);
    dibs_lock_free(second);
    dibs_lock_free(writer);

    /* A reader that became the writer asked for no more than it keeps. */
    reader = core_lock(cl, name, REENTRANT(.mode = DIBS_SHARED));
    CHECK(DIBS_OK, dibs_lock_acquire(reader, err));
    CHECK(DIBS_OK, dibs_lock_acquire(reader, err));
    CHECK(DIBS_OK, dibs_lock_upgrade(reader, err));
    CHECK(DIBS_OK, dibs_lock_downgrade(reader, err));
    dibs_lock_free(reader);
    dibs_close(cl);
}

static void bad_identities_are_refused(void **state)
{
    static const char *const bad[] = {
        "", "#7", "a b", "a/b", "a\tb", "12345678901234567890123456789012"};
    dibs_client *cl = core_open();
    dibs_lock *lock;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        CHECK(DIBS_INVALID,
              dibs_lock_new(cl, "x", DIBS_LOCK_OPTS(.identity = bad[i]), &lock,
                            err));
    CHECK(DIBS_INVALID,
          dibs_lock_new(cl, "x", REENTRANT(.mode = DIBS_PERMITS, .capacity = 2),
                        &lock, err));
    dibs_close(cl);
}

/* The lease is one, whichever handle the work is done by. */
static void a_tick_through_any_handle_counts(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    dibs_lock *host = core_lock(cl, name,
                                DIBS_LOCK_OPTS(.flags = DIBS_LOCK_REENTRANT,
                                               .ttl_ms = pace_ms(600),
                                               .progress_ms = pace_ms(300)));
    dibs_lock *guest = core_lock(cl, name, REENTRANT());
    dibs_stats stats = {.size = sizeof(stats)};

    (void)state;
    CHECK(DIBS_OK, dibs_lock_acquire(host, err));
    CHECK(DIBS_OK, dibs_lock_acquire(guest, err));
    do {
        dibs_lock_tick(guest);
        poll(NULL, 0, 5);
        CHECK(DIBS_OK, dibs_lock_check(guest));
        dibs_stats_get(cl, &stats);
    } while (stats.renewed < 4);
    CHECK(DIBS_OK, dibs_lock_release(guest, err));
    CHECK(DIBS_OK, dibs_lock_release(host, err));
    dibs_lock_free(guest);
    dibs_lock_free(host);
    dibs_close(cl);
}

int core_reentry_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_handle_counts),
        cmocka_unit_test(another_handle_of_the_owner_enters),
        cmocka_unit_test(the_order_of_release_does_not_matter),
        cmocka_unit_test(freeing_the_last_handle_gives_back),
        cmocka_unit_test(another_thread_is_another_owner),
        cmocka_unit_test(an_owner_may_be_named),
        cmocka_unit_test(without_re_entry_a_wait_for_oneself_is_an_error),
        cmocka_unit_test(a_loss_reaches_all_and_the_count_starts_anew),
        cmocka_unit_test(a_loss_is_over_for_who_enters_through_another),
        cmocka_unit_test(who_entered_often_leaves_for_good),
        cmocka_unit_test(a_reader_enters_its_own_write_lock),
        cmocka_unit_test(a_downgraded_lease_is_no_writers),
        cmocka_unit_test(no_downgrade_while_a_writer_is_inside),
        cmocka_unit_test(bad_identities_are_refused),
        cmocka_unit_test(a_tick_through_any_handle_counts),
    };

    return cmocka_run_group_tests_name("core reentry", tests, NULL, NULL);
}
