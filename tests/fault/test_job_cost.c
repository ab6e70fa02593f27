/* test_job_cost.c - how often a node asks its store for each run, by counting requests; and
 * that what it does not ask for again is never old. */
/* SPDX-License-Identifier: MIT */
#include "node_world.h"

#include <string.h>

enum {
    RUNS = 100,
    TTL_MS = 6000,
    GETS = 1, /* for each run: its record */
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

static dibs_status fail_first(dibs_run *run, void *arg, dibs_error *err)
{
    (void)arg;
    (void)err;
    return dibs_run_attempt(run) == 1 ? DIBS_INTERNAL : DIBS_OK;
}

/* A program with the function, and its job by this rule. */
static dibs_jobs *open_version(dibs_client *cl, int version, const char *more)
{
    dibs_jobs *jobs;

    CHECK(DIBS_OK,
          dibs_jobs_open(cl,
                         DIBS_JOBS_OPTS(.ttl_ms = pace_ms(TTL_MS),
                                        .set = "versions", .version = version),
                         &jobs, err));
    CHECK(DIBS_OK, dibs_jobs_add(jobs, "work", fail_first, NULL,
                                 DIBS_JOB_OPTS(.more = more), err));
    CHECK(DIBS_OK, dibs_jobs_publish(jobs, err));
    return jobs;
}

/* How a run of it ends. */
static dibs_run_state run_work(world *w)
{
    char run[DIBS_RUN_SIZE];
    dibs_run_info info = {.size = sizeof(info)};

    CHECK(DIBS_OK, dibs_job_start(w->other, "work", NULL, run, err));
    CHECK(DIBS_OK,
          dibs_job_wait(w->other, run, pace_ms(NODE_WAIT_MS), &info, err));
    return info.state;
}

/* The node has kept the old one by then. */
static void a_new_definition_is_in_force_at_once(void **state)
{
    world *w = *state;
    dibs_jobs *first = open_version(w->one, 1, "retry: {attempts: 1}");
    dibs_jobs *second;
    node_thread thread = {0};

    node_thread_start(&thread, first);
    assert_int_equal(run_work(w), DIBS_RUN_FAILED);
    assert_int_equal(run_work(w), DIBS_RUN_FAILED);
    second = open_version(w->other, 2, "retry: {attempts: 2, delay: 10ms}");
    assert_int_equal(run_work(w), DIBS_RUN_OK);
    node_thread_stop(&thread);
    dibs_jobs_close(second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(a_run_is_read_once),
        WORLD_TEST(an_end_counts_beside_the_change_of_another),
        WORLD_TEST(a_new_definition_is_in_force_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
