/* log.c - log lines of the demonstration, for people or for machines.
 *
 * Owns nothing; callable from any thread. A line has less than PIPE_BUF bytes and
 * is put in one piece, so that lines of threads do not mix. */
/* SPDX-License-Identifier: MIT */
#include "demo/log.h"
#include "base/json.h"
#include "base/text.h"
#include "demo/merge.h"
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

enum { MESSAGE_MAX = 1500 };

static const char *const marks[] = {"", "\xE2\x9C\x93 ", "\xE2\x9C\x97 "};
static const char *const tints[] = {"", "\033[32m", "\033[31m"};

/* One colour a worker, as long as there are any. */
static void put_name(dibsx_buf *line, const dibs__demo_log *log)
{
    static const int tint[] = {36, 33, 35, 34, 96, 93, 95, 94};

    if (!log->worker)
        return;
    if (log->colour)
        dibsx_buf_printf(line, "\033[%dm", tint[(size_t)(log->worker - 1) % 8]);
    dibsx_buf_printf(line, "[Worker %d (PID: %ld)]", log->worker,
                     (long)getpid());
    dibsx_buf_printf(line, "%s ", log->colour ? "\033[0m" : "");
}

static void put_text(dibsx_buf *line, const dibs__demo_log *log,
                     dibs__demo_mood mood, const char *message)
{
    bool tinted = log->colour && *tints[mood];

    put_name(line, log);
    dibsx_buf_puts(line, tinted ? tints[mood] : "");
    dibsx_buf_puts(line, marks[mood]);
    dibsx_text_clean(line, message);
    dibsx_buf_puts(line, tinted ? "\033[0m" : "");
}

static void put_facts(dibsx_json *js, const dibs__demo_fact *facts)
{
    for (; facts && facts->key; facts++) {
        if (facts->text)
            dibsx_json_pair_text(js, facts->key, facts->text);
        else
            dibsx_json_pair_int(js, facts->key, facts->number);
    }
}

/* One event in both forms. */
typedef struct said {
    const dibs__demo_log *log;
    dibs__demo_mood mood;
    const char *event;
    const dibs__demo_fact *facts;
    int64_t at_wall_us;
    char message[MESSAGE_MAX];
} said;

static void put_json(dibsx_buf *line, const said *sd)
{
    char time[40];
    dibsx_json js;

    dibsx_wall_text(sd->at_wall_us, time, sizeof(time));
    dibsx_json_init(&js, line);
    dibsx_json_open(&js, '{');
    dibsx_json_pair_text(&js, "time", time);
    dibsx_json_pair_text(&js, "level",
                         sd->mood == DIBS__DEMO_BAD ? "error" : "info");
    dibsx_json_pair_text(&js, "event", sd->event);
    if (sd->log->worker)
        dibsx_json_pair_int(&js, "worker", sd->log->worker);
    dibsx_json_pair_int(&js, "pid", getpid());
    put_facts(&js, sd->facts);
    dibsx_json_pair_text(&js, "message", sd->message);
    dibsx_json_close(&js, '}');
}

/* For those who follow the worker. */
static void put_feed(const said *sd)
{
    dibsx_buf text;

    if (!sd->log->feed)
        return;
    dibsx_buf_init(&text, PIPE_BUF);
    put_json(&text, sd);
    if (dibsx_buf_ok(&text))
        dibs__demo_feed_add(sd->log->feed, text.data, text.len);
    dibsx_buf_fini(&text);
}

static void put_line(const said *sd, dibsx_nsec at)
{
    const dibs__demo_log *log = sd->log;
    char stamp[DIBS__DEMO_STAMP_LEN + 1];
    dibsx_buf line;

    dibsx_buf_init(&line, PIPE_BUF);
    dibs__demo_stamp(at, stamp);
    dibsx_buf_puts(&line, stamp);
    if (log->json)
        put_json(&line, sd);
    else
        put_text(&line, log, sd->mood, sd->message);
    dibsx_buf_putc(&line, '\n');
    if (dibsx_buf_ok(&line))
        log->put(log->arg, line.data, line.len);
    dibsx_buf_fini(&line);
}

void dibs__demo_put_out(void *arg, const char *line, size_t len)
{
    (void)arg;
    (void)!write(STDOUT_FILENO, line, len);
}

void dibs__demo_say(const dibs__demo_log *log, dibs__demo_mood mood,
                    const char *event, const dibs__demo_fact *facts,
                    const char *format, ...)
{
    said sd = {.log = log, .mood = mood, .event = event, .facts = facts};
    const dibsx_nsec now = dibsx_now(), at = log->at ? log->at : now;
    va_list args;

    va_start(args, format);
    vsnprintf(sd.message, sizeof(sd.message), format, args);
    va_end(args);
    sd.at_wall_us = dibsx_wall_us() - (now - at) / 1000;
    put_line(&sd, at);
    put_feed(&sd);
}
