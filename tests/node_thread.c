/* node_thread.c - see node_thread.h. */
/* SPDX-License-Identifier: MIT */
#include "node_thread.h"

#include "check.h"

/* A test would wait for ever for a node that could not begin. */
static void *run_node(void *arg)
{
    node_thread *nt = arg;

    nt->rc = dibs_jobs_run(nt->jobs, &nt->err);
    if (pace_explains(nt->rc))
        MISSED("a node has ended: %s", nt->err.message);
    return NULL;
}

void node_thread_start(node_thread *nt, dibs_jobs *jobs)
{
    *nt = (node_thread){.jobs = jobs};
    assert_int_equal(pthread_create(&nt->thread, NULL, run_node, nt), 0);
}

void node_thread_join(node_thread *nt)
{
    pthread_join(nt->thread, NULL);
    if (nt->rc != DIBS_OK)
        print_message("%s\n", nt->err.message);
    assert_status(nt->rc, DIBS_OK);
    dibs_jobs_close(nt->jobs);
}

void node_thread_stop(node_thread *nt)
{
    dibs_jobs_stop(nt->jobs);
    dibs_jobs_stop(nt->jobs);
    node_thread_join(nt);
}
