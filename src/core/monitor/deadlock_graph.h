/* deadlock_graph.h - deadlocks: cycles in the wait-for graph. Pure.
 *
 * Agents (threads, or whatever does one thing at a time) hold names and wait for
 * names. An agent is stuck when nothing that others can still do lets it go on:
 *
 *   - an agent that waits for nothing is not stuck, nor is one that waits for
 *     several names of which one can yet become free;
 *   - a name is served in the order of its queue, and an agent that is stuck there
 *     blocks all behind it: so a reader behind a writer waits for the readers that
 *     the writer waits for;
 *   - a writer needs every holder to release, a reader every writer. An agent that
 *     wants permits needs the capacity less the permits of stuck holders to be
 *     enough: a cycle leads through a semaphore only if no release that can still
 *     happen would be enough;
 *   - a process that waits within a lease, as a dibs run inside another, waits for
 *     the holder of that lease as well, which goes on when the process has ended.
 *
 * Each stuck agent that is in a cycle is shown in at least one, the shortest through
 * it; no cycle is shown twice. The work grows with the number of parties, and the
 * search for cycles stops after a bounded effort. */
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
    const char
        *within; /* the beginning of the owner of the lease within which a
                           party waits; NULL or "": none. A party that waits
                           within several is added once for each, too. */
    dibs__mode mode;
    uint32_t permits;
    uint64_t fence;
    int64_t age_ms;
} dibs__wait_party;

/* A name that has waiters; they are in the order of service. */
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

/* Finds the stuck agents. Nothing is added afterwards. False when memory is
 * short. */
bool dibs__wait_graph_solve(dibs__wait_graph *wt);

/* Shows cycles, until `each` returns false; returns how many it showed. `each`
 * may be NULL. */
size_t dibs__wait_graph_deadlocks(dibs__wait_graph *wt, dibs_deadlock_fn *each,
                                  void *arg);

#endif
