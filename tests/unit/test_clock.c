/* test_clock.c - clocks, saturating arithmetic, durations. */
/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "base/rand.h"
#include "unit.h"
#include <stdio.h>
#include <string.h>
#include <time.h>

static dibsx_nsec nsec_of(clockid_t clock)
{
    struct timespec ts;

    assert_int_equal(clock_gettime(clock, &ts), 0);
    return ts.tv_sec * DIBSX_SEC + ts.tv_nsec;
}

static void now_is_the_boot_clock(void **state)
{
    dibsx_nsec before = nsec_of(CLOCK_BOOTTIME);
    dibsx_nsec now = dibsx_now();
    dibsx_nsec after = nsec_of(CLOCK_BOOTTIME);

    (void)state;
    assert_in_range(now, before, after);
    assert_true(dibsx_now() >= now);
}

static void wall_time_is_in_microseconds(void **state)
{
    int64_t before = nsec_of(CLOCK_REALTIME) / 1000;
    int64_t wall_us = dibsx_wall_us();
    int64_t after = nsec_of(CLOCK_REALTIME) / 1000;

    (void)state;
    assert_in_range(wall_us, before, after);
}

static void after_saturates(void **state)
{
    (void)state;
    assert_int_equal(dibsx_after_ms(5, 0), 5);
    assert_int_equal(dibsx_after_ms(5, 2), 5 + 2 * DIBSX_MS);
    assert_int_equal(dibsx_after_ms(5, -1), DIBSX_NEVER);
    assert_int_equal(dibsx_after_ms(5, INT64_MIN), DIBSX_NEVER);
    assert_int_equal(dibsx_after_ms(5, INT64_MAX), DIBSX_NEVER);
    assert_int_equal(dibsx_after_ms(5, INT64_MAX / DIBSX_MS + 1), DIBSX_NEVER);
    assert_int_equal(dibsx_after_ms(DIBSX_NEVER - 5, 1), DIBSX_NEVER);
    assert_int_equal(dibsx_after_ms(DIBSX_NEVER, 0), DIBSX_NEVER);
    assert_int_equal(dibsx_after_ms(-3 * DIBSX_MS, 1), 0);
    assert_int_equal(dibsx_after_ms(INT64_MIN, INT64_MAX / DIBSX_MS), 0);
    assert_int_equal(dibsx_after_ms(-3 * DIBSX_MS, 4), DIBSX_MS);
}

static void waits_round_up(void **state)
{
    (void)state;
    assert_int_equal(dibsx_wait_ms(100, 100), 0);
    assert_int_equal(dibsx_wait_ms(100, 101), 0);
    assert_int_equal(dibsx_wait_ms(101, 100), 1);
    assert_int_equal(dibsx_wait_ms(DIBSX_MS, 0), 1);
    assert_int_equal(dibsx_wait_ms(DIBSX_MS + 1, 0), 2);
    assert_int_equal(dibsx_wait_ms(DIBSX_NEVER, 7), -1);
    assert_int_equal(dibsx_wait_ms(DIBSX_NEVER - 1, 0),
                     INT64_MAX / DIBSX_MS + 1);
    assert_true(dibsx_wait_ms(DIBSX_NEVER - 1, INT64_MIN) > 0);
}

static void validity_rounds_down(void **state)
{
    (void)state;
    assert_int_equal(dibsx_valid_ms(100, 100), 0);
    assert_int_equal(dibsx_valid_ms(100, 101), 0);
    assert_int_equal(dibsx_valid_ms(DIBSX_MS - 1, 0), 0);
    assert_int_equal(dibsx_valid_ms(DIBSX_MS, 0), 1);
    assert_int_equal(dibsx_valid_ms(2 * DIBSX_MS - 1, 0), 1);
    assert_int_equal(dibsx_valid_ms(DIBSX_NEVER, 0), INT64_MAX / DIBSX_MS);
    assert_int_equal(dibsx_valid_ms(INT64_MIN, INT64_MAX), 0);
    assert_true(dibsx_valid_ms(INT64_MAX, INT64_MIN) > 0);
}

static void durations_are_read(void **state)
{
    static const struct {
        const char *text;
        int64_t ms;
    } cases[] = {
        {"0", 0},
        {"0ms", 0},
        {"500ms", 500},
        {"30s", 30000},
        {"30", 30000},
        {"0.25", 250},
        {"2m", 120000},
        {"1h", 3600000},
        {"1d", 86400000},
        {"1.5s", 1500},
        {"0.001s", 1},
        {"1.500000000000000000000s", 1500},
        {"1h30m", 5400000},
        {"1.5h30m", 7200000},
        {"1d2h3m4s5ms", 93784005},
        {"3h02m", 10920000},
        {"90m", 5400000},
        {"0.0009765625d", 84375},
        {"0000000000000000000000001s", 1000},
        {"9223372036854775807ms", INT64_MAX},
        {"9223372036854775.807s", INT64_MAX},
        {"106751991167d", INT64_C(9223372036828800000)},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        int64_t ms = -1;

        if (!dibsx_duration_parse(cases[i].text, &ms) || ms != cases[i].ms)
            fail_msg("\"%s\" was read as %lld ms", cases[i].text,
                     (long long)ms);
    }
}

static void other_texts_are_refused(void **state)
{
    static const char *const cases[] = {
        "",
        " ",
        "s",
        "ms",
        "-1s",
        "+1s",
        "--1",
        "1 s",
        " 1s",
        "1s ",
        "1s\n",
        "250us",
        "1ns",
        "1w",
        "1y",
        "1S",
        "1H",
        "1Ms",
        "1sec",
        "1mss",
        "1sm",
        "1m1h",
        "1s1s",
        "1ms1s",
        "1h30",
        "30 1h",
        "1h 30m",
        ".5s",
        "1.s",
        "1.",
        ".",
        "1..5s",
        "1.5.5s",
        "1,5s",
        "1e3s",
        "0x10s",
        "inf",
        "nan",
        "0.5ms",
        "0.0001s",
        "1.0005s",
        "0.00000000001d",
        "9223372036854775808ms",
        "9223372036854775.808s",
        "9223372036854776s",
        "106751991168d",
        "18446744073709551616",
        "9223372036854775807d",
        "106751991167d9223372036854775807ms",
        "99999999999999999999999999999999999999999",
        "1h\x80",
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        int64_t ms = 42;

        if (dibsx_duration_parse(cases[i], &ms))
            fail_msg("\"%s\" was read as %lld ms", cases[i], (long long)ms);
        assert_int_equal(ms, 42);
    }
}

static void durations_are_written_for_people(void **state)
{
    static const struct {
        int64_t ms;
        const char *text;
    } cases[] = {
        {0, "0ms"},
        {250, "250ms"},
        {999, "999ms"},
        {1000, "1s"},
        {1099, "1s"},
        {1100, "1.1s"},
        {4200, "4.2s"},
        {59999, "59.9s"},
        {60000, "1m"},
        {65000, "1m05s"},
        {250000, "4m10s"},
        {3599999, "59m59s"},
        {3600000, "1h"},
        {10920000, "3h02m"},
        {86399999, "23h59m"},
        {86400000, "1d"},
        {97200000, "1d03h"},
        {-1500, "-1.5s"},
        {INT64_MAX, "106751991167d07h"},
        {INT64_MIN, "-106751991167d07h"},
    };
    char text[32];

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        dibsx_duration_text(cases[i].ms, text, sizeof(text));
        assert_string_equal(text, cases[i].text);
    }
}

static void a_short_buffer_cuts(void **state)
{
    char text[4] = "xxx";

    (void)state;
    dibsx_duration_text(250, text, sizeof(text));
    assert_string_equal(text, "250");
    dibsx_duration_text(250000, text, 1);
    assert_string_equal(text, "");
}

/* What is written can be read, loses at most what is not shown, and is written
 * the same again. */
static void what_is_written_can_be_read(void **state)
{
    dibsx_prng prng = {.state = 1};

    (void)state;
    for (int i = 0; i < 20000; i++) {
        int64_t ms = (int64_t)(dibsx_prng_next(&prng) >>
                               (1 + dibsx_prng_below(&prng, 63)));
        int64_t shown_ms = ms < 1000       ? 1
                           : ms < 60000    ? 100
                           : ms < 3600000  ? 1000
                           : ms < 86400000 ? 60000
                                           : 3600000;
        int64_t back_ms = -1;
        char text[32], again[32];

        dibsx_duration_text(ms, text, sizeof(text));
        assert_true(dibsx_duration_parse(text, &back_ms));
        assert_int_equal(back_ms, ms - ms % shown_ms);
        dibsx_duration_text(back_ms, again, sizeof(again));
        assert_string_equal(again, text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(now_is_the_boot_clock),
        cmocka_unit_test(wall_time_is_in_microseconds),
        cmocka_unit_test(after_saturates),
        cmocka_unit_test(waits_round_up),
        cmocka_unit_test(validity_rounds_down),
        cmocka_unit_test(durations_are_read),
        cmocka_unit_test(other_texts_are_refused),
        cmocka_unit_test(durations_are_written_for_people),
        cmocka_unit_test(a_short_buffer_cuts),
        cmocka_unit_test(what_is_written_can_be_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
