/* verb_subscribe.c - subscribe, events read: the events of a topic, or its messages. */
/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/signal_wait.h"
#include "cli/value_json.h"
#include "cli/verbs.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ENDED: a signal has ended the wait for an event. */
enum { SPAN_MS = 500, ENDED = DIBS__EXIT_SIGNAL };

/* A reader at its work. The one of a group leaves before a signal ends it, so that the
 * next one reads at once. */
typedef struct feed {
    const dibs__command *cmd;
    dibs_reader *reader;
    pthread_t printer;
    _Atomic bool printing; /* a print that nobody takes must not delay that */
} feed;

static bool parse_number(const char *text, uint64_t *out)
{
    char *end = NULL;

    errno = 0;
    *out = strtoull(text, &end, 10);
    return *text >= '0' && *text <= '9' && *end == '\0' && !errno;
}

/* "start", "end", a position, "@SECONDS", or a duration before now: *before_now, and a
 * time of this machine. */
static bool
parse_since(const char *text, dibs_reader_opts *out, bool *before_now)
{
    int64_t ago_ms;
    uint64_t number;

    *before_now = false;

    *out = (dibs_reader_opts){.size = sizeof(*out)};
    if (strcmp(text, "end") == 0)
        return true;
    out->start = DIBS_FROM_START;
    if (strcmp(text, "start") == 0)
        return true;
    if (parse_number(text, &out->position)) {
        out->start = DIBS_FROM_POSITION;
        return true;
    }
    out->start = DIBS_FROM_TIME;
    if (text[0] == '@' && parse_number(text + 1, &number) &&
        number < INT64_MAX / 1000000) {
        out->wall_us = (int64_t)number * 1000000;
        return true;
    }
    if (!dibsx_duration_parse(text, &ago_ms) || ago_ms < 0 ||
        ago_ms > DIBS__YEAR * 100)
        return false;
    out->wall_us = dibsx_wall_us() - ago_ms * 1000;
    *before_now = true;
    return true;
}

/* Events have the times of the store, whose clock may be another. */
static int open_client(const dibs__command *cmd, bool before_now,
                       dibs_reader_opts *opts, dibs_client **cl)
{
    int64_t ahead_us = 0;
    dibs_error err = {0};
    int code = dibs__cli_open(cmd, cl);

    if (code || !before_now)
        return code;
    if (dibs_clock_compare(*cl, &ahead_us, NULL, &err) != DIBS_OK)
        return dibs__cli_fail(cmd, &err);
    opts->wall_us += ahead_us;
    return 0;
}

static int print_json(const char *topic, const dibs_event *event)
{
    static const char *const kinds[] = {[DIBS_EVENT] = "event",
                                        [DIBS_EVENT_GAP] = "gap",
                                        [DIBS_EVENT_FORK] = "fork"};
    dibs__report report;
    char time[40];

    dibs__report_begin(&report);
    dibsx_json_pair_text(&report.js, "topic", topic);
    dibsx_json_pair_text(&report.js, "kind", kinds[event->kind]);
    if (event->kind == DIBS_EVENT) {
        dibs_value value = {.data = (void *)(uintptr_t)event->data,
                            .len = event->len};

        dibs__wall_text(event->wall_us, time, sizeof(time));
        dibsx_json_pair_uint(&report.js, "position", event->position);
        dibsx_json_pair_text(&report.js, "time", time);
        dibs__json_value(&report.js, &value);
    } else {
        dibsx_json_pair_uint(&report.js, "from", event->from);
        dibsx_json_pair_uint(&report.js, "to", event->to);
    }
    return dibs__report_end(&report);
}

static int print_text(const dibs__command *cmd, const dibs_event *event)
{
    if (event->kind != DIBS_EVENT) {
        if (dibs__opt_flag(cmd, "quiet"))
            return 0;
        dibs__cli_say(event->kind == DIBS_EVENT_GAP
                          ? "%s: events after %llu up to %llu were trimmed "
                            "before they were read"
                          : "%s: events after %llu up to %llu are lost: the "
                            "store went back",
                      dibs__operands(cmd)[0], (unsigned long long)event->from,
                      (unsigned long long)event->to);
        return 0;
    }
    if (dibs__opt_flag(cmd, "with-position"))
        printf("%llu ", (unsigned long long)event->position);
    dibs__out(event->data, event->len);
    putchar('\n');
    return dibs__out_done();
}

/* The reader of a pipe has gone: nobody sees the next line. */
static bool reader_gone(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO, .events = 0};

    return poll(&out, 1, 0) == 1 && (out.revents & POLLERR);
}

/* Waits for an event in short spans, between which it looks for the reader of its
 * output. */
static int await_event(const dibs__command *cmd, dibs_reader *reader,
                       int64_t wait_ms, dibs_event *event)
{
    dibsx_nsec end =
        wait_ms < 0 ? DIBSX_NEVER : dibsx_after_ms(dibsx_now(), wait_ms);

    for (;;) {
        int64_t left_ms = dibsx_wait_ms(end, dibsx_now());
        int64_t span_ms =
            left_ms < SPAN_MS && end != DIBSX_NEVER ? left_ms : SPAN_MS;
        dibs_error err = {0};
        dibs_status rc = dibs_reader_next(reader, span_ms, event, &err);
        bool away = rc == DIBS_UNAVAIL || rc == DIBS_UNKNOWN;

        if (rc == DIBS_OK)
            return 0;
        if (rc == DIBS_CANCELLED)
            return ENDED;
        if (rc == DIBS_LOST) { /* of the group: the next turn follows */
            if (!dibs__opt_flag(cmd, "quiet"))
                dibs__cli_say("%s", err.message);
            continue;
        }
        if ((rc != DIBS_TIMEOUT && !away) || dibsx_now() >= end)
            return dibs__cli_fail(cmd, &err);
        if (reader_gone())
            return 128 + SIGPIPE;
    }
}

/* Prints an event. 0 to go on, else the exit code. */
static int show_event(feed *f, const dibs_event *event)
{
    const dibs__command *cmd = f->cmd;
    int code;

    f->printing = true;
    code = dibs__opt_flag(cmd, "json")
               ? print_json(dibs__operands(cmd)[0], event)
               : print_text(cmd, event);
    f->printing = false;
    return !code && event->kind != DIBS_EVENT && dibs__opt_flag(cmd, "fail-gap")
               ? 1
               : code;
}

static int64_t wanted_count(const dibs__command *cmd)
{
    return dibs__opt_given(cmd, "count") ? dibs__opt_int(cmd, "count")
                                         : INT64_MAX;
}

/* The events that were printed are handled. One that a signal ended may have been
 * displaced before. */
static int keep_position(const feed *f, int code)
{
    dibs_error err = {0};

    if ((code && code != ENDED) || !dibs__opt_given(f->cmd, "group") ||
        dibs_reader_commit(f->reader, &err) == DIBS_OK ||
        (code && err.status == DIBS_LOST))
        return code;
    return dibs__cli_fail(f->cmd, &err);
}

static int follow_topic(feed *f)
{
    const dibs__command *cmd = f->cmd;
    int64_t wait_ms =
        dibs__opt_given(cmd, "wait") ? dibs__opt_ms(cmd, "wait") : -1;
    int64_t left = wanted_count(cmd);
    int code = 0;

    while (!code && left > 0) {
        dibs_event event = {0};

        code = await_event(cmd, f->reader, wait_ms, &event);
        if (!code)
            code = show_event(f, &event);
        if (event.kind == DIBS_EVENT)
            left--;
    }
    return keep_position(f, code);
}

static void cancel_feed(void *arg)
{
    feed *f = arg;

    dibs_reader_cancel(f->reader);
    if (f->printing)
        (void)pthread_kill(f->printer, SIGRTMAX);
}

/* Ends a write() that waits. */
static void interrupt_print(int number)
{
    (void)number;
}

/* *fatal: the signal that ended it; 0: none. */
static int follow_served(feed *f, const dibs__signals *sig, int *fatal)
{
    struct sigaction action = {.sa_handler = interrupt_print};
    dibs__signal_wait wait = {.cancel = cancel_feed, .arg = f};
    dibs_error err = {0};
    int code;

    f->printer = pthread_self();
    (void)sigaction(SIGRTMAX, &action, NULL);
    if (dibs__signal_wait_begin(&wait, sig, &err) != DIBS_OK)
        return dibs__cli_fail(f->cmd, &err);
    code = follow_topic(f);
    dibs__signal_wait_end(&wait);
    *fatal = wait.fatal;
    return code;
}

/* Ends where the topic ends now. */
static int read_topic(feed *f)
{
    int64_t left = wanted_count(f->cmd);
    int code = 0;

    while (!code && left > 0) {
        dibs_error err = {0};
        dibs_event event;
        dibs_status rc = dibs_reader_next(f->reader, 0, &event, &err);

        if (rc == DIBS_TIMEOUT)
            return 0;
        if (rc != DIBS_OK)
            return dibs__cli_fail(f->cmd, &err);
        code = show_event(f, &event);
        if (event.kind == DIBS_EVENT)
            left--;
    }
    return code;
}

static int run_reader(const dibs__command *cmd, bool follows)
{
    const char *since = dibs__opt_text(cmd, "since");
    feed f = {.cmd = cmd};
    dibs_reader_opts opts;
    dibs_client *cl = NULL;
    dibs_error err = {0};
    dibs__signals sig;
    bool before_now;
    int code, fatal = 0;

    if (!parse_since(since, &opts, &before_now)) {
        dibs__cli_say("--since is start, end, a position, @SECONDS or a "
                      "duration such as 10m, not '%s'",
                      since);
        return DIBS__EXIT_USAGE;
    }
    if (follows && dibs__opt_given(cmd, "group"))
        opts.group = dibs__opt_text(cmd, "group");
    if (opts.group)
        dibs__signals_block(&sig);
    code = open_client(cmd, before_now, &opts, &cl);
    if (code && opts.group)
        fatal = dibs__signals_pending(&sig);
    else if (!code && dibs_reader_new(cl, dibs__operands(cmd)[0], &opts,
                                      &f.reader, &err) != DIBS_OK)
        code = dibs__cli_fail(cmd, &err);
    else if (!code && opts.group)
        code = follow_served(&f, &sig, &fatal);
    else if (!code)
        code = follows ? follow_topic(&f) : read_topic(&f);
    dibs_reader_free(f.reader);
    dibs_close(cl);
    if (fatal && code)
        dibs__signal_die(fatal);
    return code;
}

static int show_message(const dibs__command *cmd, const dibs_message *message)
{
    const char *topic = dibs__operands(cmd)[0];
    dibs_value value = {.data = (void *)(uintptr_t)message->data,
                        .len = message->len};
    dibs__report report;

    if (dibs__opt_flag(cmd, "json")) {
        dibs__report_begin(&report);
        dibsx_json_pair_text(&report.js, "topic", topic);
        dibsx_json_pair_text(&report.js, "kind",
                             message->missed ? "missed" : "message");
        if (!message->missed)
            dibs__json_value(&report.js, &value);
        return dibs__report_end(&report);
    }
    if (message->missed) {
        if (!dibs__opt_flag(cmd, "quiet"))
            dibs__cli_say("%s: messages may have been missed", topic);
        return 0;
    }
    dibs__out(message->data, message->len);
    putchar('\n');
    return dibs__out_done();
}

/* As await_event(). */
static int await_message(const dibs__command *cmd, dibs_listener *listener,
                         int64_t wait_ms, dibs_message *message)
{
    dibsx_nsec end =
        wait_ms < 0 ? DIBSX_NEVER : dibsx_after_ms(dibsx_now(), wait_ms);

    for (;;) {
        int64_t left_ms = dibsx_wait_ms(end, dibsx_now());
        int64_t span_ms =
            left_ms < SPAN_MS && end != DIBSX_NEVER ? left_ms : SPAN_MS;
        dibs_error err = {0};
        dibs_status rc = dibs_listener_next(listener, span_ms, message, &err);

        if (rc == DIBS_OK)
            return 0;
        if ((rc != DIBS_TIMEOUT && rc != DIBS_UNAVAIL) || dibsx_now() >= end)
            return dibs__cli_fail(cmd, &err);
        if (reader_gone())
            return 128 + SIGPIPE;
    }
}

static int follow_messages(const dibs__command *cmd, dibs_listener *listener)
{
    int64_t wait_ms =
        dibs__opt_given(cmd, "wait") ? dibs__opt_ms(cmd, "wait") : -1;
    int64_t left = wanted_count(cmd);
    int code = 0;

    while (!code && left > 0) {
        dibs_message message = {0};

        code = await_message(cmd, listener, wait_ms, &message);
        if (!code)
            code = show_message(cmd, &message);
        if (!code && message.missed && dibs__opt_flag(cmd, "fail-gap"))
            code = 1;
        left -= !message.missed;
    }
    return code;
}

/* Messages have no positions and no groups. */
static int check_live(const dibs__command *cmd)
{
    static const char *const others[] = {"since", "group", "with-position"};

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (dibs__opt_given(cmd, others[i])) {
            dibs__cli_say("--live is for messages, which nobody keeps: leave "
                          "out --%s",
                          others[i]);
            return DIBS__EXIT_USAGE;
        }
    return 0;
}

static int listen_live(const dibs__command *cmd)
{
    dibs_listener *listener = NULL;
    dibs_client *cl = NULL;
    dibs_error err = {0};
    int code = check_live(cmd);

    if (!code)
        code = dibs__cli_open(cmd, &cl);
    if (code)
        return code;
    if (dibs_listener_new(cl, dibs__operands(cmd)[0], &listener, &err) !=
        DIBS_OK)
        code = dibs__cli_fail(cmd, &err);
    else
        code = follow_messages(cmd, listener);
    dibs_listener_free(listener);
    dibs_close(cl);
    return code;
}

static int subscribe_topic(const dibs__command *cmd)
{
    return dibs__opt_flag(cmd, "live") ? listen_live(cmd)
                                       : run_reader(cmd, true);
}

static int read_events(const dibs__command *cmd)
{
    return run_reader(cmd, false);
}

#define SINCE_HELP                                                             \
    "Where to begin: start (the oldest event that is kept), end, a position "  \
    "(the events after it), @SECONDS since 1970, or a duration before now."

static const dibs__option options[] = {
    {.verbs = "subscribe",
     DIBS__ROW_TEXT("since", "WHERE"),
     .initial = "end",
     .help = SINCE_HELP},
    {.verbs = "events read",
     DIBS__ROW_TEXT("since", "WHERE"),
     .initial = "start",
     .help = SINCE_HELP},
    {.verbs = "subscribe",
     DIBS__ROW_TEXT("group", "GROUP"),
     .otherwise = "none",
     .help = "Read as one of a group: one subscriber prints at a time, the "
             "next goes on where it was. --since counts for the first. If the "
             "one that prints is killed, the next goes on after --ttl."},
    {.verbs = "subscribe",
     .name = "live",
     .help = "Print messages instead of events (publish --live): those that "
             "are sent while this command listens, and no others."},
    {DIBS__ROW_INT("count", "N", 1, INT64_MAX), .letter = 'n',
     .otherwise = "events read: all that there are; subscribe: no end",
     .help = "End after so many events."},
    {.verbs = "subscribe",
     DIBS__ROW_WAIT_LONG,
     .help = "Wait at most this long for each event."},
    {.name = "with-position",
     .help = "Print the position of each event before it."},
    {.name = "fail-gap",
     .help = "End with exit code 1 if events are gone that were not read."},
};

const dibs__option_rows dibs__options_subscribe =
    DIBS__OPTION_ROWS("subscribe,events read", options);

const dibs__verb dibs__verb_subscribe = {
    .name = "subscribe",
    .operands = "TOPIC",
    .summary = "print the events of a topic as they come",
    .about =
        "One line per event, in order. Goes on until it is interrupted, and "
        "while the store is out of reach; then with the next event. If events "
        "were trimmed before they were read, or the store has lost some, a "
        "message names their positions; --json has an object of the kind "
        "\"gap\" or \"fork\" then; with --live \"missed\", after a lost "
        "connection for one.\n",
    .examples = "Handle what happens from now on:\n"
                "  dibs subscribe job-completed | while read -r e; do ...\n"
                "On each of two machines; one handles events at a time:\n"
                "  dibs subscribe orders --group billing | ./bill\n"
                "Go on after a position:\n"
                "  dibs subscribe orders --since 1794800000000000 --json\n",
    .exits = "0 --count events were printed\n"
             "1 events are gone, with --fail-gap\n"
             "75 no event came within --wait\n"
             "128+N ended by signal N\n",
    .options = "json,ttl",
    .min_operands = 1,
    .max_operands = 1,
    .kind = DIBS__TOPICS,
    .run = subscribe_topic,
};

const dibs__verb dibs__verb_events_read = {
    .name = "events read",
    .operands = "TOPIC",
    .summary = "print the events that a topic has now",
    .about = "As subscribe, from the oldest event on, but ends at the end of "
             "the topic.\n",
    .exits = "0 printed\n"
             "1 events are gone, with --fail-gap\n",
    .options = "json",
    .min_operands = 1,
    .max_operands = 1,
    .kind = DIBS__TOPICS,
    .run = read_events,
};
