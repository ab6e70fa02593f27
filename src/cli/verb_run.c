/* verb_run.c - `dibs run NAME [--] COMMAND...`: run a command under a lock.
 *
 * The parts, in the order in which they come to work: run_opts (what was asked),
 * signals, nested (is the lock held further up?), once (was it run already?),
 * waiting (get the lock), supervise (run the command), and here the way from one
 * to the next and the exit code. Main thread only. */
/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "base/fail.h"
#include "cli/command.h"
#include "cli/nested.h"
#include "cli/once.h"
#include "cli/run_opts.h"
#include "cli/signals.h"
#include "cli/supervise.h"
#include "cli/verbs.h"
#include "cli/waiting.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct task {
    const dibs__command *cmd;
    dibs__run_opts opts;
    dibs__signals signals;
    dibs_client *cl;
    dibs_lock *lock; /* NULL when nested */
    dibs__held held;
    dibs__once once;
    dibs__outcome out;
    dibsx_nsec began_at;
    int die_of; /* the signal that ended the wait */
    int code;
} task;

static dibs_status make_lock(task *t, dibs_error *err)
{
    const dibs__run_opts *o = &t->opts;
    return dibs_lock_new(
        t->cl, o->name,
        DIBS_LOCK_OPTS(.ttl_ms = o->ttl_ms, .wait_ms = o->wait_ms,
                       .flags = o->flags, .retries = o->retries,
                       .retry_delay_ms = o->retry_delay_ms,
                       .hold_min_ms = o->hold_min_ms,
                       .hold_max_ms = o->hold_max_ms, .priority = o->priority,
                       .label = o->label),
        &t->lock, err);
}

/* Under cron `-E 0` means that a busy lock is no news. */
static int busy(const task *t, const dibs_error *err)
{
    if (t->opts.busy_code != 0)
        (void)dibs__cli_fail(t->cmd, err);
    return t->opts.busy_code;
}

static int failed(const task *t, dibs_status rc, const dibs_error *err)
{
    if (rc == DIBS_BUSY || rc == DIBS_TIMEOUT)
        return busy(t, err);
    return dibs__cli_fail(t->cmd, err);
}

static void acquired(task *t)
{
    t->out.acquired = true;
    t->out.waited_ms = (dibsx_now() - t->began_at) / DIBSX_MS;
    if (t->lock) {
        dibs_lock_owner(t->lock, t->held.owner);
        t->held.fence = dibs_lock_fence(t->lock);
        t->held.ttl_ms = t->opts.ttl_ms;
    }
    t->out.nested = !t->lock;
    t->out.fence = t->held.fence;
    if (t->opts.verbose)
        dibs__cli_say("%s %s after %" PRId64 " ms, fence %" PRIu64,
                      t->lock ? "got" : "already holding", t->opts.name,
                      t->out.waited_ms, t->out.fence);
}

/* Takes the lock, unless it is held further up the tree. */
static dibs_status get_lock(task *t, dibs_error *err)
{
    bool nested = false;
    t->held.name = t->opts.name;
    const char *chain = getenv("DIBS_LOCK_CHAIN");
    dibs_status rc = DIBS_OK;
    if (chain)
        rc = dibs__nested_find(t->cl, chain, &t->held, &nested, err);
    if (rc == DIBS_OK && !nested)
        rc = make_lock(t, err);
    if (rc == DIBS_OK && t->lock)
        rc = dibs__wait_acquire(t->cl, t->lock, &t->opts, &t->signals,
                                &t->die_of, err);
    if (!t->die_of)
        t->die_of = dibs__signals_pending(&t->signals);
    if (rc == DIBS_OK && !t->die_of)
        acquired(t);
    return rc;
}

static int skipped(task *t)
{
    t->out.skipped = true;
    if (!t->opts.quiet)
        dibs__cli_say("%s: not run: the slot \"%s\" has been started already",
                      t->opts.name, t->once.slot);
    return 0;
}

static void say_not_started(const task *t)
{
    if (!t->opts.quiet)
        dibs__cli_say("cannot run %s: %s", t->opts.argv[0],
                      strerror(t->out.exec_errno));
}

/* The command did not start: the slot is free for who can. */
static void free_slot(task *t)
{
    dibs_error err;
    dibs_status rc = dibs__once_undo(&t->once, t->cl, &err);
    if (rc != DIBS_OK && rc != DIBS_STALE && rc != DIBS_NOTFOUND)
        (void)dibs__cli_fail(t->cmd, &err);
}

static int start_failed(task *t, dibs_status rc, const dibs_error *err)
{
    int code = dibs__cli_fail(t->cmd, err);
    t->out.lost = rc == DIBS_LOST;
    if (t->out.lost)
        return t->opts.lost_code;
    return rc == DIBS_INTERNAL ? DIBS__EXIT_WRAPPER : code;
}

static void run_command(task *t)
{
    dibs_error err;
    char **envp = NULL;
    dibsx_nsec from_at = dibsx_now();
    dibs_status rc =
        dibs__childenv_make(&t->held, t->lock != NULL, &envp, &err);
    if (rc == DIBS_OK)
        rc = dibs__supervise(&t->opts, t->lock, envp, &t->signals, &t->out,
                             &err);
    dibs__childenv_free(envp);
    t->out.held_ms = (dibsx_now() - from_at) / DIBSX_MS;
    if (rc != DIBS_OK)
        t->code = start_failed(t, rc, &err);
    else
        t->code = dibs__outcome_code(&t->out, &t->opts);
    if (t->out.exec_errno)
        say_not_started(t);
    if (t->opts.once && (rc != DIBS_OK || t->out.exec_errno))
        free_slot(t);
}

static void give_back(task *t)
{
    if (!t->lock || dibs_lock_state_get(t->lock) == DIBS_LOCK_FREE)
        return;
    dibs_error err;
    dibs_status rc = dibs_lock_release(t->lock, &err);
    bool expected = t->out.lost || (t->out.skipped && rc == DIBS_LOST);
    if (rc == DIBS_OK || expected)
        return;
    if (rc == DIBS_LOST) {
        t->out.lost = true;
        if (t->out.exit_status >= 0 || t->out.exit_signal)
            t->code = dibs__outcome_code(&t->out, &t->opts);
    }
    (void)dibs__cli_fail(t->cmd, &err);
}

static void run_under_lock(task *t)
{
    dibs_error err;
    bool taken = false;
    dibs_status rc = DIBS_OK;
    if (t->opts.once) {
        rc = dibs__once_init(&t->once, t->opts.name, t->opts.once,
                             dibsx_wall_us(), &err);
        /* Who comes late need not queue for the lock to hear so. */
        if (rc == DIBS_OK)
            rc = dibs__once_look(&t->once, t->cl, &taken, &err);
    }
    if (rc == DIBS_OK && !taken)
        rc = get_lock(t, &err);
    if (rc == DIBS_OK && !taken && !t->die_of && t->opts.once)
        rc = dibs__once_take(&t->once, t->cl, &taken, &err);

    if (t->die_of)
        t->code = DIBS__EXIT_SIGNAL + t->die_of;
    else if (rc != DIBS_OK)
        t->code = failed(t, rc, &err);
    else if (taken)
        t->code = skipped(t);
    else
        run_command(t);
    give_back(t);
}

int dibs__verb_run(const dibs__command *cmd)
{
    task t = {.cmd = cmd, .out = {.exit_status = -1}};
    int rc = dibs__run_opts_read(cmd, &t.opts);
    if (rc)
        return rc;
    dibs__signals_block(&t.signals);
    t.began_at = dibsx_now();
    t.code = dibs__cli_open(cmd, &t.cl);
    if (t.code == 0)
        run_under_lock(&t);
    dibs__outcome_report(&t.out, &t.opts, t.code);
    dibs_lock_free(t.lock);
    dibs_close(t.cl);
    if (t.die_of)
        dibs__signal_die(t.die_of);
    /* The terminal was the command's, so that ^C reached it alone. Without it
     * the whole job would have been told, the script around us for one. */
    if (t.out.interrupted && !t.out.lost && !t.out.timed_out) {
        kill(0, SIGINT);
        dibs__signal_die(SIGINT);
    }
    return t.code;
}
