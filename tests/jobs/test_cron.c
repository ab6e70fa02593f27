/* test_cron.c - cron expressions: the tables of ticks and of errors, and rules that
 * they do not show. */
/* SPDX-License-Identifier: MIT */
#include "check.h"
#include "jobs/calendar.h"
#include "jobs/cron.h"
#include "jobs/moment.h"
#include "tsv.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static dibs__zone *open_zone(const char *name)
{
    dibs__zone *zone = NULL;

    CHECK(DIBS_OK, dibs__zone_open(name, &zone, err));
    return zone;
}

static void parse_cron(const char *text, dibs__cron *out)
{
    int column = 0;

    CHECK(DIBS_OK, dibs__cron_parse(text, out, &column, err));
}

static int64_t read_moment(const char *text)
{
    dibs__zone *utc = open_zone("UTC");
    int64_t at = 0;

    if (!dibs__moment_parse(text, utc, &at))
        fail_msg("%s is no moment", text);
    dibs__zone_free(utc);
    return at;
}

static void write_moment(int64_t at, char out[DIBS__MOMENT_SIZE + 1])
{
    dibs__moment_text(at, out);
    memcpy(out + strlen(out), "Z", 2);
}

/* The ticks of a line forwards, and backwards from the last. */
static void check_vector(tsv *row, dibs__cron *cron, const dibs__zone *zone)
{
    int64_t after = read_moment(row->cell[4]), last = after, at;
    char text[DIBS__MOMENT_SIZE + 1];
    dibs__tick tick;
    int count = 0;

    for (; count < 5 && row->cell[5 + count][0]; count++) {
        if (!dibs__cron_next(cron, zone, last, &tick))
            fail_msg("%s: no tick %d", row->cell[0], count + 1);
        write_moment(tick.at, text);
        if (strcmp(text, row->cell[5 + count]) != 0)
            fail_msg("%s: %s in %s after %s: %s, not %s", row->cell[0],
                     row->cell[2], row->cell[3], row->cell[4], text,
                     row->cell[5 + count]);
        last = tick.at;
    }
    if (count < 5)
        assert_false(dibs__cron_next(cron, zone, last, &tick));
    for (at = last + 1; count > 0; count--, at = tick.at) {
        assert_true(dibs__cron_prev(cron, zone, at, &tick));
        write_moment(tick.at, text);
        if (strcmp(text, row->cell[4 + count]) != 0)
            fail_msg("%s: backwards %s, not %s", row->cell[0], text,
                     row->cell[4 + count]);
    }
    assert_true(!dibs__cron_prev(cron, zone, at, &tick) || tick.at <= after);
}

static void ticks_are_those_of_the_table(void **state)
{
    dibs__cron cron;
    int rows = 0;
    tsv row;

    (void)state;
    for (tsv_open(&row, "cron_vectors.tsv"); tsv_next(&row); rows++) {
        dibs__zone *zone = open_zone(row.cell[3]);

        assert_int_equal(row.count, 12);
        parse_cron(row.cell[2], &cron);
        check_vector(&row, &cron, zone);
        dibs__zone_free(zone);
    }
    assert_int_equal(rows, 515);
}

static void mistakes_are_named_with_their_column(void **state)
{
    dibs__cron cron;
    int rows = 0;
    tsv row;

    (void)state;
    for (tsv_open(&row, "cron_errors.tsv"); tsv_next(&row); rows++) {
        dibs_error err = {0};
        int column = 0;

        if (dibs__cron_parse(row.cell[0], &cron, &column, &err) != DIBS_INVALID)
            fail_msg("'%s' was taken", row.cell[0]);
        if (column != strtol(row.cell[1], NULL, 10) ||
            strncmp(err.message, row.cell[2], strlen(row.cell[2])) != 0)
            fail_msg("'%s': %d: %s, not %s: %s", row.cell[0], column,
                     err.message, row.cell[1], row.cell[2]);
    }
    assert_int_equal(rows, 50);
}

static void columns_count_characters(void **state)
{
    static const struct {
        const char *text;
        int column;
    } cases[] = {
        {"  * 24 * * *", 5},           {"\t*\t*\t32 * *", 6},
        {"\xc3\xa4 * * * * 2026", 11}, {"* * * JAN,\xc3\xa4,FEB *", 11},
        {"  @every  90x", 11},         {" @dayly", 2},
        {"* * * * MON#1,TUE#9", 15},
    };
    dibs__cron cron;
    char text[600];
    int column;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        CHECK(DIBS_INVALID,
              dibs__cron_parse(cases[i].text, &cron, &column, err));
        assert_int_equal(column, cases[i].column);
    }
    memset(text, '1', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    CHECK(DIBS_INVALID, dibs__cron_parse(text, &cron, &column, err));
    assert_int_equal(column, 1);
}

static void check_words(const char *text, const char *words)
{
    dibs__cron cron;
    dibsx_buf out;

    parse_cron(text, &cron);
    dibsx_buf_init(&out, 4096);
    dibs__cron_words(&cron, &out);
    assert_true(dibsx_buf_ok(&out));
    assert_string_equal(dibsx_buf_text(&out), words);
    dibsx_buf_fini(&out);
}

static void expressions_have_words(void **state)
{
    static const char *const cases[][2] = {
        {"30 2 * * *", "at 02:30 every day"},
        {"* * * * *", "every minute"},
        {"*/15 * * * *", "every 15 minutes"},
        {"7/13 * * * *", "at minutes 7 to 59 in steps of 13 of every hour"},
        {"0 * * * *", "at minute 0 of every hour"},
        {"0,30 9-17 * * MON-FRI",
         "at minutes 0 and 30 of hours 9 to 17 on Monday to Friday"},
        {"* 2 * * *", "every minute of hour 2"},
        {"0 8,20 1,15 * *", "at 08:00 and 20:00 on days 1 and 15 of the month"},
        {"0 0 13 * FRI", "at 00:00 on day 13 of the month, and on Friday"},
        {"0 0 */2 * SAT,SUN", "at 00:00 on days 1 to 31 in steps of 2 of the "
                              "month if that is Saturday or Sunday"},
        {"0 0 * nov-feb FRI-MON",
         "at 00:00 on Friday to Monday in November to February"},
        {"0 6 L,15W * ?", "at 06:00 on the workday nearest to day 15 and the "
                          "last day of the month"},
        {"0 6 LW,L-1,L-3 * ?",
         "at 06:00 on the day 3 days before the last, the day before the last "
         "and the last workday of the month"},
        {"30 8 * * MON#1,FRIL", "at 08:30 on the first Monday of the month and "
                                "the last Friday of the month"},
        {"*/10 * * * * *", "every 10 seconds"},
        {"30 * * * * *", "at second 30 of every minute"},
        {"* * 3 * * *", "every second of hour 3"},
        {"15 30 2 1 1 * 2030", "at 02:30:15 on day 1 of the month in January, "
                               "in the year 2030"},
        {"0 0 0 1 1 * 2028-2040/4", "at 00:00 on day 1 of the month in "
                                    "January, in the years 2028 to 2040 in "
                                    "steps of 4"},
        {"0 0 0 1 1 * 2030-2032,2040",
         "at 00:00 on day 1 of the month in January, in the years 2030 to 2032 "
         "and 2040"},
        {"0 22-4 * * *", "at minute 0 of hours 22 to 4"},
        {"@daily", "at 00:00 every day"},
        {"@every 90m", "every 1h30m"},
        {"@every 1d1s", "every 1d1s"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        check_words(cases[i][0], cases[i][1]);
}

static void every_counts_from_its_anchor(void **state)
{
    dibs__zone *zone = open_zone("Europe/Berlin");
    dibs__cron cron;
    dibs__tick tick;

    (void)state;
    parse_cron("@every 7d", &cron);
    assert_int_equal(cron.every_s, 7 * DIBS__DAY_S);
    cron.anchor_s = 1800000123;
    for (int64_t after = 1800000123 - 20 * DIBS__DAY_S;
         after < 1800000123 + 20 * DIBS__DAY_S; after += 3601) {
        assert_true(dibs__cron_next(&cron, zone, after, &tick));
        assert_true(tick.at > after && tick.at <= after + cron.every_s);
        assert_int_equal((tick.at - cron.anchor_s) % cron.every_s, 0);
        assert_true(dibs__cron_prev(&cron, zone, tick.at + 1, &tick));
        assert_true(dibs__cron_prev(&cron, zone, tick.at, &tick));
        assert_true(tick.at <= after && tick.at > after - cron.every_s);
    }
    dibs__zone_free(zone);
}

/* Rule 4: the clocks of one node go back an hour later than those of another. */
static void a_local_time_runs_once_with_two_versions_of_a_zone(void **state)
{
    dibs__zone *winter = open_zone("Atlantic/Azores");
    dibs__zone *summer = open_zone("Europe/London");
    int64_t at = read_moment("2027-01-10T02:30:00Z"); /* London 02:30 */
    dibs__cron cron;
    dibs__tick tick;

    (void)state;
    parse_cron("30 2 * * *", &cron);
    assert_true(dibs__cron_next(&cron, summer, at - 1, &tick));
    assert_int_equal(tick.at, at);
    /* An hour west the same local time is still to come, and has run. */
    assert_true(dibs__cron_next(&cron, winter, at, &tick));
    assert_int_equal(tick.at, at + 3600);
    assert_true(dibs__cron_next_from(&cron, winter, at, at, &tick));
    assert_int_equal(tick.at, at + 3600 + DIBS__DAY_S);
    /* What is not fixed goes on. */
    parse_cron("*/30 * * * *", &cron);
    assert_true(dibs__cron_next_from(&cron, winter, at, at, &tick));
    assert_int_equal(tick.at, at + 1800);
    /* A local time that no zone can have does not stop it for years. */
    parse_cron("30 2 * * *", &cron);
    assert_true(dibs__cron_next_from(&cron, winter, at, INT64_MAX, &tick));
    assert_true(tick.at < at + 3 * DIBS__DAY_S);
    dibs__zone_free(winter);
    dibs__zone_free(summer);
}

static void ticks_name_their_rule(void **state)
{
    static const struct {
        const char *text;
        const char *after;
        const char *at;
        dibs__tick_rule rule;
        int32_t offset_s;
    } cases[] = {
        {"30 2 * * *", "2027-03-27T12:00:00Z", "2027-03-28T01:00:00Z",
         DIBS__TICK_GAP, 7200},
        {"*/15 2 * * *", "2027-03-27T12:00:00Z", "2027-03-28T01:00:00Z",
         DIBS__TICK_GAP, 7200},
        {"0 3 * * *", "2027-03-27T12:00:00Z", "2027-03-28T01:00:00Z",
         DIBS__TICK_PLAIN, 7200},
        {"*/15 * * * *", "2027-03-28T00:45:00Z", "2027-03-28T01:00:00Z",
         DIBS__TICK_PLAIN, 7200},
        {"30 2 * * *", "2027-10-30T12:00:00Z", "2027-10-31T00:30:00Z",
         DIBS__TICK_FIRST_PASS, 7200},
        {"30 2 * * *", "2027-10-31T00:30:00Z", "2027-11-01T01:30:00Z",
         DIBS__TICK_PLAIN, 3600},
        {"*/30 2 * * *", "2027-10-31T00:30:00Z", "2027-10-31T01:00:00Z",
         DIBS__TICK_PLAIN, 3600},
    };
    dibs__zone *zone = open_zone("Europe/Berlin");

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        dibs__cron cron;
        dibs__tick tick;

        parse_cron(cases[i].text, &cron);
        assert_true(
            dibs__cron_next(&cron, zone, read_moment(cases[i].after), &tick));
        assert_int_equal(tick.at, read_moment(cases[i].at));
        assert_int_equal(tick.rule, cases[i].rule);
        assert_int_equal(tick.offset_s, cases[i].offset_s);
    }
    dibs__zone_free(zone);
}

static void the_ends_of_time_are_ends(void **state)
{
    dibs__zone *zone = open_zone("America/New_York");
    dibs__cron cron;
    dibs__tick tick;

    (void)state;
    parse_cron("* * * * *", &cron);
    assert_true(dibs__cron_next(&cron, zone, INT64_MIN, &tick));
    assert_int_equal(tick.at, 0);
    assert_false(dibs__cron_prev(&cron, zone, 0, &tick));
    assert_false(dibs__cron_prev(&cron, zone, INT64_MIN, &tick));
    assert_true(dibs__cron_prev(&cron, zone, INT64_MAX, &tick));
    assert_int_equal(tick.at, read_moment("2199-12-31T23:59:00Z"));
    assert_false(dibs__cron_next(&cron, zone, tick.at, &tick));
    assert_false(dibs__cron_next(&cron, zone, INT64_MAX, &tick));
    dibs__zone_free(zone);
}

static void moments_are_read_as_written(void **state)
{
    static const char *const bad[] = {"",
                                      "2026",
                                      "2026-02-29",
                                      "2026-13-01",
                                      "1969-12-31",
                                      "2200-01-01",
                                      "2026-01-01T",
                                      "2026-01-01T24:00",
                                      "now",
                                      "2026-1-1",
                                      "2026-01-01T10:00X",
                                      "2026-01-01T1:00",
                                      "2026-01-01Z",
                                      "2026-01-01T10:00+1",
                                      "1970-01-01T00:59:59", /* -1 */
                                      "1970-01-01T00:00+00:01",
                                      "2199-12-31T23:59-00:01"};
    static const char *const same[] = {"2027-03-27T23:00:00Z",
                                       "2027-03-28T00:00:00+01:00",
                                       "2027-03-27t18:00-0500", "2027-03-28",
                                       "2027-03-28 00:00"};
    dibs__zone *zone = open_zone("Europe/Berlin");
    char text[DIBS__OFFSET_SIZE];
    int64_t at = 77;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        if (dibs__moment_parse(bad[i], zone, &at))
            fail_msg("'%s' was taken for a moment", bad[i]);
        assert_int_equal(at, 77);
    }
    for (size_t i = 0; i < COUNT_OF(same); i++) {
        assert_true(dibs__moment_parse(same[i], zone, &at));
        assert_int_equal(at, read_moment(same[0]));
    }
    dibs__offset_text(-12600, text);
    assert_string_equal(text, "-03:30");
    dibs__offset_text(3208, text);
    assert_string_equal(text, "+00:53:28");
    dibs__zone_free(zone);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ticks_are_those_of_the_table),
        cmocka_unit_test(mistakes_are_named_with_their_column),
        cmocka_unit_test(columns_count_characters),
        cmocka_unit_test(expressions_have_words),
        cmocka_unit_test(every_counts_from_its_anchor),
        cmocka_unit_test(a_local_time_runs_once_with_two_versions_of_a_zone),
        cmocka_unit_test(ticks_name_their_rule),
        cmocka_unit_test(the_ends_of_time_are_ends),
        cmocka_unit_test(moments_are_read_as_written),
    };

    setenv("TZDIR", JOBS_ZONES, 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
