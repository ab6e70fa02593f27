/* verb_run.c - `dibs run NAME [--] COMMAND...`: run a command under a lock.
 *
 * The parts, in the order in which they come to work: run_opts (what was asked),
 * signals, means (can the command's tree be ended?), feeds, nested (is the lock held further up?), once (was it run
 * already?), waiting (get the lock), supervise (run the command), and here the
 * way from one to the next and the exit code. Main thread only. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"
#include "cli/command.h"
#include "cli/lock_acquire.h"
#include "cli/lock_or_set.h"
#include "cli/run/env.h"
#include "cli/run/inputs.h"
#include "cli/run/once.h"
#include "cli/run/options.h"
#include "cli/run/supervise.h"
#include "cli/verbs.h"
#include "exec/signals.h"
#include "exec/tree_means.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct task {
    const dibs__command *cmd;
    dibs__run_opts opts;
    dibs__signals signals;
    dibs__tree_means means;
    const char *
        *meta; /* what the lock is shown with; ours, if it is not NULL */
    dibs__run_inputs feeds;
    dibs_client *cl;
    dibs__held held[DIBS_MULTI_MAX]; /* the names, as they were given */
    dibs__lock_or_set claim;         /* on those that are not held above */
    bool nested;                     /* all are: there is no claim */
    dibs__run_once once;
    dibs__outcome out;
    dibsx_nsec began_at;
    int die_of; /* the signal that ended the wait */
    int code;
} task;

/* Looks whether a name is held further up the tree. With --on-unavailable=open a
 * store that is away is no reason not to go on: what the tree says is believed then,
 * for to ask for it, should the store come back, could be to wait for ourselves. */
static dibs_status
look_above(const task *t, const char *chain, dibs__held *held, dibs_error *err)
{
    const char *policy = dibs__opt_text(t->cmd, "on-unavailable");
    dibs_status rc =
        dibs__run_env_find_held(t->cl, chain, &t->opts.want.lock, held, err);
    if ((rc != DIBS_UNAVAIL && rc != DIBS_UNKNOWN) ||
        strcmp(policy, "open") != 0)
        return rc;
    if (!t->opts.quiet)
        dibs__cli_say("away: the store is away, running without locks: %s",
                      err->message);
    held->above = true;
    held->ttl_ms = t->opts.ttl_ms;
    return DIBS_OK;
}

/* A claim on what is not held further up the tree already. */
static dibs_status make_claim(task *t, dibs_error *err)
{
    const char *chain = getenv("DIBS_LOCK_CHAIN");
    const char *names[DIBS_MULTI_MAX];
    size_t count = 0;
    dibs_status rc = DIBS_OK;
    for (size_t i = 0; i < t->opts.want.count && rc == DIBS_OK; i++) {
        t->held[i].name = t->opts.want.names[i];
        if (chain)
            rc = look_above(t, chain, &t->held[i], err);
        if (!t->held[i].above)
            names[count++] = t->held[i].name;
    }
    t->nested = count == 0;
    if (rc != DIBS_OK || t->nested)
        return rc;
    if (t->opts.on_yield != DIBS__YIELD_IGNORE) {
        t->opts.want.lock.on_yield = dibs__run_inputs_yield;
        t->opts.want.lock.on_yield_arg = &t->feeds;
    }
    return dibs__lock_or_set_init(&t->claim, t->cl, names, count,
                                  &t->opts.want.lock, err);
}

static void acquired(task *t)
{
    t->out.acquired = true;
    t->out.waited_ms = (dibsx_now() - t->began_at) / DIBSX_MS;
    for (size_t i = 0; i < t->opts.want.count; i++) {
        dibs__held *held = &t->held[i];
        if (!held->above) {
            dibs_lock *lock = dibs__lock_or_set_find(&t->claim, held->name);
            dibs_lock_owner(lock, held->owner);
            held->fence = dibs_lock_fence(lock);
            held->ttl_ms = t->opts.ttl_ms;
        }
        if (t->opts.verbose)
            dibs__cli_say("%s is %s after %" PRId64 " ms, fence %" PRIu64,
                          held->name, held->above ? "held already" : "acquired",
                          t->out.waited_ms, held->fence);
    }
    t->out.nested = t->nested;
    t->out.fence = t->held[0].fence;
}

static dibs_status get_lock(task *t, dibs_error *err)
{
    dibs_status rc = make_claim(t, err);
    if (rc == DIBS_OK && !t->nested)
        rc = dibs__cli_acquire(t->cl, &t->claim, &t->opts.want, &t->signals,
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
    dibs_status rc = dibs__run_once_undo(&t->once, t->cl, &err);
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
    dibs__run_env env;
    dibsx_nsec from_at = dibsx_now();
    dibs__watched watched = {.claim = t->nested ? NULL : &t->claim,
                             .feeds = &t->feeds,
                             .signals = &t->signals,
                             .means = &t->means};
    /* Under a lock from above it is that run which hears of progress. */
    if (t->nested)
        dibs__run_inputs_close(&t->feeds);
    dibs_status rc = dibs__run_env_init(&env, t->held, t->opts.want.count,
                                        t->feeds.command_fd, &err);
    if (rc == DIBS_OK)
        rc = dibs__supervise(&t->opts, &watched, env.vars, &t->out, &err);
    dibs__run_env_fini(&env);
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
    dibs_error err;
    dibs_status rc = dibs__lock_or_set_release(&t->claim, &err);
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
        rc = dibs__run_once_init(&t->once, t->opts.name, t->opts.once,
                                 dibsx_wall_us(), &err);
        /* A process that comes late need not queue to find that out. */
        if (rc == DIBS_OK)
            rc = dibs__run_once_look(&t->once, t->cl, &taken, &err);
    }
    if (rc == DIBS_OK && !taken)
        rc = get_lock(t, &err);
    if (rc == DIBS_OK && !taken && !t->die_of && t->opts.once)
        rc = dibs__run_once_take(&t->once, t->cl, &taken, &err);

    if (t->die_of)
        t->code = DIBS__EXIT_SIGNAL + t->die_of;
    else if (rc != DIBS_OK)
        t->code = dibs__lock_request_refused(t->cmd, &t->opts.want, &err);
    else if (taken)
        t->code = skipped(t);
    else
        run_command(t);
    give_back(t);
}

/* Others are to see that what this lock protects may be late. */
static int mark_unchecked(task *t)
{
    const char *const *given = t->opts.want.lock.meta;
    size_t count = 0;
    while (given[count])
        count++;
    t->meta = dibsx_zalloc_n(count + 2, sizeof *t->meta);
    if (!t->meta) {
        (void)dibs__cli_nomem("the metadata of the lease");
        return DIBS__EXIT_WRAPPER;
    }
    memcpy(t->meta, given, count * sizeof *t->meta);
    t->meta[count] = "tree=unchecked";
    t->opts.want.lock.meta = t->meta;
    return 0;
}

/* Known before the lock is asked for: nobody waits in vain. */
static int find_means(task *t)
{
    dibs__tree_means_init(&t->means);
    if (t->opts.verbose)
        dibs__cli_say("the tree of the command is ended by %s",
                      dibs__tree_means_text(&t->means));
    if (dibs__tree_means_whole(&t->means))
        return 0;
    if (t->opts.tree_unchecked)
        return mark_unchecked(t);
    if (!t->opts.quiet)
        dibs__cli_say("cannot run %s: the processes that it starts could not "
                      "be found, to end them before the lease passes on: %s",
                      t->opts.argv[0], dibs__tree_means_advice);
    return DIBS__EXIT_WRAPPER;
}

static int open_all(task *t)
{
    dibs_error err;
    int code = find_means(t);
    if (code)
        return code;
    if (dibs__run_inputs_open(&t->feeds, t->opts.on_yield != DIBS__YIELD_IGNORE,
                              t->opts.progress_ms > 0, &err) != DIBS_OK) {
        (void)dibs__cli_fail(t->cmd, &err);
        return DIBS__EXIT_WRAPPER;
    }
    return dibs__cli_open(t->cmd, &t->cl);
}

int dibs__verb_run(const dibs__command *cmd)
{
    task t = {.cmd = cmd, .out = {.exit_status = -1}};
    int rc = dibs__run_opts_read(cmd, &t.opts);
    if (rc)
        return rc;
    dibs__signals_block(&t.signals);
    t.began_at = dibsx_now();
    t.code = open_all(&t);
    if (t.code == 0)
        run_under_lock(&t);
    dibs__outcome_report(&t.out, &t.opts, t.code);
    dibs__lock_or_set_fini(&t.claim);
    dibs_close(t.cl);
    dibs__run_inputs_close(&t.feeds);
    dibs__tree_means_fini(&t.means);
    dibsx_free(t.meta);
    if (t.die_of)
        dibs__signal_die(t.die_of);
    /* The terminal was the command's, so that ^C reached it alone. Without it
     * ^C would have reached the whole job, the script around us for one. */
    if (t.out.interrupted && !t.out.lost && !t.out.timed_out) {
        kill(0, SIGINT);
        dibs__signal_die(SIGINT);
    }
    return t.code;
}
