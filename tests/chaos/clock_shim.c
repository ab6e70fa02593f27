/* clock_shim.c - preloaded into a server or a worker: its clocks are ahead.
 *
 * CLOCK_SHIM is the path of a file with two numbers: the microseconds by which the
 * wall clock is ahead, and those by which the boot clock is, as after a machine has
 * slept; the second one may be missing. CLOCK_SHIM_SLEPT is that of one with the
 * latter for all who share a machine. Timers on the boot clock follow when they are
 * set anew. */
/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { WALL, BOOT, CLOCKS };

static _Atomic(int64_t) none[CLOCKS];

/* What is beyond the end of a short file is 0, for a page. */
static _Atomic(int64_t) *map(const char *variable)
{
    const char *path = getenv(variable);
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *at = fd < 0 ? MAP_FAILED
                      : mmap(NULL, sizeof(none), PROT_READ, MAP_SHARED, fd, 0);

    if (fd >= 0)
        close(fd);
    return at == MAP_FAILED ? none : at;
}

static int64_t wall_us(void)
{
    static _Atomic(int64_t) *own;

    if (!own)
        own = map("CLOCK_SHIM");
    return atomic_load(&own[WALL]);
}

static int64_t boot_us(void)
{
    static _Atomic(int64_t) *own, *slept;

    if (!own) {
        slept = map("CLOCK_SHIM_SLEPT");
        own = map("CLOCK_SHIM");
    }
    return atomic_load(&own[BOOT]) + atomic_load(slept);
}

static void add(struct timespec *ts, int64_t us)
{
    int64_t sum_us = ts->tv_sec * 1000000LL + ts->tv_nsec / 1000 + us;

    ts->tv_sec = sum_us / 1000000;
    ts->tv_nsec = sum_us % 1000000 * 1000;
}

int clock_gettime(clockid_t clock, struct timespec *ts)
{
    int rc = (int)syscall(SYS_clock_gettime, clock, ts);

    if (rc == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        add(ts, wall_us());
    else if (rc == 0 && clock == CLOCK_BOOTTIME)
        add(ts, boot_us());
    return rc;
}

/* Those with a moment are all on the boot clock here. One that has passed rings at
 * once; zero would mean never. */
int timerfd_settime(int fd, int flags, const struct itimerspec *to,
                    struct itimerspec *before)
{
    struct itimerspec at = *to;
    bool set = at.it_value.tv_sec != 0 || at.it_value.tv_nsec != 0;

    if ((flags & TFD_TIMER_ABSTIME) && set) {
        add(&at.it_value, -boot_us());
        if (at.it_value.tv_sec < 0 ||
            (at.it_value.tv_sec == 0 && at.it_value.tv_nsec <= 0))
            at.it_value = (struct timespec){.tv_nsec = 1};
    }
    return (int)syscall(SYS_timerfd_settime, fd, flags, &at, before);
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
