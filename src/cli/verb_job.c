/* verb_job.c - job, the group of verbs about jobs, and job check: files without a
 * store. Verbs that need a store are in verb_job_*.c. */
/* SPDX-License-Identifier: MIT */
#include "cli/job_files.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/verbs.h"

static void json_job(dibsx_json *js, const dibs__job_entry *entry)
{
    const dibs__job *job = entry->job;

    dibsx_json_open(js, '{');
    dibsx_json_pair_text(js, "name", job->name);
    dibsx_json_pair_text(js, "hash", entry->hash);
    dibsx_json_pair_bool(js, "enabled", job->enabled);
    dibsx_json_key(js, "schedule");
    dibsx_json_open(js, '[');
    for (size_t i = 0; i < job->schedule.count; i++)
        dibsx_json_text(js, job->schedule.at[i].text);
    dibsx_json_close(js, ']');
    dibsx_json_pair_text(js, "zone", job->zone);
    dibsx_json_pair_uint(js, "steps", job->step_count);
    dibsx_json_close(js, '}');
}

static void json_file(dibsx_json *js, const dibs__read_jobs *read)
{
    bool good = read->mistakes == 0;

    dibsx_json_open(js, '{');
    dibsx_json_pair_text(js, "file", read->path);
    dibsx_json_pair_bool(js, "ok", good);
    dibs__jobs_notes_json(read, js);
    if (good) {
        dibsx_json_pair_text(js, "set", read->file.set);
        dibsx_json_pair_text(js, "board", read->file.board);
        dibsx_json_key(js, "version");
        if (read->file.version > 0)
            dibsx_json_int(js, read->file.version);
        else
            dibsx_json_null(js);
        dibsx_json_pair_text(js, "hash", read->file.hash);
        dibsx_json_key(js, "jobs");
        dibsx_json_open(js, '[');
        for (size_t i = 0; i < read->file.count; i++)
            json_job(js, &read->file.entries[i]);
        dibsx_json_close(js, ']');
    }
    dibsx_json_close(js, '}');
}

static int print_json(const dibs__read_jobs *files, size_t count, bool good)
{
    dibs__report report;

    dibs__report_begin(&report);
    dibsx_json_pair_bool(&report.js, "ok", good);
    dibsx_json_key(&report.js, "files");
    dibsx_json_open(&report.js, '[');
    for (size_t i = 0; i < count; i++)
        json_file(&report.js, &files[i]);
    dibsx_json_close(&report.js, ']');
    return dibs__report_end(&report);
}

static int check_files(const dibs__command *cmd)
{
    dibs__read_jobs *files = NULL;
    size_t count = 0;
    int code = dibs__jobs_open(cmd, &files, &count), printed = 0;

    if (code == 0 || code == DIBS__EXIT_CONFIG) {
        if (dibs__opt_flag(cmd, "json"))
            printed = print_json(files, count, code == 0);
        else
            dibs__jobs_say(cmd, files, count);
    }
    dibs__jobs_close(files, count);
    return printed ? printed : code;
}

const dibs__verb dibs__verb_job = {
    .name = "job",
    .operands = "VERB",
    .summary = "jobs: schedules, commands and their rules",
    .about = "A jobs file in YAML defines jobs: when they are due, what they "
             "run, and their rules. docs/jobs.md has all keys.\n",
};

const dibs__verb dibs__verb_job_check = {
    .name = "job check",
    .operands = "FILE...",
    .summary = "check jobs files",
    .about =
        "Reports all mistakes as file:line:column, up to 20 of a file: "
        "unknown keys, values out of bounds, mistakes within cron "
        "expressions, schedules that never fire, zones that are not "
        "installed, needs that go in a circle, and jobs that two files have. "
        "Prints nothing if there are none. Warnings are no mistakes. - reads "
        "standard input. No store is needed.\n",
    .examples = "In a build, before jobs are deployed:\n"
                "  dibs job check jobs/*.yaml\n"
                "A crontab, as jobs:\n"
                "  crontab -l | dibs cron import - | dibs job check -\n",
    .exits = "0 the files are good\n"
             "1 there is no such file\n"
             "78 a file has mistakes\n",
    .options = "json",
    .min_operands = 1,
    .max_operands = -1,
    .kind = DIBS__FILES,
    .plain = true,
    .run = check_files,
};
