/* node_world.h - nodes of the job engine in a world of faults, each on a thread of its own. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_FAULT_NODE_WORLD_H
#define DIBS_FAULT_NODE_WORLD_H

#include "fault_world.h"
#include "node_thread.h"

#include <dibs/jobs.h>
#include <dibs/state.h>

enum { NODE_WAIT_MS = 60000 };

#define BOARD     "main"
#define KEY(name) "job/{" BOARD "}/" name

typedef struct node {
    world *w;
    dibs_jobs *jobs;
    node_thread run;
} node;

/* A node with the job "part", which does nothing; others may be added before it is
 * published and started. */
void open_node(node *n, world *w, int64_t ttl_ms, int64_t look_ms);
void publish(node *n);
void start_node(node *n);

/* Signals it twice, and waits for its end; or only waits. */
void stop_node(node *n);
void join_node(node *n);

/* A function that goes on until it may end, or has to. */
typedef struct long_call {
    atomic_int begun, may_end, lost;
} long_call;
dibs_status wait_long(dibs_run *run, void *arg, dibs_error *err);

/* Members of an index, DIBS_LOOK_MAX of them at most. */
int count_up_to(world *w, const char *index, int64_t up_to);
int count_members(world *w, const char *index);
void await_members(world *w, const char *index, int count);

/* Waits until there were so many steps of a kind. */
void await_steps(world *w, dibs__step step, int count);

#endif
