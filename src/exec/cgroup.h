/* cgroup.h - a cgroup (version 2) for one command: all that the command starts
 * is in it, and one write kills all of it, whatever it forks meanwhile. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_EXEC_CGROUP_H
#define DIBS_EXEC_CGROUP_H

#include <stdbool.h>
#include <sys/types.h>

typedef struct dibs__cgroup {
    int parent_fd; /* the cgroup of this process; -1: none can be made */
    int fd;        /* the one for the command; -1: not made */
    char name[48]; /* ... its name in the parent */
} dibs__cgroup;

/* Looks, by doing so once, whether a cgroup can be made below that of this
 * process, be forked into and be killed. `proc_fd` is a /proc in which this
 * process finds itself. Free with dibs__cgroup_fini(). */
void dibs__cgroup_init(dibs__cgroup *group, int proc_fd);
void dibs__cgroup_fini(dibs__cgroup *group);

/* Makes it, for one command. False: it could not be made. And removes it after that, so
 * that one can be made for the next. */
bool dibs__cgroup_make(dibs__cgroup *group);
void dibs__cgroup_drop(dibs__cgroup *group);

/* From here on only system calls are made, so that these may be used after fork
 * in a process that had threads. */

/* As fork(), with the child in the cgroup from its first moment on. */
pid_t dibs__cgroup_fork(int fd);

/* Kills all that is in it, as one. */
bool dibs__cgroup_kill(int fd);

/* Sends the signal to each process that is in it, but not to the members of the
 * process group `spare` (0: spares none); *sent is to how many. False when it
 * could not be read who is in it. */
bool dibs__cgroup_signal(int fd, int number, pid_t spare, int *sent);

/* Removes it and what was made in it, if nothing lives there. */
void dibs__cgroup_remove(const dibs__cgroup *group);

#endif
