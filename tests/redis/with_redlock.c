/* with_redlock.c - runs a command on a quorum of redis-servers of its own.
 *
 *     with_redlock [--forgetful] NODES PARAMETERS -- COMMAND [ARGUMENT...]
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

static int run(char **command, char *url)
{
    char *words[COMMAND_MAX + 2] = {NULL};
    size_t count = 0;
    int status = 0;
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
    if (pid < 0)
        return 125;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
    bool forgetful = argc > 1 && strcmp(argv[1], "--forgetful") == 0;
    char **words = argv + 1 + forgetful;
    int count = argc - 1 - forgetful;
    char url[FLEET_URL_MAX];
    int code = 125;
    fleet fl;

    if (count < 4 || strcmp(words[2], "--") != 0) {
        fprintf(stderr, "usage: with_redlock [--forgetful] NODES PARAMETERS -- "
                        "COMMAND [ARGUMENT...]\n");
        return 2;
    }
    if (fleet_start(&fl, strtoul(words[0], NULL, 10), !forgetful)) {
        fleet_url(&fl, words[1], url);
        code = run(words + 3, url);
    }
    fleet_stop(&fl);
    return code;
}
