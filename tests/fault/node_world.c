/* node_world.c - see node_world.h. */
/* SPDX-License-Identifier: MIT */
#include "node_world.h"

static dibs_status do_nothing(dibs_run *run, void *arg, dibs_error *err)
{
    (void)run;
    (void)arg;
    (void)err;
    return DIBS_OK;
}

void open_node(node *n, world *w, int64_t ttl_ms, int64_t look_ms)
{
    *n = (node){.w = w};
    CHECK(DIBS_OK, dibs_jobs_open(w->one,
                                  DIBS_JOBS_OPTS(.ttl_ms = pace_ms(ttl_ms),
                                                 .look_ms = look_ms),
                                  &n->jobs, err));
    CHECK(DIBS_OK, dibs_jobs_add(n->jobs, "part", do_nothing, NULL,
                                 DIBS_JOB_OPTS(.description = "a part"), err));
}

void publish(node *n)
{
    CHECK(DIBS_OK, dibs_jobs_publish(n->jobs, err));
}

void start_node(node *n)
{
    node_thread_start(&n->run, n->jobs);
}

void join_node(node *n)
{
    node_thread_join(&n->run);
}

void stop_node(node *n)
{
    node_thread_stop(&n->run);
}

dibs_status wait_long(dibs_run *run, void *arg, dibs_error *err)
{
    long_call *call = arg;

    (void)err;
    atomic_store(&call->begun, 1);
    while (!atomic_load(&call->may_end) && dibs_run_go_on(run))
        world_sleep_ms(2);
    if (!dibs_run_go_on(run))
        atomic_store(&call->lost, 1);
    return DIBS_OK;
}

static bool count_entry(const dibs_index_entry *entry, void *arg)
{
    (void)entry;
    ++*(int *)arg;
    return true;
}

int count_up_to(world *w, const char *index, int64_t up_to)
{
    dibs_index_look look = {.index = index,
                            .up_to = up_to,
                            .limit = DIBS_LOOK_MAX};
    int count = 0;

    CHECK(DIBS_OK,
          dibs_index_first(w->keep, &look, 1, NULL, count_entry, &count, err));
    return count;
}

int count_members(world *w, const char *index)
{
    return count_up_to(w, index, DIBS_INDEX_AT_MAX);
}

void await_members(world *w, const char *index, int count)
{
    dibsx_nsec from_at = dibsx_now();

    while (count_members(w, index) != count) {
        if (world_ms_since(from_at) > pace_ms(NODE_WAIT_MS))
            MISSED("%s has %d members", index, count_members(w, index));
        world_sleep_ms(2);
    }
}

void await_steps(world *w, dibs__step step, int count)
{
    dibsx_nsec from_at = dibsx_now();

    while (world_seen(w, step) < count) {
        if (world_ms_since(from_at) > pace_ms(NODE_WAIT_MS))
            MISSED("%d steps were seen, not %d", world_seen(w, step), count);
        world_sleep_ms(2);
    }
}
