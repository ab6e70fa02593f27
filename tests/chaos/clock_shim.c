/* clock_shim.c - preloaded into a server: its wall clock is ahead by as many
 * microseconds as a file says, of which CLOCK_SHIM is the path. */
/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int64_t ahead_us(void)
{
    static _Atomic(int64_t) *shared;

    if (!shared) {
        const char *path = getenv("CLOCK_SHIM");
        int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
        void *at =
            fd < 0 ? MAP_FAILED
                   : mmap(NULL, sizeof(*shared), PROT_READ, MAP_SHARED, fd, 0);

        if (fd >= 0)
            close(fd);
        if (at == MAP_FAILED)
            return 0;
        shared = at;
    }
    return atomic_load(shared);
}

static void set_ahead(struct timespec *ts)
{
    int64_t us = ts->tv_sec * 1000000LL + ts->tv_nsec / 1000 + ahead_us();

    ts->tv_sec = us / 1000000;
    ts->tv_nsec = us % 1000000 * 1000;
}

int clock_gettime(clockid_t clock, struct timespec *ts)
{
    int rc = (int)syscall(SYS_clock_gettime, clock, ts);

    if (rc == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        set_ahead(ts);
    return rc;
}

int gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
    struct timespec ts;

    (void)zone;
    clock_gettime(CLOCK_REALTIME, &ts);
    tv->tv_sec = ts.tv_sec;
    tv->tv_usec = ts.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *out)
{
    struct timespec ts;

    clock_gettime(CLOCK_REALTIME, &ts);
    if (out)
        *out = ts.tv_sec;
    return ts.tv_sec;
}
