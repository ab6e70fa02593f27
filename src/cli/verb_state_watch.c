/* verb_state_watch.c - state watch: a shared value as it changes. */
/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "base/fail.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/value_json.h"
#include "cli/verbs.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

enum { SPAN_MS = 500 };

static int print_json(const char *key, const dibs_change *change)
{
    dibs__report report;

    dibs__report_begin(&report);
    dibsx_json_pair_text(&report.js, "key", key);
    if (change->value.version) {
        dibs__json_value(&report.js, &change->value);
    } else {
        dibsx_json_key(&report.js, "value");
        dibsx_json_null(&report.js);
    }
    dibsx_json_pair_uint(&report.js, "version", change->value.version);
    dibs__json_expiry(&report.js, change->value.expires_ms);
    dibsx_json_pair_bool(&report.js, "merged", change->merged);
    dibsx_json_pair_bool(&report.js, "back", change->back);
    return dibs__report_end(&report);
}

static int print_text(const dibs__command *cmd, const dibs_change *change)
{
    if (dibs__opt_flag(cmd, "with-version"))
        printf("%llu ", (unsigned long long)change->value.version);
    if (change->value.data)
        dibs__out(change->value.data, change->value.len);
    putchar('\n');
    return dibs__out_done();
}

static bool looks_once(const dibs__command *cmd)
{
    return dibs__opt_given(cmd, "count") && dibs__opt_int(cmd, "count") == 0;
}

/* The reader of a pipe has gone: nobody sees the next line. */
static bool reader_gone(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO, .events = 0};

    return poll(&out, 1, 0) == 1 && (out.revents & POLLERR);
}

/* Waits for a report in short spans, between which it looks for the reader. The
 * library says once that the store is out of reach. 0: *change is a report; else the
 * exit code. */
static int
await_report(const dibs__command *cmd, dibs_watch *watch, dibs_change *change)
{
    dibsx_nsec end =
        dibs__opt_given(cmd, "wait")
            ? dibsx_after_ms(dibsx_now(), dibs__opt_ms(cmd, "wait"))
            : DIBSX_NEVER;

    for (;;) {
        int64_t left_ms = dibsx_wait_ms(end, dibsx_now());
        int64_t span_ms =
            left_ms < SPAN_MS && end != DIBSX_NEVER ? left_ms : SPAN_MS;
        dibs_error err = {0};
        dibs_status rc = dibs_watch_next(watch, span_ms, change, &err);
        bool away = rc == DIBS_UNAVAIL || rc == DIBS_UNKNOWN;

        if (rc == DIBS_OK)
            return 0;
        if ((rc != DIBS_TIMEOUT && !away) || dibsx_now() >= end)
            return dibs__cli_fail(cmd, &err);
        if (reader_gone())
            return 128 + SIGPIPE;
    }
}

static int
print_report(const dibs__command *cmd, dibs_watch *watch, bool *found)
{
    dibs_change change = {.merged = false};
    int code = await_report(cmd, watch, &change);

    *found = change.value.version != 0;
    if (!code && dibs__opt_flag(cmd, "json"))
        code = print_json(dibs__operands(cmd)[0], &change);
    else if (!code && (*found || !looks_once(cmd)))
        code = print_text(cmd, &change);
    dibs_value_free(&change.value);
    return code;
}

/* --count 0: there must be a value. */
static int look_once(const dibs__command *cmd, dibs_watch *watch)
{
    dibs_error err = {0};
    bool found;
    int code = print_report(cmd, watch, &found);

    if (code || found)
        return code;
    (void)dibsx_fail(&err, DIBS_NOTFOUND, "there is no value %s",
                     dibs__operands(cmd)[0]);
    return dibs__cli_fail(cmd, &err);
}

/* Prints reports until there were enough of them, or none came in time. */
static int follow_value(const dibs__command *cmd, dibs_watch *watch)
{
    int64_t count =
        dibs__opt_given(cmd, "count") ? dibs__opt_int(cmd, "count") : INT64_MAX;
    int code = 0;
    bool found;

    if (looks_once(cmd))
        return look_once(cmd, watch);
    for (int64_t i = 0; !code && i < count; i++)
        code = print_report(cmd, watch, &found);
    return code;
}

static int watch_value(const dibs__command *cmd)
{
    dibs_watch *watch = NULL;
    dibs_client *cl = NULL;
    dibs_error err = {0};
    int code = dibs__cli_open(cmd, &cl);

    if (code)
        return code;
    if (dibs_state_watch(cl, dibs__operands(cmd)[0], &watch, &err) != DIBS_OK)
        code = dibs__cli_fail(cmd, &err);
    else
        code = follow_value(cmd, watch);
    dibs_watch_free(watch);
    dibs_close(cl);
    return code;
}

static const dibs__option options[] = {
    {DIBS__ROW_INT("count", "N", 0, INT64_MAX), .letter = 'n',
     .otherwise = "go on without end",
     .help = "End after so many reports. The first is the value that is there. "
             "0 reports that one, and exits with 1 if there is none."},
    {DIBS__ROW_WAIT_LONG, .help = "Wait at most this long for each change."},
};

const dibs__option_rows dibs__options_state_watch =
    DIBS__OPTION_ROWS("state watch", options);

const dibs__verb dibs__verb_state_watch = {
    .name = "state watch",
    .operands = "KEY",
    .summary = "print a value whenever it changes",
    .about =
        "First the value that is there, then one line per change. The line of "
        "a key without a value is empty; --with-version shows version 0 then, "
        "and --json null. The last value always arrives, also after a lost "
        "connection or a failover. Values in between may be skipped: then "
        "--json has \"merged\". Goes on until it is interrupted, and while the "
        "store is out of reach.\n",
    .examples = "Follow a job:\n"
                "  dibs state watch progress:42\n"
                "Wait until a flag is set:\n"
                "  dibs state watch ready | grep -qx yes\n",
    .exits = "0 --count reports were printed\n"
             "1 --count 0, and there is no value\n"
             "75 no change came within --wait\n"
             "128+N ended by signal N\n",
    .options = "json",
    .min_operands = 1,
    .max_operands = 1,
    .kind = DIBS__KEYS,
    .run = watch_value,
};
