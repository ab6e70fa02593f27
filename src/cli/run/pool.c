/* pool.c - several processes that do the same, and one that watches over them.
 *
 * The one that watches has no thread and no client, so that it can fork at any time. A
 * worker whose parent has died is sent TERM by the kernel. Main thread only. */
/* SPDX-License-Identifier: MIT */
#include "cli/run/pool.h"

#include "base/clock.h"
#include "cli/option_values.h"
#include "exec/signals.h"
#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* A worker that dies at once is not started as fast as it dies. */
enum { RESTART_MS = 1000 };

typedef struct pool {
    const dibs__command *cmd;
    dibs__verb_fn *work;
    dibs__signals signals;
    sigset_t awaited;
    size_t count;
    pid_t workers[DIBS__POOL_MAX]; /* 0: none */
    dibsx_nsec next_at;            /* no worker is started before */
    bool stopping;
    int code;
} pool;

static void run_worker(const pool *p, pid_t parent)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(0);
    /* It blocks them anew, and its commands begin with what we were given. */
    pthread_sigmask(SIG_SETMASK, &p->signals.old_mask, NULL);
    _exit(p->work(p->cmd));
}

static void signal_all(pool *p, int number)
{
    p->stopping = true;
    for (size_t i = 0; i < p->count; i++)
        if (p->workers[i] > 0)
            (void)kill(p->workers[i], number);
}

static void start_workers(pool *p)
{
    pid_t parent = getpid();

    for (size_t i = 0; i < p->count && !p->stopping; i++) {
        if (p->workers[i] != 0)
            continue;
        /* It opens the store that was asked for. */
        dibs__opt_inherit_secrets(p->cmd, true);
        p->workers[i] = fork();
        dibs__opt_inherit_secrets(p->cmd, false);
        if (p->workers[i] == 0)
            run_worker(p, parent);
        if (p->workers[i] < 0) {
            dibs__cli_say("cannot start a worker: %s", strerror(errno));
            p->workers[i] = -1;
            p->code = DIBS__EXIT_WRAPPER;
            signal_all(p, SIGTERM);
        }
    }
}

static void note_end(pool *p, size_t i, int status)
{
    if (WIFSIGNALED(status) && !p->stopping) {
        if (!dibs__opt_flag(p->cmd, "quiet"))
            dibs__cli_say("a worker was killed by signal %d; another one is "
                          "started",
                          WTERMSIG(status));
        p->workers[i] = 0;
        p->next_at = dibsx_after_ms(dibsx_now(), RESTART_MS);
        return;
    }
    p->workers[i] = -1;
    if (WIFSIGNALED(status) || WEXITSTATUS(status) == 0)
        return;
    if (p->code == 0)
        p->code = WEXITSTATUS(status);
    if (!p->stopping)
        signal_all(p, SIGTERM);
}

static void bury_dead(pool *p)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        for (size_t i = 0; i < p->count; i++)
            if (p->workers[i] == pid)
                note_end(p, i, status);
}

/* Whether a worker runs, or is to be started. */
static bool has_any(const pool *p)
{
    bool any = false;

    for (size_t i = 0; i < p->count; i++)
        any = any || p->workers[i] > 0 || (p->workers[i] == 0 && !p->stopping);
    return any;
}

static bool lacks_one(const pool *p)
{
    bool lacks = false;

    for (size_t i = 0; i < p->count; i++)
        lacks = lacks || p->workers[i] == 0;
    return lacks && !p->stopping;
}

/* A terminal signals the workers itself. */
static void await_event(pool *p)
{
    int64_t ms = dibsx_wait_ms(p->next_at, dibsx_now());
    struct timespec span = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};
    siginfo_t info;
    int number = lacks_one(p) ? sigtimedwait(&p->awaited, &info, &span)
                              : sigwaitinfo(&p->awaited, &info);

    if (number == SIGTSTP)
        (void)dibs__signal_stop(false);
    else if (number > 0 && number != SIGCHLD && dibs__signal_fatal(number)) {
        p->stopping = p->stopping || dibs__signal_ends(number);
        if (info.si_code <= 0)
            signal_all(p, number);
    }
}

int dibs__pool_run(const dibs__command *cmd, size_t count, dibs__verb_fn *work)
{
    pool p = {.cmd = cmd, .work = work, .count = count};

    dibs__signals_block(&p.signals);
    p.awaited = p.signals.served;
    sigaddset(&p.awaited, SIGCHLD);
    pthread_sigmask(SIG_BLOCK, &p.awaited, NULL);
    while (has_any(&p)) {
        if (lacks_one(&p) && dibsx_now() >= p.next_at)
            start_workers(&p);
        await_event(&p);
        bury_dead(&p);
    }
    return p.code;
}
