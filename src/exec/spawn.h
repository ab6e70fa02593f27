/* spawn.h - starting a program below the guard. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_EXEC_SPAWN_H
#define DIBS_EXEC_SPAWN_H

#include "base/buf.h"
#include "exec/priority.h"
#include "exec/signals.h"
#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

/* Where a start failed. */
typedef enum dibs__spawn_stage {
    DIBS__STAGE_FORK,
    DIBS__STAGE_STDIO, /* its standard descriptors could not be set */
    DIBS__STAGE_DIR,
    DIBS__STAGE_USER,
    DIBS__STAGE_EXEC
} dibs__spawn_stage;

enum { DIBS__GROUPS_MAX = 256 };

/* The user that a program runs as. */
typedef struct dibs__spawn_user {
    uid_t uid;
    gid_t gid;
    gid_t groups[DIBS__GROUPS_MAX];
    int group_count;
} dibs__spawn_user;

typedef struct dibs__spawn {
    char *const *argv;
    char *const *envp;
    const dibs__signals *signals; /* what to restore */
    const dibs__priority *rank;   /* ... NULL: it is as it was */
    const dibs__spawn_user *user; /* NULL: as this process */
    const char *dir;              /* NULL: where this process is */
    int tty;       /* the terminal to be given to its group, or -1 */
    int stdio[3];  /* become its standard descriptors; -1: as it is */
    int cgroup_fd; /* the cgroup to start in; -1: as this process */
    pid_t group;   /* the process group to join; 0: one of its own */
    /* Set to the process before it runs the program; negative: it has a group of
     * its own. NULL: nobody asks. */
    _Atomic int32_t *head;
} dibs__spawn;

/* Returns 0 once the program runs, else why it does not (an errno) and in *stage
 * where. It is killed when this process dies. Only system calls are made. */
int dibs__spawn_start(const dibs__spawn *start, pid_t *pid,
                      dibs__spawn_stage *stage);

/* Looks a user up, by name or by number. Returns 0, or why it could not (an errno,
 * ENOENT if there is none). Any thread, but not a process that was forked from
 * one of several. */
int dibs__spawn_user_find(const char *name, dibs__spawn_user *out);

/* HOME, USER and SHELL of such a user, each with a NUL behind it. Returns the same. */
int dibs__spawn_user_env(const char *name, dibsx_buf *env);

#endif
