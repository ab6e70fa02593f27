/* node_thread.h - a node of the job engine on a thread of its own. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_NODE_THREAD_H
#define DIBS_TESTS_NODE_THREAD_H

#include <dibs/jobs.h>
#include <pthread.h>

typedef struct node_thread {
    dibs_jobs *jobs;
    pthread_t thread;
    dibs_status rc; /* after its end */
    dibs_error err;
} node_thread;

/* End it with one of the two below, which close the jobs. */
void node_thread_start(node_thread *nt, dibs_jobs *jobs);

/* Signals it twice, and waits for its end; or only waits. Fails unless it ended well. */
void node_thread_stop(node_thread *nt);
void node_thread_join(node_thread *nt);

#endif
