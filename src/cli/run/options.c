/* options.c - what `dibs run` was asked to do, and what came of it. Pure but for
 * the messages and the status line. */
/* SPDX-License-Identifier: MIT */
#include "cli/run/options.h"

#include "base/json.h"
#include "cli/option_values.h"
#include "exec/signals.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

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
    opts->status_fd = -1;
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

/* From a variable or file it is for locks of every ttl: the client cuts it. */
static int read_renewal(const dibs__command *cmd, dibs_lock_opts *lock)
{
    const dibs__option *option = dibs__option_find("run", "renew-every", 11);
    const dibs__option_value *value = dibs__option_value_of(cmd, option);
    if (value->source != DIBS__FROM_FLAG)
        return 0;
    lock->renew_every_ms = value->number;
    if (value->number <= lock->ttl_ms / DIBS_RENEWALS_PER_TTL)
        return 0;
    return say_usage("--renew-every is more than a third of --ttl, so that a "
                     "renewal that fails could be a loss");
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
    return read_renewal(cmd, lock);
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
    if (opts->once && opts->once[0] == '@')
        return say_usage(
            "--once takes minute, hour, day or a text of your own; "
            "slots that begin with @ are not supported");
    if (opts->once && !opts->once[0])
        return say_usage("--once needs a slot: minute, hour, day or a text");
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
    while (len > 0) {
        ssize_t put = write(fd, text, len);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0) {
            dibs__cli_say("cannot write to the descriptor of --status-fd: %s",
                          strerror(errno));
            return;
        }
        text += put;
        len -= (size_t)put;
    }
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
