/* core.h - what the tests of the public interface share: a client on the store
 * that the test was given, fresh names, and waiting for a condition. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_CORE_H
#define DIBS_TESTS_CORE_H

#include "check.h"
#include "child.h"

#include <dibs/dibs.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

extern const char *core_url; /* argv[1] */

/* A client on the store under test; fails the test when there is none. */
dibs_client *core_open(void);

/* A name that no other test uses; the same storage for every call. */
const char *core_name(void);

/* A lock handle, or the end of the test. */
dibs_lock *
core_lock(dibs_client *cl, const char *name, const dibs_lock_opts *opts);

/* Waits for fn(arg), up to a minute. */
void core_until(bool (*fn)(void *arg), void *arg);

/* What processes of their own do. */
int core_exit_in_the_middle(char **words);
int core_stuck_call(char **words);
int core_play_sets(char **words);
int core_count_descriptors(char **words);
int core_reserve_and_stop(char **words);
int core_have_all_and_wait(char **words);
int core_take_skewed(char **words);

int core_lock_tests(void);
int core_wait_tests(void);
int core_loss_tests(void);
int core_reentry_tests(void);
int core_kinds_tests(void);
int core_sticky_tests(void);
int core_multi_tests(void);
int core_guard_tests(void);
int core_async_tests(void);
int core_threads_tests(void);
int core_state_tests(void);
int core_watch_tests(void);
int core_elect_tests(void);
int core_health_tests(void);
int core_members_tests(void);
int core_latch_tests(void);
int core_events_tests(void);
int core_barrier_tests(void);
int core_queue_tests(void);
int core_queue_async_tests(void);
int core_limit_tests(void);
int core_breaker_tests(void);
int core_queue_admin_tests(void);
int core_monitor_tests(void);
int core_monitor_trail_tests(void);
int core_monitor_deadlock_tests(void);
int core_stats_tests(void);
int core_viewer_tests(void);
int core_killed_tests(void);
int core_jobs_tests(void);
int core_jobs_sweep_tests(void);
int core_client_tests(void);
int core_footprint_tests(void);

#endif
