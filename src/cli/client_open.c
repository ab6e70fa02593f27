/* client_open.c - opening the client as configured, and telling the user of failures.
 *
 * The log sink may run on any thread of the client. */
/* SPDX-License-Identifier: MIT */
#include "base/buf.h"
#include "base/clock.h"
#include "base/fail.h"
#include "cli/command.h"
#include "cli/option_values.h"
#include "cli/print.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 2048 };

/* One write per line, so that lines of many processes do not mix. A failure of
 * stderr itself goes unreported. */
static void say_line(const char *text)
{
    dibsx_buf line;

    dibsx_buf_init(&line, LINE_MAX_BYTES * 2);
    dibsx_buf_puts(&line, "dibs: ");
    dibs__clean(&line, text);
    dibsx_buf_putc(&line, '\n');
    (void)!write(STDERR_FILENO, dibsx_buf_text(&line), line.len);
    dibsx_buf_fini(&line);
}

void dibs__cli_say(const char *format, ...)
{
    char text[LINE_MAX_BYTES];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    say_line(text);
}

static void log_line(dibs_log_level level, const char *event,
                     const char *message, void *arg)
{
    (void)level;
    (void)arg;
    /* Verbs that hold a lease say themselves when it is lost, and why. */
    if (strcmp(event, "lost") == 0)
        return;
    dibs__cli_say("%s: %s", event, message);
}

/* A trace tells when, and leaves nothing out. */
static void trace_line(dibs_log_level level, const char *event,
                       const char *message, void *arg)
{
    char time[40];

    (void)level;
    (void)arg;
    dibs__wall_text(dibsx_wall_us(), time, sizeof(time));
    dibs__cli_say("%s %s: %s", time, event, message);
}

int dibs__exit_code(dibs_status status)
{
    switch (status) {
    case DIBS_OK:
        return 0;
    case DIBS_STALE:
    case DIBS_NOTFOUND:
        return 1;
    case DIBS_BUSY:
    case DIBS_TIMEOUT:
    case DIBS_CANCELLED:
        return DIBS__EXIT_BUSY;
    case DIBS_LOST:
        return DIBS__EXIT_LOST;
    case DIBS_INVALID:
    case DIBS_MISMATCH:
        return DIBS__EXIT_USAGE;
    case DIBS_UNAVAIL:
    case DIBS_UNKNOWN:
        return DIBS__EXIT_UNAVAIL;
    case DIBS_DENIED:
        return DIBS__EXIT_DENIED;
    case DIBS_REFUSED:
    case DIBS_UNSUPPORTED:
        return DIBS__EXIT_CONFIG;
    case DIBS_NOMEM:
    case DIBS_INTERNAL:
    case DIBS_FORKED:
        break;
    }
    return DIBS__EXIT_INTERNAL;
}

int dibs__cli_fail(const dibs__command *cmd, const dibs_error *err)
{
    if (!dibs__opt_flag(cmd, "quiet"))
        dibs__cli_say("%s", err->message[0] ? err->message
                                            : dibs_status_text(err->status));
    return dibs__exit_code(err->status);
}

int dibs__cli_nomem(const char *thing)
{
    dibs_error err;
    dibs_status rc = dibsx_nomem(&err, "%s", thing);

    dibs__cli_say("%s", err.message);
    return dibs__exit_code(rc);
}

/* -v adds to what --log-level asks for, and takes nothing away. */
static dibs_log_level log_level(const dibs__command *cmd)
{
    static const char *const words[] = {"error", "warn", "info", "debug",
                                        "trace"};
    const char *text = dibs__opt_text(cmd, "log-level");
    int64_t verbose = dibs__opt_int(cmd, "verbose");
    dibs_log_level level = DIBS_LOG_ERROR;

    while (level < DIBS_LOG_TRACE && strcmp(words[level], text) != 0)
        level++;
    if (verbose > 0 && level < DIBS_LOG_INFO)
        level = DIBS_LOG_INFO;
    if (verbose > 1 && level < DIBS_LOG_DEBUG)
        level = DIBS_LOG_DEBUG;
    return level;
}

static dibs_away away_policy(const dibs__command *cmd)
{
    const char *text = NULL;

    if (dibs__opt_has(cmd, "on-unavailable"))
        text = dibs__opt_text(cmd, "on-unavailable");
    if (text && strcmp(text, "local") == 0)
        return DIBS_AWAY_LOCAL;
    if (text && strcmp(text, "open") == 0)
        return DIBS_AWAY_OPEN;
    return DIBS_AWAY_FAIL;
}

int dibs__cli_open(const dibs__command *cmd, dibs_client **out)
{
    dibs_log_level level = log_level(cmd);
    dibs_error err = {0};
    dibs_client_opts opts = {
        .size = sizeof(opts),
        .prefix = dibs__opt_text(cmd, "prefix"),
        .timeout_ms = dibs__opt_ms(cmd, "store-timeout"),
        .log = level == DIBS_LOG_TRACE ? trace_line : log_line,
        .log_level = level,
        .on_unavailable = away_policy(cmd),
    };

    if (dibs__opt_flag(cmd, "quiet"))
        opts.log = NULL;
    if (dibs__opt_has(cmd, "share-stats"))
        opts.share_stats = dibs__opt_flag(cmd, "share-stats");
    if (dibs__opt_has(cmd, "owner"))
        opts.label = dibs__opt_text(cmd, "owner");
    if (dibs__opt_has(cmd, "ttl"))
        opts.ttl_ms = dibs__opt_ms(cmd, "ttl");
    if (dibs_open(dibs__opt_text(cmd, "url"), &opts, out, &err) == DIBS_OK)
        return 0;
    return dibs__cli_fail(cmd, &err);
}
