/* proc_file.c - see proc_file.h. Owns nothing; any process. */
/* SPDX-License-Identifier: MIT */
#include "exec/proc_file.h"

#include <fcntl.h>
#include <unistd.h>

bool dibs__proc_read(int proc_fd, const char *path, char *text, size_t size)
{
    int fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t got = read(fd, text, size - 1);
    close(fd);
    if (got <= 0)
        return false;
    text[got] = '\0';
    return true;
}
