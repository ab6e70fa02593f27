/* main.c - runs the tests of the public interface on one store, or those whose
 * names are like a pattern: test_core [PATTERN] URL. */
/* SPDX-License-Identifier: MIT */
#include "core.h"

#include <poll.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

const char *core_url;

dibs_client *core_open(void)
{
    dibs_client *cl = NULL;

    CHECK(DIBS_OK, dibs_open(core_url, NULL, &cl, err));
    return cl;
}

const char *core_name(void)
{
    static char name[64];
    static int number;

    snprintf(name, sizeof(name), "core-%ld-%d", (long)getpid(), ++number);
    return name;
}

dibs_lock *
core_lock(dibs_client *cl, const char *name, const dibs_lock_opts *opts)
{
    dibs_lock *lock = NULL;

    CHECK(DIBS_OK, dibs_lock_new(cl, name, opts, &lock, err));
    return lock;
}

void core_until(bool (*fn)(void *arg), void *arg)
{
    time_t give_up_at = time(NULL) + (time_t)(pace_ms(60000) / 1000);

    while (!fn(arg)) {
        if (time(NULL) > give_up_at)
            MISSED("what was waited for did not come about");
        poll(NULL, 0, 2);
    }
}

static const child_part parts[] = {{"exits", core_exit_in_the_middle},
                                   {"stuck", core_stuck_call},
                                   {"sets", core_play_sets},
                                   {"descriptors", core_count_descriptors},
                                   {"reserves", core_reserve_and_stop},
                                   {0}};

int main(int argc, char **argv)
{
    int failed = 0;

    child_play(argc, argv, parts);
    if (argc != 2 && argc != 3) {
        fprintf(stderr, "usage: test_core [PATTERN] URL\n");
        return 2;
    }
    if (argc == 3)
        cmocka_set_test_filter(argv[1]);
    core_url = argv[argc - 1];
    failed += core_client_tests();
    failed += core_footprint_tests();
    failed += core_lock_tests();
    failed += core_wait_tests();
    failed += core_loss_tests();
    failed += core_reentry_tests();
    failed += core_kinds_tests();
    failed += core_sticky_tests();
    failed += core_multi_tests();
    failed += core_guard_tests();
    failed += core_async_tests();
    failed += core_threads_tests();
    failed += core_state_tests();
    failed += core_watch_tests();
    failed += core_elect_tests();
    failed += core_members_tests();
    failed += core_latch_tests();
    failed += core_events_tests();
    failed += core_barrier_tests();
    failed += core_queue_tests();
    failed += core_queue_async_tests();
    failed += core_health_tests();
    failed += core_limit_tests();
    failed += core_breaker_tests();
    failed += core_queue_admin_tests();
    failed += core_monitor_tests();
    failed += core_monitor_trail_tests();
    failed += core_monitor_deadlock_tests();
    failed += core_stats_tests();
    failed += core_viewer_tests();
    failed += core_jobs_tests();
    failed += core_jobs_sweep_tests();
    return failed ? 1 : 0;
}
