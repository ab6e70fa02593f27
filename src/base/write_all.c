/* write_all.c - see write_all.h. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "base/write_all.h"
#include <errno.h>
#include <unistd.h>

bool dibsx_write_all(int fd, const void *bytes, size_t len)
{
    const char *at = bytes;

    while (len > 0) {
        ssize_t put = write(fd, at, len);

        if (put < 0 && errno != EINTR)
            return false;
        if (put > 0) {
            at += put;
            len -= (size_t)put;
        }
    }
    return true;
}
