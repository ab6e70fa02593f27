/* guard.c - fencing tokens that are old are refused, in memory and in the store.
 */
/* SPDX-License-Identifier: MIT */
#include "core.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static void admits_what_is_not_older(void **state)
{
    dibs_guard guard = {0};

    (void)state;
    CHECK(DIBS_OK, dibs_guard_admit(&guard, 33, err));
    CHECK(DIBS_OK, dibs_guard_admit(&guard, 33, err));
    CHECK(DIBS_OK, dibs_guard_admit(&guard, 34, err));
    CHECK(DIBS_STALE, dibs_guard_admit(&guard, 33, err));
    CHECK(DIBS_OK, dibs_guard_admit(&guard, 34, err));
    CHECK(DIBS_INVALID, dibs_guard_admit(&guard, 0, err));
    CHECK(DIBS_INVALID, dibs_guard_admit(NULL, 34, err));
    assert_true(guard.highest == 34);
}

static void says_which_was_higher(void **state)
{
    dibs_guard guard = {.highest = UINT64_MAX};
    dibs_error why = {0};

    (void)state;
    CHECK(DIBS_STALE, dibs_guard_admit(&guard, UINT64_MAX - 1, &why));
    assert_non_null(strstr(why.message, "18446744073709551614"));
    assert_non_null(strstr(why.message, "18446744073709551615"));
    CHECK(DIBS_STALE, dibs_guard_admit(&guard, UINT64_MAX - 1, err));
    CHECK(DIBS_OK, dibs_guard_admit(&guard, UINT64_MAX, err));
}

static void guards_a_lock(void **state)
{
    dibs_client *cl = core_open();
    dibs_lock *lock = core_lock(cl, core_name(), NULL);
    dibs_guard guard = {0};
    uint64_t late;

    (void)state;
    CHECK(DIBS_INVALID, dibs_guard_admit(&guard, dibs_lock_fence(lock), err));
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    late = dibs_lock_fence(lock);
    CHECK(DIBS_OK, dibs_guard_admit(&guard, late, err));
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    CHECK(DIBS_OK, dibs_guard_admit(&guard, dibs_lock_fence(lock), err));
    CHECK(DIBS_STALE, dibs_guard_admit(&guard, late, err));
    dibs_lock_free(lock);
    dibs_close(cl);
}

enum { THREADS = 4, FENCES = 20000 };

/* Offers rising fences; none that was admitted may be below the highest that was
 * there before it was offered. */
static void *offer(void *arg)
{
    dibs_guard *guard = arg;

    for (uint64_t i = 1; i <= FENCES; i++) {
        uint64_t before = __atomic_load_n(&guard->highest, __ATOMIC_SEQ_CST);
        dibs_status rc = dibs_guard_admit(guard, i, NULL);

        if (rc == DIBS_OK && i < before)
            return guard;
        if (rc == DIBS_STALE && i >= FENCES)
            return guard;
    }
    return NULL;
}

static void threads_see_one_highest(void **state)
{
    pthread_t threads[THREADS];
    dibs_guard guard = {0};
    void *result;

    (void)state;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, offer, &guard), 0);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_null(result);
    }
    assert_true(guard.highest == FENCES);
}

static void the_store_remembers(void **state)
{
    dibs_client *cl = core_open();
    dibs_client *other = core_open();
    const char *name = core_name();
    const uint64_t big = UINT64_C(9007199254740993); /* no double holds it */
    char key[80];
    dibs_value value;

    (void)state;
    CHECK(DIBS_OK, dibs_guard_admit_shared(cl, name, 33, 0, err));
    CHECK(DIBS_OK, dibs_guard_admit_shared(other, name, big, 0, err));
    CHECK(DIBS_STALE, dibs_guard_admit_shared(cl, name, big - 1, 0, err));
    CHECK(DIBS_OK, dibs_guard_admit_shared(cl, name, big, 0, err));
    CHECK(DIBS_OK, dibs_guard_admit_shared(cl, name, UINT64_MAX, 0, err));
    CHECK(DIBS_STALE,
          dibs_guard_admit_shared(other, name, UINT64_MAX - 1, 0, err));
    snprintf(key, sizeof(key), "fence:%s", name);
    CHECK(DIBS_OK, dibs_state_get(cl, key, &value, err));
    assert_string_equal((char *)value.data, "18446744073709551615");
    assert_true(value.expires_ms == -1);
    dibs_value_free(&value);
    dibs_close(other);
    dibs_close(cl);
}

static void the_store_forgets_after_a_while(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    char key[80];
    dibs_value value;

    (void)state;
    snprintf(key, sizeof(key), "fence:%s", name);
    CHECK(DIBS_OK, dibs_guard_admit_shared(cl, name, 33, 3600000, err));
    CHECK(DIBS_OK, dibs_guard_admit_shared(cl, name, 33, 7200000, err));
    CHECK(DIBS_OK, dibs_state_get(cl, key, &value, err));
    assert_in_range(value.expires_ms, 3600001, 7200000);
    dibs_value_free(&value);
    CHECK(DIBS_OK, dibs_guard_admit_shared(cl, name, 33, 0, err));
    CHECK(DIBS_OK, dibs_state_get(cl, key, &value, err));
    assert_true(value.expires_ms == -1);
    dibs_value_free(&value);
    dibs_close(cl);
}

static void what_is_no_fence_is_refused(void **state)
{
    const char *const texts[] = {
        "", "x", "-1", " 5", "5x", "+5", "18446744073709551616"};
    dibs_client *cl = core_open();
    const char *name = core_name();
    char key[80], text[300];

    (void)state;
    snprintf(key, sizeof(key), "fence:%s", name);
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        CHECK(DIBS_OK, dibs_state_set(cl, key, texts[i], strlen(texts[i]), 0,
                                      NULL, err));
        CHECK(DIBS_INVALID, dibs_guard_admit_shared(cl, name, 5, 0, err));
    }
    memset(text, 'n', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    CHECK(DIBS_INVALID, dibs_guard_admit_shared(cl, text, 5, 0, err));
    CHECK(DIBS_INVALID, dibs_guard_admit_shared(cl, "", 5, 0, err));
    CHECK(DIBS_INVALID, dibs_guard_admit_shared(cl, NULL, 5, 0, err));
    CHECK(DIBS_INVALID, dibs_guard_admit_shared(cl, name, 0, 0, err));
    CHECK(DIBS_INVALID, dibs_guard_admit_shared(cl, name, 5, -1, err));
    CHECK(DIBS_INVALID, dibs_guard_admit_shared(NULL, name, 5, 0, err));
    dibs_close(cl);
}

typedef struct shared_guard {
    dibs_client *cl;
    const char *name;
    uint64_t first;
} shared_guard;

enum { SHARED_FENCES = 40 };

static void *offer_shared(void *arg)
{
    const shared_guard *sg = arg;

    for (uint64_t i = 0; i < SHARED_FENCES; i++) {
        dibs_status rc =
            dibs_guard_admit_shared(sg->cl, sg->name, sg->first + i * THREADS,
                                    0, NULL);

        if (pace_explains(rc))
            MISSED("an admission is %s", dibs_status_name(rc));
        if (rc != DIBS_OK && rc != DIBS_STALE)
            return arg;
    }
    return NULL;
}

static void the_highest_wins_in_the_store(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    shared_guard guards[THREADS];
    pthread_t threads[THREADS];
    const uint64_t highest = (uint64_t)THREADS * SHARED_FENCES;
    void *result;

    (void)state;
    for (int i = 0; i < THREADS; i++) {
        guards[i] = (shared_guard){cl, name, (uint64_t)i + 1};
        assert_int_equal(pthread_create(&threads[i], NULL, offer_shared,
                                        &guards[i]),
                         0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_null(result);
    }
    CHECK(DIBS_STALE, dibs_guard_admit_shared(cl, name, highest - 1, 0, err));
    CHECK(DIBS_OK, dibs_guard_admit_shared(cl, name, highest, 0, err));
    dibs_close(cl);
}

int core_guard_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(admits_what_is_not_older),
        cmocka_unit_test(says_which_was_higher),
        cmocka_unit_test(guards_a_lock),
        cmocka_unit_test(threads_see_one_highest),
        cmocka_unit_test(the_store_remembers),
        cmocka_unit_test(the_store_forgets_after_a_while),
        cmocka_unit_test(what_is_no_fence_is_refused),
        cmocka_unit_test(the_highest_wins_in_the_store),
    };

    return cmocka_run_group_tests_name("guard", tests, NULL, NULL);
}
