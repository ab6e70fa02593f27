/* terminal.c - the terminal, and whose it is: the group of dibs or the command's.
 *
 * Needs SIGTTOU blocked, or taking the terminal back would stop us. */
/* SPDX-License-Identifier: MIT */
#include "cli/run/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

void dibs__terminal_init(dibs__terminal *terminal)
{
    *terminal = (dibs__terminal){.own = getpgrp()};
    terminal->fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
}

void dibs__terminal_fini(dibs__terminal *terminal)
{
    if (terminal->fd >= 0)
        close(terminal->fd);
    terminal->fd = -1;
}

bool dibs__terminal_wanted(const dibs__terminal *terminal)
{
    return terminal->fd >= 0 && tcgetpgrp(terminal->fd) == terminal->own &&
           isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}

bool dibs__terminal_give(dibs__terminal *terminal, pid_t group)
{
    if (terminal->fd < 0 || group <= 0)
        return false;
    /* A stop may be heard of when the group has the terminal already. */
    pid_t now = tcgetpgrp(terminal->fd);
    if (now != group &&
        (now != terminal->own || tcsetpgrp(terminal->fd, group) != 0))
        return false;
    terminal->given = true;
    return true;
}

void dibs__terminal_take(dibs__terminal *terminal, pid_t group)
{
    if (!terminal->given)
        return;
    terminal->given = false;
    pid_t now = tcgetpgrp(terminal->fd);
    bool dead = now > 0 && kill(-now, 0) != 0 && errno == ESRCH;
    if (now == group || dead)
        (void)tcsetpgrp(terminal->fd, terminal->own);
}
