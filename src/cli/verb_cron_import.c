/* verb_cron_import.c - cron import: a crontab as a jobs file in YAML. */
/* SPDX-License-Identifier: MIT */
#include "base/text.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/text_file.h"
#include "cli/verbs.h"
#include "jobs/crontab.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CRONTAB_MAX = 1024 * 1024,
    FILE_MAX = 64 * 1024 * 1024,
    MISTAKES_MAX = 20
};

typedef struct import {
    const dibs__command *cmd;
    const char *file; /* for messages */
    const char *zone; /* of lines without CRON_TZ */
    dibsx_buf out;
    size_t jobs;
    size_t mistakes;
    bool homeless;  /* a job has no folder */
    const char *tz; /* of the caller, which is not `zone`; NULL: none */
    bool zoneless;  /* a job has no zone of its own */
} import;

/* Plain words in single quotes, all else as JSON, which YAML can read. */
static void put_scalar(dibsx_buf *out, const char *text)
{
    dibsx_json js;

    for (const char *c = text; *c; c++) {
        if ((unsigned char)*c < 0x20 || (unsigned char)*c >= 0x7f) {
            dibsx_json_init(&js, out);
            dibsx_json_text(&js, text);
            return;
        }
    }
    dibsx_buf_putc(out, '\'');
    for (const char *c = text; *c; c++) {
        if (*c == '\'')
            dibsx_buf_putc(out, '\'');
        dibsx_buf_putc(out, *c);
    }
    dibsx_buf_putc(out, '\'');
}

static void put_pair(dibsx_buf *out, const char *key, const char *text)
{
    dibsx_buf_printf(out, "    %s: ", key);
    put_scalar(out, text);
    dibsx_buf_putc(out, '\n');
}

static const char *find_variable(const dibs__crontab_job *job, const char *name)
{
    for (size_t i = 0; i < job->env_count; i++)
        if (strcmp(job->env[i].name, name) == 0 && job->env[i].value)
            return job->env[i].value;
    return "";
}

/* A word of `run`, where "${" would be a reference. */
static void put_word(dibsx_buf *out, const char *text)
{
    dibsx_buf word;

    dibsx_buf_init(&word, 2 * strlen(text) + 1);
    for (const char *c = text; *c; c++) {
        if (c[0] == '$' && c[1] == '{')
            dibsx_buf_putc(&word, '$');
        dibsx_buf_putc(&word, *c);
    }
    if (dibsx_buf_ok(&word))
        put_scalar(out, dibsx_buf_text(&word));
    else
        out->failed = true;
    dibsx_buf_fini(&word);
}

/* `shell` has /bin/sh, as cron has it without SHELL. */
static void put_command(dibsx_buf *out, const dibs__crontab_job *job)
{
    const char *shell = find_variable(job, "SHELL");

    if (!shell[0] || strcmp(shell, "/bin/sh") == 0) {
        put_pair(out, "shell", job->shell);
        return;
    }
    dibsx_buf_puts(out, "    run: [");
    put_word(out, shell);
    dibsx_buf_puts(out, ", '-c', ");
    put_word(out, job->shell);
    dibsx_buf_puts(out, "]\n");
}

static void add_job(void *arg, const dibs__crontab_job *job)
{
    import *im = arg;
    const char *home = find_variable(job, "HOME");

    if (im->jobs++ == 0)
        dibsx_buf_puts(&im->out, "jobs:\n");
    dibsx_buf_printf(&im->out, "  %s:\n", job->name);
    put_pair(&im->out, "schedule", job->schedule);
    put_pair(&im->out, "zone", job->zone ? job->zone : im->zone);
    im->zoneless = im->zoneless || !job->zone;
    if (job->user)
        put_pair(&im->out, "user", job->user);
    if (job->env_count > 0)
        dibsx_buf_puts(&im->out, "    env:\n");
    for (size_t i = 0; i < job->env_count; i++) {
        dibsx_buf_printf(&im->out, "      %s: ", job->env[i].name);
        put_scalar(&im->out, job->env[i].value);
        dibsx_buf_putc(&im->out, '\n');
    }
    if (home[0] == '/')
        put_pair(&im->out, "dir", home);
    else
        im->homeless = true;
    put_command(&im->out, job);
    if (job->input)
        put_pair(&im->out, "stdin", job->input);
}

static void add_note(void *arg, size_t line, int column, const char *message)
{
    import *im = arg;
    bool quiet = dibs__opt_flag(im->cmd, "quiet");

    if (column > 0 && ++im->mistakes > MISTAKES_MAX)
        return;
    if (quiet)
        return;
    if (column > 0)
        dibs__cli_say("%s:%zu:%d: %s", im->file, line, column, message);
    else
        dibs__cli_say("%s:%zu: %s", im->file, line, message);
}

/* A crontab is text: other bytes would come out changed. */
static bool is_text(const dibsx_buf *text)
{
    const unsigned char *at = (const unsigned char *)dibsx_buf_text(text);

    for (size_t i = 0, size; i < text->len; i += size) {
        size = dibsx_utf8_len(at + i, text->len - i);
        if (size == 0 || at[i] == '\0')
            return false;
    }
    return true;
}

/* That of the machine. */
static int find_host_zone(import *im, char out[DIBS__ZONE_NAME_MAX + 1])
{
    const char *tz = getenv("TZ"), *name = tz && tz[0] == ':' ? tz + 1 : tz;

    if (!dibs__host_zone("/etc", out)) {
        dibs__cli_say("the zone of this machine is not known; give --zone");
        return DIBS__EXIT_CONFIG;
    }
    if (tz && tz[0] && strcmp(name, out) != 0 &&
        strcmp(name, "/etc/localtime") != 0)
        im->tz = tz;
    return 0;
}

/* The zone of lines without CRON_TZ. */
static int find_zone(import *im, char out[DIBS__ZONE_NAME_MAX + 1])
{
    const char *given = dibs__opt_text(im->cmd, "zone");
    dibs__zone *zone = NULL;
    dibs_error err = {0};

    if (!given)
        return find_host_zone(im, out);
    if (dibs__zone_open(given, &zone, &err) != DIBS_OK) {
        (void)dibs__cli_fail(im->cmd, &err);
        return DIBS__EXIT_CONFIG;
    }
    (void)snprintf(out, DIBS__ZONE_NAME_MAX + 1, "%s", given);
    dibs__zone_free(zone);
    return 0;
}

/* Says where jobs are other than the caller may expect. */
static void note_surroundings(const import *im)
{
    if (dibs__opt_flag(im->cmd, "quiet"))
        return;
    if (im->zoneless && im->tz)
        dibs__cli_say("%s: cron has no TZ of the caller (%s); jobs without "
                      "CRON_TZ have the zone of this machine, %s; give --zone "
                      "for another",
                      im->file, im->tz, im->zone);
    if (im->homeless)
        dibs__cli_say("%s: cron starts commands in the home of their user, and "
                      "a node in its own folder; give jobs that need it dir, "
                      "or the crontab HOME",
                      im->file);
}

static int convert_crontab(import *im, const dibsx_buf *text)
{
    const dibs__crontab_opts opts = {.fields =
                                         (int)dibs__opt_int(im->cmd, "fields"),
                                     .system =
                                         dibs__opt_flag(im->cmd, "system")};
    const dibs__crontab_sink sink = {add_job, add_note, im};
    dibs_error err = {0};

    if (!is_text(text)) {
        dibs__cli_say("%s is not text in UTF-8; convert it with iconv",
                      im->file);
        return DIBS__EXIT_CONFIG;
    }
    if (dibs__crontab_read(dibsx_buf_text(text), &opts, &sink, &err) != DIBS_OK)
        return dibs__cli_fail(im->cmd, &err);
    if (im->mistakes > MISTAKES_MAX && !dibs__opt_flag(im->cmd, "quiet"))
        dibs__cli_say("there are %zu mistakes in all; the first %d are shown",
                      im->mistakes, MISTAKES_MAX);
    if (im->mistakes > 0)
        return DIBS__EXIT_CONFIG;
    if (!dibsx_buf_ok(&im->out))
        return dibs__cli_nomem("the jobs file");
    note_surroundings(im);
    dibs__out(im->jobs ? dibsx_buf_text(&im->out) : "jobs: {}\n",
              im->jobs ? im->out.len : strlen("jobs: {}\n"));
    return dibs__out_done();
}

static int import_crontab(const dibs__command *cmd)
{
    const char *path = dibs__operands(cmd)[0];
    char zone[DIBS__ZONE_NAME_MAX + 1];
    struct import im = {.cmd = cmd,
                        .file = dibs__text_name(path),
                        .zone = zone};
    dibsx_buf text;
    int code;

    dibsx_buf_init(&text, CRONTAB_MAX);
    dibsx_buf_init(&im.out, FILE_MAX);
    code = dibs__text_read(cmd, path, &text);
    if (!code)
        code = find_zone(&im, zone);
    if (!code)
        code = convert_crontab(&im, &text);
    dibsx_buf_fini(&im.out);
    dibsx_buf_fini(&text);
    return code;
}

static const dibs__option options[] = {
    {.name = "system",
     .help = "A user stands before the command, as in /etc/crontab and "
             "/etc/cron.d."},
    {DIBS__ROW_INT("fields", "N", 5, 7), .initial = "5",
     .help = "How many fields an expression has: 6 begin with seconds, 7 also "
             "end with a year."},
    {DIBS__ROW_TEXT("zone", "ZONE"), .letter = 'z',
     .otherwise = "the zone of this machine",
     .help = "The time zone of lines without CRON_TZ, such as Europe/Berlin."},
};

const dibs__option_rows dibs__options_cron_import =
    DIBS__OPTION_ROWS("cron import", options);

const dibs__verb dibs__verb_cron_import = {
    .name = "cron import",
    .operands = "CRONTAB",
    .summary = "turn a crontab into a jobs file",
    .about =
        "Prints a jobs file in YAML, with a job for each line; - reads "
        "standard "
        "input. Variables go to env of the jobs below them, CRON_TZ to zone, "
        "HOME also to dir; with SHELL a job runs that shell. "
        "An unescaped % ends the command, and the rest is its standard input. "
        "@reboot and MAILTO are reported and left out.\n"
        "A line '# dibs: NAME' names the job below it; others are named "
        "after their content, the same at every import. Mistakes are "
        "reported as file:line:column, and nothing is printed then.\n",
    .examples = "The crontab of this user:\n"
                "  crontab -l | dibs cron import - > jobs.yaml\n"
                "That of the system:\n"
                "  dibs cron import /etc/crontab --system > jobs.yaml\n",
    .exits = "0 printed\n"
             "1 there is no such file\n"
             "78 the crontab has mistakes, or a zone is not installed\n",
    .min_operands = 1,
    .max_operands = 1,
    .kind = DIBS__FILES,
    .plain = true,
    .run = import_crontab,
};
