/* terminal.c - the terminal, and whose it is: the group of dibs or the command's.
 *
 * Needs SIGTTOU blocked, or taking the terminal back would stop us. */
/* SPDX-License-Identifier: MIT */
#include "cli/run/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

void dibs__terminal_init(dibs__terminal *term)
{
    *term = (dibs__terminal){.own = getpgrp()};
    term->fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
}

void dibs__terminal_fini(dibs__terminal *term)
{
    if (term->fd >= 0)
        close(term->fd);
    term->fd = -1;
}

bool dibs__terminal_wanted(const dibs__terminal *term)
{
    return term->fd >= 0 && tcgetpgrp(term->fd) == term->own &&
           isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}

bool dibs__terminal_give(dibs__terminal *term, pid_t group)
{
    if (term->fd < 0 || group <= 0 || tcgetpgrp(term->fd) != term->own)
        return false;
    if (tcsetpgrp(term->fd, group) != 0)
        return false;
    term->given = true;
    return true;
}

void dibs__terminal_take(dibs__terminal *term, pid_t group)
{
    if (!term->given)
        return;
    term->given = false;
    pid_t now = tcgetpgrp(term->fd);
    bool dead = now > 0 && kill(-now, 0) != 0 && errno == ESRCH;
    if (now == group || dead)
        (void)tcsetpgrp(term->fd, term->own);
}
