/* spawn.c - starting a program below the guard. Runs in the guard's process. */
/* SPDX-License-Identifier: MIT */
#include "exec/spawn.h"

#include "exec/cgroup.h"
#include "exec/no_core_dump.h"
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { USER_ROOM = 16384 /* for the texts of a user's entry */ };

typedef struct failure {
    int number;
    dibs__spawn_stage stage;
} failure;

static bool set_stdio(const dibs__spawn *start)
{
    for (int fd = 0; fd < 3; fd++)
        if (start->stdio[fd] >= 0 && dup2(start->stdio[fd], fd) < 0)
            return false;
    return true;
}

/* The groups first: without root's rights they could not be set any more. */
static bool become_user(const dibs__spawn_user *user)
{
    return setgroups((size_t)user->group_count, user->groups) == 0 &&
           setresgid(user->gid, user->gid, user->gid) == 0 &&
           setresuid(user->uid, user->uid, user->uid) == 0;
}

/* Between vfork and exec it shares its memory with the guard, which waits. A
 * change of user takes the signal of the guard's death away, so that is asked for
 * after it. */
_Noreturn static void become(const dibs__spawn *start, pid_t guard, int tell)
{
    failure why = {.stage = DIBS__STAGE_STDIO};
    (void)setpgid(0, start->group);
    if (start->head)
        atomic_store(start->head, start->group ? getpid() : -getpid());
    if (start->tty >= 0)
        (void)tcsetpgrp(start->tty, getpid());
    if (!set_stdio(start))
        goto fail;
    sigaction(SIGCHLD, &start->signals->old_chld, NULL);
    sigprocmask(SIG_SETMASK, &start->signals->old_mask, NULL);
    dibs__core_dump_allow();
    if (start->rank)
        dibs__priority_restore(start->rank);
    why.stage = DIBS__STAGE_USER;
    if (start->user && !become_user(start->user))
        goto fail;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != guard)
        _exit(1);
    why.stage = DIBS__STAGE_DIR;
    if (start->dir && chdir(start->dir) != 0)
        goto fail;
    why.stage = DIBS__STAGE_EXEC;
    execvpe(start->argv[0], start->argv, start->envp);
fail:
    why.number = errno;
    while (write(tell, &why, sizeof why) < 0 && errno == EINTR)
        ;
    _exit(1);
}

int dibs__spawn_start(const dibs__spawn *start, pid_t *pid,
                      dibs__spawn_stage *stage)
{
    int tell[2];
    failure why = {.stage = DIBS__STAGE_FORK};
    *stage = DIBS__STAGE_FORK;
    if (pipe2(tell, O_CLOEXEC) != 0)
        return errno;
    pid_t guard = getpid();
    pid_t child =
        start->cgroup_fd >= 0 ? dibs__cgroup_fork(start->cgroup_fd) : vfork();
    if (child == 0)
        become(start, guard, tell[1]);
    why.number = child < 0 ? errno : 0;
    close(tell[1]);

    /* Exec closes the pipe; whatever comes through it is why it failed. */
    ssize_t got = 0;
    if (child > 0)
        do
            got = read(tell[0], &why, sizeof why);
        while (got < 0 && errno == EINTR);
    close(tell[0]);
    if (got == (ssize_t)sizeof why && start->head)
        atomic_store(start->head, 0);
    if (got == (ssize_t)sizeof why)
        (void)waitpid(child, NULL, 0);
    else if (child > 0)
        *pid = child;
    *stage = why.stage;
    return why.number;
}

/* "1000" is a user as well, even one without a name. */
static bool user_number(const char *name, uid_t *uid)
{
    char *end = NULL;
    errno = 0;
    unsigned long number = strtoul(name, &end, 10);
    *uid = (uid_t)number;
    return name[0] >= '0' && name[0] <= '9' && *end == '\0' && errno == 0 &&
           *uid == number && *uid != (uid_t)-1;
}

/* 0: `entry` has it, with its texts in `room`. */
static int
find_entry(const char *name, struct passwd *entry, char *room, size_t size)
{
    struct passwd *found = NULL;
    uid_t uid;
    int number = getpwnam_r(name, entry, room, size, &found);
    if (!found && user_number(name, &uid))
        number = getpwuid_r(uid, entry, room, size, &found);
    if (!found)
        return number && number != ESRCH ? number : ENOENT;
    return 0;
}

int dibs__spawn_user_find(const char *name, dibs__spawn_user *out)
{
    char room[USER_ROOM];
    struct passwd entry;
    int number = find_entry(name, &entry, room, sizeof room);
    if (number)
        return number;
    *out = (dibs__spawn_user){.uid = entry.pw_uid,
                              .gid = entry.pw_gid,
                              .group_count = DIBS__GROUPS_MAX};
    if (getgrouplist(entry.pw_name, entry.pw_gid, out->groups,
                     &out->group_count) < 0)
        return E2BIG;
    return 0;
}

static void put_text(dibsx_buf *env, const char *name, const char *value)
{
    dibsx_buf_printf(env, "%s=%s", name, value);
    dibsx_buf_putc(env, '\0');
}

int dibs__spawn_user_env(const char *name, dibsx_buf *env)
{
    char room[USER_ROOM];
    struct passwd entry;
    int number = find_entry(name, &entry, room, sizeof room);
    if (number)
        return number;
    put_text(env, "HOME", entry.pw_dir);
    put_text(env, "USER", entry.pw_name);
    put_text(env, "SHELL", entry.pw_shell);
    return 0;
}
