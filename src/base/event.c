/* event.c - eventfds: one thread wakes another that polls. */
/* SPDX-License-Identifier: MIT */
#include "base/event.h"
#include <errno.h>
#include <stdint.h>
#include <unistd.h>

/* It can only refuse when it is full, and is readable then. */
void dibsx_event_set(int fd)
{
    uint64_t one = 1;

    while (write(fd, &one, sizeof(one)) < 0 && errno == EINTR)
        continue;
}

void dibsx_event_clear(int fd)
{
    uint64_t count;

    while (read(fd, &count, sizeof(count)) < 0 && errno == EINTR)
        continue;
}
