/* verb_demo.c - `dibs demo`: the settings of the demonstration.
 *
 * Besides flags it heeds the variables of the program that it shows again:
 * NUM_WORKERS, HTTP_PORT, REDIS_HOST and REDIS_PORT. Main thread. */
/* SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "cli/option_values.h"
#include "cli/options.h"
#include "cli/print.h"
#include "config/settings.h"
#include "demo/demo.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *read_variable(const char *name)
{
    const char *value = getenv(name);

    return value && *value ? value : NULL;
}

/* A flag, or a variable under the same limits, or the default. */
static dibs_status number_of(const dibs__command *cmd, const char *name,
                             const char *env, int *out, dibs_error *err)
{
    const dibs__option *option = dibs__option_find("demo", name, strlen(name));
    const char *text = dibs__opt_given(cmd, name) ? NULL : read_variable(env);
    long long value;
    char *end;

    *out = (int)dibs__opt_int(cmd, name);
    if (!text)
        return DIBS_OK;
    value = strtoll(text, &end, 10);
    if (*end || value < option->min || value > option->max)
        return dibsx_fail(err, DIBS_REFUSED,
                          "%s: '%.40s' is not a whole number between %lld and "
                          "%lld",
                          env, text, (long long)option->min,
                          (long long)option->max);
    *out = (int)value;
    return DIBS_OK;
}

/* "redis:" goes by REDIS_HOST and REDIS_PORT. */
static const char *url_of(const dibs__command *cmd)
{
    const dibs__option *option = dibs__option_find("demo", "url", 3);

    if (dibs__option_value_of(cmd, option)->source != DIBS__FROM_FLAG &&
        !dibs__opt_given(cmd, "worker") &&
        (read_variable("REDIS_HOST") || read_variable("REDIS_PORT")))
        return "redis:";
    return dibs__cli_url(cmd);
}

static dibs_status
read_opts(const dibs__command *cmd, dibs__demo_opts *opts, dibs_error *err)
{
    dibs_status rc;

    *opts = (dibs__demo_opts){
        .url = url_of(cmd),
        .data_url = dibs__opt_text(cmd, "data-url"),
        .prefix = dibs__opt_text(cmd, "prefix"),
        .timeout_ms = dibs__opt_ms(cmd, "store-timeout"),
        .operations = (int)dibs__opt_int(cmd, "operations"),
        .duration_ms = dibs__opt_ms(cmd, "duration"),
        .every_ms = dibs__opt_ms(cmd, "every"),
        .ttl_ms = dibs__opt_ms(cmd, "ttl"),
        .wait_ms = dibs__opt_ms(cmd, "wait"),
        .dashboard = dibs__opt_given(cmd, "dashboard")
                         ? (int)dibs__opt_int(cmd, "dashboard")
                         : -1,
        .json = strcmp(dibs__opt_text(cmd, "log-format"), "json") == 0,
    };
    opts->colour = !opts->json && *dibs__colours_of(cmd)->bold;
    opts->status = !opts->json && isatty(STDOUT_FILENO);
    rc = number_of(cmd, "workers", "NUM_WORKERS", &opts->workers, err);
    if (rc == DIBS_OK)
        rc = number_of(cmd, "http-port", "HTTP_PORT", &opts->port, err);
    if (rc == DIBS_OK && opts->port + opts->workers > 65535)
        rc = dibsx_fail(err, DIBS_REFUSED,
                        "port %d and %d workers: there is no port above 65535",
                        opts->port, opts->workers);
    if (rc == DIBS_OK && opts->dashboard > opts->port &&
        opts->dashboard <= opts->port + opts->workers)
        rc = dibsx_fail(err, DIBS_REFUSED,
                        "port %d is of a worker; give --dashboard another one",
                        opts->dashboard);
    return rc;
}

static int run_demo(const dibs__command *cmd)
{
    dibs__demo_opts opts;
    dibs_error err = {0};
    dibs_status rc = read_opts(cmd, &opts, &err);

    if (rc == DIBS_OK && dibs__opt_given(cmd, "worker"))
        rc = dibs__demo_worker(&opts, (int)dibs__opt_int(cmd, "worker"), &err);
    else if (rc == DIBS_OK)
        rc = dibs__demo_primary(&opts, &err);
    if (rc == DIBS_OK)
        return dibs__out_unread();
    /* A worker has said it in its log. */
    if (dibs__opt_given(cmd, "worker"))
        return dibs__exit_code(rc);
    return dibs__cli_fail(cmd, &err);
}

static const dibs__option options[] = {
    {DIBS__ROW_INT("workers", "N", 1, 64), .initial = "4",
     .help = "How many workers to start (NUM_WORKERS)."},
    {DIBS__ROW_INT("http-port", "PORT", 1, 65534), .initial = "3000",
     .help = "Worker N listens on this port plus N (HTTP_PORT)."},
    {DIBS__ROW_INT("operations", "N", 0, 1000000), .initial = "2",
     .help = "How many operations each worker does when it starts."},
    {DIBS__ROW_SPAN("duration", 0, DIBS__MINUTES(1)), .initial = "2s",
     .help = "How long each of them takes."},
    {DIBS__ROW_SPAN("every", 0, DIBS__DAYS(1)), .initial = "0s",
     .help = "How often each worker does another one after these, all at the "
             "same moment. 0 is never."},
    {DIBS__ROW_SPAN("ttl", 10, DIBS__DAYS(1)), .initial = "10s",
     .help = "The length of the lease: how long others wait when a worker was "
             "killed while it held the lock."},
    {DIBS__ROW_SPAN("wait", 0, DIBS__DAYS(1)), .initial = "10s",
     .help = "How long POST /update waits for the lock before it answers that "
             "it could not be acquired."},
    {DIBS__ROW_INT("dashboard", "PORT", 0, 65535),
     .otherwise = "without a dashboard",
     .help = "Start dibs serve on the same store, on this port of the loopback "
             "interface, and print the address of its dashboard. If the port "
             "is in use, or 0, it is another one."},
    {DIBS__SETTING_DATA_URL, .metavar = "URL", .offers = DIBS__URLS,
     .verbs = "demo,serve",
     .otherwise = "where the locks are; with redlock:, dibs demo takes the "
                  "first of the servers",
     .help = "The store of what is no lock, if it is not the store of the "
             "locks: state, queues, events and all other nouns, jobs with "
             "their own locks, and the audit trail."},
    {DIBS__ROW_CHOICE("log-format", "FORMAT", "text|json"), .initial = "text",
     .help = "Log lines for people, or as one JSON object each."},
    {DIBS__ROW_INT("worker", "N", 1, 64), .hidden = true,
     .help = "Be worker N of a primary."},
};

const dibs__option_rows dibs__options_demo = DIBS__OPTION_ROWS("demo", options);

const dibs__verb dibs__verb_demo = {
    .name = "demo",
    .summary = "run a small cluster of workers that share one lock",
    .about = "A primary process starts workers, watches them, and starts "
             "those that die again. Each worker has an HTTP server on the "
             "loopback interface, on the port of --http-port plus its "
             "number, with GET /status, GET /ads, POST /update and GET "
             "/health, and a page for browsers at GET /. GET /events is a "
             "stream of the worker's events (curl -N). At the start each "
             "worker does --operations operations on one shared value, "
             "which only the holder of a lock may change: the log shows "
             "who waits for whom, and on a terminal a line at the bottom "
             "shows the holder and the queue. SIGINT and SIGTERM stop all "
             "of it within five seconds, and so does the end of what reads "
             "its output.\n"
             "With --dashboard, dibs serve runs beside the workers until then. "
             "The address that the demonstration prints has a token that may "
             "read and is valid for this run. If the daemon cannot start, the "
             "log says why and the workers go on.\n"
             "The value is ADS_REDLOCK (dibs state get ADS_REDLOCK), the "
             "lock locks:ADS_REDLOCK (dibs show locks:ADS_REDLOCK). "
             "WARMUP_LAST_SUCCESSFUL has the time when the value was last "
             "initialised: at most once a minute, by whichever worker "
             "starts first.\n"
             "The variables NUM_WORKERS and HTTP_PORT stand for --workers "
             "and --http-port; with REDIS_HOST or REDIS_PORT, and without "
             "--url, the store is the Redis server there.\n"
             "A redlock: store keeps no values; they are then in the first "
             "of its servers, or where --data-url says.\n",
    .examples =
        "On the embedded store; stop it with ^C:\n"
        "  dibs demo\n"
        "With a dashboard, as make run starts it:\n"
        "  dibs demo --dashboard 3427 --every 15s\n"
        "From another terminal:\n"
        "  curl http://localhost:3001/status\n"
        "  curl -N http://localhost:3001/events\n"
        "  curl http://localhost:3002/update --json '{\"duration\": 500}'\n"
        "On a Redis server:\n"
        "  REDIS_HOST=localhost REDIS_PORT=6379 NUM_WORKERS=4 "
        "HTTP_PORT=3000 dibs demo\n",
    .exits = "0 stopped by SIGINT or SIGTERM\n"
             "75 a port is in use\n",
    .run = run_demo,
};
