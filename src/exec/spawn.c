/* spawn.c - starting a program below the guard. Runs in the guard's process. */
/* SPDX-License-Identifier: MIT */
#include "exec/spawn.h"

#include "exec/cgroup.h"
#include "exec/no_core_dump.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Between vfork and exec it shares its memory with the guard, which waits. */
_Noreturn static void become(const dibs__spawn *start, pid_t guard, int tell)
{
    (void)setpgid(0, start->group);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != guard)
        _exit(1);
    if (start->tty >= 0)
        (void)tcsetpgrp(start->tty, getpid());
    if (start->stdin_fd >= 0 && dup2(start->stdin_fd, STDIN_FILENO) < 0)
        goto fail;
    sigaction(SIGCHLD, &start->signals->old_chld, NULL);
    sigprocmask(SIG_SETMASK, &start->signals->old_mask, NULL);
    dibs__core_dump_allow();
    if (start->rank)
        dibs__priority_restore(start->rank);
    execvpe(start->argv[0], start->argv, start->envp);
fail:;
    int number = errno;
    while (write(tell, &number, sizeof number) < 0 && errno == EINTR)
        ;
    _exit(1);
}

int dibs__spawn_start(const dibs__spawn *start, pid_t *pid)
{
    int tell[2];
    if (pipe2(tell, O_CLOEXEC) != 0)
        return errno;
    pid_t guard = getpid();
    pid_t child =
        start->cgroup_fd >= 0 ? dibs__cgroup_fork(start->cgroup_fd) : vfork();
    if (child == 0)
        become(start, guard, tell[1]);
    int number = child < 0 ? errno : 0;
    close(tell[1]);

    /* Exec closes the pipe; whatever comes through it is why it failed. */
    ssize_t got = 0;
    if (child > 0)
        do
            got = read(tell[0], &number, sizeof number);
        while (got < 0 && errno == EINTR);
    close(tell[0]);
    if (got == (ssize_t)sizeof number)
        (void)waitpid(child, NULL, 0);
    else if (child > 0)
        *pid = child;
    return number;
}
