/* test_lock_sums.c - sums of shared statistics that only rise, whatever the store
 * forgets; and how many labels there can be. */
/* SPDX-License-Identifier: MIT */
#include "serve/lock_sums.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One reading of one name: `count` waits of a second each. */
static void read_one(dibs__lock_sums *sums, const char *name, uint64_t count)
{
    const dibs_span_count second = {.span_us = 990000, .count = count};
    const dibs_name_stats stats = {.size = sizeof(stats),
                                   .name = name,
                                   .contended = count / 2,
                                   .wait_total_us = count * 1000000,
                                   .wait_counts = &second,
                                   .wait_counts_len = count > 0};

    dibs__lock_sums_begin(sums);
    dibs__lock_sums_add(sums, &stats);
    dibs__lock_sums_end(sums);
}

static void assert_has(dibs__lock_sums *sums, const char *line)
{
    dibsx_buf page;

    dibsx_buf_init(&page, 1 << 20);
    dibs__lock_sums_put(sums, &page);
    if (!strstr(dibsx_buf_text(&page), line))
        fail_msg("%s is not in:\n%s", line, dibsx_buf_text(&page));
    dibsx_buf_fini(&page);
}

static void growth_alone_is_added(void **state)
{
    static dibs__lock_sums sums;

    (void)state;
    dibs__lock_sums_init(&sums, NULL);
    read_one(&sums, "job:1", 10);
    assert_has(&sums, "dibs_lock_wait_seconds_count{lock=\"job:*\"} 10\n");
    read_one(&sums, "job:1", 10);
    read_one(&sums, "job:1", 14);
    assert_has(&sums, "dibs_lock_wait_seconds_count{lock=\"job:*\"} 14\n");
    /* Another name of the class, while the first is in no reading. */
    read_one(&sums, "job:2", 3);
    assert_has(&sums, "dibs_lock_wait_seconds_count{lock=\"job:*\"} 17\n");
    read_one(&sums, "job:1", 15);
    assert_has(&sums, "dibs_lock_wait_seconds_count{lock=\"job:*\"} 18\n");
    /* The store had forgotten it, and has counted two since. */
    read_one(&sums, "job:1", 2);
    assert_has(&sums, "dibs_lock_wait_seconds_count{lock=\"job:*\"} 20\n");
    assert_has(&sums, "dibs_lock_wait_seconds_sum{lock=\"job:*\"} 20.000000\n");
    assert_has(&sums, "dibs_lock_contended_total{lock=\"job:*\"} 9\n");
    dibs__lock_sums_fini(&sums);
}

static void spans_are_in_their_buckets(void **state)
{
    static dibs__lock_sums sums;

    (void)state;
    dibs__lock_sums_init(&sums, NULL);
    read_one(&sums, "a\"b\\", 4);
    assert_has(&sums,
               "wait_seconds_bucket{lock=\"a\\\"b\\\\\",le=\"0.5\"} 0\n");
    assert_has(&sums, "wait_seconds_bucket{lock=\"a\\\"b\\\\\",le=\"1\"} 4\n");
    assert_has(&sums,
               "wait_seconds_bucket{lock=\"a\\\"b\\\\\",le=\"+Inf\"} 4\n");
    dibs__lock_sums_fini(&sums);
}

static void labels_are_bounded(void **state)
{
    static dibs__lock_sums sums;
    char name[32];
    dibsx_buf page;

    (void)state;
    dibs__lock_sums_init(&sums, NULL);
    read_one(&sums, "other", 1);
    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof(name), "lock-%c%c", 'a' + i / 26, 'a' + i % 26);
        read_one(&sums, name, 1);
    }
    assert_int_equal(sums.count, DIBS__LOCK_CLASSES_MAX);
    /* The lock of that name is no series of its own. */
    assert_has(&sums, "dibs_lock_wait_seconds_count{lock=\"other\"} 201\n");
    dibsx_buf_init(&page, 1 << 20);
    assert_int_equal(dibs__lock_sums_put(&sums, &page), 1);
    dibsx_buf_fini(&page);
    dibs__lock_sums_fini(&sums);
}

/* The count of waits of a label. */
static uint64_t waits_of(dibs__lock_sums *sums, const char *label)
{
    char line[128];
    const char *at;
    dibsx_buf page;
    uint64_t count = 0;

    snprintf(line, sizeof(line), "dibs_lock_wait_seconds_count{lock=\"%s\"} ",
             label);
    dibsx_buf_init(&page, 1 << 20);
    dibs__lock_sums_put(sums, &page);
    at = strstr(dibsx_buf_text(&page), line);
    if (at)
        count = strtoull(at + strlen(line), NULL, 10);
    dibsx_buf_fini(&page);
    return count;
}

/* Reads so many names of the class n:* that all before them are forgotten. */
static void read_many(dibs__lock_sums *sums, int first, int count)
{
    char name[32];

    for (int i = first; i < first + count; i++) {
        snprintf(name, sizeof(name), "n:%d", i);
        read_one(sums, name, 1);
        assert_true(sums->names <= DIBS__LOCK_SUMS_NAMES_MAX);
    }
}

/* More names than are remembered: those of the latest reading stay. New ones still count,
 * but for the few that share a bit with a forgotten one. */
static void names_are_bounded(void **state)
{
    static dibs__lock_sums sums;

    (void)state;
    dibs__lock_sums_init(&sums, NULL);
    read_many(&sums, 0, 3 * DIBS__LOCK_SUMS_NAMES_MAX);
    assert_in_range(waits_of(&sums, "n:*"), 24000, 24576);
    dibs__lock_sums_fini(&sums);
}

/* The store has counted on meanwhile, from what was added once already. */
static void forgotten_names_are_not_added_twice(void **state)
{
    static dibs__lock_sums sums;

    (void)state;
    dibs__lock_sums_init(&sums, NULL);
    read_one(&sums, "nightly", 10);
    read_many(&sums, 0, DIBS__LOCK_SUMS_NAMES_MAX);
    read_one(&sums, "nightly", 12);
    assert_int_equal(waits_of(&sums, "nightly"), 10);
    read_one(&sums, "nightly", 15);
    assert_int_equal(waits_of(&sums, "nightly"), 13);
    dibs__lock_sums_fini(&sums);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(growth_alone_is_added),
        cmocka_unit_test(spans_are_in_their_buckets),
        cmocka_unit_test(labels_are_bounded),
        cmocka_unit_test(names_are_bounded),
        cmocka_unit_test(forgotten_names_are_not_added_twice),
    };

    return cmocka_run_group_tests_name("lock_sums", tests, NULL, NULL);
}
