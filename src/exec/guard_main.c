/* guard_main.c - the guard: starts the command, watches over its tree, kills it
 * in time. Runs in a process of its own, forked from one with threads.
 *
 *     WATCHING --the moment comes, KILL is ordered, or --> KILLING
 *         |       dibs or the backstop dies                   |
 *         +-------------> nothing is left: exit <-------------+
 *
 *   (1) Nothing is left exactly when waitpid() knows no child: the guard is the
 *       subreaper of all below it, so whoever loses its parent becomes its child.
 *   (2) The command's group is signalled only while one of its processes has not
 *       been reaped: until then its number cannot be another's.
 *   (3) Only system calls and the clock: locks of the C library or of libdibs may
 *       have been held by threads that do not exist here. */
/* SPDX-License-Identifier: MIT */
#include "exec/guard.h"

#include "exec/priority.h"
#include "exec/process_tree.h"
#include "exec/side_process.h"
#include "exec/spawn.h"
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ROUND_FIRST_MS = 2, ROUND_LAST_MS = 64 };
enum { PROBES_FIRST = 8, PROBE_FIRST_MS = 5 };

typedef struct guard {
    const dibs__guard_spec *job;
    dibs__guard_page *page;
    int sock;
    dibs__side_process own;
    dibs__priority rank; /* of what it starts */
    pid_t backstop;      /* 0 once it is dead */
    pid_t child;         /* 0 once it was reaped */
    pid_t head;          /* the command, or its group (negative) */
    pid_t hook;
    dibs__spawn_stage stage;
    bool orphan; /* dibs is dead, or does without this guard */
    bool killing;
    bool clear;
    dibsx_nsec round_at; /* when to kill again */
    int round_ms;
    int probes; /* how often it has measured how late it is woken */
} guard;

static void report_event(const guard *g, dibs__event_kind kind, int arg)
{
    dibs__event event = {(int32_t)kind, arg, g->clear, (int32_t)g->stage};
    (void)send(g->sock, &event, sizeof event, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* The group first, as one: none of it can fork away from that. A command without a
 * group is found with the others, if any can be. */
static void signal_tree(const guard *g, int number)
{
    bool apart = g->head < 0 || !dibs__tree_means_whole(g->job->means);
    bool done = apart && dibs__tree_signal_head(g->head, number);
    (void)dibs__tree_signal(g->job->means, getpid(), number,
                            done && g->head < 0 ? -g->head : 0);
}

static void signal_command(const guard *g, int number)
{
    if (!g->child || !dibs__tree_signal_head(g->head, number))
        signal_tree(g, number);
}

static void start_killing(guard *g)
{
    if (g->killing)
        return;
    g->killing = true;
    g->round_at = 0;
    g->round_ms = ROUND_FIRST_MS;
}

/* The next round catches a process that forked while it was being killed. */
static void kill_round(guard *g, dibsx_nsec now)
{
    (void)dibs__tree_signal_head(g->head, SIGKILL);
    dibs__tree_count count = dibs__tree_kill(g->job->means, getpid());
    /* Setuid programs only: no process is left to report to, nothing to do. */
    if (g->orphan && count.sent == 0 && count.denied > 0)
        _exit(1);
    g->round_at = now + g->round_ms * DIBSX_MS;
    /* A search that failed, for want of memory say, is repeated soon. */
    bool failed = count.blind && dibs__tree_means_whole(g->job->means);
    if (g->round_ms < ROUND_LAST_MS && !failed)
        g->round_ms *= 2;
}

static void start_hook(guard *g)
{
    char *const argv[] = {(char *)"sh", (char *)"-c", (char *)g->job->hook,
                          NULL};
    dibs__spawn start = {.argv = argv,
                         .envp = g->job->envp,
                         .signals = g->job->signals,
                         .rank = &g->rank,
                         .tty = -1,
                         .stdio = {-1, -1, -1},
                         .cgroup_fd = g->job->means->cgroup.fd};
    dibs__spawn_stage stage;
    if (dibs__spawn_start(&start, &g->hook, &stage) != 0)
        report_event(g, DIBS__EVENT_HOOK, 0);
}

static void obey(guard *g, const dibs__event *order)
{
    switch ((dibs__order)order->kind) {
    case DIBS__ORDER_LOOK:
        atomic_fetch_add(&g->page->beats, 1);
        break;
    case DIBS__ORDER_SIGNAL:
        signal_command(g, order->arg);
        break;
    case DIBS__ORDER_END:
        signal_tree(g, order->arg);
        signal_tree(g, SIGCONT);
        break;
    case DIBS__ORDER_KILL:
        start_killing(g);
        break;
    case DIBS__ORDER_HOOK:
        start_hook(g);
        break;
    }
}

static void hear_orders(guard *g)
{
    dibs__event order;
    ssize_t got;
    while ((got = recv(g->sock, &order, sizeof order, MSG_DONTWAIT)) ==
           (ssize_t)sizeof order)
        obey(g, &order);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    g->orphan = true;
    start_killing(g);
}

/* With nobody to do it later the tree is ended now. dibs, if it lives, hears that
 * it has no guard any more, and does it too. */
static void watch_backstop(guard *g)
{
    if (!g->backstop || getppid() == g->backstop)
        return;
    g->backstop = 0;
    g->orphan = true;
    close(g->sock);
    g->sock = -1;
    start_killing(g);
}

static void reaped(guard *g, pid_t pid, int status)
{
    if (pid == g->child && WIFSTOPPED(status)) {
        /* ... by us, to be killed, while killing. */
        if (!g->killing)
            report_event(g, DIBS__EVENT_STOPPED, WSTOPSIG(status));
    } else if (pid == g->child) {
        g->child = 0;
        /* Look on: alone, the command takes the whole tree with it. */
        siginfo_t info;
        g->clear = waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 &&
                   errno == ECHILD;
        report_event(g, DIBS__EVENT_ENDED, status);
    } else if (pid == g->hook && !WIFSTOPPED(status)) {
        g->hook = 0;
        report_event(g, DIBS__EVENT_HOOK, 0);
    }
}

static void reap(guard *g)
{
    for (;;) {
        int status = 0;
        pid_t pid = waitpid(-1, &status, WNOHANG | WUNTRACED);
        if (pid > 0) {
            reaped(g, pid, status);
        } else if (pid < 0 && errno == ECHILD) {
            if (!g->clear) {
                g->clear = true;
                report_event(g, DIBS__EVENT_CLEAR, 0);
            }
            return;
        } else if (pid == 0) {
            return;
        }
    }
}

/* How late this process is woken is what the margin has to cover. A sample that
 * is not repeated fades. */
static void fade_late(_Atomic int64_t *noted, dibsx_nsec late)
{
    dibsx_nsec known = atomic_load(noted);
    known -= known / 8;
    atomic_store(noted, late > known ? late : known);
}

static void note_late(guard *g, dibsx_nsec late)
{
    fade_late(&g->page->late, late);
    if (g->job->belief)
        fade_late(&g->job->belief->late, late);
}

/* On a clock that stands still in suspend, as that of poll does. */
static dibsx_nsec awake_now(void)
{
    struct timespec ts;
    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * DIBSX_SEC + ts.tv_nsec;
}

/* Returns when there is something to do. While it waits for nothing else it
 * measures: often at first, then now and then. */
static void wait_for(guard *g, struct pollfd *fds, nfds_t count, int wait_ms)
{
    int probe_ms = g->probes < PROBES_FIRST ? PROBE_FIRST_MS : g->job->probe_ms;
    if (wait_ms >= 0) {
        (void)poll(fds, count, wait_ms);
        return;
    }
    dibsx_nsec due_at = awake_now() + probe_ms * DIBSX_MS;
    if (poll(fds, count, probe_ms) != 0)
        return;
    note_late(g, awake_now() - due_at);
    if (g->probes < PROBES_FIRST)
        g->probes++;
}

static void watch_deadline(guard *g, dibsx_nsec now)
{
    if (g->killing || now < dibs__guard_kill_at(g->page, g->job->belief))
        return;
    report_event(g, DIBS__EVENT_OVERDUE, 0);
    start_killing(g);
}

static void run_step(guard *g)
{
    struct pollfd fds[] = {{g->orphan ? -1 : g->sock, POLLIN, 0},
                           {g->own.children, POLLIN, 0},
                           {g->own.timer, POLLIN, 0}};
    dibsx_nsec now = dibsx_now();
    int64_t wait_ms = g->killing ? dibsx_wait_ms(g->round_at, now) : -1;
    if (!g->killing)
        dibs__side_process_arm(&g->own,
                               dibs__guard_kill_at(g->page, g->job->belief));
    wait_for(g, fds, 3, (int)wait_ms);
    dibs__side_process_drain(&g->own);
    if (fds[0].revents)
        hear_orders(g);
    watch_backstop(g);
    now = dibsx_now();
    watch_deadline(g, now);
    if (g->killing && now >= g->round_at)
        kill_round(g, now);
    reap(g);
}

_Noreturn static void refuse(guard *g, dibs__event_kind kind, int number)
{
    g->clear = true;
    report_event(g, kind, number);
    _exit(0);
}

/* Only a job with a user, whose guard was forked from a process without threads,
 * has one looked up. Nothing is begun that would have to be killed at once. */
static void start_command(guard *g, pid_t group)
{
    const dibs__guard_spec *job = g->job;
    dibs__spawn_user user;
    g->stage = DIBS__STAGE_USER;
    int number = job->user ? dibs__spawn_user_find(job->user, &user) : 0;
    if (number)
        refuse(g, DIBS__EVENT_REFUSED, number);
    dibs__spawn start = {.argv = job->argv,
                         .envp = job->envp,
                         .signals = job->signals,
                         .user = job->user ? &user : NULL,
                         .dir = job->dir,
                         .tty = job->tty,
                         .stdio = {job->stdio[0], job->stdio[1], job->stdio[2]},
                         .cgroup_fd = job->means->cgroup.fd,
                         .group = job->own_group ? 0 : group,
                         .head = &g->page->head};
    if (dibsx_now() >= dibs__guard_kill_at(g->page, job->belief))
        refuse(g, DIBS__EVENT_OVERDUE, 0);
    number = dibs__spawn_start(&start, &g->child, &g->stage);
    if (number)
        refuse(g, DIBS__EVENT_REFUSED, number);
    g->head = atomic_load(&g->page->head);
}

_Noreturn void
dibs__guard_main(const dibs__guard_spec *job, dibs__guard_page *page, int sock,
                 pid_t group, pid_t backstop)
{
    guard g = {.job = job, .page = page, .sock = sock, .backstop = backstop};
    dibs__side_process_become("dibs-guard");
    if (getppid() != backstop)
        _exit(1);
    atomic_store(&page->guard, getpid());
    start_command(&g, group);
    dibs__priority_raise(&g.rank);
    /* If it cannot watch, dibs hears of it and sees to the rest. */
    if (!dibs__side_process_open(&g.own, job->means, g.sock))
        _exit(1);
    while (!g.clear)
        run_step(&g);
    if (!g.backstop)
        dibs__cgroup_remove(&job->means->cgroup);
    _exit(0);
}
