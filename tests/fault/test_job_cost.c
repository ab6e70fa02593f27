/* test_job_cost.c - how often a node asks its store for each run, by counting requests; and
 * that what it does not ask for again is never old. */
/* SPDX-License-Identifier: MIT */
#include "node_world.h"

#include <string.h>

enum {
    RUNS = 100,
    TTL_MS = 6000,
    GETS = 3, /* for each run: its record, and its definition at both ends */
    SPARE = 40
};

static void start_runs(world *w, const char *job, int count)
{
    char run[DIBS_RUN_SIZE];

    for (int i = 0; i < count; i++)
        CHECK(DIBS_OK, dibs_job_start(w->other, job, NULL, run, err));
}

/* A node that is late reads records again. */
static void a_run_is_read_once(void **state)
{
    world *w = *state;
    int gets;
    node n;

    open_node(&n, w, TTL_MS, 0);
    publish(&n);
    start_runs(w, "part", RUNS);
    gets = world_seen(w, DIBS__STEP_GET);
    start_node(&n);
    await_members(w, KEY("ready/call/part"), 0);
    await_members(w, KEY("live"), 0);
    gets = world_seen(w, DIBS__STEP_GET) - gets;
    stop_node(&n);
    print_message("%d runs: %d values read\n", RUNS, gets);
    IN_TIME(gets <= GETS * RUNS + SPARE);
}

static void add_long(node *n, long_call *call, const char *more)
{
    CHECK(DIBS_OK, dibs_jobs_add(n->jobs, "long", wait_long, call,
                                 DIBS_JOB_OPTS(.more = more), err));
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

/* The cancel is a change of the record after the node has written it. */
static void an_end_counts_beside_the_change_of_another(void **state)
{
    char run[DIBS_RUN_SIZE];
    world *w = *state;
    long_call call = {.may_end = 0};
    dibs_run_info info = {.size = sizeof(info)};
    node n;

    open_node(&n, w, TTL_MS, 0);
    add_long(&n, &call, NULL);
    publish(&n);
    start_node(&n);
    CHECK(DIBS_OK, dibs_job_start(w->other, "long", NULL, run, err));
    await_begin(&call);
    CHECK(DIBS_OK, dibs_job_cancel(w->other, run, err));
    CHECK(DIBS_OK,
          dibs_job_wait(w->other, run, pace_ms(NODE_WAIT_MS), &info, err));
    stop_node(&n);
    assert_int_equal(info.state, DIBS_RUN_OK); /* Its work was done. */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(a_run_is_read_once),
        WORLD_TEST(an_end_counts_beside_the_change_of_another),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
