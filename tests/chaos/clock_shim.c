/* clock_shim.c - preloaded into a server or a worker: its clocks are ahead.
 *
 * CLOCK_SHIM is the path of a file with two numbers: the microseconds by which the
 * wall clock is ahead, and those by which the boot clock is, as after a machine has
 * slept; the second one may be missing. CLOCK_SHIM_SLEPT is that of one with the
 * latter for all who share a machine. Timers on the boot clock follow it, as those of
 * a machine that wakes up do: a thread sets them anew when it has jumped. */
/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
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

enum { TIMERS = 256, FOLLOW_MS = 10 };

/* By descriptor: whether it is a timer on the clock that is ahead, and the moments
 * that such timers were set to. The mutex guards them and `following`. */
static bool ahead[TIMERS];
static struct timespec moments[TIMERS];
static bool following;
static pthread_mutex_t timers_mutex = PTHREAD_MUTEX_INITIALIZER;

static void lock_timers(void)
{
    pthread_mutex_lock(&timers_mutex);
}

static void unlock_timers(void)
{
    pthread_mutex_unlock(&timers_mutex);
}

/* The child of a fork has no thread that follows. */
static void unlock_in_child(void)
{
    following = false;
    unlock_timers();
}

static void watch_forks(void)
{
    if (pthread_atfork(lock_timers, unlock_timers, unlock_in_child) != 0)
        abort();
}

static bool is_set(const struct timespec *moment)
{
    return moment->tv_sec != 0 || moment->tv_nsec != 0;
}

/* A moment that has passed rings at once; zero would mean never. */
static int set_timer(int fd, const struct timespec *moment)
{
    struct itimerspec at = {.it_value = *moment};

    add(&at.it_value, -boot_us());
    if (at.it_value.tv_sec < 0 || !is_set(&at.it_value))
        at.it_value = (struct timespec){.tv_nsec = 1};
    return (int)syscall(SYS_timerfd_settime, fd, TFD_TIMER_ABSTIME, &at, NULL);
}

/* Thread: its own, for as long as the process lasts. */
static void *follow(void *arg)
{
    const struct timespec pause = {.tv_nsec = FOLLOW_MS * 1000000};
    int64_t seen_us = 0;

    (void)arg;
    for (;;) {
        nanosleep(&pause, NULL);
        if (boot_us() == seen_us)
            continue;
        lock_timers();
        seen_us = boot_us();
        for (int fd = 0; fd < TIMERS; fd++)
            if (is_set(&moments[fd]))
                (void)set_timer(fd, &moments[fd]);
        unlock_timers();
    }
    return NULL;
}

/* Locks: timers_mutex. */
static void start_following(void)
{
    sigset_t all, before;
    pthread_t thread;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&thread, NULL, follow, NULL) != 0)
        abort();
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    following = true;
}

int timerfd_create(clockid_t clock, int flags)
{
    int fd = (int)syscall(SYS_timerfd_create, clock, flags);

    lock_timers();
    if (fd >= 0 && fd < TIMERS) {
        ahead[fd] = clock == CLOCK_BOOTTIME;
        moments[fd] = (struct timespec){0};
    }
    unlock_timers();
    return fd;
}

/* One on another clock, or for a span, does not notice. */
int timerfd_settime(int fd, int flags, const struct itimerspec *to,
                    struct itimerspec *before)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    bool follows = fd >= 0 && fd < TIMERS && (flags & TFD_TIMER_ABSTIME) &&
                   is_set(&to->it_value);
    int rc;

    pthread_once(&once, watch_forks);
    lock_timers();
    follows = follows && ahead[fd];
    if (follows && !following)
        start_following();
    rc = follows ? set_timer(fd, &to->it_value)
                 : (int)syscall(SYS_timerfd_settime, fd, flags, to, before);
    if (fd >= 0 && fd < TIMERS)
        moments[fd] = follows ? to->it_value : (struct timespec){0};
    unlock_timers();
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
