/* verb_wait.c - wait: until locks are free.
 *
 * Looks at the store again and again: a store notifies the parties of a name, and this
 * verb takes nothing and stands in no queue. It looks often at first, so that a short
 * wait ends soon, and at the moment at which the last lease ends. Main thread only. */
/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "cli/options.h"
#include "cli/poll_verb.h"
#include "cli/print.h"
#include "cli/verbs.h"

#include <unistd.h>

enum { TELL_AFTER_MS = 1000, WHY_MAX = 4096 };

/* The first pause, and the part of the wait so far that a later one takes. */
enum { FIRST_PAUSE_MS = 10, PAUSE_PART = 8 };

typedef struct waiting {
    const dibs__command *cmd;
    dibsx_nsec begun_at;
    dibsx_nsec give_up_at;
    dibsx_nsec tell_at;    /* when to say who is in the way */
    dibsx_nsec away_since; /* the store has not answered since; 0: it has */
    dibsx_buf why;         /* the first name that is not free, and its holder */
    dibs__report report;   /* of this look; the list of names is open */
    size_t busy;           /* names that are not free */
    int64_t ends_ms;       /* then all are free, if nobody renews or comes */
} waiting;

static void begin_look(waiting *wt)
{
    dibsx_buf_init(&wt->why, WHY_MAX);
    dibs__report_begin(&wt->report);
    dibsx_json_key(&wt->report.js, "locks");
    dibsx_json_open(&wt->report.js, '[');
    wt->busy = 0;
    wt->ends_ms = 0;
}

static void drop_look(waiting *wt)
{
    dibsx_buf_fini(&wt->why);
    dibsx_buf_fini(&wt->report.buf);
}

/* "nightly is held by web-3 pid 812 (backup) for 4.2s, 2 waiting" */
static void put_why(dibsx_buf *why, const dibs_lease_info *info)
{
    const dibs_party *holder = info->holders;
    char span[32];

    dibsx_buf_puts(why, info->name);
    if (info->holder_count == 0) {
        dibsx_buf_puts(why, " is about to be granted");
    } else {
        dibsx_duration_text(holder->left ? holder->left_ms : holder->age_ms,
                            span, sizeof(span));
        dibsx_buf_puts(why,
                       holder->left ? " is kept closed by " : " is held by ");
        dibs__party_text(why, holder);
        dibsx_buf_printf(why, holder->left ? " for another %s" : " for %s",
                         span);
    }
    if (info->holder_count > 1)
        dibsx_buf_printf(why, ", and by %zu more", info->holder_count - 1);
    if (info->waiter_count > 0)
        dibsx_buf_printf(why, ", %zu waiting", info->waiter_count);
}

static void note_ends(waiting *wt, const dibs_party *parties, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (parties[i].left_ms > wt->ends_ms)
            wt->ends_ms = parties[i].left_ms;
}

static bool note_busy(const dibs_lease_info *info, void *arg)
{
    waiting *wt = arg;

    if (wt->busy++ == 0)
        put_why(&wt->why, info);
    note_ends(wt, info->holders, info->holder_count);
    note_ends(wt, info->waiters, info->waiter_count);
    dibsx_json_open(&wt->report.js, '{');
    dibs__json_lease(&wt->report.js, info);
    dibsx_json_close(&wt->report.js, '}');
    return false;
}

/* Prints the last look as JSON, if that is asked for. */
static int print_look(waiting *wt)
{
    dibsx_nsec waited = dibsx_now() - wt->begun_at;
    int code;

    if (!dibs__opt_flag(wt->cmd, "json"))
        return 0;
    dibsx_json_close(&wt->report.js, ']');
    dibsx_json_pair_bool(&wt->report.js, "free", wt->busy == 0);
    dibsx_json_pair_int(&wt->report.js, "waited_ms", waited / DIBSX_MS);
    code = dibs__report_end(&wt->report);
    dibs__report_begin(&wt->report);
    return code;
}

static int give_up(waiting *wt)
{
    int busy_code = (int)dibs__opt_int(wt->cmd, "conflict-exit-code");
    int code = print_look(wt);

    if (busy_code && !dibs__opt_flag(wt->cmd, "quiet"))
        dibs__cli_say("%s", dibsx_buf_text(&wt->why));
    return code ? code : busy_code ? busy_code : DIBS__POLL_ENOUGH;
}

/* Says once that the store is away, and once that it is back. */
static int await_store(waiting *wt, const dibs_error *err)
{
    bool first = wt->away_since == 0;
    dibsx_nsec now = dibsx_now();

    if (!err->retriable || now >= wt->give_up_at)
        return dibs__cli_fail(wt->cmd, err);
    if (first)
        wt->away_since = now;
    return first ? dibs__poll_verb_failed(wt->cmd, err) : 0;
}

static void note_store_back(waiting *wt)
{
    char span[32];

    if (wt->away_since == 0)
        return;
    dibsx_duration_text((dibsx_now() - wt->away_since) / DIBSX_MS, span,
                        sizeof(span));
    if (!dibs__opt_flag(wt->cmd, "quiet"))
        dibs__cli_say("the store answers again, after %s", span);
    wt->away_since = 0;
}

static void tell_if_due(waiting *wt)
{
    if (dibsx_now() < wt->tell_at)
        return;
    wt->tell_at = DIBSX_NEVER;
    dibs__cli_say("waiting: %s", dibsx_buf_text(&wt->why));
}

static int look_at_all(const dibs__command *cmd, dibs_client *cl, void *arg)
{
    waiting *wt = arg;
    dibs_error err = {0};
    dibs_status rc = DIBS_OK;
    int code;

    drop_look(wt);
    begin_look(wt);
    for (char *const *name = dibs__operands(cmd); *name && rc == DIBS_OK;
         name++) {
        rc = dibs_lease_show(cl, *name, note_busy, wt, &err);
        if (rc == DIBS_NOTFOUND)
            rc = DIBS_OK;
    }
    if (rc != DIBS_OK)
        return await_store(wt, &err);
    note_store_back(wt);
    if (wt->busy == 0) {
        code = print_look(wt);
        return code ? code : DIBS__POLL_ENOUGH;
    }
    if (dibsx_now() >= wt->give_up_at)
        return give_up(wt);
    tell_if_due(wt);
    return 0;
}

/* A wait may take an eighth longer than it must, up to the interval. */
static int64_t choose_pause_ms(const waiting *wt, int64_t interval_ms)
{
    dibsx_nsec now = dibsx_now();
    int64_t pause_ms = (now - wt->begun_at) / DIBSX_MS / PAUSE_PART;
    int64_t left_ms = dibsx_wait_ms(wt->give_up_at, now);

    if (pause_ms < FIRST_PAUSE_MS)
        pause_ms = FIRST_PAUSE_MS;
    if (pause_ms > interval_ms)
        pause_ms = interval_ms;
    if (wt->busy > 0 && wt->ends_ms < pause_ms)
        pause_ms = wt->ends_ms + 1;
    /* The last look is at the end of the wait. */
    return left_ms >= 0 && left_ms < pause_ms ? left_ms : pause_ms;
}

static int rest(const dibs__signals *sig, int64_t interval_ms, void *arg)
{
    return dibs__poll_rest(sig, choose_pause_ms(arg, interval_ms), arg);
}

/* With -v at once, on a terminal after a while, else never. */
static dibsx_nsec when_to_tell(const dibs__command *cmd, dibsx_nsec now)
{
    if (dibs__opt_flag(cmd, "quiet"))
        return DIBSX_NEVER;
    if (dibs__opt_flag(cmd, "verbose"))
        return now;
    return isatty(STDERR_FILENO) ? dibsx_after_ms(now, TELL_AFTER_MS)
                                 : DIBSX_NEVER;
}

static int wait_for_locks(const dibs__command *cmd)
{
    dibsx_nsec now = dibsx_now();
    bool once = dibs__opt_flag(cmd, "nonblock");
    waiting wt = {.cmd = cmd, .begun_at = now};
    int code;

    if (once && dibs__opt_given(cmd, "wait")) {
        dibs__cli_say("wait: one of --nonblock and --wait");
        return DIBS__EXIT_USAGE;
    }
    wt.give_up_at = dibsx_after_ms(now, once ? 0 : dibs__opt_ms(cmd, "wait"));
    wt.tell_at = when_to_tell(cmd, now);
    begin_look(&wt);
    code = dibs__poll_verb_resting(cmd, look_at_all, rest, &wt);
    drop_look(&wt);
    return code;
}

static const dibs__option options[] = {
    {DIBS__ROW_WAIT_LONG,
     .help = "Wait at most this long; 0 is the same as -n."},
    {DIBS__ROW_NONBLOCK,
     .help = "Do not wait: look once, and tell by the exit code."},
};

const dibs__option_rows dibs__options_wait = DIBS__OPTION_ROWS("wait", options);

const dibs__verb dibs__verb_wait = {
    .name = "wait",
    .operands = "NAME...",
    .summary = "wait until locks are free, without taking them",
    .about =
        "A name is free when it has neither a holder nor a waiter; a "
        "semaphore, "
        "when all of its permits are back. Several names must all be free at "
        "one look. The command stands in no queue: while others do, the lock "
        "passes from one to the next.\n"
        "A store notifies only those in the queue, so the command looks again "
        "and again: after a wait of a second it is up to an eighth of a second "
        "late, and never more than --interval. It notices at once that a lease "
        "has ended by itself.\n"
        "When it ends, another may take the lock at once. To do something "
        "alone, use dibs run.\n"
        "With --json one object tells at the end whether the names are free, "
        "and lists those that are not.\n",
    .examples = "Reboot if the backup ends within an hour:\n"
                "  dibs wait -w 1h nightly-backup && reboot\n"
                "Look whether one of two locks is in use:\n"
                "  dibs wait -n -q deploy migrate || echo busy\n",
    .exits = "0 all of them are free\n"
             "75 one of them is not, or was not in time "
             "(--conflict-exit-code)\n"
             "128+N ended by signal N\n",
    .options = "json,conflict-exit-code",
    .min_operands = 1,
    .max_operands = -1,
    .kind = DIBS__LOCKS,
    .run = wait_for_locks,
};
