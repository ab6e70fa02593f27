/* test_cron_peers.c - mistakes that others have reported of their schedulers, with the
 * expressions of the reports. docs/track-record.md names them. */
/* SPDX-License-Identifier: MIT */
#include "check.h"
#include "jobs/cron.h"
#include "jobs/moment.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static dibs__zone *open_zone(const char *name)
{
    dibs__zone *zone = NULL;

    CHECK(DIBS_OK, dibs__zone_open(name, &zone, err));
    return zone;
}

static int64_t read_moment(const char *text)
{
    dibs__zone *utc = open_zone("UTC");
    int64_t at = 0;

    assert_true(dibs__moment_parse(text, utc, &at));
    dibs__zone_free(utc);
    return at;
}

/* The ticks after a moment are these, up to the NULL, and so are those before the
 * last, backwards. */
static void expect_ticks(const char *text, const char *name, const char *after,
                         const char *const *expected)
{
    dibs__zone *zone = open_zone(name);
    int64_t at = read_moment(after);
    dibs__tick tick;
    dibs__cron cron;
    int column, i;

    CHECK(DIBS_OK, dibs__cron_parse(text, &cron, &column, err));
    for (i = 0; expected[i]; i++) {
        assert_true(dibs__cron_next(&cron, zone, at, &tick));
        assert_true(tick.at > at);
        at = tick.at;
        if (at != read_moment(expected[i]))
            fail_msg("%s in %s: tick %d is not at %s", text, name, i + 1,
                     expected[i]);
    }
    while (--i > 0) {
        assert_true(dibs__cron_prev(&cron, zone, at, &tick));
        at = tick.at;
        assert_int_equal(at, read_moment(expected[i - 1]));
    }
    dibs__zone_free(zone);
}

#define TICKS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void a_daily_job_runs_once_when_clocks_go_back(void **state)
{
    (void)state;
    expect_ticks("0 2 * * *", "Europe/Berlin", "2023-10-28T12:00:00Z",
                 TICKS("2023-10-29T00:00:00Z", "2023-10-30T01:00:00Z"));
    expect_ticks("30 1 * * *", "America/New_York", "2026-10-31T12:00:00Z",
                 TICKS("2026-11-01T05:30:00Z", "2026-11-02T06:30:00Z"));
    /* Half an hour comes twice. */
    expect_ticks("45 1 * * *", "Australia/Lord_Howe", "2026-04-04T00:00:00Z",
                 TICKS("2026-04-04T14:45:00Z", "2026-04-05T15:15:00Z"));
    expect_ticks("0 8 * * 1", "Europe/Berlin", "2017-10-23T12:00:00Z",
                 TICKS("2017-10-30T07:00:00Z", "2017-11-06T07:00:00Z"));
}

static void a_daily_job_runs_when_clocks_go_forward(void **state)
{
    (void)state;
    expect_ticks("0 2 * * *", "America/New_York", "2017-03-11T12:00:00Z",
                 TICKS("2017-03-12T07:00:00Z", "2017-03-13T06:00:00Z"));
    /* The rest of the day is as ever. */
    expect_ticks("30 2/4 * * *", "Australia/Sydney", "2019-10-05T14:00:00Z",
                 TICKS("2019-10-05T16:00:00Z", "2019-10-05T19:30:00Z",
                       "2019-10-05T23:30:00Z"));
    expect_ticks("0 14 * * *", "America/Los_Angeles", "2016-03-12T22:01:00Z",
                 TICKS("2016-03-13T21:00:00Z", "2016-03-14T21:00:00Z"));
}

static void no_hour_is_silent_when_clocks_go_back(void **state)
{
    dibs__zone *zone = open_zone("Australia/Sydney");
    int64_t at = read_moment("2018-03-31T14:59:00Z");
    dibs__tick tick;
    dibs__cron cron;
    int column;

    (void)state;
    CHECK(DIBS_OK, dibs__cron_parse("* * * * *", &cron, &column, err));
    for (int i = 0; i < 180; i++) {
        assert_true(dibs__cron_next(&cron, zone, at, &tick));
        assert_int_equal(tick.at, at + 60);
        at = tick.at;
    }
    dibs__zone_free(zone);
}

static void a_gap_at_midnight_ends(void **state)
{
    (void)state;
    expect_ticks("0 0 * * 0", "America/Santiago", "2022-08-21T12:00:00Z",
                 TICKS("2022-08-28T04:00:00Z", "2022-09-04T04:00:00Z",
                       "2022-09-11T04:00:00Z", "2022-09-18T03:00:00Z"));
    expect_ticks("0 6 * * *", "America/Santiago", "2018-08-12T06:00:00Z",
                 TICKS("2018-08-12T09:00:00Z", "2018-08-13T09:00:00Z"));
}

static void the_next_time_is_always_later(void **state)
{
    (void)state;
    expect_ticks("0 */1 * * *", "America/Los_Angeles", "2020-03-08T08:30:00Z",
                 TICKS("2020-03-08T09:00:00Z", "2020-03-08T10:00:00Z",
                       "2020-03-08T11:00:00Z"));
    /* Within the second pass. */
    expect_ticks("30 1 * * *", "America/New_York", "2026-11-01T06:00:00Z",
                 TICKS("2026-11-02T06:30:00Z"));
}

static void the_zone_of_the_machine_does_not_count(void **state)
{
    (void)state;
    setenv("TZ", "Europe/London", 1);
    tzset();
    expect_ticks("30 1 * * *", "UTC", "2022-10-30T00:00:00Z",
                 TICKS("2022-10-30T01:30:00Z", "2022-10-31T01:30:00Z"));
    unsetenv("TZ");
    tzset();
}

static void what_never_fires_is_refused(void **state)
{
    static const char *const never[] = {"0 0 30 02 *", "0 0 31 4 *",
                                        "0 0 31 2 *"};
    dibs__zone *zone = open_zone("Europe/Berlin");
    dibs__tick tick;
    dibs__cron cron;
    int column;

    (void)state;
    for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++)
        CHECK(DIBS_INVALID, dibs__cron_parse(never[i], &cron, &column, err));
    /* What will not fire again says so, instead of a time that is past. */
    CHECK(DIBS_OK,
          dibs__cron_parse("0 * 12,13 16 11 ? 2021", &cron, &column, err));
    assert_false(dibs__cron_next(&cron, zone,
                                 read_moment("2021-12-03T09:24:42Z"), &tick));
    dibs__zone_free(zone);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_daily_job_runs_once_when_clocks_go_back),
        cmocka_unit_test(a_daily_job_runs_when_clocks_go_forward),
        cmocka_unit_test(no_hour_is_silent_when_clocks_go_back),
        cmocka_unit_test(a_gap_at_midnight_ends),
        cmocka_unit_test(the_next_time_is_always_later),
        cmocka_unit_test(the_zone_of_the_machine_does_not_count),
        cmocka_unit_test(what_never_fires_is_refused),
    };

    setenv("TZDIR", JOBS_ZONES, 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
