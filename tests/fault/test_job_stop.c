/* test_job_stop.c - nodes that have to stop while a lock, the store or a record is in their way. */
/* SPDX-License-Identifier: MIT */
#include "node_world.h"

#include <string.h>

enum { TTL_MS = 3000 };

static void add_long(node *n, long_call *call, const char *more)
{
    CHECK(DIBS_OK, dibs_jobs_add(n->jobs, "long", wait_long, call,
                                 DIBS_JOB_OPTS(.more = more), err));
}

static void start_run(world *w, const char *job, char run[DIBS_RUN_SIZE])
{
    CHECK(DIBS_OK, dibs_job_start(w->other, job, NULL, run, err));
}

static void await_begin(long_call *call)
{
    dibsx_nsec from_at = dibsx_now();

    while (!atomic_load(&call->begun)) {
        if (world_ms_since(from_at) > pace_ms(NODE_WAIT_MS))
            MISSED("the function was not called");
        world_sleep_ms(2);
    }
}

/* How the run ends with another node. */
static dibs_run_info
end_elsewhere(world *w, long_call *call, const char *more, const char *run)
{
    dibs_run_info info = {.size = sizeof(info)};
    node n;

    open_node(&n, w, 2 * TTL_MS, 20);
    add_long(&n, call, more);
    publish(&n);
    start_node(&n);
    CHECK(DIBS_OK,
          dibs_job_wait(w->other, run, pace_ms(NODE_WAIT_MS), &info, err));
    stop_node(&n);
    return info;
}

/* ---- the lock of the job */

typedef struct step_seen {
    dibs_run_state state;
    uint32_t attempt;
} step_seen;

static bool note_step(const dibs_step_info *step, void *arg)
{
    *(step_seen *)arg =
        (step_seen){.state = step->state, .attempt = step->attempt};
    return true;
}

/* It tries for ten seconds, and the run is skipped then. */
static void a_node_that_waits_for_a_lock_stops(void **state)
{
    static const char locked[] =
        "lock: {key: mine, retries: 20, retry_delay: 500ms}";
    char run[DIBS_RUN_SIZE];
    world *w = *state;
    long_call call = {.may_end = 1};
    step_seen step = {.attempt = 0};
    dibs_lock *lock = NULL;
    node n;

    CHECK(DIBS_OK,
          dibs_lock_new(w->other, "mine",
                        DIBS_LOCK_OPTS(.ttl_ms = pace_ms(60000)), &lock, err));
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    open_node(&n, w, 2 * TTL_MS, 0);
    add_long(&n, &call, locked);
    publish(&n);
    start_run(w, "long", run);
    start_node(&n);
    await_members(w, KEY("live"), 1);
    stop_node(&n);
    CHECK(DIBS_OK, dibs_job_show(w->other, run, NULL, note_step, &step, err));
    IN_TIME(step.state == DIBS_RUN_READY); /* Skipped after ten seconds. */
    assert_int_equal(step.attempt, 0);
    dibs_lock_free(lock);
    assert_int_equal(end_elsewhere(w, &call, locked, run).state, DIBS_RUN_OK);
}

/* The node drains, and has nothing else to wait for. */
static void a_run_that_is_cancelled_waits_for_no_lock(void **state)
{
    char run[DIBS_RUN_SIZE];
    world *w = *state;
    long_call call = {.may_end = 1};
    dibs_lock *lock = NULL;
    int tries;
    node n;

    CHECK(DIBS_OK,
          dibs_lock_new(w->other, "mine",
                        DIBS_LOCK_OPTS(.ttl_ms = pace_ms(60000)), &lock, err));
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    open_node(&n, w, 2 * TTL_MS, 0);
    add_long(&n, &call, "lock: {key: mine, retries: 100, retry_delay: 50ms}");
    publish(&n);
    start_run(w, "long", run);
    start_node(&n);
    await_members(w, KEY("live"), 1);
    tries = world_seen(w, DIBS__STEP_ACQUIRE);
    CHECK(DIBS_OK, dibs_job_cancel(w->other, run, err));
    dibs_jobs_stop(n.jobs);
    join_node(&n);
    tries = world_seen(w, DIBS__STEP_ACQUIRE) - tries;
    print_message("%d tries\n", tries);
    assert_int_equal(atomic_load(&call.begun), 0);
    IN_TIME(tries < 50);
    dibs_lock_free(lock);
}

/* ---- the store */

/* The lease is renewed meanwhile, as that of a quorum is. */
static void a_node_that_cannot_write_stops(void **state)
{
    char run[DIBS_RUN_SIZE];
    world *w = *state;
    long_call call = {.may_end = 0};
    dibs_run_info info;
    int asked;
    node n;

    open_node(&n, w, 2 * TTL_MS, 0);
    add_long(&n, &call, NULL);
    publish(&n);
    start_node(&n);
    start_run(w, "long", run);
    await_begin(&call);
    world_fault(w, DIBS__STEP_COMMIT, DIBS__FAULT_FAIL, -1);
    asked = world_seen(w, DIBS__STEP_COMMIT);
    atomic_store(&call.may_end, 1);
    await_steps(w, DIBS__STEP_COMMIT, asked + 2);
    stop_node(&n);
    world_heal(w);
    info = end_elsewhere(w, &call, NULL, run);
    assert_int_equal(info.state, DIBS_RUN_FAILED);
    assert_string_equal(info.reason, "lost");
}

static bool note_node(const dibs_index_entry *entry, void *arg)
{
    (void)snprintf(arg, 32, "%s", entry->member);
    return false;
}

static void find_lease(world *w, char *out, size_t size)
{
    dibs_index_look look = {.index = KEY("nodes"),
                            .up_to = DIBS_INDEX_AT_MAX,
                            .limit = 1};
    char id[32] = "";

    await_members(w, KEY("nodes"), 1);
    CHECK(DIBS_OK,
          dibs_index_first(w->keep, &look, 1, NULL, note_node, id, err));
    (void)snprintf(out, size, KEY("node/%s"), id);
}

static void await_no_holder(world *w, const char *lease)
{
    size_t holders = 1, waiters;

    while (holders > 0) {
        world_count(w, lease, &holders, &waiters, NULL);
        world_sleep_ms(2);
    }
}

/* Its lease ends while it drains, and its function goes on. */
static void a_late_result_outlasts_a_blip(void **state)
{
    char run[DIBS_RUN_SIZE];
    world *w = *state;
    long_call call = {.may_end = 0};
    dibs_run_info info = {.size = sizeof(info)};
    char lease[128];
    node n;

    open_node(&n, w, TTL_MS, 20);
    add_long(&n, &call, "on_lost: finish");
    publish(&n);
    start_node(&n);
    start_run(w, "long", run);
    await_begin(&call);
    find_lease(w, lease, sizeof(lease));
    dibs_jobs_stop(n.jobs);
    world_fault(w, DIBS__STEP_RENEW, DIBS__FAULT_FAIL, -1);
    await_no_holder(w, lease);
    world_fault(w, DIBS__STEP_COMMIT, DIBS__FAULT_FAIL, 2);
    dibs_jobs_stop(n.jobs);
    join_node(&n);
    CHECK(DIBS_OK, dibs_job_show(w->other, run, &info, NULL, NULL, err));
    assert_int_equal(info.state, DIBS_RUN_OK);
}

/* ---- records */

/* It was changed by hand, and is put back while the node stops. */
static void a_record_that_can_be_read_again_is_written(void **state)
{
    char run[DIBS_RUN_SIZE], key[512];
    world *w = *state;
    long_call call = {.may_end = 0};
    dibs_run_info info = {.size = sizeof(info)};
    dibs_value record = {.len = 0};
    int asked;
    node n;

    open_node(&n, w, 2 * TTL_MS, 0);
    add_long(&n, &call, NULL);
    publish(&n);
    start_node(&n);
    start_run(w, "long", run);
    await_begin(&call);
    (void)snprintf(key, sizeof(key), KEY("run/%s"), run);
    CHECK(DIBS_OK, dibs_state_get(w->keep, key, &record, err));
    CHECK(DIBS_OK, dibs_state_set(w->keep, key, "{", 1, 0, NULL, err));
    asked = world_seen(w, DIBS__STEP_GET);
    atomic_store(&call.may_end, 1);
    await_steps(w, DIBS__STEP_GET, asked + 2);
    dibs_jobs_stop(n.jobs);
    dibs_jobs_stop(n.jobs);
    asked = world_seen(w, DIBS__STEP_GET);
    await_steps(w, DIBS__STEP_GET, asked + 2);
    CHECK(DIBS_OK,
          dibs_state_set(w->keep, key, record.data, record.len, 0, NULL, err));
    dibs_value_free(&record);
    join_node(&n);
    CHECK(DIBS_OK, dibs_job_show(w->other, run, &info, NULL, NULL, err));
    IN_TIME(info.state == DIBS_RUN_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(a_node_that_waits_for_a_lock_stops),
        WORLD_TEST(a_run_that_is_cancelled_waits_for_no_lock),
        WORLD_TEST(a_node_that_cannot_write_stops),
        WORLD_TEST(a_late_result_outlasts_a_blip),
        WORLD_TEST(a_record_that_can_be_read_again_is_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
