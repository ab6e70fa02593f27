/* test_zone.c - zones: their segments beside those of libc, files that are bad, files
 * that change. */
/* SPDX-License-Identifier: MIT */
#include "check.h"
#include "jobs/calendar.h"
#include "jobs/crontab.h"
#include "jobs/zone.h"
#include "jobs/zone_rule.h"
#include "tzif_maker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static const char *const zones[] = {
    "Europe/Berlin",    "Europe/Dublin",    "Europe/London",
    "Europe/Moscow",    "America/New_York", "America/Santiago",
    "America/St_Johns", "America/Havana",   "Africa/Casablanca",
    "Africa/Cairo",     "Asia/Gaza",        "Asia/Beirut",
    "Asia/Kolkata",     "Asia/Tehran",      "Australia/Lord_Howe",
    "Pacific/Apia",     "Pacific/Chatham",  "Antarctica/Troll",
    "Antarctica/Casey", "Atlantic/Azores",
};

static int64_t moment(int year, int month, int day, int hour, int minute)
{
    return dibs__day_of(year, month, day) * DIBS__DAY_S +
           (hour * 60 + minute) * 60;
}

static dibs__zone *open_zone(const char *name)
{
    dibs__zone *zone = NULL;

    CHECK(DIBS_OK, dibs__zone_open(name, &zone, err));
    return zone;
}

static void days_and_dates_are_each_others_inverse(void **state)
{
    int64_t day = dibs__day_of(1600, 1, 1);

    (void)state;
    assert_int_equal(dibs__day_of(1970, 1, 1), 0);
    assert_int_equal(dibs__day_of(2000, 3, 1), 11017);
    assert_int_equal(dibs__weekday_of(0), 4);
    assert_int_equal(dibs__weekday_of(-5), 6);
    assert_int_equal(dibs__day_at(-1), -1);
    for (int year = 1600; year < 2401; year++) {
        for (int month = 1; month <= 12; month++) {
            for (int i = 1; i <= dibs__month_length(year, month); i++) {
                dibs__date date;

                dibs__date_of(day, &date);
                assert_true(date.year == year && date.month == month &&
                            date.day == i);
                assert_int_equal(dibs__day_of(year, month, i), day++);
            }
        }
    }
}

static void utc_needs_no_file(void **state)
{
    dibs__zone *zone = NULL;
    dibs__segment seg;

    (void)state;
    setenv("TZDIR", "/nowhere/at/all", 1);
    zone = open_zone("UTC");
    dibs__zone_find(zone, 0, &seg);
    assert_true(seg.begin == INT64_MIN && seg.end == INT64_MAX);
    assert_int_equal(seg.offset_s, 0);
    dibs__zone_free(zone);
    CHECK(DIBS_NOTFOUND, dibs__zone_open("Europe/Berlin", &zone, err));
    setenv("TZDIR", JOBS_ZONES, 1);
}

/* libc reads the same files with a reader of its own. */
static void offsets_are_those_of_libc(void **state)
{
    uint64_t number = 88172645463325252u;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(zones); i++) {
        dibs__zone *zone = open_zone(zones[i]);

        setenv("TZ", zones[i], 1);
        tzset();
        for (int k = 0; k < 2000; k++) {
            struct tm tm;
            time_t at;

            number ^= number << 13;
            number ^= number >> 7;
            number ^= number << 17;
            at = (time_t)(number % 7258118400u); /* up to 2200 */
            localtime_r(&at, &tm);
            if (dibs__zone_offset(zone, at) != tm.tm_gmtoff)
                fail_msg("%s at %lld: %d, and libc has %ld", zones[i],
                         (long long)at, (int)dibs__zone_offset(zone, at),
                         tm.tm_gmtoff);
        }
        dibs__zone_free(zone);
    }
    unsetenv("TZ");
}

static void segments_follow_each_other(void **state)
{
    const int64_t end = moment(2200, 1, 1, 0, 0);

    (void)state;
    for (size_t i = 0; i < COUNT_OF(zones); i++) {
        dibs__zone *zone = open_zone(zones[i]);
        dibs__segment seg, next, same;

        dibs__zone_find(zone, INT64_MIN, &seg);
        assert_true(seg.begin == INT64_MIN);
        assert_int_equal(seg.before_s, seg.offset_s);
        while (seg.end < end) {
            dibs__zone_find(zone, seg.end, &next);
            assert_true(next.begin == seg.end && next.end > next.begin);
            assert_int_equal(next.before_s, seg.offset_s);
            assert_int_not_equal(next.offset_s, seg.offset_s);
            dibs__zone_find(zone, seg.end - 1, &same);
            assert_memory_equal(&same, &seg, sizeof(seg));
            seg = next;
        }
        dibs__zone_find(zone, INT64_MAX, &seg);
        assert_true(seg.begin <= INT64_MAX && seg.end == INT64_MAX);
        dibs__zone_free(zone);
    }
}

/* A local time and its moment: once, twice, never. */
static void local_times_have_moments(void **state)
{
    static const struct {
        const char *zone;
        int local[5];
        int utc[5];
    } cases[] = {
        {"Europe/Berlin", {2027, 1, 1, 12, 0}, {2027, 1, 1, 11, 0}},
        {"Europe/Berlin", {2027, 3, 28, 2, 30}, {2027, 3, 28, 1, 0}},
        {"Europe/Berlin", {2027, 10, 31, 2, 30}, {2027, 10, 31, 0, 30}},
        {"Europe/Dublin", {2027, 10, 31, 1, 30}, {2027, 10, 31, 0, 30}},
        {"Australia/Lord_Howe", {2026, 10, 4, 2, 15}, {2026, 10, 3, 15, 30}},
        {"Australia/Lord_Howe", {2027, 4, 4, 1, 45}, {2027, 4, 3, 14, 45}},
        {"Pacific/Apia", {2011, 12, 30, 9, 0}, {2011, 12, 30, 10, 0}},
        {"America/New_York", {2150, 7, 1, 0, 0}, {2150, 7, 1, 4, 0}},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const int *a = cases[i].local, *b = cases[i].utc;
        dibs__zone *zone = open_zone(cases[i].zone);

        assert_int_equal(dibs__zone_moment(zone, moment(a[0], a[1], a[2], a[3],
                                                        a[4])),
                         moment(b[0], b[1], b[2], b[3], b[4]));
        dibs__zone_free(zone);
    }
}

static void names_do_not_lead_out_of_the_folder(void **state)
{
    static const char *const names[] = {
        "",
        "/etc/passwd",
        "../passwd",
        "Europe/../Berlin",
        "Europe/",
        "Europe/Berlin\n",
        "a b",
        "Europe.Berlin",
        "\xc3\xa4",
        "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"};
    dibs__zone *zone = NULL;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(names); i++)
        CHECK(DIBS_INVALID, dibs__zone_open(names[i], &zone, err));
    CHECK(DIBS_NOTFOUND, dibs__zone_open("Europe/Nowhere", &zone, err));
    CHECK(DIBS_NOTFOUND, dibs__zone_open("Europe/Berlin/x", &zone, err));
    CHECK(DIBS_INVALID, dibs__zone_open("Europe", &zone, err));
    assert_null(zone);
}

static const int64_t sound_times[] = {0, 1000};
static const uint8_t sound_indexes[] = {1, 0};
static const int32_t sound_offsets[] = {3600, 7200};
static const tzif sound = {.version = '2',
                           .times = sound_times,
                           .indexes = sound_indexes,
                           .time_count = 2,
                           .offsets = sound_offsets,
                           .type_count = 2,
                           .footer = "\nCET-1CEST,M3.5.0,M10.5.0/3\n"};

static dibs_status read_made(const tzif *tz, dibs_error *err)
{
    static unsigned char bytes[TZIF_SIZE];
    dibs__zone *zone = NULL;
    dibs_status rc =
        dibs__zone_read("Made", bytes, make_tzif(tz, bytes), &zone, err);

    dibs__zone_free(zone);
    return rc;
}

static void refuse_made(const tzif *tz, const char *why)
{
    dibs_error err = {0};

    assert_int_equal(read_made(tz, &err), DIBS_INVALID);
    if (!strstr(err.message, why))
        fail_msg("\"%s\" does not say \"%s\"", err.message, why);
}

static void bad_files_are_refused_with_a_reason(void **state)
{
    static const int64_t swapped[] = {1000, 1000};
    static const uint8_t beyond[] = {1, 2};
    static const int32_t far_off[] = {3600, 26 * 3600};
    tzif tz = sound;

    (void)state;
    CHECK(DIBS_OK, read_made(&tz, err));
    tz.version = '\0';
    refuse_made(&tz, "version 1");
    tz = sound;
    tz.leap_count = 1;
    refuse_made(&tz, "leap seconds");
    tz = sound;
    tz.times = swapped;
    refuse_made(&tz, "not in order");
    tz = sound;
    tz.indexes = beyond;
    refuse_made(&tz, "a type that is not there");
    tz = sound;
    tz.offsets = far_off;
    refuse_made(&tz, "out of bounds");
    tz = sound;
    tz.time_count = 2001;
    tz.times = NULL;
    refuse_made(&tz, "more than 2000");
    tz.time_count = UINT32_MAX;
    refuse_made(&tz, "more than 2000");
    tz = sound;
    tz.type_count = 0;
    refuse_made(&tz, "1 to 256");
    tz = sound;
    tz.type_count = 256;
    tz.offsets = NULL;
    refuse_made(&tz, "cut off");
    tz = sound;
    tz.footer = "";
    refuse_made(&tz, "rule at the end is missing");
    tz.footer = "\nCET-1";
    refuse_made(&tz, "rule at the end is cut off");
    tz.footer = "\nCET\n";
    refuse_made(&tz, "no TZ string");
    tz.footer = "\n\n";
    CHECK(DIBS_OK, read_made(&tz, err));
}

static void a_file_cut_anywhere_is_refused(void **state)
{
    static unsigned char bytes[TZIF_SIZE];
    size_t len = make_tzif(&sound, bytes);

    (void)state;
    for (size_t cut = 0; cut < len; cut++) {
        unsigned char *part = malloc(cut + 1);
        dibs__zone *zone = NULL;

        memcpy(part, bytes, cut);
        CHECK(DIBS_INVALID, dibs__zone_read("Cut", part, cut, &zone, err));
        free(part);
    }
}

static bool parse_rule(const char *text, dibs__rule *out)
{
    return dibs__rule_parse(text, strlen(text), out);
}

static void rules_are_read(void **state)
{
    static const char *const bad[] = {"",
                                      "C",
                                      "CET",
                                      "CET-26",
                                      "CET-1CEST",
                                      "CET-1CEST,M3.5.0",
                                      "<+01-1",
                                      "CET-1CEST,M0.5.0,M10.5.0",
                                      "CET-1:60",
                                      "CET-1CEST,M13.5.0,M10.5.0",
                                      "CET-1x",
                                      "CET-1CEST,M3.6.0,M10.5.0",
                                      "CET-1CEST,",
                                      "CET-1CEST,M3.5.7,M10.5.0",
                                      "CET-",
                                      "CET-1CEST,J0,J1",
                                      "12-1",
                                      "CET-1CEST,366,1",
                                      "CET-1CEST,M3.5.0/168,M10.5.0",
                                      "CET-1CEST,M3.5.0,M10.5.0/3x"};
    dibs__rule rule;
    dibs__shift shifts[2];

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        if (parse_rule(bad[i], &rule))
            fail_msg("\"%s\" was taken for a rule", bad[i]);
    }
    assert_true(parse_rule("<+0545>-5:45", &rule));
    assert_true(!rule.has_summer && rule.standard_s == 20700);
    /* Summer time that lasts all year, as in RFC 8536. */
    assert_true(parse_rule("EST5EDT,0/0,J365/25", &rule));
    assert_true(!rule.has_summer && rule.standard_s == -4 * 3600);
    /* Negative summer time, in winter; an offset of 0 is one. */
    assert_true(parse_rule("IST-1GMT0,M10.5.0,M3.5.0/1", &rule));
    assert_true(rule.has_summer && rule.summer_s == 0);
    dibs__rule_year(&rule, 2027, shifts);
    assert_true(shifts[0].at == moment(2027, 3, 28, 1, 0) &&
                shifts[0].offset_s == 3600);
    assert_true(shifts[1].at == moment(2027, 10, 31, 1, 0) &&
                shifts[1].offset_s == 0);
    /* Hours before midnight and after it; days by their number. */
    assert_true(parse_rule("<-02>2<-01>,M3.5.0/-1,M10.5.0/0", &rule));
    dibs__rule_year(&rule, 2027, shifts);
    assert_int_equal(shifts[0].at, moment(2027, 3, 28, 1, 0));
    assert_true(parse_rule("AAA0BBB,J60/0,N/0", &rule) == false);
    assert_true(parse_rule("AAA0BBB,J60/0,300/0", &rule));
    dibs__rule_year(&rule, 2028, shifts);
    assert_int_equal(shifts[0].at, moment(2028, 3, 1, 0, 0));
    assert_int_equal(shifts[1].at, moment(2028, 10, 26, 23, 0));
}

static void no_file_is_waited_for(void **state)
{
    char folder[] = "/tmp/dibs_zone_XXXXXX", path[64];
    dibs__zone *zone = NULL;

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/Pipe", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    setenv("TZDIR", folder, 1);
    CHECK(DIBS_INVALID, dibs__zone_open("Pipe", &zone, err));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
    setenv("TZDIR", "/dev", 1);
    CHECK(DIBS_INVALID, dibs__zone_open("zero", &zone, err));
    setenv("TZDIR", JOBS_ZONES, 1);
}

static void the_version_of_the_database_is_known(void **state)
{
    char version[DIBS__TZDATA_SIZE];

    (void)state;
    dibs__tzdata_version(version);
    assert_string_equal(version, "2025b");
}

static void expect_host(const char *etc, const char *expected)
{
    char name[DIBS__ZONE_NAME_MAX + 1];

    assert_true(dibs__host_zone(etc, name));
    assert_string_equal(name, expected);
}

/* The daemon of cron has no TZ of the caller. */
static void the_zone_of_a_machine_is_that_of_cron(void **state)
{
    char etc[] = "/tmp/dibs_etc_XXXXXX", name[DIBS__ZONE_NAME_MAX + 1];
    char link[64], path[64];
    FILE *file;

    (void)state;
    assert_non_null(mkdtemp(etc));
    snprintf(link, sizeof(link), "%s/localtime", etc);
    snprintf(path, sizeof(path), "%s/timezone", etc);
    unsetenv("TZ");
    assert_false(dibs__host_zone(etc, name));
    setenv("TZ", ":Asia/Tokyo", 1);
    expect_host(etc, "Asia/Tokyo");
    file = fopen(path, "we");
    assert_non_null(file);
    fputs("Europe/Berlin\n", file);
    assert_int_equal(fclose(file), 0);
    expect_host(etc, "Europe/Berlin");
    assert_int_equal(symlink("/usr/share/zoneinfo/America/Havana", link), 0);
    expect_host(etc, "America/Havana");
    unsetenv("TZ");
    assert_int_equal(unlink(link), 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(etc), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(days_and_dates_are_each_others_inverse),
        cmocka_unit_test(utc_needs_no_file),
        cmocka_unit_test(offsets_are_those_of_libc),
        cmocka_unit_test(segments_follow_each_other),
        cmocka_unit_test(local_times_have_moments),
        cmocka_unit_test(names_do_not_lead_out_of_the_folder),
        cmocka_unit_test(bad_files_are_refused_with_a_reason),
        cmocka_unit_test(a_file_cut_anywhere_is_refused),
        cmocka_unit_test(rules_are_read),
        cmocka_unit_test(no_file_is_waited_for),
        cmocka_unit_test(the_version_of_the_database_is_known),
        cmocka_unit_test(the_zone_of_a_machine_is_that_of_cron),
    };

    setenv("TZDIR", JOBS_ZONES, 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
