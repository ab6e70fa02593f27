/* test_alloc.c - allocation: zeroing, overflow, and the failure hook. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "unit.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void storage_is_zeroed(void **state)
{
    unsigned char *block = dibsx_zalloc(4096);
    unsigned char sum = 0;

    (void)state;
    assert_non_null(block);
    for (size_t i = 0; i < 4096; i++)
        sum |= block[i];
    assert_int_equal(sum, 0);
    dibsx_free(block);
}

static void overflow_gives_null(void **state)
{
    char *block = dibsx_zalloc(1);

    (void)state;
    assert_non_null(block);
    assert_null(dibsx_zalloc_n(SIZE_MAX / 2, 3));
    assert_null(dibsx_realloc_n(block, SIZE_MAX / 2, 3));
    block[0] = 'x'; /* still ours */
    dibsx_free(block);
}

static void nothing_is_not_a_failure(void **state)
{
    void *none = dibsx_zalloc(0);
    void *none_of_some = dibsx_zalloc_n(0, 8);
    void *shrunk = dibsx_realloc_n(dibsx_zalloc(8), 0, 8);

    (void)state;
    assert_non_null(none);
    assert_non_null(none_of_some);
    assert_non_null(shrunk);
    dibsx_free(none);
    dibsx_free(none_of_some);
    dibsx_free(shrunk);
    dibsx_free(NULL);
}

static void realloc_keeps_the_content(void **state)
{
    char *text = dibsx_strdup("abc");

    (void)state;
    assert_non_null(text);
    text = dibsx_realloc_n(text, 1000, 4);
    assert_non_null(text);
    assert_string_equal(text, "abc");
    dibsx_free(text);
}

static void strdup_of_null_is_null(void **state)
{
    unsigned long before = dibsx_alloc_count();

    (void)state;
    assert_null(dibsx_strdup(NULL));
    assert_int_equal(dibsx_alloc_count(), before);
}

static void the_nth_fails_once(void **state)
{
    void *blocks[4];

    (void)state;
    dibsx_alloc_fail_at(3);
    blocks[0] = dibsx_zalloc(1);
    blocks[1] = dibsx_strdup("x");
    blocks[2] = dibsx_realloc_n(NULL, 1, 1);
    blocks[3] = dibsx_zalloc_n(1, 1);
    assert_int_equal(dibsx_alloc_count(), 4);
    dibsx_alloc_fail_at(0);
    assert_int_equal(dibsx_alloc_count(), 0);
    assert_non_null(blocks[0]);
    assert_non_null(blocks[1]);
    assert_null(blocks[2]);
    assert_non_null(blocks[3]);
    for (size_t i = 0; i < COUNT_OF(blocks); i++)
        dibsx_free(blocks[i]);
}

static void a_failed_realloc_leaves_the_old(void **state)
{
    char *text = dibsx_strdup("kept");

    (void)state;
    dibsx_alloc_fail_at(1);
    assert_null(dibsx_realloc_n(text, 100, 1));
    dibsx_alloc_fail_at(0);
    assert_string_equal(text, "kept");
    dibsx_free(text);
}

enum { THREADS = 4, ROUNDS = 5000 };

static void *count_failures(void *arg)
{
    atomic_int *failures = arg;

    for (int i = 0; i < ROUNDS; i++) {
        void *block = dibsx_zalloc(16);

        if (!block)
            atomic_fetch_add(failures, 1);
        dibsx_free(block);
    }
    return NULL;
}

static void threads_together_see_one_failure(void **state)
{
    pthread_t threads[THREADS];
    atomic_int failures = 0;

    (void)state;
    dibsx_alloc_fail_at(THREADS * ROUNDS / 2);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count_failures,
                                        &failures),
                         0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(dibsx_alloc_count(), THREADS * ROUNDS);
    dibsx_alloc_fail_at(0);
    assert_int_equal(atomic_load(&failures), 1);
}

/* Whether the kernel's list of mappings says so of the one with `at` in it. */
static bool has_flag(const void *at, const char *flag)
{
    FILE *maps = fopen("/proc/self/smaps", "r");
    bool here = false, found = false;
    char line[512];

    assert_non_null(maps);
    while (fgets(line, sizeof(line), maps)) {
        unsigned long from, to;

        if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
            here = from <= (uintptr_t)at && (uintptr_t)at < to;
        else if (here && strncmp(line, "VmFlags:", 8) == 0)
            found = strstr(line, flag) != NULL;
    }
    fclose(maps);
    return found;
}

static void a_secret_is_in_no_core_file(void **state)
{
    char *secret = dibsx_secret_dup("swordfish");

    (void)state;
    assert_string_equal(secret, "swordfish");
    assert_true(has_flag(secret, " dd"));
    assert_false(has_flag(state, " dd"));
    dibsx_secret_free(secret);
    dibsx_secret_free(NULL);
    assert_null(dibsx_secret_dup(NULL));
}

static void a_secret_is_not_for_children(void **state)
{
    char *secret = dibsx_secret_dup("swordfish");
    int status = -1;
    pid_t pid = fork();

    (void)state;
    if (pid == 0) {
        bool gone = secret[0] == '\0';

        dibsx_secret_free(secret);
        _exit(gone ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_string_equal(secret, "swordfish");
    dibsx_secret_free(secret);
}

static void a_secret_may_fail_as_all_else(void **state)
{
    (void)state;
    dibsx_alloc_fail_at(1);
    assert_null(dibsx_secret_dup("swordfish"));
    dibsx_alloc_fail_at(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(storage_is_zeroed),
        cmocka_unit_test(overflow_gives_null),
        cmocka_unit_test(nothing_is_not_a_failure),
        cmocka_unit_test(realloc_keeps_the_content),
        cmocka_unit_test(strdup_of_null_is_null),
        cmocka_unit_test(the_nth_fails_once),
        cmocka_unit_test(a_failed_realloc_leaves_the_old),
        cmocka_unit_test(threads_together_see_one_failure),
        cmocka_unit_test(a_secret_is_in_no_core_file),
        cmocka_unit_test(a_secret_is_not_for_children),
        cmocka_unit_test(a_secret_may_fail_as_all_else),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
