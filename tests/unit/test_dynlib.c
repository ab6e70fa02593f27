/* test_dynlib.c - loading a driver, and what is said when there is none. */
/* SPDX-License-Identifier: MIT */
#include "base/dynlib.h"
#include "unit.h"
#include <stdlib.h>
#include <string.h>

static void slots_are_filled(void **state)
{
    int (*magnitude)(int) = NULL;
    void *slots[2] = {NULL, NULL};
    dibsx_dynlib_call calls[] = {{"abs", &slots[0]}, {"strlen", &slots[1]}};
    dibs_error err;

    (void)state;
    assert_int_equal(dibsx_dynlib_load("libc.so.6", "libc6", calls, 2, &err),
                     DIBS_OK);
    assert_non_null(slots[1]);
    memcpy(&magnitude, &slots[0], sizeof(magnitude));
    assert_int_equal(magnitude(-7), 7);
}

static void loading_twice_gives_the_same(void **state)
{
    void *slots[2] = {NULL, NULL};
    dibsx_dynlib_call first = {"strlen", &slots[0]};
    dibsx_dynlib_call second = {"strlen", &slots[1]};

    (void)state;
    assert_int_equal(dibsx_dynlib_load("libc.so.6", "libc6", &first, 1, NULL),
                     DIBS_OK);
    assert_int_equal(dibsx_dynlib_load("libc.so.6", "libc6", &second, 1, NULL),
                     DIBS_OK);
    assert_ptr_equal(slots[0], slots[1]);
}

static void a_missing_library_names_the_package(void **state)
{
    dibs_error err;

    (void)state;
    assert_int_equal(dibsx_dynlib_load("libdibs-absent.so.9", "libabsent9",
                                       NULL, 0, &err),
                     DIBS_UNAVAIL);
    assert_int_equal(err.status, DIBS_UNAVAIL);
    assert_non_null(strstr(err.message, "libdibs-absent.so.9"));
    assert_non_null(strstr(err.message, "install the package libabsent9"));
    assert_int_equal(dibsx_dynlib_load("libdibs-absent.so.9", "libabsent9",
                                       NULL, 0, NULL),
                     DIBS_UNAVAIL);
}

static void a_missing_symbol_names_the_package(void **state)
{
    void *slots[2] = {NULL, NULL};
    dibsx_dynlib_call calls[] = {{"strlen", &slots[0]},
                                 {"dibs_absent_symbol", &slots[1]}};
    dibs_error err;

    (void)state;
    assert_int_equal(dibsx_dynlib_load("libc.so.6", "libc6", calls, 2, &err),
                     DIBS_UNAVAIL);
    assert_non_null(strstr(err.message, "dibs_absent_symbol"));
    assert_non_null(strstr(err.message, "libc6"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slots_are_filled),
        cmocka_unit_test(loading_twice_gives_the_same),
        cmocka_unit_test(a_missing_library_names_the_package),
        cmocka_unit_test(a_missing_symbol_names_the_package),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
