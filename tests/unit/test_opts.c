/* test_opts.c - options of callers that were built against another version. */
/* SPDX-License-Identifier: MIT */
#include "base/opts.h"

#include "unit.h"
#include <string.h>

typedef struct options {
    size_t size;
    int first, second;
} options;

static dibs_status copy(options *out, const void *given, dibs_error *err)
{
    memset(out, 0xff, sizeof(*out));
    return dibsx_opts_copy(out, sizeof(*out), given, "SOME_OPTS()", err);
}

static void nothing_given_is_all_zero(void **state)
{
    options out;

    (void)state;
    assert_int_equal(copy(&out, NULL, NULL), DIBS_OK);
    assert_int_equal(out.first, 0);
    assert_int_equal(out.second, 0);
}

static void a_smaller_struct_lacks_the_last_members(void **state)
{
    options given = {.size = offsetof(options, second),
                     .first = 1,
                     .second = 2};
    options out;

    (void)state;
    assert_int_equal(copy(&out, &given, NULL), DIBS_OK);
    assert_int_equal(out.first, 1);
    assert_int_equal(out.second, 0);
}

static void a_larger_struct_is_cut(void **state)
{
    struct {
        options known;
        int newer;
    } given = {{.size = sizeof(given), .first = 1, .second = 2}, 3};
    struct {
        options out;
        int next;
    } room = {.next = 4};

    (void)state;
    assert_int_equal(copy(&room.out, &given, NULL), DIBS_OK);
    assert_int_equal(room.out.second, 2);
    assert_int_equal(room.next, 4);
}

static void a_size_that_is_not_set_is_refused(void **state)
{
    const size_t wrong[] = {0, sizeof(size_t) - 1, 4097, SIZE_MAX};

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        options given = {.size = wrong[i]}, out;
        dibs_error err = {0};

        assert_int_equal(copy(&out, &given, &err), DIBS_INVALID);
        assert_non_null(strstr(err.message, "use SOME_OPTS()"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_given_is_all_zero),
        cmocka_unit_test(a_smaller_struct_lacks_the_last_members),
        cmocka_unit_test(a_larger_struct_is_cut),
        cmocka_unit_test(a_size_that_is_not_set_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
