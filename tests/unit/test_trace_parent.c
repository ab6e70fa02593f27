/* test_trace_parent.c - headers `traceparent` that may stand in the log, and others. */
/* SPDX-License-Identifier: MIT */
#include "serve/trace_parent.h"
#include "unit.h"

#define TRACE  "4bf92f3577b34da6a3ce929d0e0e4736"
#define PARENT "00f067aa0ba902b7"

static void whole_ones_are_kept(void **state)
{
    (void)state;
    assert_true(dibs__trace_parent_ok("00-" TRACE "-" PARENT "-01"));
    assert_true(dibs__trace_parent_ok("00-" TRACE "-" PARENT "-00"));
    assert_true(dibs__trace_parent_ok("00-" TRACE "-" PARENT "-ff"));
}

static void others_are_not(void **state)
{
    static const char *const bad[] = {
        NULL,
        "",
        "00",
        "00-",
        "00-" TRACE "-" PARENT,
        "00-" TRACE "-" PARENT "-",
        "00-" TRACE "-" PARENT "-1",
        "00-" TRACE "-" PARENT "-011",
        "00-" TRACE "-" PARENT "-01-more",
        "00-" TRACE "-" PARENT "-0G",
        "01-" TRACE "-" PARENT "-01",
        "ff-" TRACE "-" PARENT "-01",
        "00_" TRACE "-" PARENT "-01",
        "00-" TRACE "_" PARENT "-01",
        "00-" TRACE "-" PARENT "_01",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-" PARENT "-01",
        "00-00000000000000000000000000000000-" PARENT "-01",
        "00-" TRACE "-0000000000000000-01",
        "00-" TRACE "0-" PARENT "-01",
        "00-4bf92f3577b34da6a3ce929d0e0e473-" PARENT "0-01",
        "00-4bf92f3577b34da6 3ce929d0e0e4736-" PARENT "-01",
        "00-" TRACE "-00f067aa0ba902b\n-01",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        if (dibs__trace_parent_ok(bad[i]))
            fail_msg("kept: %s", bad[i] ? bad[i] : "NULL");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_ones_are_kept),
        cmocka_unit_test(others_are_not),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
