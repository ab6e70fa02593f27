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
#include "cli/option_values.h"
#include "cli/run/dry_run.h"
#include "cli/run/env.h"
#include "cli/run/inputs.h"
#include "cli/run/once.h"
#include "cli/run/options.h"
#include "cli/run/supervise.h"
#include "cli/verbs.h"
#include "exec/signals.h"
#include "exec/tree_means.h"
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LOOK_AGAIN_MS = 100 };

typedef struct task {
    const dibs__command *cmd;
    dibs__run_opts opts;
    dibs__signals signals;
    dibs__tree_means means;
    const char *
        *meta; /* what the lock is shown with; ours, if it is not NULL */
    dibs__run_inputs inputs;
    dibs_client *cl;
    dibs__held held[DIBS_MULTI_MAX]; /* the names, as they were given */
    dibs__lock_or_set locks;         /* on those that are not held above */
    bool nested;                     /* all are: there is no claim */
    bool unlocked;                   /* enabled: no; there is no client */
    dibs__run_once once;
    dibs__outcome out;
    dibsx_nsec began_at;
    dibsx_nsec held_at;
    int die_of; /* the signal that ended the wait */
    int code;
} task;

/* Looks whether a name is held further up the tree, until the store answers if
 * the request waits for it. */
static dibs_status
find_held(const task *t, const char *chain, dibs__held *held, dibs_error *err)
{
    const dibs__lock_request *request = &t->opts.request;
    dibsx_nsec until = dibsx_after_ms(t->began_at, request->lock.wait_ms);
    for (;;) {
        dibs_status rc =
            dibs__run_env_find_held(t->cl, chain, &request->lock, held, err);
        if (!dibs__lock_request_outwaits(request, rc) || dibsx_now() >= until ||
            dibs__signals_pending(&t->signals))
            return rc;
        (void)poll(NULL, 0, LOOK_AGAIN_MS);
    }
}

/* Looks whether a name is held further up the tree. With --on-unavailable=open a
 * store that is away is no reason not to go on: what the tree says is believed then,
 * for to ask for it, should the store come back, could be to wait for ourselves. */
static dibs_status
look_above(const task *t, const char *chain, dibs__held *held, dibs_error *err)
{
    const char *policy = dibs__opt_text(t->cmd, "on-unavailable");
    dibs_status rc = find_held(t, chain, held, err);
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
    for (size_t i = 0; i < t->opts.request.count && rc == DIBS_OK; i++) {
        t->held[i].name = t->opts.request.names[i];
        if (chain)
            rc = look_above(t, chain, &t->held[i], err);
        if (!t->held[i].above)
            names[count++] = t->held[i].name;
    }
    t->nested = count == 0;
    if (rc != DIBS_OK || t->nested)
        return rc;
    if (t->opts.on_yield != DIBS__YIELD_IGNORE) {
        t->opts.request.lock.on_yield = dibs__run_inputs_yield;
        t->opts.request.lock.on_yield_arg = &t->inputs;
    }
    return dibs__lock_or_set_init(&t->locks, t->cl, names, count,
                                  &t->opts.request.lock, err);
}

static void acquired(task *t)
{
    t->out.acquired = true;
    t->held_at = dibsx_now();
    t->out.waited_ms = (t->held_at - t->began_at) / DIBSX_MS;
    for (size_t i = 0; i < t->opts.request.count; i++) {
        dibs__held *held = &t->held[i];
        if (!held->above) {
            dibs_lock *lock = dibs__lock_or_set_find(&t->locks, held->name);
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
        rc = dibs__cli_acquire(t->cl, &t->locks, &t->opts.request, &t->signals,
                               &t->die_of, err);
    if (!t->die_of)
        t->die_of = dibs__signals_pending(&t->signals);
    if (rc == DIBS_OK && !t->die_of)
        acquired(t);
    return rc;
}

/* To skip is what --once asks for: cron, which mails every word, gets none. */
static int skipped(task *t)
{
    t->out.skipped = true;
    if (!t->opts.quiet && (t->opts.verbose || isatty(STDERR_FILENO)))
        dibs__cli_say("%s: not run: the slot \"%s\" has been used already",
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

/* --once-after=success: the lock is still held, so that a process that waits for
 * it finds the slot used. */
static void use_slot(task *t)
{
    dibs_error err;
    bool taken;
    dibs_status rc = dibs__run_once_take(&t->once, t->cl, &taken, &err);
    if (rc != DIBS_OK && !t->opts.quiet)
        dibs__cli_say("%s: the command succeeded, but the next run in the slot "
                      "\"%s\" repeats it, because the store did not record "
                      "that: %s",
                      t->opts.name, t->once.slot, err.message);
}

static bool succeeded(const task *t)
{
    return t->out.exit_status == 0 && t->code == 0 && !t->out.yielded;
}

static void settle_slot(task *t, bool started)
{
    if (t->opts.once_after_success && succeeded(t))
        use_slot(t);
    else if (!t->opts.once_after_success && !started)
        free_slot(t);
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
    bool locked = !t->nested && !t->unlocked;
    size_t count = t->unlocked ? 0 : t->opts.request.count;
    dibs__watched watched = {.locks = locked ? &t->locks : NULL,
                             .held_at = t->held_at,
                             .inputs = &t->inputs,
                             .signals = &t->signals,
                             .means = &t->means};
    /* Under a lock from above it is that run which hears of progress. */
    if (t->nested)
        dibs__run_inputs_close(&t->inputs);
    dibs_status rc =
        dibs__run_env_init(&env, t->held, count, t->inputs.command_fd, &err);
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
    if (t->opts.once)
        settle_slot(t, rc == DIBS_OK && !t->out.exec_errno);
}

static void give_back(task *t)
{
    dibs_error err;
    dibs_status rc = dibs__lock_or_set_release(&t->locks, &err);
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

/* Under the lock: is it still to be done? */
static dibs_status enter_slot(task *t, bool *taken, dibs_error *err)
{
    return t->opts.once_after_success
               ? dibs__run_once_look(&t->once, t->cl, taken, err)
               : dibs__run_once_take(&t->once, t->cl, taken, err);
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
        if (dibs__lock_request_outwaits(&t->opts.request, rc))
            rc = DIBS_OK;
    }
    if (rc == DIBS_OK && !taken)
        rc = get_lock(t, &err);
    if (rc == DIBS_OK && !taken && !t->die_of && t->opts.once)
        rc = enter_slot(t, &taken, &err);

    if (t->die_of)
        t->code = DIBS__EXIT_SIGNAL + t->die_of;
    else if (rc != DIBS_OK)
        t->code = dibs__lock_request_refused(t->cmd, &t->opts.request, &err);
    else if (taken)
        t->code = skipped(t);
    else
        run_command(t);
    give_back(t);
}

/* --once needs the store as the lock does. */
static void run_unlocked(task *t)
{
    const dibs__option *option = dibs__option_find("run", "enabled", 7);
    const dibs__option_value *value = dibs__option_value_of(t->cmd, option);
    if (!t->opts.quiet)
        dibs__cli_say("%s: running without a lock: enabled is no (%s)",
                      t->opts.name, value->place ? value->place : option->env);
    t->opts.once = NULL;
    run_command(t);
}

/* Others are to see that what this lock protects may be late. */
static int mark_unchecked(task *t)
{
    const char *const *given = t->opts.request.lock.meta;
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
    t->opts.request.lock.meta = t->meta;
    return 0;
}

/* Known before the lock is asked for: nobody waits in vain. */
static int find_means(task *t)
{
    dibs__tree_means_init(&t->means);
    if (t->opts.verbose)
        dibs__cli_say("the tree of the command is ended by %s",
                      dibs__tree_means_text(&t->means));
    if (t->unlocked || dibs__tree_means_whole(&t->means))
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
    if (dibs__run_inputs_open(&t->inputs,
                              t->opts.on_yield != DIBS__YIELD_IGNORE,
                              t->opts.progress_ms > 0, &err) != DIBS_OK) {
        (void)dibs__cli_fail(t->cmd, &err);
        return DIBS__EXIT_WRAPPER;
    }
    return t->unlocked
               ? 0
               : dibs__lock_request_open(t->cmd, &t->opts.request, &t->cl);
}

static int run_locked(const dibs__command *cmd)
{
    task t = {.cmd = cmd, .out = {.exit_status = -1}};
    int rc = dibs__run_opts_read(cmd, &t.opts);
    if (rc)
        return rc;
    if (dibs__opt_flag(cmd, "dry-run"))
        return dibs__dry_run(cmd, &t.opts);
    dibs__signals_block(&t.signals);
    t.began_at = dibsx_now();
    t.unlocked = !dibs__opt_flag(cmd, "enabled");
    t.code = open_all(&t);
    if (t.code)
        t.die_of = dibs__signals_pending(&t.signals);
    if (t.code == 0 && t.unlocked)
        run_unlocked(&t);
    else if (t.code == 0)
        run_under_lock(&t);
    dibs__outcome_report(&t.out, &t.opts, t.code);
    dibs__lock_or_set_fini(&t.locks);
    dibs_close(t.cl);
    dibs__run_inputs_close(&t.inputs);
    dibs__tree_means_fini(&t.means);
    dibsx_free(t.meta);
    if (t.die_of)
        dibs__signal_die(t.die_of);
    dibs__outcome_interrupt(&t.out);
    return t.code;
}

const dibs__verb dibs__verb_run = {
    .name = "run",
    .operands = "NAME [--] COMMAND [ARG...]",
    .summary = "run a command while holding a lock",
    .about =
        "Takes the lock NAME, runs COMMAND, and gives the lock back. Among "
        "all processes that use the same store, one holds the lock at a "
        "time; the others wait, or give up as -n and -w say.\n"
        "With -s many may hold it together, and -x (the default) then means "
        "alone: readers and a writer. Later readers do not overtake a "
        "waiting writer. With -p N the name is a semaphore: the command holds "
        "one of N permits, or --take K of them. A name that is in use as the "
        "other kind, or with another N, is refused (exit code 64). --also "
        "NAME holds further names at the same time, all of them or none.\n"
        "The lease is renewed while the command runs. When it is lost, by a "
        "store that stays away or a machine that slept, the whole process "
        "tree of the command is ended before another may start (see "
        "--on-lost). When the command ends, dibs also ends the processes that "
        "it left running (--signal, then KILL after --kill-after), and then "
        "gives the lock back.\n"
        "On a terminal, a command that is stopped (^Z) stops dibs too, and "
        "with it the renewal: unless it is continued in time, the lease runs "
        "out and the command is killed. Without a terminal the lease is kept "
        "while the command is stopped.\n"
        "The command finds DIBS_LOCK_NAME, DIBS_LOCK_FENCE (the fence; "
        "DIBS_LOCK_TOKEN is the same), DIBS_LOCK_OWNER and DIBS_LOCK_TTL_MS "
        "in its environment. "
        "With --also these are of the first name, DIBS_LOCK_COUNT is how "
        "many there are, and DIBS_LOCK_NAME_1, DIBS_LOCK_FENCE_1, "
        "DIBS_LOCK_NAME_2 and so on are of each, in the order given. "
        "All other variables are passed on as they are, those with passwords "
        "too (DIBS_URL, DIBS_REDIS_PASSWORD, PGPASSWORD); a password in a "
        "file is not. "
        "Options may stand before NAME, or between NAME and COMMAND.\n"
        "With --progress the command must write a byte now and then to the "
        "file descriptor whose number is in DIBS_PROGRESS_FD; when it does "
        "not, the lease is not renewed, and the command is ended before it "
        "runs out (see --on-lost). So a command that hangs does not keep the "
        "lock.\n"
        "A dibs run inside the command, of a name that is held around it, "
        "runs at once under that lock, if it gives enough: an exclusive lock "
        "for a shared one, but not the other way round.\n"
        "There is no option for sticky leases, which programs can keep "
        "between two uses: a run is one use, and gives back what it took "
        "when it ends.\n",
    .examples =
        "A cron job on many machines, run by one of them, silently skipped "
        "by the others:\n"
        "  dibs run -n -E 0 nightly-backup -- ./backup.sh\n"
        "Wait at most two minutes, and never run longer than an hour:\n"
        "  dibs run -w 2m --max-run 1h report -- make report\n"
        "Once a day over all machines; until it has succeeded, every run of "
        "the day tries again:\n"
        "  dibs run -n -E 0 --once day --once-after success report -- "
        "./report.sh\n"
        "At most four at once, over all machines:\n"
        "  dibs run -p 4 transcode -- ./transcode.sh\n"
        "Readers beside each other, the writer alone:\n"
        "  dibs run -s catalogue -- ./report.sh\n"
        "  dibs run -x catalogue -- ./import.sh\n"
        "Two accounts at once, without fear of a deadlock:\n"
        "  dibs run account:7 --also account:9 -- ./transfer.sh 7 9\n"
        "A loop that is ended when it hangs:\n"
        "  dibs run --progress 1m sync -c 'while ./step; "
        "do echo >&$DIBS_PROGRESS_FD; done'\n"
        "See what a line of a crontab would do:\n"
        "  dibs run --dry-run -n nightly-backup -- ./backup.sh\n"
        "A shell command line:\n"
        "  dibs run cleanup -c 'find /var/cache/app -mtime +7 -delete'\n",
    .exits = "0-255 the command's own exit code\n"
             "75 the lock is busy, or was not granted in time (-E)\n"
             "122 the lease was lost while the command ran\n"
             "124 --max-run ended the command\n"
             "125 dibs itself failed around the command\n"
             "126 the command was found but cannot be run\n"
             "127 the command was not found\n"
             "128+N the command died of signal N\n",
    .options = "json",
    .min_operands = 1,
    DIBS__TAKES_COMMAND,
    .run = run_locked,
};
