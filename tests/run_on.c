/* run_on.c - runs a command on a server that a test has started. */
/* SPDX-License-Identifier: MIT */
#include "run_on.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

int run_on(char *url, char **command)
{
    char *words[RUN_ON_WORDS + 2] = {NULL};
    size_t count = 0;
    int status = 0;
    pid_t pid;

    for (; command[count] && count < RUN_ON_WORDS; count++)
        words[count] = command[count];
    words[count] = url;
    pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execvp(words[0], words);
        fprintf(stderr, "%s: %s\n", words[0], strerror(errno));
        _exit(127);
    }
    if (pid < 0)
        return 125;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return 125;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
