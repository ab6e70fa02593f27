/* crontab.c - reads a crontab: lines of cron become jobs. Reads zone files. */
/* SPDX-License-Identifier: MIT */
#include "jobs/crontab.h"
#include "base/alloc.h"
#include "base/fail.h"
#include "base/sha1.h"
#include "jobs/cron.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { LINE_MAX_BYTES = 16 * 1024, NAME_MAX_BYTES = 100, HASH_DIGITS = 8 };

/* A name that was given, to find it again. */
typedef struct taken {
    char *name;
    size_t line;
    struct taken *next;
} taken;

typedef struct reader {
    const dibs__crontab_opts *opts;
    const dibs__crontab_sink *sink;
    size_t line_number;
    char *line;                         /* as it was */
    char *at;                           /* what is left of it */
    char name[DIBS__CRONTAB_NAME_SIZE]; /* of the next job, or "" */
    char *zone;                         /* or NULL */
    dibs__crontab_env env[DIBS__CRONTAB_ENV_MAX];
    size_t env_count;
    taken *names;
    bool short_of_memory;
} reader;

static int column_of(const reader *rd, const char *at)
{
    int column = 1;

    for (const char *c = rd->line; c < at; c++)
        column += ((unsigned char)*c & 0xc0) != 0x80;
    return column;
}

static void note_mistake(reader *rd, const char *at, const char *message)
{
    rd->sink->note(rd->sink->arg, rd->line_number, column_of(rd, at), message);
}

static void note_left_out(reader *rd, const char *thing, const char *why)
{
    char message[160];

    (void)snprintf(message, sizeof(message), "%.64s is left out: %s", thing,
                   why);
    rd->sink->note(rd->sink->arg, rd->line_number, 0, message);
}

static char *copy_text(reader *rd, const char *text)
{
    char *copy = dibsx_strdup(text);

    rd->short_of_memory = rd->short_of_memory || !copy;
    return copy;
}

static void skip_blanks(reader *rd)
{
    rd->at += strspn(rd->at, " \t");
}

static void trim_end(char *text)
{
    size_t len = strlen(text);

    while (len > 0 && strchr(" \t", text[len - 1]))
        text[--len] = '\0';
}

static bool is_job_name(const char *name)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "abcdefghijklmnopqrstuvwxyz0123456789._-";
    size_t len = strlen(name);

    return len >= 1 && len <= NAME_MAX_BYTES && !strchr("._-", name[0]) &&
           strspn(name, letters) == len;
}

/* "# dibs: nightly" names the job below. */
static void read_comment(reader *rd)
{
    rd->at++;
    skip_blanks(rd);
    if (strncmp(rd->at, "dibs:", 5) != 0)
        return;
    rd->at += 5;
    skip_blanks(rd);
    trim_end(rd->at);
    if (!is_job_name(rd->at)) {
        note_mistake(rd, rd->at,
                     "it is no name of a job; use letters, digits, . _ and -");
        return;
    }
    (void)snprintf(rd->name, sizeof(rd->name), "%s", rd->at);
}

static void set_zone(reader *rd, char *value)
{
    dibs__zone *zone = NULL;
    dibs_error err = {0};

    if (dibs__zone_open(value, &zone, &err) != DIBS_OK) {
        note_mistake(rd, rd->at, err.message);
        return;
    }
    dibs__zone_free(zone);
    dibsx_free(rd->zone);
    rd->zone = copy_text(rd, value);
}

static void set_variable(reader *rd, const char *name, const char *value)
{
    dibs__crontab_env *env = rd->env;

    while (env < rd->env + rd->env_count && strcmp(env->name, name) != 0)
        env++;
    if (env == rd->env + DIBS__CRONTAB_ENV_MAX) {
        note_mistake(rd, rd->line, "there are more than 100 variables");
        return;
    }
    if (env == rd->env + rd->env_count) {
        *env = (dibs__crontab_env){.name = copy_text(rd, name)};
        if (!env->name)
            return;
        rd->env_count++;
    }
    dibsx_free(env->value);
    env->value = copy_text(rd, value);
}

/* Takes the quotes off that stand around a value. */
static char *unquote(char *value)
{
    size_t len = strlen(value);

    if (len >= 2 && strchr("\"'", value[0]) && value[len - 1] == value[0]) {
        value[len - 1] = '\0';
        return value + 1;
    }
    return value;
}

/* NAME = value. False: it is none, and the line is as it was. */
static bool read_variable(reader *rd)
{
    static const char *const mail[] = {"MAILTO", "MAILFROM", "CONTENT_TYPE",
                                       "CONTENT_TRANSFER_ENCODING"};
    char *end = rd->at, *equals, *value;

    while ((*end >= 'A' && *end <= 'Z') || (*end >= 'a' && *end <= 'z') ||
           *end == '_' || (end > rd->at && *end >= '0' && *end <= '9'))
        end++;
    equals = end + strspn(end, " \t");
    if (end == rd->at || *equals != '=')
        return false;
    value = equals + 1 + strspn(equals + 1, " \t");
    trim_end(value);
    *end = '\0';
    value = unquote(value);
    for (size_t i = 0; i < sizeof(mail) / sizeof(mail[0]); i++) {
        if (strcmp(rd->at, mail[i]) == 0) {
            note_left_out(rd, mail[i], "dibs sends no mail");
            return true;
        }
    }
    if (strcmp(rd->at, "RANDOM_DELAY") == 0) {
        note_left_out(rd, rd->at, "set the jitter of the jobs");
    } else if (strcmp(rd->at, "CRON_TZ") == 0) {
        rd->at = value;
        set_zone(rd, value);
    } else {
        set_variable(rd, rd->at, value);
    }
    return true;
}

/* Ends the expression with a NUL and moves past it. NULL after a note. */
static char *take_schedule(reader *rd)
{
    char *begin = rd->at;
    char *end = begin;
    int words = *begin != '@'                          ? rd->opts->fields
                : strncasecmp(begin, "@every", 6) == 0 ? 2
                                                       : 1;
    dibs__cron cron;
    dibs_error err = {0};
    int column = 1;

    while (words > 0 && *rd->at) {
        rd->at += strcspn(rd->at, " \t");
        end = rd->at;
        skip_blanks(rd);
        words--;
    }
    if (*end)
        *end = '\0';
    if (strcasecmp(begin, "@reboot") == 0) {
        note_left_out(rd, begin, "no job starts with a machine");
        return NULL;
    }
    if (dibs__cron_parse(begin, &cron, &column, &err) == DIBS_OK)
        return begin;
    rd->sink->note(rd->sink->arg, rd->line_number,
                   column_of(rd, begin) + column - 1, err.message);
    return NULL;
}

static char *take_user(reader *rd)
{
    char *begin = rd->at;

    rd->at += strcspn(rd->at, " \t");
    if (*rd->at)
        *rd->at++ = '\0';
    skip_blanks(rd);
    return begin;
}

/* An unescaped % is a newline, and the first one ends the command. */
static char *split_input(char *command)
{
    char *to = command, *input = NULL;

    for (const char *from = command; *from; from++) {
        if (*from == '\\' && from[1] == '%') {
            *to++ = *++from;
        } else if (*from == '%' && !input) {
            *to++ = '\0';
            input = to;
        } else {
            *to++ = *from == '%' ? '\n' : *from;
        }
    }
    /* cron ends the last line too. */
    if (input && to > input && to[-1] != '\n')
        *to++ = '\n';
    *to = '\0';
    return input;
}

static size_t find_name(const reader *rd, const char *name)
{
    for (const taken *tk = rd->names; tk; tk = tk->next) {
        if (strcmp(tk->name, name) == 0)
            return tk->line;
    }
    return 0;
}

static void keep_name(reader *rd)
{
    taken *tk = dibsx_zalloc(sizeof(*tk));
    char *name = copy_text(rd, rd->name);

    if (!tk || !name) {
        rd->short_of_memory = true;
        dibsx_free(tk);
        dibsx_free(name);
        return;
    }
    *tk = (taken){name, rd->line_number, rd->names};
    rd->names = tk;
}

/* A name of its own for a job that has none, the same at every import. */
static void make_name(reader *rd, const dibs__crontab_job *job)
{
    char text[LINE_MAX_BYTES + 8], hash[DIBSX_SHA1_TEXT];
    int len = snprintf(text, sizeof(text), "%s\n%s\n%s", job->schedule,
                       job->user ? job->user : "", job->shell);

    dibsx_sha1(text, (size_t)len, hash);
    (void)snprintf(rd->name, sizeof(rd->name), "cron-%.*s", HASH_DIGITS, hash);
    for (int i = 2; find_name(rd, rd->name); i++)
        (void)snprintf(rd->name, sizeof(rd->name), "cron-%.*s-%d", HASH_DIGITS,
                       hash, i);
}

static void read_job(reader *rd)
{
    dibs__crontab_job job = {.schedule = take_schedule(rd),
                             .zone = rd->zone,
                             .env = rd->env,
                             .env_count = rd->env_count};

    if (!job.schedule)
        return;
    if (rd->opts->system)
        job.user = take_user(rd);
    if (!*rd->at || *rd->at == '%') {
        note_mistake(rd, rd->at,
                     rd->opts->system
                         ? "there is no command; a user stands before it"
                         : "there is no command");
        return;
    }
    if (strchr("*?", rd->at[0]) && strchr(" \t", rd->at[1])) {
        note_mistake(rd, rd->at,
                     "the command begins with a star; if expressions have "
                     "seconds, give --fields 6");
        return;
    }
    job.shell = rd->at;
    job.input = split_input(rd->at);
    if (rd->name[0] && find_name(rd, rd->name)) {
        note_mistake(rd, rd->line, "another job has this name already");
        return;
    }
    if (!rd->name[0])
        make_name(rd, &job);
    keep_name(rd);
    job.name = rd->name;
    if (!rd->short_of_memory)
        rd->sink->job(rd->sink->arg, &job);
}

/* rd->line is a copy that may be written to. */
static void read_line(reader *rd)
{
    rd->at = rd->line;
    skip_blanks(rd);
    if (*rd->at == '\0')
        return;
    if (*rd->at == '#') {
        read_comment(rd);
        return;
    }
    if (read_variable(rd))
        return;
    read_job(rd);
    rd->name[0] = '\0';
}

static void free_reader(reader *rd)
{
    while (rd->names) {
        taken *next = rd->names->next;

        dibsx_free(rd->names->name);
        dibsx_free(rd->names);
        rd->names = next;
    }
    for (size_t i = 0; i < rd->env_count; i++) {
        dibsx_free(rd->env[i].name);
        dibsx_free(rd->env[i].value);
    }
    dibsx_free(rd->zone);
}

dibs_status dibs__crontab_read(const char *text, const dibs__crontab_opts *opts,
                               const dibs__crontab_sink *sink, dibs_error *err)
{
    reader rd = {.opts = opts, .sink = sink};
    char line[LINE_MAX_BYTES + 2]; /* a newline may be added */

    rd.line = line;
    while (*text && !rd.short_of_memory) {
        size_t len = strcspn(text, "\n");

        rd.line_number++;
        if (len > LINE_MAX_BYTES) {
            line[0] = '\0';
            note_mistake(&rd, line, "the line is longer than 16 KiB");
        } else {
            memcpy(line, text, len);
            line[len - (len > 0 && text[len - 1] == '\r')] = '\0';
            read_line(&rd);
        }
        text += len + (text[len] == '\n');
    }
    free_reader(&rd);
    return rd.short_of_memory ? dibsx_nomem(err, "the crontab") : DIBS_OK;
}
