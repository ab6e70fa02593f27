/* main.c - runs the tests of the public interface on one store, a part of them, or those
 * whose names are like a pattern.
 *
 *     test_core [--locks | --monitors | --nouns | PATTERN] URL */
/* SPDX-License-Identifier: MIT */
#include "core.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
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
                                   {"has all", core_have_all_and_wait},
                                   {"takes", core_take_skewed},
                                   {0}};

typedef int core_suite(void);

/* Locks and what is done with them. */
static core_suite *const locks[] = {core_client_tests,
                                    core_footprint_tests,
                                    core_lock_tests,
                                    core_wait_tests,
                                    core_loss_tests,
                                    core_reentry_tests,
                                    core_kinds_tests,
                                    core_sticky_tests,
                                    core_multi_tests,
                                    core_guard_tests,
                                    core_async_tests,
                                    core_threads_tests,
                                    NULL};

/* How they are doing. */
static core_suite *const monitors[] = {core_health_tests,
                                       core_stats_tests,
                                       core_viewer_tests,
                                       core_monitor_tests,
                                       core_monitor_trail_tests,
                                       core_monitor_deadlock_tests,
                                       NULL};

/* All other nouns. */
static core_suite *const nouns[] = {
    core_state_tests,       core_watch_tests,
    core_elect_tests,       core_members_tests,
    core_latch_tests,       core_events_tests,
    core_barrier_tests,     core_queue_tests,
    core_queue_async_tests, core_limit_tests,
    core_breaker_tests,     core_queue_admin_tests,
    core_killed_tests,      core_jobs_tests,
    core_jobs_sweep_tests,  NULL};

/* A part that is not `only` is left out; "" leaves out none. */
static int
run_suites(const char *name, core_suite *const *suites, const char *only)
{
    int failed = 0;

    if (*only && strcmp(only, name) != 0)
        return 0;

    for (; *suites; suites++)
        failed += (*suites)();
    return failed;
}

int main(int argc, char **argv)
{
    const char *part = argc == 3 ? argv[1] : "";
    int failed = 0;

    child_play(argc, argv, parts);
    if (argc != 2 && argc != 3) {
        fprintf(stderr, "usage: test_core [--locks | --monitors | --nouns | "
                        "PATTERN] URL\n");
        return 2;
    }
    core_url = argv[argc - 1];
    if (*part && *part != '-') {
        cmocka_set_test_filter(part);
        part = "";
    }
    failed += run_suites("--locks", locks, part);
    failed += run_suites("--monitors", monitors, part);
    failed += run_suites("--nouns", nouns, part);
    return failed ? 1 : 0;
}
