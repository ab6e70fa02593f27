/* test_queue_findings.c - doctor: which queues need somebody, and which do not. */
/* SPDX-License-Identifier: MIT */
#include "cli/queue_findings.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>

typedef struct heard {
    dibs_severity severity;
    char text[256];
} heard;

static void hear(const dibs_finding *finding, void *arg)
{
    heard *h = arg;

    assert_string_equal(finding->subject, "queue mail");
    assert_non_null(finding->advice);
    h->severity = finding->severity;
    snprintf(h->text, sizeof(h->text), "%s", finding->found);
}

/* A queue with the settings that all have at first. */
static dibs_queue_info usual(void)
{
    return (dibs_queue_info){.size = sizeof(dibs_queue_info),
                             .settings = {.cap = 1000000,
                                          .tries = 16,
                                          .deads = 10000}};
}

static void
expect(const dibs_queue_info *info, dibs_severity severity, const char *text)
{
    heard h = {.severity = DIBS_FINE};

    assert_int_equal(dibs__queue_findings("mail", info, hear, &h), 1);
    assert_int_equal(h.severity, severity);
    assert_string_equal(h.text, text);
}

static void expect_nothing(const dibs_queue_info *info)
{
    heard h;

    assert_int_equal(dibs__queue_findings("mail", info, hear, &h), 0);
}

static void a_pause_counts_when_items_wait(void **state)
{
    dibs_queue_info info = usual();

    (void)state;
    info.settings.paused = true;
    info.later = 3;
    expect_nothing(&info);
    info.ready = 2;
    info.oldest_ms = 5000;
    expect(&info, DIBS_NOTE, "paused with ready items: 2, the oldest for 5s");
}

static void items_wait_for_a_worker_or_a_free_one(void **state)
{
    dibs_queue_info info = usual();

    (void)state;
    info.ready = 7;
    info.oldest_ms = DIBS__QUEUE_ALONE_MS - 1;
    expect_nothing(&info);
    info.oldest_ms = DIBS__QUEUE_ALONE_MS;
    expect(&info, DIBS_CAUTION,
           "no worker is there for the ready items: 7, the oldest for 10m");
    info.consumers = 2;
    info.oldest_ms = DIBS__QUEUE_SLOW_MS - 1;
    expect_nothing(&info);
    info.oldest_ms = DIBS__QUEUE_SLOW_MS;
    expect(&info, DIBS_NOTE,
           "workers do not keep up: the oldest ready item has waited for 1h, "
           "workers: 2");
    info.ready = 0;
    expect_nothing(&info);
}

static void items_come_near_the_bound(void **state)
{
    dibs_queue_info info = usual();

    (void)state;
    info.settings.cap = 10;
    info.later = 4;
    info.out = 4;
    expect_nothing(&info);
    info.later++;
    expect(&info, DIBS_CAUTION, "nearly full: 9 items of at most 10");
    info.out++;
    expect(&info, DIBS_CAUTION, "full: 10 items of at most 10");
}

static void dead_letters_come_near_the_bound(void **state)
{
    dibs_queue_info info = usual();

    (void)state;
    info.dead = 8999;
    expect_nothing(&info);
    info.dead = 9000;
    expect(&info, DIBS_CAUTION, "dead letters: 9000 of at most 10000");
    info.settings.deads = 1;
    info.dead = 0;
    expect_nothing(&info);
    info.dead = 1;
    expect(&info, DIBS_CAUTION, "dead letters: 1 of at most 1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pause_counts_when_items_wait),
        cmocka_unit_test(items_wait_for_a_worker_or_a_free_one),
        cmocka_unit_test(items_come_near_the_bound),
        cmocka_unit_test(dead_letters_come_near_the_bound),
    };

    return cmocka_run_group_tests_name("queue_findings", tests, NULL, NULL);
}
