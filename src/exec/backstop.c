/* backstop.c - the process between dibs and the guard, which ends the tree when
 * neither of them does: both are stopped, or were killed.
 *
 *   (1) It listens to nobody: the moment on the page and the end of the guard are
 *       all it knows. Only its own stop or its own death can keep it from acting;
 *       when it dies the guard ends the tree at once, and dibs hears of it.
 *   (2) Should the guard end with something left of the tree, that falls to the
 *       backstop, the next subreaper.
 *   (3) Only system calls and the clock, as in the guard. */
/* SPDX-License-Identifier: MIT */
#include "exec/backstop.h"

#include "exec/priority.h"
#include "exec/process_tree.h"
#include "exec/side_process.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* A guard that is only late ends by itself once its tree is dead. */
enum { PATIENCE_MS = 1000, ROUND_MS = 10 };

typedef struct backstop {
    const dibs__tree_means *means;
    dibs__guard_page *page;
    const dibs__belief *belief;
    pid_t guard; /* 0 once it was reaped */
    dibs__side_process own;
} backstop;

static bool guard_ended(backstop *b)
{
    pid_t pid = waitpid(b->guard, NULL, WNOHANG);
    bool ended = pid == b->guard || (pid < 0 && errno != EINTR);
    if (ended)
        b->guard = 0;
    return ended;
}

/* Returns when the guard has ended, or has to be. */
static void watch_guard(backstop *b)
{
    dibsx_nsec give_up_at = DIBSX_NEVER;
    while (!guard_ended(b)) {
        dibsx_nsec now = dibsx_now();
        dibsx_nsec last_at = dibs__guard_last_at(b->page, b->belief);
        bool due = now >= last_at;
        /* The head is a child of the guard: ours to kill once the guard is dead. */
        if (due && !dibs__tree_means_whole(b->means))
            return;
        if (due)
            (void)dibs__tree_kill(b->means, b->guard);
        if (due && give_up_at == DIBSX_NEVER)
            give_up_at = dibsx_after_ms(now, PATIENCE_MS);
        if (now >= give_up_at)
            return;
        struct pollfd fds[] = {{b->own.children, POLLIN, 0},
                               {b->own.timer, POLLIN, 0}};
        dibs__side_process_arm(&b->own, due ? DIBSX_NEVER : last_at);
        (void)poll(fds, 2, due ? ROUND_MS : -1);
        dibs__side_process_drain(&b->own);
    }
}

static void report_refused(int sock, int number)
{
    dibs__event event = {DIBS__EVENT_REFUSED, number, 1, DIBS__STAGE_FORK};
    (void)send(sock, &event, sizeof event, MSG_DONTWAIT | MSG_NOSIGNAL);
}

_Noreturn void
dibs__backstop_main(const dibs__guard_spec *job, dibs__guard_page *page,
                    int sock, pid_t group)
{
    backstop b = {.means = job->means, .page = page, .belief = job->belief};
    dibs__priority rank;
    pid_t self = getpid();
    dibs__side_process_become("dibs-backstop");
    b.guard = fork();
    if (b.guard == 0) {
        /* For the guard to wake up, not to die: dibs may be dead as well. */
        (void)prctl(PR_SET_PDEATHSIG, SIGCHLD);
        dibs__guard_main(job, page, sock, group, self);
    }
    if (b.guard < 0) {
        report_refused(sock, errno);
        _exit(1);
    }
    dibs__priority_raise(&rank);
    if (dibs__side_process_open(&b.own, job->means, -1))
        watch_guard(&b);
    if (b.guard)
        (void)kill(b.guard, SIGKILL);
    dibs__tree_sweep(job->means, atomic_load(&page->head));
    dibs__cgroup_remove(&job->means->cgroup);
    _exit(0);
}
