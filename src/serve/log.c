/* log.c - the daemon's log. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "serve/log.h"
#include "base/json.h"
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ACCESS_MAX = 100, MESSAGE_MAX = 1024 };

static const char *const levels[] = {"error", "warn", "info", "debug", "trace"};

void dibs__serve_log_init(dibs__serve_log *log, bool json)
{
    *log = (dibs__serve_log){.fd = STDERR_FILENO,
                             .json = json,
                             .usual = DIBS_LOG_TRACE,
                             .level = DIBS_LOG_TRACE,
                             .until = DIBSX_NEVER};
    pthread_mutex_init(&log->mutex, NULL);
}

void dibs__serve_log_fini(dibs__serve_log *log)
{
    pthread_mutex_destroy(&log->mutex);
}

/* One word, in ASCII. */
static bool is_word(const char *text)
{
    const char *at = text;

    while (*at > ' ' && *at < 0x7f && !strchr("=\"\\", *at))
        at++;
    return at > text && !*at && at - text < 256;
}

/* In quotes if it is not one word; escaped as JSON has it. */
static void put_text(dibsx_buf *out, const char *key, const char *text)
{
    dibsx_json js;

    dibsx_buf_printf(out, " %s=", key);
    if (is_word(text)) {
        dibsx_buf_puts(out, text);
        return;
    }
    dibsx_json_init(&js, out);
    js.shown = true;
    dibsx_json_text(&js, text);
}

static void put_plain(dibsx_buf *out, const char *time, const char *level,
                      const char *event, const dibs__serve_fact *facts)
{
    dibsx_buf_printf(out, "time=%s level=%s event=%s", time, level, event);
    for (; facts && facts->key; facts++) {
        if (facts->text)
            put_text(out, facts->key, facts->text);
        else
            dibsx_buf_printf(out, " %s=%lld", facts->key,
                             (long long)facts->number);
    }
}

static void
put_json(dibsx_buf *out, const char *time, const char *level, const char *event,
         const dibs__serve_fact *facts, const char *message)
{
    dibsx_json js;

    dibsx_json_init(&js, out);
    js.shown = true;
    dibsx_json_open(&js, '{');
    dibsx_json_pair_text(&js, "time", time);
    dibsx_json_pair_text(&js, "level", level);
    dibsx_json_pair_text(&js, "event", event);
    for (; facts && facts->key; facts++) {
        if (facts->text)
            dibsx_json_pair_text(&js, facts->key, facts->text);
        else
            dibsx_json_pair_int(&js, facts->key, facts->number);
    }
    if (message)
        dibsx_json_pair_text(&js, "message", message);
    dibsx_json_close(&js, '}');
}

/* Locks: log->mutex. A pipe that polls as writable takes a line of this size. */
static bool write_line(const dibs__serve_log *log, const dibsx_buf *line)
{
    struct pollfd fd = {.fd = log->fd, .events = POLLOUT};

    return dibsx_buf_ok(line) && poll(&fd, 1, 0) == 1 &&
           (fd.revents & POLLOUT) &&
           write(log->fd, line->data, line->len) == (ssize_t)line->len;
}

static void put_line(dibs__serve_log *log, const char *level, const char *event,
                     const dibs__serve_fact *facts, const char *message)
{
    char time[40];
    dibsx_buf line;

    dibsx_buf_init(&line, PIPE_BUF);
    dibsx_wall_text(dibsx_wall_us(), time, sizeof(time));
    if (log->json) {
        put_json(&line, time, level, event, facts, message);
    } else {
        put_plain(&line, time, level, event, facts);
        if (message)
            put_text(&line, "message", message);
    }
    dibsx_buf_putc(&line, '\n');
    pthread_mutex_lock(&log->mutex);
    if (!write_line(log, &line))
        log->dropped++;
    pthread_mutex_unlock(&log->mutex);
    dibsx_buf_fini(&line);
}

/* Says how many lines were left out before, once there is room again. */
static void tell_dropped(dibs__serve_log *log)
{
    uint64_t dropped;

    pthread_mutex_lock(&log->mutex);
    dropped = log->dropped;
    log->dropped = 0;
    pthread_mutex_unlock(&log->mutex);
    if (dropped)
        put_line(log, "warn", "dropped",
                 DIBS__SERVE_FACTS({"lines", NULL, (int64_t)dropped}), NULL);
}

void dibs__serve_say(dibs__serve_log *log, dibs_log_level level,
                     const char *event, const dibs__serve_fact *facts,
                     const char *format, ...)
{
    char message[MESSAGE_MAX];
    va_list args;

    va_start(args, format);
    vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    put_line(log, levels[level], event, facts, message);
}

/* Counts the line; false: there were too many in this second. */
static bool admit(dibs__serve_log *log, bool *fresh)
{
    dibsx_nsec now = dibsx_now();
    bool fits;

    pthread_mutex_lock(&log->mutex);
    *fresh = now - log->second_at >= DIBSX_SEC;
    if (*fresh) {
        log->second_at = now;
        log->access = 0;
    }
    fits = log->access++ < ACCESS_MAX;
    log->dropped += !fits;
    pthread_mutex_unlock(&log->mutex);
    return fits;
}

void dibs__serve_log_access(dibs__serve_log *log, const dibs__serve_fact *facts)
{
    bool fresh;

    if (!admit(log, &fresh))
        return;
    if (fresh)
        tell_dropped(log);
    put_line(log, "info", "request", facts, NULL);
}

/* -- The level of the client's lines. */

const char *dibs__serve_level_text(dibs_log_level level)
{
    return levels[level];
}

bool dibs__serve_level_read(const char *text, dibs_log_level *out)
{
    for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
        if (strcmp(text, levels[i]) == 0) {
            *out = (dibs_log_level)i;
            return true;
        }
    }
    return false;
}

/* Locks: log->mutex. */
static void
take_level(dibs__serve_log *log, dibs_log_level level, dibsx_nsec until)
{
    log->level = level;
    log->until = until;
    if (log->cl)
        dibs_log_level_set(log->cl, level);
    if (log->data)
        dibs_log_level_set(log->data, level);
}

/* Locks: log->mutex. No timer ends it: the first line after its end, or the first look
 * at it, does. True: it has just ended. */
static bool end_level(dibs__serve_log *log, dibsx_nsec now)
{
    if (now < log->until)
        return false;
    take_level(log, log->usual, DIBSX_NEVER);
    return true;
}

static void tell_level(dibs__serve_log *log, const char *why)
{
    const char *level = levels[dibs__serve_log_get(log, NULL)];

    put_line(log, "info", "log_level",
             DIBS__SERVE_FACTS({"log_level", level, 0}), why);
}

void dibs__serve_log_settle(dibs__serve_log *log, dibs_client *cl,
                            dibs_client *data, dibs_log_level usual)
{
    pthread_mutex_lock(&log->mutex);
    log->cl = cl;
    log->data = data;
    (void)end_level(log, dibsx_now());
    if (log->level == log->usual && log->until == DIBSX_NEVER)
        take_level(log, usual, DIBSX_NEVER);
    log->usual = usual;
    pthread_mutex_unlock(&log->mutex);
}

void dibs__serve_log_set(dibs__serve_log *log, const dibs_log_level *level,
                         int64_t for_ms)
{
    pthread_mutex_lock(&log->mutex);
    take_level(log, level ? *level : log->usual,
               level ? dibsx_after_ms(dibsx_now(), for_ms) : DIBSX_NEVER);
    pthread_mutex_unlock(&log->mutex);
    tell_level(log, "an admin has set the level of the log");
}

dibs_log_level dibs__serve_log_get(dibs__serve_log *log, int64_t *left_ms)
{
    const dibsx_nsec now = dibsx_now();
    dibs_log_level level;

    pthread_mutex_lock(&log->mutex);
    (void)end_level(log, now);
    level = log->level;
    if (left_ms)
        *left_ms = dibsx_wait_ms(log->until, now);
    pthread_mutex_unlock(&log->mutex);
    return level;
}

void dibs__serve_log_client(dibs_log_level level, const char *event,
                            const char *message, void *arg)
{
    dibs__serve_log *log = arg;
    bool ended, wanted;

    pthread_mutex_lock(&log->mutex);
    ended = end_level(log, dibsx_now());
    wanted = level <= log->level;
    pthread_mutex_unlock(&log->mutex);
    if (ended)
        tell_level(log, "the level of the log is as the settings have it");
    if (wanted)
        put_line(log, levels[level], event, NULL, message);
}
