/* crew_faults.c - what can be done to one worker. */
/* SPDX-License-Identifier: MIT */
#include "crew.h"

#include <signal.h>

static void send_signal(crew *cw, uint32_t number, int signal)
{
    pid_t pid = atomic_load(&cw->members[number].pid);

    if (pid > 0)
        kill(pid, signal);
}

static void strike_kill(crew *cw, uint32_t number, uint64_t dice)
{
    (void)dice;
    send_signal(cw, number, SIGKILL);
}

static void strike_stop(crew *cw, uint32_t number, uint64_t dice)
{
    (void)dice;
    send_signal(cw, number, SIGSTOP);
}

static void heal_stop(crew *cw, uint32_t number)
{
    send_signal(cw, number, SIGCONT);
}

static void strike_signals(crew *cw, uint32_t number, uint64_t dice)
{
    (void)dice;
    atomic_fetch_or(&cw->run->trials[number], TRIAL_SIGNALS);
}

static void heal_signals(crew *cw, uint32_t number)
{
    atomic_fetch_and(&cw->run->trials[number], ~(unsigned)TRIAL_SIGNALS);
}

static void strike_fork(crew *cw, uint32_t number, uint64_t dice)
{
    (void)dice;
    atomic_fetch_or(&cw->run->trials[number], TRIAL_FORK);
}

static void strike_cancel(crew *cw, uint32_t number, uint64_t dice)
{
    (void)dice;
    atomic_fetch_or(&cw->run->trials[number], TRIAL_CANCEL);
}

static void set_files(crew *cw, uint32_t number, bool scarce)
{
    pid_t pid = atomic_load(&cw->members[number].pid);
    struct rlimit lm;

    if (pid == 0 || !atomic_load(&cw->run->ready[number]) ||
        prlimit(pid, RLIMIT_NOFILE, NULL, &lm) != 0)
        return;
    lm.rlim_cur = scarce ? 3 : lm.rlim_max < 1024 ? lm.rlim_max : 1024;
    prlimit(pid, RLIMIT_NOFILE, &lm, NULL);
}

static void strike_files(crew *cw, uint32_t number, uint64_t dice)
{
    (void)dice;
    set_files(cw, number, true);
}

static void heal_files(crew *cw, uint32_t number)
{
    set_files(cw, number, false);
}

/* Up to an hour, either way. */
static void strike_wall(crew *cw, uint32_t number, uint64_t dice)
{
    int64_t by_us = (int64_t)(dice % 7200) * 1000000 - INT64_C(3600000000);

    atomic_store(cw->members[number].ahead_us, by_us);
}

static void heal_wall(crew *cw, uint32_t number)
{
    atomic_store(cw->members[number].ahead_us, 0);
}

/* Whatever it is about; the servers and the others do not sleep. */
static void strike_suspend(crew *cw, uint32_t number, uint64_t dice)
{
    member *mb = &cw->members[number];

    atomic_fetch_add(mb->ahead_us + 1, sleep_us(cw->run->ttl_ms, dice));
    if (mb->entry)
        mb->entry->to_ns = now_ns();
}

static void strike_sleep(crew *cw, uint32_t number, uint64_t dice)
{
    (void)dice;
    atomic_fetch_or(&cw->run->trials[number], TRIAL_SLEEP);
}

const crew_fault crew_faults[] = {
    {"kill", "kill -9, and another in its place", 0, 0, false, false,
     strike_kill, NULL},
    {"stop", "stopped, for up to twice the ttl", 0, 200, true, false,
     strike_stop, heal_stop},
    {"signals", "a signal each millisecond", 100, 500, false, false,
     strike_signals, heal_signals},
    {"files", "no file descriptor is to be had", 50, 500, false, false,
     strike_files, heal_files},
    {"wall", "its wall clock is off by up to an hour", 50, 500, false, false,
     strike_wall, heal_wall},
    {"fork", "forks while it holds; the child tries its handles", 0, 0, false,
     false, strike_fork, NULL},
    {"cancel", "a thread of it is cancelled while it waits", 0, 0, false, false,
     strike_cancel, NULL},
    {SUSPEND, "its machine sleeps for longer than the ttl", 0, 0, false, true,
     strike_suspend, NULL},
    {"sleep", "the same while it holds, which it must see at once", 0, 0, false,
     true, strike_sleep, NULL},
    {0},
};
