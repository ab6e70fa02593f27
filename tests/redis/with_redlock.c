/* with_redlock.c - runs a command on a quorum of redis-servers of its own.
 *
 *     with_redlock NODES PARAMETERS -- COMMAND [ARGUMENT...]
 *
 * Starts the servers, runs the command with the URL of the quorum as its last
 * argument, ends the servers, and returns what the command returned. PARAMETERS
 * go after the "?" of the URL; "" for none. */
/* SPDX-License-Identifier: MIT */
#include "fleet.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { COMMAND_MAX = 32 };

static pid_t begin(char **command, char *url)
{
    char *words[COMMAND_MAX + 2] = {NULL};
    size_t count = 0;
    pid_t pid;

    for (; command[count] && count < COMMAND_MAX; count++)
        words[count] = command[count];
    words[count] = url;
    pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execvp(words[0], words);
        fprintf(stderr, "with_redlock: %s: %s\n", words[0], strerror(errno));
        _exit(127);
    }
    return pid;
}

static int await(pid_t pid)
{
    int status = 0;

    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return 125;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
    static fleet fl;
    char url[FLEET_URL_MAX];
    int code = 125;
    pid_t pid;

    if (argc < 5 || strcmp(argv[3], "--") != 0) {
        fprintf(stderr, "usage: with_redlock NODES PARAMETERS -- COMMAND "
                        "[ARGUMENT...]\n");
        return 2;
    }
    if (!fleet_start(&fl, strtoul(argv[1], NULL, 10), true))
        return 125;
    fleet_url(&fl, argv[2], url);
    pid = begin(argv + 4, url);
    if (pid > 0)
        code = await(pid);
    fleet_stop(&fl);
    return code;
}
