/* test_ring.c - one ring of events, and cursors in it. */
/* SPDX-License-Identifier: MIT */
#include "serve/ring.h"
#include "unit.h"
#include <stdio.h>
#include <string.h>

enum { LOCKS = 1, JOBS = 2, ALL = 3, FRAMES = 8, BYTES = 64 * 1024 };

static dibs__ring ring;
static dibs__ring_cursor cursor;
static dibsx_buf out;

static int begin(void **state)
{
    (void)state;
    dibsx_buf_init(&out, 256 * 1024);
    return dibs__ring_init(&ring, "0a1b2c3d", FRAMES, BYTES, NULL) == DIBS_OK
               ? 0
               : -1;
}

static int end(void **state)
{
    (void)state;
    dibs__ring_fini(&ring);
    dibsx_buf_fini(&out);
    return 0;
}

static void put(uint32_t topic, const char *name, const char *data)
{
    dibs__ring_add(&ring, topic, "locks", name, data, strlen(data));
}

static const char *take(void)
{
    dibsx_buf_reset(&out);
    dibs__ring_read(&ring, &cursor, &out, 64 * 1024);
    return dibsx_buf_text(&out);
}

static void test_every_event_once_and_in_order(void **state)
{
    (void)state;
    put(LOCKS, "a", "old");
    dibs__ring_place(&ring, &cursor, ALL, NULL, NULL);
    assert_string_equal(take(), "retry: 2000\n\nid: 0a1b2c3d-1\n\n");
    assert_string_equal(take(), "");
    put(LOCKS, "a", "1");
    put(JOBS, NULL, "2");
    assert_string_equal(take(), "id: 0a1b2c3d-2\nevent: locks\ndata: 1\n\n"
                                "id: 0a1b2c3d-3\nevent: locks\ndata: 2\n\n");
    assert_string_equal(take(), "");
}

static void test_filters(void **state)
{
    (void)state;
    dibs__ring_place(&ring, &cursor, LOCKS, "app:", "begin");
    (void)take();
    put(LOCKS, "other:a", "1");
    put(JOBS, "app:a", "2");
    put(LOCKS, "app:a", "3");
    put(LOCKS, NULL, "4");
    assert_string_equal(take(), "id: 0a1b2c3d-3\nevent: locks\ndata: 3\n\n"
                                "id: 0a1b2c3d-4\nevent: locks\ndata: 4\n\n");
}

static void test_slow_stream_gets_gap_not_silence(void **state)
{
    (void)state;
    dibs__ring_place(&ring, &cursor, ALL, NULL, NULL);
    (void)take();
    for (int i = 0; i < FRAMES + 5; i++)
        put(LOCKS, "a", "x");
    assert_non_null(strstr(take(), "event: gap\ndata: {\"missed\":5}\n\n"
                                   "id: 0a1b2c3d-6\n"));
    assert_int_equal(cursor.gaps, 1);
    assert_null(strstr(take(), "gap"));
    assert_int_equal(dibs__ring_behind(&ring, &cursor), 0);
}

static void test_ring_is_bounded_by_bytes(void **state)
{
    static char big[40 * 1024], huge[DIBS__RING_FRAME_MAX + 1];

    (void)state;
    memset(big, 'x', sizeof(big) - 1);
    memset(huge, 'x', sizeof(huge) - 1);
    dibs__ring_place(&ring, &cursor, ALL, NULL, NULL);
    (void)take();
    put(LOCKS, "a", big);
    put(LOCKS, "b", big);
    assert_int_equal(ring.next - ring.first, 1);
    assert_true(ring.bytes <= BYTES);
    assert_non_null(strstr(take(), "{\"missed\":1}"));
    put(LOCKS, "a", huge);
    assert_non_null(strstr(take(), "{\"missed\":1}"));
    assert_int_equal(ring.next - ring.first, 2);
}

static void test_longest_frame_is_read(void **state)
{
    static const char head[] = "id: 0a1b2c3d-1\nevent: locks\ndata: ";
    static char data[DIBS__RING_FRAME_MAX];
    size_t len = DIBS__RING_FRAME_MAX - (sizeof(head) - 1) - 2;

    (void)state;
    dibs__ring_place(&ring, &cursor, ALL, NULL, NULL);
    memset(data, 'x', len);
    put(LOCKS, "a", data);
    (void)take(); /* the greeting */
    assert_int_equal(strlen(take()), DIBS__RING_FRAME_MAX);
    assert_int_equal(dibs__ring_behind(&ring, &cursor), 0);
    assert_int_equal(cursor.gaps, 0);
}

static void test_resume(void **state)
{
    (void)state;
    put(LOCKS, "a", "1");
    put(LOCKS, "a", "2");
    dibs__ring_place(&ring, &cursor, ALL, NULL, "0a1b2c3d-1");
    assert_string_equal(take(), "retry: 2000\n\nid: 0a1b2c3d-1\n\n"
                                "id: 0a1b2c3d-2\nevent: locks\ndata: 2\n\n");
    dibs__ring_place(&ring, &cursor, ALL, NULL, "0a1b2c3d-2");
    assert_null(strstr(take(), "data"));
    dibs__ring_place(&ring, &cursor, ALL, NULL, "0a1b2c3d-0");
    assert_non_null(strstr(take(), "data: 1"));
}

static void test_resume_across_restart_resets(void **state)
{
    static const char *const foreign[] = {
        "ffffffff-1",  "0a1b2c3d-7", "0a1b2c3d",
        "0a1b2c3d-",   "0a1b2c3d-x", "0a1b2c3d-1x",
        "0a1b2c3d--1", "",           "0a1b2c3d-99999999999999999999999"};

    (void)state;
    put(LOCKS, "a", "1");
    for (size_t i = 0; i < COUNT_OF(foreign); i++) {
        dibs__ring_place(&ring, &cursor, ALL, NULL, foreign[i]);
        assert_string_equal(take(), "retry: 2000\n\nevent: reset\ndata: {}\n\n"
                                    "id: 0a1b2c3d-1\n\n");
    }
    for (int i = 0; i < FRAMES + 1; i++)
        put(LOCKS, "a", "x");
    dibs__ring_place(&ring, &cursor, ALL, NULL, "0a1b2c3d-1");
    assert_non_null(strstr(take(), "event: reset"));
}

static void test_silent_stream_learns_its_place(void **state)
{
    (void)state;
    dibs__ring_place(&ring, &cursor, JOBS, NULL, NULL);
    (void)take();
    for (int i = 0; i < 300; i++) {
        put(LOCKS, "a", "x");
        if (strcmp(take(), "id: 0a1b2c3d-256\n\n") == 0)
            assert_int_equal(i, 255);
        else
            assert_string_equal(dibsx_buf_text(&out), "");
    }
    assert_int_equal(cursor.told, 256);
}

static void test_pull_is_bounded(void **state)
{
    static char big[3 * 1024];
    int pulls = 0;

    (void)state;
    memset(big, 'x', sizeof(big) - 1);
    dibs__ring_place(&ring, &cursor, ALL, NULL, "begin");
    for (int i = 0; i < 4; i++)
        put(LOCKS, "a", big);
    for (; dibs__ring_behind(&ring, &cursor) > 0; pulls++) {
        dibsx_buf_reset(&out);
        dibs__ring_read(&ring, &cursor, &out, 4 * 1024);
        assert_true(out.len <= 4 * 1024);
    }
    assert_int_equal(pulls, 4);
}

static void add_text(void *arg, const char *data, size_t len)
{
    (void)arg;
    dibsx_buf_add(&out, data, len);
    dibsx_buf_putc(&out, ' ');
}

static const char *latest(uint32_t topics, const char *name, size_t limit)
{
    dibsx_buf_reset(&out);
    dibs__ring_latest(&ring, topics, name, limit, add_text, NULL);
    return dibsx_buf_text(&out);
}

static void test_latest(void **state)
{
    (void)state;
    assert_string_equal(latest(ALL, NULL, 9), "");
    put(LOCKS, "a", "1");
    put(JOBS, NULL, "2");
    put(LOCKS, "ab", "3");
    put(LOCKS, "a", "4");
    assert_string_equal(latest(ALL, NULL, 9), "4 3 2 1 ");
    assert_string_equal(latest(ALL, NULL, 2), "4 3 ");
    assert_string_equal(latest(LOCKS, "a", 9), "4 1 ");
    assert_string_equal(latest(JOBS, "a", 9), "");
    for (int i = 0; i < FRAMES; i++)
        put(JOBS, "b", "5");
    assert_string_equal(latest(LOCKS, NULL, 9), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_every_event_once_and_in_order,
                                        begin, end),
        cmocka_unit_test_setup_teardown(test_filters, begin, end),
        cmocka_unit_test_setup_teardown(test_slow_stream_gets_gap_not_silence,
                                        begin, end),
        cmocka_unit_test_setup_teardown(test_ring_is_bounded_by_bytes, begin,
                                        end),
        cmocka_unit_test_setup_teardown(test_longest_frame_is_read, begin, end),
        cmocka_unit_test_setup_teardown(test_resume, begin, end),
        cmocka_unit_test_setup_teardown(test_resume_across_restart_resets,
                                        begin, end),
        cmocka_unit_test_setup_teardown(test_silent_stream_learns_its_place,
                                        begin, end),
        cmocka_unit_test_setup_teardown(test_pull_is_bounded, begin, end),
        cmocka_unit_test_setup_teardown(test_latest, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
