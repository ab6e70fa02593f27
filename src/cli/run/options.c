/* options.c - what `dibs run` was asked to do, and what came of it. Pure but for
 * the messages and the status line. */
/* SPDX-License-Identifier: MIT */
#include "cli/run/options.h"

#include "base/json.h"
#include "base/write_all.h"
#include "cli/option_values.h"
#include "cli/options.h"
#include "cli/run/once.h"
#include "config/settings.h"
#include "exec/signals.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* Options of running a command; lock_request.c has those of its lock. */
static const dibs__option options[] = {
    {DIBS__ROW_TEXT("once", "SLOT"), .offers = "minute|hour|day",
     .help =
         "Start at most once per slot, on whichever machine: minute, hour, "
         "day, or any text of your own, such as a date. A text is used up "
         "until another one follows; one that looks like a time, such as "
         "daily, needs text: before it. A run that finds its slot used exits "
         "with 0; it says so on a terminal or with -v only."},
    {DIBS__ROW_CHOICE("once-after", "WHEN", "start|success"),
     .initial = "start",
     .help = "With --once: what uses the slot up. start: a command that was "
             "started, also if it fails. success: a command that exited with "
             "0; after a failure the next run in the slot tries again, so that "
             "a command may run twice."},
    {DIBS__ROW_TEXT("on-lost", "POLICY"),
     .offers = "kill|signal:HUP|signal:INT|signal:TERM|signal:USR1|signal:USR2|"
               "ignore|exec:",
     .initial = "kill",
     .help =
         "The action when the lease is lost while the command runs: kill (end "
         "it before another may start), signal:SIG, ignore, or exec:CMD."},
    {DIBS__ROW_INT("lost-exit-code", "N", 0, 255), .initial = "122",
     .help = "The exit code when the lease was lost while the command ran."},
    {DIBS__ROW_TEXT("on-yield", "POLICY"),
     .offers = "ignore|signal:HUP|signal:INT|signal:TERM|signal:USR1|signal:"
               "USR2|exit",
     .initial = "ignore",
     .help = "The action when a user asks for the lock with dibs break --ask: "
             "ignore it, signal:SIG to the command, or exit (end the command "
             "as --max-run would, with its own exit code)."},
    {DIBS__ROW_SPAN("progress", 0, DIBS__DAYS(1)), .initial = "0s",
     .otherwise = "not asked for",
     .help = "Renew the lease only while the command tells, at least this "
             "often, that it gets on: by any byte written to the file "
             "descriptor whose number is in DIBS_PROGRESS_FD."},
    {DIBS__SETTING_KILL_AFTER, .letter = 'k', .metavar = "DUR",
     .help = "How long the command has to end after --signal, before KILL."},
    {DIBS__ROW_TEXT("signal", "SIG"),
     .offers = "HUP|INT|KILL|QUIT|TERM|USR1|USR2", .initial = "TERM",
     .help = "The signal that asks the command to end."},
    {DIBS__ROW_SPAN("max-run", 0, DIBS__YEAR), .initial = "0s",
     .otherwise = "no bound",
     .help =
         "End the command after this long, with exit code 124. 0 is no bound."},
    {DIBS__ROW_TEXT("command", "STRING"), .letter = 'c',
     .help = "Run this string with sh -c instead of a command."},
    {DIBS__ROW_CHOICE("stdin", "WHICH", "inherit|null"), .initial = "inherit",
     .help = "The standard input of the command."},
    {.name = "foreground",
     .help = "Leave the command in the process group of dibs, so that it may "
             "use the terminal."},
    {.name = "tree-unchecked",
     .help =
         "Run the command also where dibs can find no more of its processes "
         "than its process group: without a /proc for this PID namespace, and "
         "without the right to make a cgroup. A process that leaves the group, "
         "and with --foreground every one but the command itself, may then "
         "outlive the lease. The lock is shown with tree=unchecked."},
    {DIBS__ROW_INT("status-fd", "N", 0, 1048576), .otherwise = "none",
     .help =
         "Write one JSON line about what happened to this file descriptor."},
    {.name = "dry-run",
     .help = "Take no lock and start nothing: print the store, the state of "
             "the lock, the settings in force and what would be done, with "
             "--json as JSON. The exit code is 0 if the command would start "
             "now or be skipped, that of -E if the lock is busy, and that of "
             "the failure if it would fail."},
    {.name = "no-fork",
     .letter = 'F',
     .help = "Refused: a lease that is renewed needs dibs beside the command."},
};

const dibs__option_rows dibs__options_run = DIBS__OPTION_ROWS("run", options);

enum { STATUS_LINE_MAX = 4096 };

static int say_usage(const char *why)
{
    dibs__cli_say("run: %s", why);
    return DIBS__EXIT_USAGE;
}

static int read_command(const dibs__command *cmd, dibs__run_opts *opts)
{
    char *const *words = dibs__operands(cmd);
    const char *shell = dibs__opt_text(cmd, "command");
    int count = dibs__operand_count(cmd);
    if (count < 1)
        return say_usage("the name of the lock is missing");
    if (shell && count > 1)
        return say_usage("-c takes one string, and no command beside it");
    if (!shell && count < 2)
        return say_usage("the command to run is missing");

    /* exec takes words that are not const and leaves them alone. */
    opts->shell_argv[0] = (char *)"sh";
    opts->shell_argv[1] = (char *)"-c";
    opts->shell_argv[2] = (char *)shell;
    opts->argv = shell ? opts->shell_argv : words + 1;
    return 0;
}

static int read_on_lost(const dibs__command *cmd, dibs__run_opts *opts)
{
    const char *text = dibs__opt_text(cmd, "on-lost");
    if (!text || strcmp(text, "kill") == 0) {
        opts->on_lost = DIBS__LOST_KILL;
    } else if (strcmp(text, "ignore") == 0) {
        opts->on_lost = DIBS__LOST_IGNORE;
    } else if (strncmp(text, "signal:", 7) == 0) {
        opts->on_lost = DIBS__LOST_SIGNAL;
        opts->lost_signal = dibs__signal_parse(text + 7);
        if (!opts->lost_signal)
            return say_usage("--on-lost=signal: needs a signal, such as USR1");
    } else if (strncmp(text, "exec:", 5) == 0 && text[5]) {
        opts->on_lost = DIBS__LOST_EXEC;
        opts->lost_shell = text + 5;
    } else {
        return say_usage("--on-lost is kill, signal:SIG, ignore or exec:CMD");
    }
    return 0;
}

static int read_on_yield(const dibs__command *cmd, dibs__run_opts *opts)
{
    const char *text = dibs__opt_text(cmd, "on-yield");

    opts->yield_why = "the lock was asked for";
    if (strcmp(text, "ignore") == 0) {
        opts->on_yield = DIBS__YIELD_IGNORE;
    } else if (strcmp(text, "exit") == 0) {
        opts->on_yield = DIBS__YIELD_EXIT;
    } else if (strncmp(text, "signal:", 7) == 0) {
        opts->on_yield = DIBS__YIELD_SIGNAL;
        opts->yield_signal = dibs__signal_parse(text + 7);
        if (!opts->yield_signal)
            return say_usage("--on-yield=signal: needs a signal, such as USR1");
    } else {
        return say_usage("--on-yield is ignore, signal:SIG or exit");
    }
    return 0;
}

static int read_status_fd(const dibs__command *cmd, dibs__run_opts *opts)
{
    opts->status_fd = opts->output_fd = -1;
    if (!dibs__opt_given(cmd, "status-fd"))
        return 0;
    int fd = (int)dibs__opt_int(cmd, "status-fd");
    int flags = fcntl(fd, F_GETFD);
    if (flags < 0)
        return say_usage("--status-fd is not an open file descriptor");
    /* The reader sees the end of the line when dibs ends, not its children. */
    if (fd > STDERR_FILENO)
        (void)fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
    opts->status_fd = fd;
    return 0;
}

/* The options that only a lock of run has. */
static int read_lock(const dibs__command *cmd, dibs__run_opts *opts)
{
    dibs_lock_opts *lock = &opts->request.lock;
    int code = dibs__lock_request_read(cmd, &opts->request);
    if (code)
        return code;
    lock->hold_min_ms = dibs__opt_ms(cmd, "hold-min");
    lock->hold_max_ms = dibs__opt_ms(cmd, "hold-max");
    if (lock->hold_max_ms > 0 && lock->hold_max_ms < lock->ttl_ms)
        lock->ttl_ms = lock->hold_max_ms;
    lock->progress_ms = dibs__opt_ms(cmd, "progress");
    if (lock->progress_ms > 0 && opts->request.count > 1)
        return say_usage("--progress is for one name: not with --also");
    opts->name = opts->request.names[0];
    opts->ttl_ms = lock->ttl_ms;
    opts->progress_ms = lock->progress_ms;
    return dibs__lock_request_renewal(cmd, lock);
}

static void read_plain(const dibs__command *cmd, dibs__run_opts *opts)
{
    opts->max_run_ms = dibs__opt_ms(cmd, "max-run");
    opts->kill_after_ms = dibs__opt_ms(cmd, "kill-after");
    opts->lost_code = (int)dibs__opt_int(cmd, "lost-exit-code");
    opts->foreground = dibs__opt_flag(cmd, "foreground");
    opts->tree_unchecked = dibs__opt_flag(cmd, "tree-unchecked");
    opts->quiet = dibs__opt_flag(cmd, "quiet");
    opts->verbose = dibs__opt_flag(cmd, "verbose");
    const char *from = dibs__opt_text(cmd, "stdin");
    opts->once_after_success =
        strcmp(dibs__opt_text(cmd, "once-after"), "success") == 0;
    opts->null_stdin = from && strcmp(from, "null") == 0;
}

int dibs__run_opts_read(const dibs__command *cmd, dibs__run_opts *opts)
{
    *opts = (dibs__run_opts){.once = dibs__opt_text(cmd, "once")};
    if (dibs__opt_flag(cmd, "no-fork"))
        return say_usage(
            "--no-fork cannot be: a lease must be renewed, and given "
            "back, by a process beside the command");
    dibs_error err = {0};
    if (opts->once && dibs__run_once_check(opts->once, &err) != DIBS_OK)
        return say_usage(err.message);
    if (dibs__opt_flag(cmd, "json") && !dibs__opt_flag(cmd, "dry-run"))
        return say_usage(
            "--json goes with --dry-run; --status-fd is for a run");
    if (!opts->once && dibs__opt_given(cmd, "once-after"))
        return say_usage("--once-after goes with --once");
    read_plain(cmd, opts);

    const char *text = dibs__opt_text(cmd, "signal");
    opts->signal = text ? dibs__signal_parse(text) : SIGTERM;
    if (!opts->signal)
        return say_usage("--signal needs a signal, such as TERM");
    int rc = read_command(cmd, opts);
    if (!rc)
        rc = read_lock(cmd, opts);
    if (!rc)
        rc = read_on_lost(cmd, opts);
    if (!rc)
        rc = read_on_yield(cmd, opts);
    if (!rc)
        rc = read_status_fd(cmd, opts);
    return rc;
}

static int exec_code(int number)
{
    switch (number) {
    case ENOENT:
        return DIBS__EXIT_NOTFOUND;
    case EACCES:
    case EISDIR:
    case ENOEXEC:
    case ENOTDIR:
    case EPERM:
    case ETXTBSY:
        return DIBS__EXIT_NOEXEC;
    default:
        return DIBS__EXIT_WRAPPER;
    }
}

int dibs__outcome_code(const dibs__outcome *out, const dibs__run_opts *opts)
{
    if (out->exec_errno)
        return exec_code(out->exec_errno);
    if (out->lost && opts->on_lost != DIBS__LOST_IGNORE)
        return opts->lost_code;
    if (out->guard_died)
        return DIBS__EXIT_WRAPPER;
    if (out->timed_out)
        return DIBS__EXIT_MAX_RUN;
    if (out->exit_signal)
        return DIBS__EXIT_SIGNAL + out->exit_signal;
    return out->exit_status;
}

void dibs__outcome_interrupt(const dibs__outcome *out)
{
    if (!out->interrupted || out->lost || out->timed_out || out->yielded)
        return;
    kill(0, SIGINT);
    dibs__signal_die(SIGINT);
}

static void pair_or_null(dibsx_json *js, const char *key, int value, int none)
{
    dibsx_json_key(js, key);
    if (value == none)
        dibsx_json_null(js);
    else
        dibsx_json_int(js, value);
}

static void write_line(int fd, const char *text, size_t len)
{
    if (!dibsx_write_all(fd, text, len))
        dibs__cli_say("cannot write to the descriptor of --status-fd: %s",
                      strerror(errno));
}

void dibs__outcome_report(const dibs__outcome *out, const dibs__run_opts *opts,
                          int code)
{
    if (opts->status_fd < 0)
        return;
    dibsx_buf line;
    dibsx_json js;
    dibsx_buf_init(&line, STATUS_LINE_MAX);
    dibsx_json_init(&js, &line);
    dibsx_json_open(&js, '{');
    dibsx_json_pair_int(&js, "schema", 1);
    dibsx_json_pair_text(&js, "name", opts->name);
    dibsx_json_pair_bool(&js, "acquired", out->acquired);
    dibsx_json_pair_bool(&js, "nested", out->nested);
    dibsx_json_pair_bool(&js, "skipped", out->skipped);
    dibsx_json_pair_int(&js, "waited_ms", out->waited_ms);
    dibsx_json_pair_int(&js, "held_ms", out->held_ms);
    dibsx_json_pair_uint(&js, "fence", out->fence);
    dibsx_json_pair_bool(&js, "lost", out->lost);
    dibsx_json_pair_bool(&js, "yielded", out->yielded);
    pair_or_null(&js, "exit", out->exit_status, -1);
    pair_or_null(&js, "signal", out->exit_signal, 0);
    dibsx_json_pair_int(&js, "code", code);
    dibsx_json_close(&js, '}');
    dibsx_buf_putc(&line, '\n');
    if (dibsx_buf_ok(&line))
        write_line(opts->status_fd, dibsx_buf_text(&line), line.len);
    else
        (void)dibs__cli_nomem("the line for --status-fd");
    dibsx_buf_fini(&line);
}
