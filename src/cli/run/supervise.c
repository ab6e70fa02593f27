/* supervise.c - running the command while its lease is watched.
 *
 * One loop on the main thread: signals, the guard's events, the loss of the lease,
 * requests for it, ticks of progress, and deadlines. With ttl and the lease's end
 * `until`; of several leases it is the first to end that counts:
 *
 *     granted ..... renewal ..... term_at ...... kill_at .. last_at .. until
 *                                 |<-- grace -->|<------ margin ------>|
 *
 * Every successful renewal moves all of it on, up to the end of --hold-max.
 * Without a renewal by term_at this
 * process asks the command to end (--signal), and kills it at kill_at; the guard
 * kills it by itself, should this process not run, and the backstop at last_at,
 * should the guard not run either. The margin grows with how late the guard is woken on this
 * machine; what is left of it is for the kernel to bury the dead. */
/* SPDX-License-Identifier: MIT */
#include "cli/run/supervise.h"

#include "base/clock.h"
#include "base/fail.h"
#include "cli/run/terminal.h"
#include "exec/guard.h"
#include <dibs/lock.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* A lease that was taken away is another's already: haste. */
enum { GONE_GRACE_MS = 1000 };

/* A guard that left so many requests unanswered is stopped or hangs. */
enum { SILENT_MAX = 4, ASK_MIN_MS = 500, ASK_MAX_MS = 5000 };

/* A guard that starts the command waits for that, and so does not answer: a
 * program may be on a slow file system. It may have stopped there as well. */
enum { SILENT_STARTING_MAX = 20 };

/* A signal that comes so soon after the first is the same: a service manager sends it to
 * all processes, and a parent passes it on. */
enum { SAME_SIGNAL_MS = 1000 };

/* The first look at how late the guard is woken. */
enum { FIRST_LOOK_MS = 100 };

/* The command has this part of --hold-max to end in, if --kill-after is longer. */
enum { HOLD_GRACE_PART = 20 };

/* Members: how often to look, and the most that the command has to end in, as parts of
 * the span. A seat of theirs lives for two thirds of it. */
enum { SEAT_LOOK_PART = 12, SEAT_GRACE_PART = 10 };

typedef struct run {
    const dibs__run_opts *opts;
    dibs__outcome *out;
    dibs__lock_or_set *locks; /* NULL: nested, or there is an item */
    const dibs__work *work;   /* NULL: there is none */
    dibs__run_inputs *inputs;
    const dibs_member *member; /* NULL: none */
    uint64_t seat;
    int64_t span_ms; /* the ttl; of a seat that is short for it: less */
    int64_t margin_ms;
    dibs__guard guard;
    dibs__terminal terminal;
    int signals;                  /* signalfd */
    int lost_fds[DIBS_MULTI_MAX]; /* of each lease */
    dibsx_nsec tick_at;           /* when the command last told of progress */
    dibsx_nsec until;
    dibsx_nsec hold_until; /* the end of --hold-max; DIBSX_NEVER: no bound */
    dibsx_nsec look_at;    /* when to look at the lease next */
    dibsx_nsec term_at;
    dibsx_nsec max_run_at;
    dibsx_nsec kill_at;  /* the tree is to end: when to kill it */
    dibsx_nsec sweep_at; /* the lease ends: when to do without the guard */
    dibsx_nsec ask_at;   /* when to ask for a sign of life of the guard */
    uint32_t beats;      /* its signs so far */
    int silent;          /* how often it was asked in vain */
    bool clear;          /* nothing is left of the command's tree */
    bool gone;           /* the lease has ended, for certain */
    bool hooked;         /* the hook runs: what is left is ended after it */
    bool ending;         /* the tree was asked to end */
    bool killed;         /* ... and killed */
    bool hung_up;        /* the command was, for want of a terminal */
} run;

static dibsx_nsec earlier(dibsx_nsec a, dibsx_nsec b)
{
    return a < b ? a : b;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a < b ? b : a;
}

/* Before it ends comes renewal, which is due DIBS_RENEWALS_PER_TTL times in a ttl. */
static void plan_margin(run *r)
{
    dibsx_nsec late = r->guard.page ? atomic_load(&r->guard.page->late) : 0;
    r->margin_ms = dibs__belief_margin_ms(r->span_ms, late);
}

/* All times are parts of this. */
static int64_t span_of(const dibs__run_opts *opts, const dibs__watched *watched)
{
    return watched->member ? smaller(opts->ttl_ms, watched->seat_ms * 3 / 2)
                           : opts->ttl_ms;
}

static void plan_times(run *r, dibsx_nsec held_at, dibsx_nsec now)
{
    int64_t hold_max_ms = r->opts->request.lock.hold_max_ms;
    plan_margin(r);
    r->hold_until =
        hold_max_ms > 0 ? dibsx_after_ms(held_at, hold_max_ms) : DIBSX_NEVER;
    r->tick_at = now;
    r->until = r->kill_at = r->sweep_at = DIBSX_NEVER;
    r->look_at = r->term_at = r->max_run_at = DIBSX_NEVER;
    r->ask_at = now;
    if (r->opts->max_run_ms > 0)
        r->max_run_at = dibsx_after_ms(now, r->opts->max_run_ms);
}

/* Something can be lost: locks, or an item. */
static bool has_lease(const run *r)
{
    return r->locks || r->work;
}

static int64_t lease_valid_ms(const run *r)
{
    return r->work ? dibs_item_valid_ms(r->work->item)
                   : dibs__lock_or_set_valid_ms(r->locks);
}

static bool kills_when_lost(const run *r)
{
    return has_lease(r) && (r->opts->on_lost == DIBS__LOST_KILL ||
                            r->opts->on_lost == DIBS__LOST_EXEC);
}

/* Guard and backstop have a half of the margin each. */
static dibsx_nsec last_after(const run *r, dibsx_nsec kill_at)
{
    return dibsx_after_ms(kill_at, r->margin_ms / 2);
}

static void set_deadline(run *r, dibsx_nsec kill_at)
{
    dibs__guard_deadline(&r->guard, kill_at, last_after(r, kill_at));
}

/* A renewal has nothing to add: the lease lasts to the end of --hold-max. The
 * client counted that from a moment earlier, and leaves room for clocks that
 * differ: both are far less than this part of the ttl. */
static bool held_to_the_end(const run *r)
{
    return r->hold_until != DIBSX_NEVER &&
           r->until >= r->hold_until - r->opts->ttl_ms * DIBSX_MS / 10;
}

/* The time that the command has to end. Before a renewal is given up there is a
 * long part of the ttl; the end of --hold-max is expected, and comes late. */
static int64_t grace_ms(const run *r)
{
    int64_t most_ms = r->opts->ttl_ms / 4;
    if (held_to_the_end(r))
        most_ms = r->opts->request.lock.hold_max_ms / HOLD_GRACE_PART;
    if (r->member)
        most_ms = r->span_ms / SEAT_GRACE_PART;
    return smaller(r->opts->kill_after_ms, most_ms);
}

/* Takes over how long the lease is good for, and tells the guard. */
static void take_validity(run *r, dibsx_nsec now, int64_t valid_ms)
{
    dibsx_nsec until = dibsx_after_ms(now, valid_ms);
    if (r->until == DIBSX_NEVER || until > r->until)
        r->until = until;
    plan_margin(r);
    if (r->guard.page && kills_when_lost(r))
        set_deadline(r, r->until - r->margin_ms * DIBSX_MS);
    if (r->opts->on_lost != DIBS__LOST_IGNORE)
        r->term_at = r->until - (r->margin_ms + grace_ms(r)) * DIBSX_MS;
    r->look_at =
        dibsx_after_ms(now, r->span_ms / (r->member ? SEAT_LOOK_PART
                                                    : DIBS_RENEWALS_PER_TTL) +
                                1);
}

/* The tree is killed at `kill_at` at the latest. */
static void set_kill(run *r, dibsx_nsec kill_at)
{
    r->kill_at = earlier(r->kill_at, kill_at);
    if (!r->out->lost || !kills_when_lost(r))
        return;
    set_deadline(r, r->kill_at);
    r->sweep_at = last_after(r, r->kill_at);
}

static void end_tree(run *r, dibsx_nsec kill_at)
{
    if (!r->ending)
        dibs__guard_tell(&r->guard, DIBS__ORDER_END, r->opts->signal);
    r->ending = true;
    set_kill(r, kill_at);
}

static const char hold_over[] = "--hold-max is over";

static void say_lost(const run *r, const char *why)
{
    const char *name =
        r->locks ? dibs__lock_or_set_weakest(r->locks) : r->opts->name;
    const char *more = r->opts->on_lost == DIBS__LOST_IGNORE
                           ? "; the command goes on, as asked"
                           : "";
    if (r->opts->quiet)
        return;
    if (why == hold_over)
        dibs__cli_say("the lease on %s ends: %s%s", name, why, more);
    else
        dibs__cli_say("the lease on %s was lost: %s%s", name, why, more);
}

/* The lease is gone, or will be before it can be renewed. */
static void lose(run *r, dibsx_nsec kill_at, const char *why)
{
    if (r->out->lost) {
        if (kills_when_lost(r))
            set_kill(r, kill_at);
        return;
    }
    r->out->lost = true;
    r->look_at = r->term_at = DIBSX_NEVER;
    if (kills_when_lost(r))
        r->max_run_at = DIBSX_NEVER;
    say_lost(r, why);
    switch (r->opts->on_lost) {
    case DIBS__LOST_KILL:
        end_tree(r, kill_at);
        break;
    case DIBS__LOST_EXEC:
        set_kill(r, kill_at);
        r->hooked = true;
        dibs__guard_tell(&r->guard, DIBS__ORDER_HOOK, 0);
        break;
    case DIBS__LOST_SIGNAL:
        dibs__guard_tell(&r->guard, DIBS__ORDER_SIGNAL, r->opts->lost_signal);
        break;
    case DIBS__LOST_IGNORE:
        break;
    }
}

/* For so long enough members live, with the seat that this process had when it was
 * granted the lease. */
static int64_t enough_ms(const run *r)
{
    if (!r->member)
        return INT64_MAX;
    return dibs_member_fence(r->member) == r->seat
               ? dibs_member_enough_ms(r->member)
               : 0;
}

static bool too_few(const run *r)
{
    return enough_ms(r) < lease_valid_ms(r);
}

static int64_t valid_ms_of(const run *r)
{
    return smaller(lease_valid_ms(r), enough_ms(r));
}

static const char few_live[] = "too few members live";

static void lease_gone(run *r, dibsx_nsec now)
{
    int64_t haste_ms = smaller(r->opts->kill_after_ms, GONE_GRACE_MS);
    bool early = now + r->margin_ms * DIBSX_MS < r->until;
    r->gone = true;
    r->look_at = r->term_at = DIBSX_NEVER;
    /* Past its time another may hold it: no grace. */
    if (early)
        lose(r, dibsx_after_ms(now, haste_ms),
             too_few(r) ? few_live : "it was taken away");
    else
        lose(r, now, held_to_the_end(r) ? hold_over : "its time ran out");
}

static const char *why_not_renewed(const run *r, dibsx_nsec now)
{
    int64_t progress_ms = r->opts->progress_ms;
    if (held_to_the_end(r))
        return hold_over;
    if (too_few(r))
        return few_live;
    return progress_ms > 0 && now > dibsx_after_ms(r->tick_at, progress_ms)
               ? "the command has not told of progress"
               : "it could not be renewed in time";
}

static void look_at_lease(run *r, dibsx_nsec now)
{
    if (!has_lease(r) || r->gone)
        return;
    int64_t valid_ms = valid_ms_of(r);
    if (valid_ms <= 0) {
        lease_gone(r, now);
    } else if (!r->out->lost) {
        take_validity(r, now, valid_ms);
        if (now >= r->term_at)
            lose(r, r->until - r->margin_ms * DIBSX_MS,
                 why_not_renewed(r, now));
    }
}

static pid_t child_of(const run *r)
{
    int32_t head = atomic_load(&r->guard.page->head);
    return head < 0 ? -head : head;
}

static void say_stopped(const run *r)
{
    if (r->opts->quiet || !has_lease(r) || !isatty(STDERR_FILENO))
        return;
    char span[32];
    dibsx_duration_text(lease_valid_ms(r), span, sizeof span);
    dibs__cli_say("stopped: unless continued within %s, %s passes on%s", span,
                  r->opts->name,
                  kills_when_lost(r) ? " and the command is killed" : "");
}

/* No process could continue dibs, which has no terminal to give. The kernel would hang
 * up such a command, had it no guard; so it is hung up here. If it goes on all the same
 * and wants the terminal again, it stays stopped. */
static void hang_up(run *r)
{
    if (r->hung_up)
        return;
    r->hung_up = true;
    if (!r->opts->quiet)
        dibs__cli_say("%s: hanging up the command: it wants the terminal, "
                      "which another job has, and no shell can give it",
                      r->opts->name);
    dibs__guard_tell(&r->guard, DIBS__ORDER_SIGNAL, SIGHUP);
    dibs__guard_tell(&r->guard, DIBS__ORDER_SIGNAL, SIGCONT);
}

/* Where a shell watches over this job, its stop is ours, so that the shell sees
 * it; renewal then stops too, and the guard acts if that lasts too long. Without
 * a terminal nobody would continue us: the lease is kept while the command is
 * stopped. */
static void command_stopped(run *r, int number)
{
    bool for_tty = number == SIGTTIN || number == SIGTTOU;
    /* With --foreground the terminal has stopped us as well. */
    if (r->terminal.fd < 0 || (for_tty && r->opts->foreground))
        return;
    if (for_tty && dibs__terminal_give(&r->terminal, child_of(r))) {
        dibs__guard_tell(&r->guard, DIBS__ORDER_SIGNAL, SIGCONT);
        return;
    }
    bool was_given = r->terminal.given;
    dibs__terminal_take(&r->terminal, child_of(r));
    say_stopped(r);
    bool stopped = dibs__signal_stop(!r->opts->foreground);
    bool given = (was_given || for_tty) &&
                 dibs__terminal_give(&r->terminal, child_of(r));
    if (for_tty && !stopped && !given)
        hang_up(r);
    else
        dibs__guard_tell(&r->guard, DIBS__ORDER_SIGNAL, SIGCONT);
}

static void command_ended(run *r, int status)
{
    r->max_run_at = DIBSX_NEVER;
    if (WIFSIGNALED(status))
        r->out->exit_signal = WTERMSIG(status);
    else
        r->out->exit_status = WEXITSTATUS(status);
    r->out->interrupted = r->terminal.given && r->out->exit_signal == SIGINT;
    if (r->clear || r->ending || r->hooked)
        return;
    if (!r->opts->quiet)
        dibs__cli_say("%s: ending what the command left running",
                      r->opts->name);
    end_tree(r, dibsx_after_ms(dibsx_now(), r->opts->kill_after_ms));
}

/* The guard has killed the tree at its moment, or the backstop has. */
static void overdue(run *r, dibsx_nsec now)
{
    if (now >= atomic_load(&r->guard.page->kill_at))
        lose(r, now, "dibs did not run in time to renew it");
}

static void guard_gone(run *r, const char *how)
{
    r->out->guard_died = true;
    if (!r->opts->quiet)
        dibs__cli_say("killing the command: its guard %s", how);
    dibs__guard_sweep(&r->guard);
    r->clear = true;
}

/* Returns false when there is nothing more to hear. */
static bool hear_guard(run *r)
{
    dibs__event event = dibs__guard_hear(&r->guard);
    r->clear = r->clear || event.clear;
    switch ((dibs__event_kind)event.kind) {
    case DIBS__EVENT_NONE:
        return false;
    case DIBS__EVENT_REFUSED:
        r->out->exec_errno = event.arg;
        break;
    case DIBS__EVENT_STOPPED:
        command_stopped(r, event.arg);
        break;
    case DIBS__EVENT_ENDED:
        command_ended(r, event.arg);
        break;
    case DIBS__EVENT_HOOK:
        r->hooked = false;
        end_tree(r, r->kill_at);
        break;
    case DIBS__EVENT_OVERDUE:
        overdue(r, dibsx_now());
        break;
    case DIBS__EVENT_CLEAR:
        break;
    case DIBS__EVENT_GONE:
        overdue(r, dibsx_now());
        guard_gone(r, r->out->lost ? "does not answer" : "was killed");
        break;
    }
    return !r->clear;
}

/* The lease is kept for no longer than the guard is known to watch: stopped, it
 * would not even say that the command has ended. Only looks of this process
 * count, so that a pause of both, or of the whole machine, is none of the
 * guard's. */
static void ask_guard(run *r, dibsx_nsec now)
{
    uint32_t beats = atomic_load(&r->guard.page->beats);
    int64_t ask_ms =
        larger(ASK_MIN_MS, smaller(r->opts->ttl_ms / 8, ASK_MAX_MS));
    r->ask_at = dibsx_after_ms(now, ask_ms);
    int most = child_of(r) ? SILENT_MAX : SILENT_STARTING_MAX;
    r->silent = beats != r->beats ? 0 : r->silent + 1;
    r->beats = beats;
    if (r->silent > most)
        guard_gone(r, "does not answer");
    else
        dibs__guard_tell(&r->guard, DIBS__ORDER_LOOK, 0);
}

/* True: the signal is about this process, which stops after this item. */
static bool drain(run *r, int number)
{
    dibsx_nsec now = dibsx_now();
    if (!r->work || !dibs__signal_ends(number))
        return false;
    if (*r->work->drain_at == 0) {
        *r->work->drain_at = now;
        if (!r->opts->quiet)
            dibs__cli_say("%s: the worker stops when the command has ended; "
                          "another signal ends the command",
                          r->opts->name);
    } else if (now >= dibsx_after_ms(*r->work->drain_at, SAME_SIGNAL_MS) &&
               !r->ending) {
        r->out->stop_signal = number;
        end_tree(r, dibsx_after_ms(now, r->opts->kill_after_ms));
    }
    return true;
}

/* With --foreground the terminal signals the command itself. */
static void serve_signals(run *r)
{
    struct signalfd_siginfo info;
    while (read(r->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        int number = (int)info.ssi_signo;
        if (drain(r, number))
            continue;
        if (dibs__signal_ends(number))
            r->out->asked_to_end = true;
        if (number == SIGCONT)
            (void)dibs__terminal_give(&r->terminal,
                                      r->terminal.given ? child_of(r) : 0);
        if (!r->opts->foreground || info.ssi_code != SI_KERNEL)
            dibs__guard_tell(&r->guard, DIBS__ORDER_SIGNAL, number);
    }
}

static void serve_deadlines(run *r, dibsx_nsec now)
{
    if (now >= r->look_at || now >= r->term_at)
        look_at_lease(r, now);
    if (now >= r->max_run_at) {
        r->max_run_at = DIBSX_NEVER;
        r->out->timed_out = true;
        if (!r->opts->quiet)
            dibs__cli_say("%s: ending the command: %s is over", r->opts->name,
                          r->work ? "--limit" : "--max-run");
        end_tree(r, dibsx_after_ms(now, r->opts->kill_after_ms));
    }
    if (now >= r->kill_at && !r->killed) {
        r->killed = true;
        dibs__guard_tell(&r->guard, DIBS__ORDER_KILL, 0);
    }
    if (now >= r->sweep_at)
        guard_gone(r, "does not answer");
    else if (now >= r->ask_at)
        ask_guard(r, now);
}

/* Somebody would like to have the lock. */
static void serve_yield(run *r)
{
    if (!dibs__run_inputs_take(&r->inputs->yield_fd) || r->ending)
        return;
    if (r->opts->on_yield == DIBS__YIELD_SIGNAL) {
        dibs__guard_tell(&r->guard, DIBS__ORDER_SIGNAL, r->opts->yield_signal);
        return;
    }
    r->out->yielded = true;
    r->max_run_at = DIBSX_NEVER;
    if (!r->opts->quiet)
        dibs__cli_say("%s: ending the command: %s", r->opts->name,
                      r->opts->yield_why);
    end_tree(r, dibsx_after_ms(dibsx_now(), r->opts->kill_after_ms));
}

static void serve_ticks(run *r)
{
    if (!dibs__run_inputs_take(&r->inputs->tick_fd) || !r->locks)
        return;
    r->tick_at = dibsx_now();
    dibs__lock_or_set_tick(r->locks);
}

/* The descriptors of the loop; the rest are for the losses. */
enum { FD_GUARD, FD_SIGNALS, FD_YIELD, FD_TICKS, FD_LOST };

/* A lease that is known to be gone has nothing more to say. */
static nfds_t collect_fds(const run *r, struct pollfd *fds)
{
    nfds_t count = FD_LOST;
    fds[FD_GUARD] = (struct pollfd){r->guard.sock, POLLIN, 0};
    fds[FD_SIGNALS] = (struct pollfd){r->signals, POLLIN, 0};
    fds[FD_YIELD] = (struct pollfd){r->inputs->yield_fd, POLLIN, 0};
    fds[FD_TICKS] = (struct pollfd){r->inputs->tick_fd, POLLIN, 0};
    if (!has_lease(r) || r->gone)
        return count;
    if (r->work)
        fds[count++] = (struct pollfd){r->work->lost_fd, POLLIN, 0};
    for (size_t i = 0; r->locks && i < dibs__lock_or_set_count(r->locks); i++)
        fds[count++] = (struct pollfd){r->lost_fds[i], POLLIN, 0};
    return count;
}

/* A ring may be late, and about the item before: the clock decides. */
static void hear_loss(run *r)
{
    uint64_t rung;
    (void)!read(r->work->lost_fd, &rung, sizeof rung);
    if (dibs_item_check(r->work->item) == DIBS_OK)
        look_at_lease(r, dibsx_now());
    else
        lease_gone(r, dibsx_now());
}

static void run_step(run *r)
{
    struct pollfd fds[FD_LOST + DIBS_MULTI_MAX];
    nfds_t count = collect_fds(r, fds);
    bool lost = false;
    dibsx_nsec next = earlier(earlier(r->look_at, r->term_at),
                              earlier(r->max_run_at, r->sweep_at));
    next = earlier(next, r->ask_at);
    if (!r->killed)
        next = earlier(next, r->kill_at);
    int64_t wait_ms = dibsx_wait_ms(next, dibsx_now());
    (void)poll(fds, count, (int)smaller(wait_ms, INT32_MAX));
    for (nfds_t i = FD_LOST; i < count; i++)
        lost = lost || fds[i].revents;
    if (lost && r->work)
        hear_loss(r);
    else if (lost)
        look_at_lease(r, dibsx_now());
    if (fds[FD_SIGNALS].revents)
        serve_signals(r);
    if (fds[FD_YIELD].revents)
        serve_yield(r);
    if (fds[FD_TICKS].revents)
        serve_ticks(r);
    while (fds[FD_GUARD].revents && hear_guard(r))
        ;
    if (!r->clear)
        serve_deadlines(r, dibsx_now());
}

static dibs_status first_look(run *r, dibs_error *err)
{
    if (!has_lease(r))
        return DIBS_OK;
    dibsx_nsec now = dibsx_now();
    int64_t valid_ms = valid_ms_of(r);
    for (size_t i = 0; r->locks && i < dibs__lock_or_set_count(r->locks); i++)
        r->lost_fds[i] = dibs_lock_lost_fd(dibs__lock_or_set_lock(r->locks, i));
    take_validity(r, now, valid_ms);
    if (now >= r->term_at || valid_ms <= r->margin_ms)
        return dibsx_fail(err, DIBS_LOST,
                          "the lease on %s was lost before the command began",
                          r->opts->name);
    return DIBS_OK;
}

/* It was found to work; should it fail now, /proc is enough. */
static dibs_status
make_cgroup(const run *r, dibs__tree_means *means, dibs_error *err)
{
    if (dibs__cgroup_make(&means->cgroup) || means->proc_fd >= 0 ||
        r->opts->tree_unchecked)
        return DIBS_OK;
    return dibsx_fail_at(err, DIBS_INTERNAL, dibsx_errno_name(errno),
                         "cannot make a cgroup for the command: %s; %s",
                         strerror(errno), dibs__tree_means_advice);
}

static dibs_status start_command(run *r, char *const *envp,
                                 const dibs__watched *watched, dibs_error *err)
{
    dibs__guard_spec job = {.argv = r->opts->argv,
                            .envp = envp,
                            .hook = r->opts->lost_shell,
                            .signals = watched->signals,
                            .means = watched->means,
                            .tty = -1,
                            .stdio = {-1, r->opts->output_fd, -1},
                            .probe_ms =
                                (int)larger(10, smaller(r->opts->ttl_ms / 20,
                                                        1000)),
                            .own_group = !r->opts->foreground};
    if (r->work) {
        job.stdio[0] = r->work->stdin_fd;
    } else if (r->opts->null_stdin) {
        job.stdio[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (job.stdio[0] < 0)
            return dibsx_fail_at(err, DIBS_INTERNAL, dibsx_errno_name(errno),
                                 "cannot open /dev/null: %s", strerror(errno));
    } else if (job.own_group && dibs__terminal_wanted(&r->terminal)) {
        job.tty = r->terminal.fd;
        r->terminal.given = true;
    }
    dibsx_nsec kill_at = DIBSX_NEVER;
    if (kills_when_lost(r))
        kill_at = r->until - r->margin_ms * DIBSX_MS;
    /* The guard has its own copy of all this once it is forked. */
    dibs_status rc = dibs__guard_start(&r->guard, &job, kill_at,
                                       last_after(r, kill_at), err);
    if (has_lease(r))
        r->look_at =
            earlier(r->look_at, dibsx_after_ms(dibsx_now(), FIRST_LOOK_MS));
    dibs__run_inputs_started(r->inputs);
    if (job.stdio[0] >= 0 && !r->work)
        close(job.stdio[0]);
    return rc;
}

dibs_status
dibs__supervise(const dibs__run_opts *opts, const dibs__watched *watched,
                char *const *envp, dibs__outcome *out, dibs_error *err)
{
    run r = {.opts = opts,
             .out = out,
             .locks = watched->locks,
             .work = watched->work,
             .inputs = watched->inputs,
             .member = watched->member,
             .seat = watched->seat,
             .span_ms = span_of(opts, watched),
             .guard = {.sock = -1}};
    plan_times(&r, watched->held_at, dibsx_now());
    dibs__terminal_init(&r.terminal);
    r.signals =
        signalfd(-1, &watched->signals->served, SFD_CLOEXEC | SFD_NONBLOCK);
    dibs_status rc;
    if (r.signals < 0)
        rc = dibsx_fail_at(err, DIBS_INTERNAL, dibsx_errno_name(errno),
                           "cannot open a signalfd: %s", strerror(errno));
    else
        rc = first_look(&r, err);
    if (rc == DIBS_OK)
        rc = make_cgroup(&r, watched->means, err);
    if (rc == DIBS_OK)
        rc = start_command(&r, envp, watched, err);
    if (rc == DIBS_OK) {
        while (!r.clear)
            run_step(&r);
        dibs__terminal_take(&r.terminal, child_of(&r));
    }
    dibs__guard_end(&r.guard);
    dibs__cgroup_drop(&watched->means->cgroup);
    dibs__terminal_fini(&r.terminal);
    if (r.signals >= 0)
        close(r.signals);
    return rc;
}
