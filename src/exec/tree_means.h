/* tree_means.h - by which means the processes of a command are found and ended.
 *
 * All of them are found below the guard, their subreaper, through /proc; in a
 * cgroup of their own they are also killed as one. Either alone is enough.
 * Without both only the command's process group can be reached, which a process
 * may leave. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_EXEC_TREE_MEANS_H
#define DIBS_EXEC_TREE_MEANS_H

#include "exec/cgroup.h"

typedef struct dibs__tree_means {
    int proc_fd; /* the /proc of this PID namespace; -1: there is none */
    bool hidden; /* ... is not mounted, but made for this process */
    dibs__cgroup cgroup;
} dibs__tree_means;

/* Finds what there is; may find nothing. Before the first thread. Free with
 * dibs__tree_means_fini(), which removes the command's cgroup. */
void dibs__tree_means_init(dibs__tree_means *means);
void dibs__tree_means_fini(dibs__tree_means *means);

/* A tree can be found to its last process. */
bool dibs__tree_means_whole(const dibs__tree_means *means);

/* For people: "one kill of its cgroup". */
const char *dibs__tree_means_text(const dibs__tree_means *means);

/* The advice to a user whose tree could not be found. */
extern const char dibs__tree_means_advice[];

#endif
