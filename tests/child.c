/* child.c - see child.h. */
/* SPDX-License-Identifier: MIT */
#include "child.h"

#include "pace.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define FLAG "--part"

void child_play(int argc, char **argv, const child_part *parts)
{
    if (argc < 3 || strcmp(argv[1], FLAG) != 0)
        return;
    for (; parts->name; parts++)
        if (strcmp(parts->name, argv[2]) == 0)
            exit(parts->play(argv + 3));
    fprintf(stderr, "there is no part \"%s\"\n", argv[2]);
    exit(127);
}

pid_t child_start(const char *part, ...)
{
    static const char self[] = "/proc/self/exe";
    char room[CHILD_WORDS][CHILD_WORD];
    char *words[CHILD_WORDS + 4] = {(char *)(size_t)self, (char *)(size_t)FLAG,
                                    (char *)(size_t)part};
    const char *word;
    va_list rest;
    pid_t pid;

    va_start(rest, part);
    for (int i = 0; i < CHILD_WORDS && (word = va_arg(rest, const char *)); i++)
        words[3 + i] =
            memccpy(room[i], word, '\0', CHILD_WORD) ? room[i] : NULL;
    va_end(rest);
    pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execv(self, words);
        _exit(127);
    }
    return pid;
}

const char *child_fd(int fd, char out[16])
{
    snprintf(out, 16, "%d", fd);
    return out;
}

int child_code(pid_t child)
{
    int status = 0;

    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    if (WIFEXITED(status) && WEXITSTATUS(status) == PACE_MISSED)
        MISSED("a child");
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

int open_fds(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int count = -3; /* the folder itself, "." and ".." */

    if (!dir)
        return -1;
    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}
