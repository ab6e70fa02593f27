/* latch.c - latches through the public interface. */
/* SPDX-License-Identifier: MIT */
#include "core.h"

#include "core/client.h"
#include "store/roster.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { WAITERS = 4 };

static uint32_t
count_down(dibs_client *cl, const char *name, uint32_t count, const char *id)
{
    uint32_t left = UINT32_MAX;

    CHECK(DIBS_OK, dibs_latch_count_down(cl, name, count, id, &left, err));
    return left;
}

static void it_opens_with_the_last_count(void **state)
{
    dibs_client *cl = core_open(), *other = core_open();
    const char *name = core_name();
    dibs_latch_state at;

    (void)state;
    CHECK(DIBS_NOTFOUND, dibs_latch_show(cl, name, &at, err));
    CHECK(DIBS_TIMEOUT, dibs_latch_wait(cl, name, 2, 0, err));
    assert_int_equal(count_down(cl, name, 2, "job 1"), 1);
    CHECK(DIBS_OK, dibs_latch_show(other, name, &at, err));
    assert_int_equal(at.count, 2);
    assert_int_equal(at.left, 1);
    CHECK(DIBS_TIMEOUT, dibs_latch_wait(other, name, 2, 10, err));
    assert_int_equal(count_down(other, name, 2, NULL), 0);
    CHECK(DIBS_OK, dibs_latch_wait(cl, name, 2, 0, err));
    CHECK(DIBS_OK, dibs_latch_wait(cl, name, 2, 0, err));
    dibs_close(cl);
    dibs_close(other);
}

/* Work that is delivered twice, or a call that had no answer. */
static void count_down_retried_counts_once(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();

    (void)state;
    assert_int_equal(count_down(cl, name, 3, "job 1"), 2);
    assert_int_equal(count_down(cl, name, 3, "job 1"), 2);
    assert_int_equal(count_down(cl, name, 3, NULL), 1);
    assert_int_equal(count_down(cl, name, 3, NULL), 0);
    assert_int_equal(count_down(cl, name, 3, "job 4"), 0);
    dibs_close(cl);
}

static void a_reset_closes_it(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    dibs_latch_state before, after;

    (void)state;
    CHECK(DIBS_NOTFOUND, dibs_latch_reset(cl, name, err));
    assert_int_equal(count_down(cl, name, 1, "job"), 0);
    CHECK(DIBS_OK, dibs_latch_show(cl, name, &before, err));
    CHECK(DIBS_OK, dibs_latch_reset(cl, name, err));
    CHECK(DIBS_OK, dibs_latch_show(cl, name, &after, err));
    assert_true(after.generation > before.generation);
    assert_int_equal(after.left, 1);
    CHECK(DIBS_TIMEOUT, dibs_latch_wait(cl, name, 1, 0, err));
    assert_int_equal(count_down(cl, name, 1, "job"), 0);
    CHECK(DIBS_OK, dibs_latch_wait(cl, name, 1, 0, err));
    dibs_close(cl);
}

static void a_count_for_an_older_generation_is_stale(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    dibs_latch_state at, old;

    (void)state;
    CHECK(DIBS_STALE, dibs_latch_count_down_in(cl, name, 2, 1, "a", &at, err));
    assert_int_equal(at.count, 0);
    CHECK(DIBS_NOTFOUND, dibs_latch_show(cl, name, &at, err));
    CHECK(DIBS_OK, dibs_latch_count_down_in(cl, name, 2, 0, "a", &old, err));
    assert_int_equal(old.left, 1);
    CHECK(DIBS_OK, dibs_latch_show(cl, name, &at, err));
    assert_true(at.generation == old.generation);
    CHECK(DIBS_OK, dibs_latch_reset(cl, name, err));
    CHECK(DIBS_STALE, dibs_latch_count_down_in(cl, name, 2, old.generation, "b",
                                               NULL, err));
    CHECK(DIBS_OK, dibs_latch_show(cl, name, &at, err));
    assert_int_equal(at.left, 2);
    assert_true(at.generation > old.generation);
    CHECK(DIBS_OK,
          dibs_latch_count_down_in(cl, name, 2, at.generation, "b", &old, err));
    assert_int_equal(old.left, 1);
    dibs_close(cl);
}

static void another_number_is_refused(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    char id[DIBS_NAME_MAX + 2];

    (void)state;
    memset(id, 'x', sizeof(id) - 1);
    id[sizeof(id) - 1] = '\0';
    assert_int_equal(count_down(cl, name, 2, "job"), 1);
    CHECK(DIBS_MISMATCH, dibs_latch_count_down(cl, name, 3, "a", NULL, err));
    CHECK(DIBS_MISMATCH, dibs_latch_wait(cl, name, 3, -1, err));
    CHECK(DIBS_INVALID, dibs_latch_wait(cl, name, 0, 0, err));
    CHECK(DIBS_INVALID,
          dibs_latch_count_down(cl, name, DIBS_LATCH_MAX + 1, "a", NULL, err));
    CHECK(DIBS_INVALID, dibs_latch_count_down(cl, name, 2, "", NULL, err));
    CHECK(DIBS_INVALID, dibs_latch_count_down(cl, name, 2, id, NULL, err));
    CHECK(DIBS_INVALID, dibs_latch_count_down(cl, name, 2, "\n", NULL, err));
    CHECK(DIBS_INVALID,
          dibs_latch_show(NULL, name, &(dibs_latch_state){0}, err));
    dibs_close(cl);
}

typedef struct waiter {
    dibs_client *cl;
    const char *name;
    uint32_t count;
    dibs_status rc;
} waiter;

static void *wait_for_it(void *arg)
{
    waiter *w = arg;

    w->rc = dibs_latch_wait(w->cl, w->name, w->count, pace_ms(30000), NULL);
    return NULL;
}

/* On one client and on another, long before the last count and just before it. */
static void all_waiters_wake(void **state)
{
    dibs_client *cl = core_open(), *other = core_open();
    char name[64];
    waiter waiters[WAITERS];
    pthread_t threads[WAITERS];

    (void)state;
    snprintf(name, sizeof(name), "%s", core_name());
    for (size_t i = 0; i < WAITERS; i++) {
        waiters[i] = (waiter){.cl = i % 2 ? cl : other, .name = name};
        waiters[i].count = 3;
        assert_int_equal(pthread_create(&threads[i], NULL, wait_for_it,
                                        &waiters[i]),
                         0);
        if (i == 1)
            assert_int_equal(count_down(cl, name, 3, "a"), 2);
    }
    assert_int_equal(count_down(other, name, 3, "b"), 1);
    assert_int_equal(count_down(cl, name, 3, "c"), 0);
    for (size_t i = 0; i < WAITERS; i++) {
        pthread_join(threads[i], NULL);
        assert_status(waiters[i].rc, DIBS_OK);
    }
    dibs_close(cl);
    dibs_close(other);
}

/* The lock handle keeps the client while the waiter looks at it. */
static void a_close_ends_the_wait(void **state)
{
    dibs_client *cl = core_open();
    char name[64];
    waiter w = {.cl = cl, .name = name, .count = 1};
    dibs_lock *lock = core_lock(cl, core_name(), NULL);
    dibs_latch_state at;
    pthread_t thread;

    (void)state;
    snprintf(name, sizeof(name), "%s", core_name());
    assert_int_equal(pthread_create(&thread, NULL, wait_for_it, &w), 0);
    for (int i = 0; i < 20; i++)
        CHECK(DIBS_NOTFOUND, dibs_latch_show(cl, name, &at, err));
    dibs_close(cl);
    pthread_join(thread, NULL);
    if (w.rc != DIBS_INVALID)
        assert_status(w.rc, DIBS_CANCELLED);
    dibs_lock_free(lock);
}

static bool note_latch(const char *name, const dibs_latch_state *at, void *arg)
{
    char *text = arg;
    size_t len = strlen(text);

    snprintf(text + len, 256 - len, "%s %u/%u;", strrchr(name, '-'),
             (unsigned)at->left, (unsigned)at->count);
    return true;
}

static void latches_are_listed(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    char names[2][80], text[256] = "";

    (void)state;
    for (int i = 0; i < 2; i++)
        snprintf(names[i], sizeof(names[i]), "%s-%d", name, i);
    count_down(cl, names[1], 1, NULL);
    count_down(cl, names[0], 3, NULL);
    CHECK(DIBS_OK, dibs_latch_list(cl, name, note_latch, text, err));
    assert_string_equal(text, "-0 2/3;-1 0/1;");
    dibs_close(cl);
}

/* Takes a seat that nobody keeps: of a group, or of a barrier of `need`. */
static void sit_briefly(dibs_client *cl, const char *name, uint32_t need)
{
    dibs__meet item = {.name = name,
                       .id = "00000000000000000000000000000001",
                       .verb = DIBS__SIT,
                       .flags = need > 0 ? DIBS__MEET_FIXED : 0,
                       .need = need,
                       .ttl_ms = pace_ms(100),
                       .who = "host:1"};
    dibsx_nsec soon = dibsx_after_ms(dibsx_now(), pace_ms(30000));

    CHECK(DIBS_OK, cl->st->ops->roster->meet(cl->st, &item, 1, soon, err));
    CHECK(DIBS_OK, item.rc);
}

typedef struct names_left {
    dibs_client *cl;
    const char *begins;
    size_t count;
} names_left;

static bool count_group(const dibs_group_info *info, void *arg)
{
    (void)info;
    ((names_left *)arg)->count++;
    return true;
}

static bool
count_barrier(const char *name, const dibs_barrier_state *at, void *arg)
{
    (void)name;
    (void)at;
    ((names_left *)arg)->count++;
    return true;
}

static bool none_left(void *arg)
{
    names_left *all = arg;

    all->count = 0;
    CHECK(DIBS_OK,
          dibs_group_list(all->cl, all->begins, count_group, all, err));
    CHECK(DIBS_OK,
          dibs_barrier_list(all->cl, all->begins, count_barrier, all, err));
    return all->count == 0;
}

/* A group or a barrier whose members all died. */
static void what_has_ended_is_no_latch(void **state)
{
    dibs_client *cl = core_open();
    names_left all = {.cl = cl, .begins = core_name()};
    char names[2][3][80];
    dibs_latch_state at;

    (void)state;
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 3; j++) {
            snprintf(names[i][j], 80, "%s-%d-%d", all.begins, i, j);
            sit_briefly(cl, names[i][j], i == 0 ? 0 : 3);
        }
    core_until(none_left, &all);
    for (int i = 0; i < 2; i++) {
        CHECK(DIBS_NOTFOUND, dibs_latch_show(cl, names[i][0], &at, err));
        CHECK(DIBS_TIMEOUT, dibs_latch_wait(cl, names[i][1], 4, 0, err));
        CHECK(DIBS_NOTFOUND, dibs_latch_reset(cl, names[i][2], err));
    }
    dibs_close(cl);
}

int core_latch_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_opens_with_the_last_count),
        cmocka_unit_test(count_down_retried_counts_once),
        cmocka_unit_test(a_reset_closes_it),
        cmocka_unit_test(a_count_for_an_older_generation_is_stale),
        cmocka_unit_test(another_number_is_refused),
        cmocka_unit_test(all_waiters_wake),
        cmocka_unit_test(a_close_ends_the_wait),
        cmocka_unit_test(latches_are_listed),
        cmocka_unit_test(what_has_ended_is_no_latch),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
