/* deadlock_graph.h - circles in the graph of who waits for whom. Pure.
 *
 * Agents (who can do one thing at a time) hold names and wait for names. An agent
 * is stuck when nothing that others can still do lets it go on:
 *
 *   - who waits for nothing is not stuck, nor is who waits for several names, one
 *     of which can yet become free;
 *   - a name is served in the order of its queue, and all behind an agent that
 *     stays where it is stay too: so a reader behind a writer waits for the
 *     readers that the writer waits for;
 *   - a writer needs every holder to go, a reader every writer, and who wants
 *     permits needs so many that the capacity less those of stuck holders is
 *     enough: through a semaphore there is a circle only when no release that can
 *     still happen would do.
 *
 * Of those that are stuck, each one that is in a circle is shown in at least one,
 * the shortest through it; no circle is shown twice. The work grows with the
 * number of parties, and the search for circles stops after a bounded effort. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_MONITOR_DEADLOCK_GRAPH_H
#define DIBS_CORE_MONITOR_DEADLOCK_GRAPH_H

#include "store/lease.h"
#include <dibs/monitor.h>

/* One that holds a name or waits for it. Texts are borrowed for the call. */
typedef struct dibs__wait_party {
    const char *agent; /* "host:pid/identity" */
    const char *label;
    const char *owner;
    dibs__mode mode;
    uint32_t permits;
    uint64_t fence;
    int64_t age_ms;
} dibs__wait_party;

/* A name that somebody waits for; waiters in the order of service. */
typedef struct dibs__wait_name {
    const char *name;
    uint32_t capacity;
    const dibs__wait_party *holders;
    size_t holder_count;
    const dibs__wait_party *waiters;
    size_t waiter_count;
} dibs__wait_name;

typedef struct dibs__wait_graph dibs__wait_graph;

/* An empty graph, or NULL. Freed with dibs__wait_graph_free(), which takes NULL. */
dibs__wait_graph *dibs__wait_graph_new(void);
void dibs__wait_graph_free(dibs__wait_graph *wt);

/* Adds a name. With `before`, a graph that has been solved, only those of its
 * parties are added that were there then as well, in the same role. False when
 * memory is short or there are too many parties. */
bool dibs__wait_graph_add(dibs__wait_graph *wt, const dibs__wait_name *name,
                          const dibs__wait_graph *before);

/* Finds who is stuck. Nothing is added afterwards. False when memory is short. */
bool dibs__wait_graph_solve(dibs__wait_graph *wt);

/* Shows circles, until `each` returns false; returns how many it showed. `each`
 * may be NULL. */
size_t dibs__wait_graph_deadlocks(dibs__wait_graph *wt, dibs_deadlock_fn *each,
                                  void *arg);

#endif
