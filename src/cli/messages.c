/* messages.c - messages on standard error, and the exit codes of statuses.
 *
 * Any thread: a message is one write. */
/* SPDX-License-Identifier: MIT */
#include "cli/messages.h"

#include "base/buf.h"
#include "base/fail.h"
#include "cli/command.h"
#include "cli/print.h"
#include <stdarg.h>
#include <stdio.h>
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

int dibs__exit_code(dibs_status status)
{
    switch (status) {
    case DIBS_OK:
        return 0;
    case DIBS_STALE:
    case DIBS_NOTFOUND:
    case DIBS_LATE:
        return 1;
    case DIBS_BUSY:
    case DIBS_TIMEOUT:
    case DIBS_CANCELLED:
    case DIBS_FULL:
    case DIBS_EARLY:
        return DIBS__EXIT_BUSY;
    case DIBS_LOST:
    case DIBS_BROKEN:
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
