/* executor_main.c - the executor: a process beside a node, without threads, which can
 * therefore fork a guard for each command.
 *
 *     node --executes--> executor --forks--> backstop --> guard --> command ...
 *                                 --forks--> backstop --> guard --> command ...
 *
 *     tree:  RUNNING --its command ends, time is up, or it is to end--> ENDING
 *               |                                                         |
 *               +--nothing is left--> reported, free <--nothing is left---+
 *               +--its guard died--> SWEEPING --nothing is left--> reported
 *
 *   (1) The reason of an end is the first there is; but a tree that the guard killed
 *       at the end of belief is lost, whatever was the reason before.
 *   (2) A report is sent when nothing is left of the tree, and not before.
 *   (3) If backstop and guard of a tree die, the tree falls to this process, the next
 *       subreaper: each child of it that is no backstop is such a stray. A tree that
 *       was swept is dead when there is no stray at all.
 *   (4) When the node dies, which closes the socket, all trees are killed. When this
 *       process dies, its guards do the same.
 *   (5) Descriptor 0 is a pipe that node's other end shows as closed when this process and
 *       all guards and backstops are gone. Commands have another one there. */
/* SPDX-License-Identifier: MIT */
#include "exec/executor_main.h"

#include "base/alloc.h"
#include "exec/attempt.h"
#include "exec/executor_wire.h"
#include "exec/guard.h"
#include "exec/no_core_dump.h"
#include "exec/process_tree.h"
#include "exec/side_process.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* How often a guard is asked for a sign of life, and how often in vain: longer while
 * it starts its command, which may be on a slow file system. */
enum { ASK_MS = 2000, SILENT_MAX = 4, SILENT_STARTING_MAX = 20 };
enum { PROBE_MS = 2000, SWEEP_MS = 10 };

typedef struct tree {
    bool used;
    bool ending;   /* it was asked to end */
    bool killed;   /* ... and killed */
    bool ended;    /* the command is dead */
    bool sweeping; /* its guard is dead */
    bool clear;    /* nothing is left: the report is to be sent */
    dibs__attempt_packed what;
    dibs__tree_means means; /* the executor's, with a cgroup of its own */
    dibs__guard guard;
    dibs__report report;
    dibsx_nsec timeout_at;
    dibsx_nsec kill_at;
    uint32_t beats;
    int silent;
} tree;

typedef struct executor {
    int sock; /* -1: the node is dead */
    dibs__belief *belief;
    dibs__tree_means means;
    dibs__signals signals; /* what commands start with */
    dibs__side_process own;
    dibsx_nsec ask_at;
    tree trees[DIBS__SLOTS_MAX];
} executor;

static dibsx_nsec pick_earlier(dibsx_nsec a, dibsx_nsec b)
{
    return a < b ? a : b;
}

static void set_reason(tree *t, dibs__attempt_reason reason)
{
    if (t->report.reason == DIBS__ATTEMPT_RUNNING)
        t->report.reason = (int32_t)reason;
}

static void close_all(int *fds, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

static void end_tree(tree *t, dibs__attempt_reason reason, bool at_once)
{
    dibsx_nsec now = dibsx_now();
    set_reason(t, reason);
    if (!t->ending && !at_once)
        dibs__guard_tell(&t->guard, DIBS__ORDER_END, t->what.signal);
    t->ending = true;
    t->timeout_at = DIBSX_NEVER;
    t->kill_at =
        pick_earlier(t->kill_at,
                     at_once ? now
                             : dibsx_after_ms(now, t->what.kill_after_ms));
}

static void refuse_start(tree *t, int number, dibs__spawn_stage stage)
{
    set_reason(t, DIBS__ATTEMPT_NOT_STARTED);
    t->report.number = number;
    t->report.stage = (int32_t)stage;
    t->clear = true;
}

/* Without a cgroup /proc is enough. */
static bool find_means(executor *ex, tree *t)
{
    t->means = ex->means;
    return dibs__cgroup_make(&t->means.cgroup) || t->means.proc_fd >= 0;
}

static void start_tree(executor *ex, tree *t, const int *fds)
{
    dibs_error err;
    if (!dibs__attempt_unpack(fds[DIBS__FD_SPEC], &t->what)) {
        refuse_start(t, ENOMEM, DIBS__STAGE_FORK);
        return;
    }
    if (!find_means(ex, t)) {
        refuse_start(t, ENOSYS, DIBS__STAGE_FORK);
        return;
    }
    dibs__guard_spec job = {.argv = t->what.argv,
                            .envp = t->what.env,
                            .signals = &ex->signals,
                            .means = &t->means,
                            .belief =
                                t->what.outlives_belief ? NULL : ex->belief,
                            .dir = t->what.dir,
                            .user = t->what.user,
                            .tty = -1,
                            .stdio = {fds[DIBS__FD_STDIN], fds[DIBS__FD_STDOUT],
                                      fds[DIBS__FD_STDERR]},
                            .probe_ms = PROBE_MS,
                            .own_group = true};
    /* A program is looked for in the PATH of its own environment. */
    environ = t->what.env;
    if (dibs__guard_start(&t->guard, &job, DIBSX_NEVER, DIBSX_NEVER, &err) !=
        DIBS_OK)
        refuse_start(t, EAGAIN, DIBS__STAGE_FORK);
    environ = NULL;
    if (t->what.timeout_ms > 0)
        t->timeout_at = dibsx_after_ms(dibsx_now(), t->what.timeout_ms);
}

static void take_ask(executor *ex, const dibs__ask *ask, const int *fds)
{
    tree *t = &ex->trees[ask->slot % DIBS__SLOTS_MAX];
    switch ((dibs__ask_kind)ask->kind) {
    case DIBS__ASK_START:
        *t = (tree){.used = true,
                    .guard = {.sock = -1},
                    .means.cgroup.fd = -1,
                    .report = {.slot = ask->slot, .exit_code = -1},
                    .timeout_at = DIBSX_NEVER,
                    .kill_at = DIBSX_NEVER};
        start_tree(ex, t, fds);
        break;
    case DIBS__ASK_END:
        if (t->used && !t->clear)
            end_tree(t, (dibs__attempt_reason)ask->reason, ask->at_once);
        break;
    case DIBS__ASK_LOOK:
        atomic_fetch_add(&ex->belief->beats, 1);
        for (size_t i = 0; i < DIBS__SLOTS_MAX; i++)
            if (ex->trees[i].used && !ex->trees[i].sweeping)
                dibs__guard_tell(&ex->trees[i].guard, DIBS__ORDER_LOOK, 0);
        break;
    }
}

/* The descriptors of a message, or -1 for those that are not there. */
static void take_fds(struct msghdr *msg, int *fds)
{
    for (size_t i = 0; i < DIBS__FD_COUNT; i++)
        fds[i] = -1;
    struct cmsghdr *part = CMSG_FIRSTHDR(msg);
    if (part && part->cmsg_type == SCM_RIGHTS &&
        part->cmsg_len <= CMSG_LEN(DIBS__FD_COUNT * sizeof(int)))
        memcpy(fds, CMSG_DATA(part), part->cmsg_len - CMSG_LEN(0));
}

static void node_died(executor *ex)
{
    if (ex->sock >= 0)
        close(ex->sock);
    ex->sock = -1;
    for (size_t i = 0; i < DIBS__SLOTS_MAX; i++)
        if (ex->trees[i].used && !ex->trees[i].clear)
            end_tree(&ex->trees[i], DIBS__ATTEMPT_LOST, true);
}

static void hear_node(executor *ex)
{
    for (;;) {
        dibs__ask ask;
        int fds[DIBS__FD_COUNT];
        union {
            char bytes[CMSG_SPACE(sizeof fds)];
            struct cmsghdr align;
        } room;
        struct iovec part = {&ask, sizeof ask};
        struct msghdr msg = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = room.bytes,
                             .msg_controllen = sizeof room};
        ssize_t got = recvmsg(ex->sock, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (got != (ssize_t)sizeof ask) {
            node_died(ex);
            return;
        }
        take_fds(&msg, fds);
        take_ask(ex, &ask, fds);
        close_all(fds, DIBS__FD_COUNT);
    }
}

/* Its tree ends with the command. */
static void command_ended(tree *t, int status)
{
    t->ended = true;
    if (WIFSIGNALED(status))
        t->report.exit_signal = WTERMSIG(status);
    else
        t->report.exit_code = WEXITSTATUS(status);
    dibs__attempt_reason reason =
        status == 0 ? DIBS__ATTEMPT_OK : DIBS__ATTEMPT_FAILED;
    if (t->clear)
        set_reason(t, reason);
    else
        end_tree(t, reason, false);
}

static void guard_died(tree *t)
{
    if (!t->ended && t->report.reason == DIBS__ATTEMPT_RUNNING)
        t->report.guard_died = 1;
    set_reason(t, DIBS__ATTEMPT_LOST);
    t->sweeping = true;
}

/* The backstop, or the guard, killed at the end of belief, and the tree may have ended
 * on the way: it is lost all the same. */
static void note_overdue(const executor *ex, tree *t)
{
    if (!t->what.outlives_belief &&
        dibsx_now() >= atomic_load(&ex->belief->kill_at))
        t->report.reason = DIBS__ATTEMPT_LOST;
}

/* Returns false when there is nothing more to hear. */
static bool hear_guard(executor *ex, tree *t)
{
    dibs__event event = dibs__guard_hear(&t->guard);
    t->clear = t->clear || event.clear;
    switch ((dibs__event_kind)event.kind) {
    case DIBS__EVENT_NONE:
        return false;
    case DIBS__EVENT_REFUSED:
        refuse_start(t, event.arg, (dibs__spawn_stage)event.stage);
        break;
    case DIBS__EVENT_ENDED:
        command_ended(t, event.arg);
        break;
    case DIBS__EVENT_OVERDUE:
        t->report.reason = DIBS__ATTEMPT_LOST;
        break;
    case DIBS__EVENT_STOPPED:
    case DIBS__EVENT_HOOK:
    case DIBS__EVENT_CLEAR:
        break;
    case DIBS__EVENT_GONE:
        note_overdue(ex, t);
        guard_died(t);
        return false;
    }
    return !t->clear;
}

/* Its processes are dead, and so is, or will be at once, what guarded them. */
static void free_tree(tree *t)
{
    pid_t backstop = t->guard.pid;
    if (backstop > 0) {
        (void)kill(backstop, SIGKILL);
        while (waitpid(backstop, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    t->guard.pid = 0;
    if (t->guard.page)
        dibs__guard_end(&t->guard);
    dibs__cgroup_remove(&t->means.cgroup);
    if (t->means.cgroup.fd >= 0)
        close(t->means.cgroup.fd);
    dibs__attempt_packed_fini(&t->what);
    t->used = false;
}

/* The report waits while the node does not read: it may be stopped. */
static void send_report(executor *ex, tree *t)
{
    if (ex->sock >= 0 &&
        send(ex->sock, &t->report, sizeof t->report,
             MSG_DONTWAIT | MSG_NOSIGNAL) < 0 &&
        (errno == EAGAIN || errno == EINTR))
        return;
    free_tree(t);
}

/* Reaps strays, and backstops, which are then known to be dead. */
static void reap_children(executor *ex)
{
    pid_t pid;
    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
        for (size_t i = 0; i < DIBS__SLOTS_MAX; i++)
            if (ex->trees[i].used && ex->trees[i].guard.pid == pid)
                ex->trees[i].guard.pid = 0;
}

static void kill_backstop(tree *t)
{
    if (t->guard.pid > 0)
        (void)kill(t->guard.pid, SIGKILL);
    if (t->means.cgroup.fd >= 0)
        (void)dibs__cgroup_kill(t->means.cgroup.fd);
}

static bool cgroup_empty(const tree *t)
{
    int count = 0;
    return t->means.cgroup.fd >= 0 &&
           dibs__cgroup_signal(t->means.cgroup.fd, 0, 0, &count) && count == 0;
}

/* Ends what has no guard any more. True: there is such a tree. */
static bool sweep_trees(executor *ex)
{
    pid_t known[DIBS__SLOTS_MAX];
    size_t count = 0;
    bool any = false;
    for (size_t i = 0; i < DIBS__SLOTS_MAX; i++) {
        tree *t = &ex->trees[i];
        if (t->used && t->sweeping && !t->clear) {
            any = true;
            kill_backstop(t);
        } else if (t->used && t->guard.pid > 0) {
            known[count++] = t->guard.pid;
        }
    }
    if (!any)
        return false;
    dibs__tree_count strays = dibs__tree_kill_strays(&ex->means, known, count);
    for (size_t i = 0; i < DIBS__SLOTS_MAX; i++) {
        tree *t = &ex->trees[i];
        if (t->used && t->sweeping && !t->clear)
            t->clear = strays.blind ? cgroup_empty(t) : strays.sent == 0;
    }
    return true;
}

/* A guard that does not answer is stopped or hangs, and would not even say that its
 * command has ended. */
static void ask_guard(tree *t)
{
    uint32_t beats = atomic_load(&t->guard.page->beats);
    int most =
        atomic_load(&t->guard.page->head) ? SILENT_MAX : SILENT_STARTING_MAX;
    t->silent = beats != t->beats ? 0 : t->silent + 1;
    t->beats = beats;
    if (t->silent > most)
        guard_died(t);
    else
        dibs__guard_tell(&t->guard, DIBS__ORDER_LOOK, 0);
}

static void serve_tree(executor *ex, tree *t, dibsx_nsec now)
{
    if (t->clear) {
        send_report(ex, t);
        return;
    }
    if (t->sweeping)
        return;
    if (now >= t->timeout_at)
        end_tree(t, DIBS__ATTEMPT_TIMEOUT, false);
    if (now >= t->kill_at && !t->killed) {
        t->killed = true;
        dibs__guard_tell(&t->guard, DIBS__ORDER_KILL, 0);
    }
    if (now >= ex->ask_at)
        ask_guard(t);
}

/* Does what is due. Returns how many trees there are; *next is when to look again,
 * *waits that a report does. */
static size_t serve_trees(executor *ex, dibsx_nsec *next, bool *waits)
{
    dibsx_nsec now = dibsx_now();
    size_t count = 0;
    *next = DIBSX_NEVER;
    *waits = false;
    for (size_t i = 0; i < DIBS__SLOTS_MAX; i++) {
        tree *t = &ex->trees[i];
        if (!t->used)
            continue;
        serve_tree(ex, t, now);
        if (!t->used)
            continue;
        count++;
        *waits = *waits || t->clear;
        *next = pick_earlier(*next, pick_earlier(t->timeout_at,
                                                 t->killed ? DIBSX_NEVER
                                                           : t->kill_at));
    }
    if (now >= ex->ask_at)
        ex->ask_at = dibsx_after_ms(now, ASK_MS);
    if (count > 0)
        *next = pick_earlier(*next, ex->ask_at);
    return count;
}

enum { FD_NODE, FD_CHILDREN, FD_TIMER, FD_TREES };

/* Waits, then hears whoever has something to say. */
static void hear_all(executor *ex, dibsx_nsec next, bool waits, bool sweeps)
{
    struct pollfd fds[FD_TREES + DIBS__SLOTS_MAX];
    tree *whose[FD_TREES + DIBS__SLOTS_MAX];
    nfds_t count = FD_TREES;
    fds[FD_NODE] =
        (struct pollfd){ex->sock, (short)(waits ? POLLIN | POLLOUT : POLLIN),
                        0};
    fds[FD_CHILDREN] = (struct pollfd){ex->own.children, POLLIN, 0};
    fds[FD_TIMER] = (struct pollfd){ex->own.timer, POLLIN, 0};
    for (size_t i = 0; i < DIBS__SLOTS_MAX; i++) {
        tree *t = &ex->trees[i];
        if (!t->used || t->sweeping || t->clear)
            continue;
        whose[count] = t;
        fds[count++] = (struct pollfd){t->guard.sock, POLLIN, 0};
    }
    dibs__side_process_arm(&ex->own, next);
    (void)poll(fds, count, sweeps ? SWEEP_MS : -1);
    dibs__side_process_drain(&ex->own);
    for (nfds_t i = FD_TREES; i < count; i++)
        while (fds[i].revents && hear_guard(ex, whose[i]))
            ;
    reap_children(ex);
    if (ex->sock >= 0 && (fds[FD_NODE].revents & ~POLLOUT))
        hear_node(ex);
}

_Noreturn static void run_executor(executor *ex)
{
    for (;;) {
        dibsx_nsec next;
        bool waits;
        bool sweeps = sweep_trees(ex);
        if (serve_trees(ex, &next, &waits) == 0 && ex->sock < 0)
            _exit(0);
        hear_all(ex, next, waits, sweeps);
    }
}

static int number_of(const char *text)
{
    char *end = NULL;
    long number = strtol(text, &end, 10);
    return *text && *end == '\0' && number > 2 && number < 1 << 20 ? (int)number
                                                                   : -1;
}

void dibs__executor_play(int argc, char **argv)
{
    static executor ex;
    if (argc != 3 || strcmp(argv[0], DIBS__EXECUTOR_NAME) != 0)
        return;
    dibs__core_dump_forbid();
    ex.sock = number_of(argv[1]);
    int page_fd = number_of(argv[2]);
    void *page = mmap(NULL, sizeof *ex.belief, PROT_READ | PROT_WRITE,
                      MAP_SHARED, page_fd, 0);
    if (ex.sock < 0 || page == MAP_FAILED)
        _exit(1);
    ex.belief = page;
    sigemptyset(&ex.signals.old_mask);
    ex.signals.old_chld.sa_handler = SIG_DFL;
    dibs__side_process_become(DIBS__EXECUTOR_NAME);
    dibs__tree_means_init(&ex.means);
    if (!dibs__side_process_open(&ex.own, &ex.means, ex.sock))
        _exit(1);
    (void)fcntl(ex.sock, F_SETFD, FD_CLOEXEC);
    run_executor(&ex);
}
