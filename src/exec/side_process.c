/* side_process.c - what the guard and the backstop have in common.
 *
 * Owns their descriptors. Only system calls: these processes are forked from one
 * with threads. */
/* SPDX-License-Identifier: MIT */
#include "exec/side_process.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

void dibs__side_process_become(const char *name)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    (void)prctl(PR_SET_NAME, name);
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1L, 0L, 0L, 0L);
    /* Signals for the group of dibs, from the terminal say, are not for it. */
    (void)setpgid(0, 0);
}

/* Keeps nothing of what dibs has open: what the user gave it to hand on belongs
 * to the command, the rest to dibs. */
static void close_others(const int *keep, size_t count)
{
    unsigned from = STDERR_FILENO + 1;
    for (;;) {
        unsigned next = ~0U;
        for (size_t i = 0; i < count; i++)
            if (keep[i] >= 0 && (unsigned)keep[i] >= from &&
                (unsigned)keep[i] < next)
                next = (unsigned)keep[i];
        if (next > from)
            (void)close_range(from, next == ~0U ? next : next - 1, 0);
        if (next == ~0U)
            return;
        from = next + 1;
    }
}

bool dibs__side_process_open(dibs__side_process *own,
                             const dibs__tree_means *means, int sock)
{
    const int keep[] = {sock, means->proc_fd, means->cgroup.parent_fd,
                        means->cgroup.fd};
    close_others(keep, sizeof keep / sizeof *keep);

    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGCHLD);
    own->armed_at = DIBSX_NEVER;
    own->children = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
    own->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    return own->children >= 0 && own->timer >= 0;
}

/* The timer, not poll's timeout, because only it counts time in suspend. */
void dibs__side_process_arm(dibs__side_process *own, dibsx_nsec at)
{
    if (at == own->armed_at)
        return;
    struct itimerspec spec = {{0, 0}, {0, 0}};
    if (at != DIBSX_NEVER) {
        spec.it_value.tv_sec = (time_t)(at / DIBSX_SEC);
        spec.it_value.tv_nsec = (long)(at % DIBSX_SEC) | 1;
    }
    if (timerfd_settime(own->timer, TFD_TIMER_ABSTIME, &spec, NULL) == 0)
        own->armed_at = at;
}

void dibs__side_process_drain(dibs__side_process *own)
{
    struct signalfd_siginfo info;
    uint64_t ticks;
    while (read(own->children, &info, sizeof info) > 0)
        ;
    if (read(own->timer, &ticks, sizeof ticks) > 0)
        own->armed_at = DIBSX_NEVER;
}
