/* lock.c - holding and giving back, by handle, by function, by block. */
/* SPDX-License-Identifier: MIT */
#include "core.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static void held_and_given_back(void **state)
{
    dibs_client *cl = core_open();
    dibs_lock *lock =
        core_lock(cl, core_name(), DIBS_LOCK_OPTS(.ttl_ms = 5000));
    char owner[DIBS_OWNER_SIZE];
    uint64_t fence;

    (void)state;
    assert_int_equal(dibs_lock_state_get(lock), DIBS_LOCK_FREE);
    assert_int_equal(dibs_lock_fence(lock), 0);
    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    fence = dibs_lock_fence(lock);
    assert_true(fence > 0);
    assert_true(dibs_lock_valid_ms(lock) <= 5000);
    IN_TIME(dibs_lock_valid_ms(lock) >= 4000);
    IN_TIME(dibs_lock_state_get(lock) == DIBS_LOCK_HELD);
    dibs_lock_owner(lock, owner);
    assert_int_equal(strlen(owner), DIBS_OWNER_SIZE - 1);
    CHECK(DIBS_INVALID, dibs_lock_acquire(lock, err));
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    assert_int_equal(dibs_lock_valid_ms(lock), 0);
    assert_int_equal(dibs_lock_fence(lock), 0);
    CHECK(DIBS_LOST, dibs_lock_release(lock, err));
    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    assert_true(dibs_lock_fence(lock) > fence);
    dibs_lock_free(lock);
    dibs_close(cl);
}

static void excludes_another_handle(void **state)
{
    dibs_client *cl = core_open();
    dibs_client *other = core_open();
    const char *name = core_name();
    dibs_lock *a = core_lock(cl, name, NULL);
    dibs_lock *b = core_lock(other, name, NULL);
    dibs_lock *c = core_lock(cl, name, NULL);

    (void)state;
    CHECK(DIBS_OK, dibs_lock_try(a, err));
    CHECK(DIBS_BUSY, dibs_lock_try(b, err));
    CHECK(DIBS_BUSY, dibs_lock_try(c, err));
    CHECK(DIBS_OK, dibs_lock_release(a, err));
    CHECK(DIBS_OK, dibs_lock_try(b, err));
    CHECK(DIBS_BUSY, dibs_lock_try(a, err));
    dibs_lock_free(b);
    CHECK(DIBS_OK, dibs_lock_try(c, err));
    dibs_lock_free(a);
    dibs_lock_free(c);
    dibs_close(other);
    dibs_close(cl);
}

static void prefixes_keep_names_apart(void **state)
{
    dibs_client *cl = NULL;
    dibs_client *other = core_open();
    const char *name = core_name();
    char full[128] = "workflow:";
    dibs_lock *a, *b, *c;

    (void)state;
    strncat(full, name, sizeof(full) - strlen(full) - 1);
    CHECK(DIBS_OK, dibs_open(core_url, DIBS_CLIENT_OPTS(.prefix = "workflow:"),
                             &cl, err));
    a = core_lock(cl, name, NULL);
    b = core_lock(other, name, NULL);
    c = core_lock(other, full, NULL);
    CHECK(DIBS_OK, dibs_lock_try(a, err));
    CHECK(DIBS_OK, dibs_lock_try(b, err));
    CHECK(DIBS_BUSY, dibs_lock_try(c, err));
    dibs_lock_free(a);
    dibs_lock_free(b);
    dibs_lock_free(c);
    dibs_close(other);
    dibs_close(cl);
}

static void a_lease_that_was_left_is_adopted(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    dibs_lock *a = core_lock(cl, name, DIBS_LOCK_OPTS(.ttl_ms = 20000));
    dibs_lock *b = core_lock(cl, name, DIBS_LOCK_OPTS(.ttl_ms = 20000));
    char owner[DIBS_OWNER_SIZE];
    uint64_t fence;

    (void)state;
    CHECK(DIBS_OK, dibs_lock_try(a, err));
    dibs_lock_owner(a, owner);
    fence = dibs_lock_fence(a);
    dibs_lock_leave(a);
    assert_int_equal(dibs_lock_fence(a), 0);
    CHECK(DIBS_BUSY, dibs_lock_try(a, err));
    CHECK(DIBS_LOST, dibs_lock_adopt(b, owner, fence + 1, err));
    CHECK(DIBS_INVALID, dibs_lock_adopt(b, "short", fence, err));
    CHECK(DIBS_INVALID, dibs_lock_adopt(b, owner, 0, err));
    CHECK(DIBS_OK, dibs_lock_adopt(b, owner, fence, err));
    CHECK(DIBS_INVALID, dibs_lock_adopt(b, owner, fence, err));
    assert_int_equal(dibs_lock_fence(b), fence);
    CHECK(DIBS_OK, dibs_lock_release(b, err));
    CHECK(DIBS_OK, dibs_lock_try(a, err));
    dibs_lock_free(a);
    dibs_lock_free(b);
    dibs_close(cl);
}

static void note_call(dibs_lock *lock, void *arg)
{
    assert_true(dibs_lock_fence(lock) > 0);
    ++*(int *)arg;
}

static void with_lock_runs_or_skips(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    dibs_lock *lock = core_lock(cl, name, NULL);
    int calls = 0;

    (void)state;
    CHECK(DIBS_OK, dibs_with_lock(cl, name, NULL, note_call, &calls, err));
    assert_int_equal(calls, 1);
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    CHECK(DIBS_BUSY, dibs_with_lock(cl, name, NULL, note_call, &calls, err));
    CHECK(DIBS_INVALID, dibs_with_lock(cl, "", NULL, note_call, &calls, err));
    assert_int_equal(calls, 1);
    dibs_lock_free(lock);
    dibs_close(cl);
}

static const char *same_name;

static void break_it(dibs_lock *lock, void *arg)
{
    (void)lock;
    CHECK(DIBS_OK, dibs_lease_break(arg, same_name, 0, "test", NULL, err));
}

static void with_lock_tells_of_a_loss(void **state)
{
    dibs_client *cl = core_open();

    (void)state;
    same_name = core_name();
    CHECK(DIBS_LOST, dibs_with_lock(cl, same_name, NULL, break_it, cl, err));
    dibs_close(cl);
}

static int leave_early(dibs_client *cl, const char *name)
{
    DIBS_WITH_LOCK(cl, name, .ttl_ms = 60000)
    {
        if (dibs_lock_fence(dibs_held) > 0)
            return 1;
    }
    return 0;
}

static void a_block_releases_however_it_is_left(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    dibs_lock *lock = core_lock(cl, name, NULL);
    int ran = 0;

    (void)state;
    IN_TIME(leave_early(cl, name) == 1);
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    DIBS_WITH_LOCK(cl, name, .ttl_ms = 60000)
    {
        ran++;
        break;
    }
    DIBS_WITH_LOCK(cl, name, .ttl_ms = 60000)
    {
        ran++;
        if (ran == 2)
            continue;
        ran = 100;
    }
    assert_true(ran <= 2);
    IN_TIME(ran == 2);
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    dibs_lock_free(lock);
    dibs_close(cl);
}

typedef struct counter {
    dibs_client *cl;
    const char *name;
    int value; /* not atomic: the lock is what guards it */
    int inside;
} counter;

enum { THREADS = 8, TURNS = 25 };

/* Goes on when it was not alone: whose lease was lost says so when it gives back. */
static void *count_up(void *arg)
{
    counter *cn = arg;
    dibs_lock *lock = NULL;
    void *result = NULL;

    if (dibs_lock_new(cn->cl, cn->name,
                      DIBS_LOCK_OPTS(.wait_ms = -1, .ttl_ms = 10000), &lock,
                      NULL) != DIBS_OK)
        return (void *)1;
    for (int i = 0; i < TURNS; i++) {
        dibs_status rc = dibs_lock_acquire(lock, NULL);

        if (pace_explains(rc))
            MISSED("an acquire is %s", dibs_status_name(rc));
        if (rc != DIBS_OK)
            return (void *)2;
        if (__atomic_add_fetch(&cn->inside, 1, __ATOMIC_SEQ_CST) != 1)
            result = (void *)3;
        __atomic_store_n(&cn->value,
                         __atomic_load_n(&cn->value, __ATOMIC_RELAXED) + 1,
                         __ATOMIC_RELAXED);
        __atomic_sub_fetch(&cn->inside, 1, __ATOMIC_SEQ_CST);
        rc = dibs_lock_release(lock, NULL);
        if (pace_explains(rc))
            MISSED("a release is %s", dibs_status_name(rc));
        if (rc != DIBS_OK)
            return (void *)4;
    }
    dibs_lock_free(lock);
    return result;
}

static void threads_take_turns(void **state)
{
    counter cn = {.cl = core_open(), .name = core_name()};
    pthread_t threads[THREADS];
    void *results[THREADS];

    (void)state;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count_up, &cn), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], &results[i]), 0);
    for (int i = 0; i < THREADS; i++)
        assert_null(results[i]);
    assert_int_equal(cn.value, THREADS * TURNS);
    dibs_close(cn.cl);
}

static bool see_label(const dibs_lease_info *info, void *arg)
{
    (void)arg;
    assert_int_equal(info->holder_count, 1);
    assert_string_equal(info->holders[0].label, "a?\u00e9?");
    return true;
}

/* Neither UTF-8 nor its beginning: stray, cut, overlong, a surrogate, beyond the
 * last character. */
static const char *const not_utf8[] = {"a\xff",        "a\xc3",
                                       "\x80z",        "\xc0\xaf",
                                       "\xed\xa0\x80", "\xf4\x90\x80\x80"};

static void refuses_text(dibs_client *cl, const char *text)
{
    char pair[32];
    const char *const meta[] = {pair, NULL};
    dibs_lock *lock = NULL;
    dibs_client *none = NULL;
    dibs_error why;

    snprintf(pair, sizeof(pair), "key=%s", text);
    assert_status(dibs_lock_new(cl, text, NULL, &lock, &why), DIBS_INVALID);
    assert_non_null(strstr(why.message, "the name is not UTF-8"));
    CHECK(DIBS_INVALID, dibs_lease_show(cl, text, see_label, NULL, err));
    CHECK(DIBS_INVALID, dibs_lease_list(cl, text, see_label, NULL, err));
    CHECK(DIBS_INVALID, dibs_state_set(cl, text, "v", 1, 0, NULL, err));
    CHECK(DIBS_INVALID,
          dibs_lock_new(cl, core_name(), DIBS_LOCK_OPTS(.identity = text),
                        &lock, err));
    assert_status(dibs_lock_new(cl, core_name(), DIBS_LOCK_OPTS(.meta = meta),
                                &lock, &why),
                  DIBS_INVALID);
    assert_non_null(strstr(why.message, "the metadata is not UTF-8"));
    CHECK(DIBS_INVALID,
          dibs_open(core_url, DIBS_CLIENT_OPTS(.prefix = text), &none, err));
    assert_null(lock);
    assert_null(none);
}

static void texts_of_a_client_are_utf8(void **state)
{
    dibs_client *cl = core_open();
    dibs_lock *lock;
    char name[80];

    (void)state;
    for (size_t i = 0; i < COUNT_OF(not_utf8); i++)
        refuses_text(cl, not_utf8[i]);

    snprintf(name, sizeof(name), "%s \u00e9\u20ac\U0001f512", core_name());
    lock = core_lock(cl, name, DIBS_LOCK_OPTS(.label = "a\xff\u00e9\xc3"));
    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    CHECK(DIBS_OK, dibs_lease_show(cl, name, see_label, NULL, err));
    dibs_lock_free(lock);
    dibs_close(cl);
}

int core_lock_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(held_and_given_back),
        cmocka_unit_test(excludes_another_handle),
        cmocka_unit_test(prefixes_keep_names_apart),
        cmocka_unit_test(a_lease_that_was_left_is_adopted),
        cmocka_unit_test(with_lock_runs_or_skips),
        cmocka_unit_test(with_lock_tells_of_a_loss),
        cmocka_unit_test(a_block_releases_however_it_is_left),
        cmocka_unit_test(threads_take_turns),
        cmocka_unit_test(texts_of_a_client_are_utf8),
    };

    return cmocka_run_group_tests_name("lock", tests, NULL, NULL);
}
