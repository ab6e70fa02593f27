/* test_lease_event.c - what happened to leases: as a message has it, and told once. */
/* SPDX-License-Identifier: MIT */
#include "core/lease_event.h"
#include "serve/told.h"
#include "store/notice.h"
#include "unit.h"

#include "base/alloc.h"
#include <stdio.h>
#include <string.h>

static const dibs__lease_event samples[] = {
    {DIBS_LEASE_ACQUIRED, DIBS__EXCLUSIVE, 7, 0, 1000, "host:12", "a"},
    {DIBS_LEASE_RELEASED, DIBS__SHARED, UINT64_MAX, INT64_MAX, 0,
     "h:1/#2 a label", "a name with: spaces"},
    {DIBS_LEASE_LOST, DIBS__PERMITS, 1, 5, INT64_MAX, "", "\xc3\xa4"},
};

enum { SAMPLES = sizeof(samples) / sizeof(samples[0]) };

static void what_is_written_is_read(void **state)
{
    static const char *const modes[] = {"exclusive", "shared", "permits"};
    dibsx_buf text;
    dibs__view_line line;
    int64_t sent_ms;
    uint64_t dropped;
    char *all, *at;

    (void)state;
    dibsx_buf_init(&text, DIBS__SAY_MAX);
    dibs__view_put_head(&text, INT64_MAX, UINT64_MAX);
    assert_true(text.len < DIBS__VIEW_HEAD_MAX);
    for (size_t i = 0; i < SAMPLES; i++)
        dibs__view_put_line(&text, &samples[i]);
    at = all = dibsx_buf_take(&text);
    assert_true(dibs__view_read_head(&at, &sent_ms, &dropped));
    assert_true(sent_ms == INT64_MAX && dropped == UINT64_MAX);
    for (size_t i = 0; i < SAMPLES; i++) {
        const dibs__lease_event *event = &samples[i];

        assert_true(dibs__view_read_line(&at, &line));
        assert_int_equal(line.kind, event->kind);
        assert_true(line.fence == event->fence);
        assert_true(line.span_ms == event->span_ms);
        assert_true(line.at_ms == event->at_ms);
        assert_string_equal(line.mode, modes[event->mode]);
        assert_string_equal(line.who, event->who);
        assert_string_equal(line.name, event->name);
    }
    assert_false(dibs__view_read_line(&at, &line));
    dibsx_free(all);
}

/* The longest that there is has room. */
static void no_line_is_too_long(void **state)
{
    dibs__lease_event event = {DIBS_LEASE_ACQUIRED,
                               DIBS__EXCLUSIVE,
                               UINT64_MAX,
                               INT64_MAX,
                               INT64_MAX,
                               "",
                               ""};
    dibsx_buf text;

    (void)state;
    memset(event.who, 'w', sizeof(event.who) - 1);
    memset(event.name, 'n', sizeof(event.name) - 1);
    dibsx_buf_init(&text, DIBS__SAY_MAX);
    dibs__view_put_line(&text, &event);
    assert_true(dibsx_buf_ok(&text));
    assert_true(text.len <= DIBS__VIEW_LINE_MAX);
    dibsx_buf_fini(&text);
}

/* Of another version, or of nobody that we know. */
static void other_messages_are_passed_over(void **state)
{
    static const char *const heads[] = {"",
                                        "hello",
                                        "dibs-view 2\t1\t0\n",
                                        "dibs-view 1\t\t0\n",
                                        "dibs-view 1\t1\n",
                                        "dibs-view 1\t-1\t0\n",
                                        "dibs-view 1\t1\t-1\n",
                                        "dibs-view 1\t1\t0x\n"};
    char text[512];
    dibs__view_line line;
    int64_t sent_ms;
    uint64_t dropped;
    char *at;

    (void)state;
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
        snprintf(text, sizeof(text), "%s", heads[i]);
        at = text;
        assert_false(dibs__view_read_head(&at, &sent_ms, &dropped));
    }
    snprintf(text, sizeof(text),
             "dibs-view 1\t9\t2\n"
             "\n"
             "queued\t1\texclusive\t0\t0\th:1\tnot known\n"
             "lost\t0\texclusive\t0\t0\th:1\tno fence\n"
             "lost\t1\texclusive\t-1\t0\th:1\tno span\n"
             "lost\t1\texclusive\t0\t0\th:1\t\n"
             "lost\t1\texclusive\t0\n"
             "lost\t3\texclusive\t1\t2\th:1\tgood\tmore of a later version");
    at = text;
    assert_true(dibs__view_read_head(&at, &sent_ms, &dropped));
    assert_true(dibs__view_read_line(&at, &line));
    assert_string_equal(line.name, "good");
    assert_false(dibs__view_read_line(&at, &line));
}

static dibs_lease_event
event_of(dibs_lease_event_kind kind, const char *name, uint64_t fence)
{
    return (dibs_lease_event){.kind = kind,
                              .name = name,
                              .fence = fence,
                              .span_ms = 3};
}

/* The look and the client, in either order. */
static void each_grant_and_each_end_is_told_once(void **state)
{
    static dibs__serve_told told;
    const dibs_lease_event granted = event_of(DIBS_LEASE_ACQUIRED, "a", 7),
                           released = event_of(DIBS_LEASE_RELEASED, "a", 7),
                           lost = event_of(DIBS_LEASE_LOST, "b", 7);

    (void)state;
    dibs__told_init(&told);
    assert_true(dibs__told_event(&told, &granted));
    assert_false(dibs__told_add(&told, "a", 7, false));
    assert_true(dibs__told_add(&told, "a", 7, true));
    assert_false(dibs__told_event(&told, &released));
    assert_true(dibs__told_event(&told, &lost));
    assert_false(dibs__told_add(&told, "b", 7, true));
    assert_true(dibs__told_add(&told, "b", 7, false));
    assert_true(dibs__told_add(&told, "a", 8, false));
    dibs__told_fini(&told);
}

/* For the charts: what the look has seen already is not counted twice. */
static void what_clients_tell_is_counted(void **state)
{
    static dibs__serve_told told;
    static dibs__told_counts counts;
    const dibs_lease_event events[] = {event_of(DIBS_LEASE_ACQUIRED, "a", 1),
                                       event_of(DIBS_LEASE_RELEASED, "a", 1),
                                       event_of(DIBS_LEASE_ACQUIRED, "a", 2),
                                       event_of(DIBS_LEASE_LOST, "a", 2),
                                       {.kind = DIBS_LEASE_MISSED,
                                        .name = "",
                                        .missed = 5}};

    (void)state;
    dibs__told_init(&told);
    (void)dibs__told_add(&told, "a", 2, false);
    for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
        (void)dibs__told_event(&told, &events[i]);
    dibs__told_take(&told, &counts);
    assert_int_equal(counts.granted, 1);
    assert_int_equal(counts.ended, 2);
    assert_int_equal(counts.lost, 1);
    assert_int_equal(counts.wait_count, 1);
    assert_int_equal(counts.waits_ms[0], 3);
    assert_int_equal(dibs__told_missed(&told), 5);
    dibs__told_take(&told, &counts);
    assert_int_equal(counts.granted + counts.ended, 0);
    dibs__told_fini(&told);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(no_line_is_too_long),
        cmocka_unit_test(other_messages_are_passed_over),
        cmocka_unit_test(each_grant_and_each_end_is_told_once),
        cmocka_unit_test(what_clients_tell_is_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
