/* client_open.c - opens the client as configured.
 *
 * The log sink may run on any thread of the client. */
/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "cli/command.h"
#include "cli/option_values.h"
#include "cli/own_store.h"
#include "cli/print.h"
#include "config/default_url.h"

#include <string.h>

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

dibs_log_level dibs__cli_log_level(const dibs__command *cmd)
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

/* Not NULL, for the library would read the configuration again, and without
 * --config. */
const char *dibs__cli_url(const dibs__command *cmd)
{
    const char *url = dibs__opt_text(cmd, "url");

    return url ? url : DIBS__DEFAULT_URL;
}

static int
open_as(const dibs__command *cmd, int64_t wait_ms, bool lazy, dibs_client **out)
{
    dibs_log_level level = dibs__cli_log_level(cmd);
    dibs_error err = {0};
    dibs_client_opts opts = {
        .size = sizeof(opts),
        .prefix = dibs__opt_text(cmd, "prefix"),
        .timeout_ms = dibs__opt_ms(cmd, "store-timeout"),
        .log = level == DIBS_LOG_TRACE ? trace_line : log_line,
        .log_level = level,
        .on_unavailable = away_policy(cmd),
        .open_wait_ms = wait_ms,
        .lazy = lazy,
    };

    if (dibs__opt_flag(cmd, "quiet"))
        opts.log = NULL;
    if (dibs__opt_has(cmd, "share-stats"))
        opts.share_stats = dibs__opt_flag(cmd, "share-stats");
    if (dibs__opt_has(cmd, "share-events"))
        opts.share_events = dibs__opt_flag(cmd, "share-events");
    if (dibs__opt_has(cmd, "owner"))
        opts.label = dibs__opt_text(cmd, "owner");
    if (dibs__opt_has(cmd, "ttl"))
        opts.ttl_ms = dibs__opt_ms(cmd, "ttl");
    if (dibs__opt_has(cmd, "renew-every") &&
        dibs__opt_given(cmd, "renew-every"))
        opts.renew_every_ms = dibs__opt_ms(cmd, "renew-every");
    if (dibs_open(dibs__cli_url(cmd), &opts, out, &err) != DIBS_OK)
        return dibs__cli_fail(cmd, &err);
    dibs__own_store_note(cmd, *out);
    return 0;
}

int dibs__cli_open(const dibs__command *cmd, dibs_client **out)
{
    return open_as(cmd, 0, false, out);
}

int dibs__cli_open_waiting(const dibs__command *cmd, int64_t wait_ms,
                           dibs_client **out)
{
    return open_as(cmd, wait_ms, false, out);
}

int dibs__cli_open_lazy(const dibs__command *cmd, dibs_client **out)
{
    return open_as(cmd, 0, true, out);
}
