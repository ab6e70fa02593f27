/* test_fork_page.c - the memory that a fork clears in the child. */
/* SPDX-License-Identifier: MIT */
#include "base/fork_page.h"
#include "unit.h"
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static bool is_zero(const unsigned char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != 0)
            return false;
    return true;
}

/* More than one page, so that its last is cleared too. */
static void a_child_has_zeros_and_its_parent_what_it_wrote(void **state)
{
    const size_t size = 3 * 65536 + 1;
    unsigned char *page = dibsx_fork_page_map(size);
    pid_t child;
    int status = 0;

    (void)state;
    assert_non_null(page);
    assert_true(is_zero(page, size));
    memset(page, 7, size);
    child = fork();
    if (child == 0)
        _exit(is_zero(page, size) ? 0 : 1);
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(page[0], 7);
    assert_int_equal(page[size - 1], 7);
}

static void a_child_of_a_child_has_zeros_again(void **state)
{
    int *page = dibsx_fork_page_map(sizeof(*page));
    pid_t child;
    int status = 0;

    (void)state;
    assert_non_null(page);
    child = fork();
    if (child == 0) {
        pid_t grandchild;

        *page = 1;
        grandchild = fork();
        if (grandchild == 0)
            _exit(*page);
        status = 1;
        (void)waitpid(grandchild, &status, 0);
        _exit(status == 0 && *page == 1 ? 0 : 1);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_has_zeros_and_its_parent_what_it_wrote),
        cmocka_unit_test(a_child_of_a_child_has_zeros_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
