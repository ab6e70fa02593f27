/* child.c - a worker as its primary sees it. Primary's main thread. */
/* SPDX-License-Identifier: MIT */
#include "demo/child.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { READ_MAX = 16 * 1024, LIVED_MS = 10000, PAUSE_MS = 250, DOUBLINGS = 5 };

/* Line by line; the last of it may be half a line. */
static void pass_on(dibs__demo_child *child, dibs__demo_merge *merge,
                    const char *bytes, size_t len)
{
    const char *end;

    while ((end = memchr(bytes, '\n', len))) {
        size_t whole = (size_t)(end - bytes) + 1;

        dibsx_buf_add(&child->part, bytes, whole);
        if (dibsx_buf_ok(&child->part))
            dibs__demo_merge_add(merge, child->part.data, child->part.len);
        dibsx_buf_reset(&child->part);
        bytes += whole;
        len -= whole;
    }
    dibsx_buf_add(&child->part, bytes, len);
}

void dibs__demo_child_hear(dibs__demo_child *child, dibs__demo_merge *merge)
{
    char bytes[READ_MAX];
    ssize_t got;

    while (child->fd >= 0) {
        got = read(child->fd, bytes, sizeof(bytes));
        if (got > 0) {
            pass_on(child, merge, bytes, (size_t)got);
        } else if (got == 0) {
            close(child->fd);
            child->fd = -1;
            if (child->part.len)
                pass_on(child, merge, "\n", 1);
        } else if (errno != EINTR) {
            break;
        }
    }
}

void dibs__demo_child_cause(int status, char *out, size_t size)
{
    if (WIFSIGNALED(status))
        snprintf(out, size, "killed by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else if (WEXITSTATUS(status) == 127)
        snprintf(out, size, "it could not be executed");
    else
        snprintf(out, size, "exit code %d", WEXITSTATUS(status));
}

int64_t dibs__demo_child_pause_ms(dibs__demo_child *child, dibsx_nsec now)
{
    int doublings;

    if (now - child->started_at > LIVED_MS * DIBSX_MS)
        child->failures = 0;
    doublings = child->failures < DOUBLINGS ? child->failures : DOUBLINGS;
    child->failures++;
    return (int64_t)PAUSE_MS << doublings;
}
