/* verb_job_load.c - job load: the jobs of files become those of a store. */
/* SPDX-License-Identifier: MIT */
#include "cli/changes.h"
#include "cli/job_board.h"
#include "cli/job_files.h"
#include "cli/print.h"
#include "cli/verbs.h"
#include "jobs/board_name.h"
#include "jobs/board_set.h"

#include <limits.h>
#include <stdio.h>

static void print_job(void *arg, char mark, const char *job)
{
    const dibs__command *cmd = arg;

    if (!dibs__opt_flag(cmd, "json") && !dibs__opt_flag(cmd, "quiet"))
        printf("%c %s\n", mark, job);
}

static const char *verdict_name(dibs__set_verdict verdict)
{
    static const char *const names[] = {"same", "loaded", "refused", "older"};

    return names[verdict];
}

/* Without a sum: it failed, and nothing of it was loaded or not all. */
static void json_load(dibsx_json *js, const dibs__read_jobs *read,
                      const dibs__load_sum *sum)
{
    dibsx_json_open(js, '{');
    dibsx_json_pair_text(js, "file", read->path);
    dibsx_json_pair_text(js, "set", read->file.set);
    dibsx_json_pair_text(js, "board", read->file.board);
    dibsx_json_pair_text(js, "verdict",
                         sum ? verdict_name(sum->verdict) : "failed");
    if (sum) {
        dibsx_json_pair_uint(js, "added", sum->added);
        dibsx_json_pair_uint(js, "changed", sum->changed);
        dibsx_json_pair_uint(js, "removed", sum->removed);
        dibsx_json_pair_uint(js, "same", sum->same);
    }
    dibsx_json_close(js, '}');
}

static void say_sum(const dibs__command *cmd, const dibs__read_jobs *read,
                    const dibs__load_sum *sum)
{
    if (dibs__opt_flag(cmd, "json") || dibs__opt_flag(cmd, "quiet"))
        return;
    if (sum->verdict == DIBS__SET_SAME)
        printf("set %s: nothing to do\n", read->file.set);
    else
        printf("set %s: %zu added, %zu changed, %zu removed, %zu as they "
               "were%s\n",
               read->file.set, sum->added, sum->changed, sum->removed,
               sum->same,
               dibs__opt_flag(cmd, "dry-run") ? " (nothing was done)" : "");
}

/* *failed: the sum says nothing. */
static int
load_file(const dibs__command *cmd, dibs_client *cl, const char *who,
          const dibs__read_jobs *read, dibs__load_sum *sum, bool *failed)
{
    char origin[PATH_MAX + 80];
    dibs__load_opts opts = {.origin = origin,
                            .by = who,
                            .force = dibs__opt_flag(cmd, "force"),
                            .dry_run = dibs__opt_flag(cmd, "dry-run")};
    dibs__board board;
    dibs_error err = {0};
    dibsx_buf why;
    dibs_status rc = dibs__board_init(&board, cl, read->file.board, &err);
    int code = 0;

    dibs__jobs_origin(read->path, origin, sizeof(origin));
    dibsx_buf_init(&why, 4096);
    if (rc == DIBS_OK)
        rc = dibs__board_load(&board, &read->file, &opts, print_job,
                              (void *)(size_t)cmd, sum, &why, &err);
    *failed = rc != DIBS_OK;
    /* A load that fails part-way has changed the set, and perhaps jobs. */
    if (opts.force && !opts.dry_run &&
        (*failed || sum->verdict == DIBS__SET_LOAD))
        dibs__cli_change_made(cmd, cl, "job-load", read->file.set, "--force",
                              sum->begun ? DIBS_OK : rc);
    if (*failed) {
        code = dibs__cli_fail(cmd, &err);
        if (rc == DIBS_INVALID)
            code = DIBS__EXIT_CONFIG;
    } else if (sum->verdict == DIBS__SET_REFUSED ||
               sum->verdict == DIBS__SET_OLDER) {
        if (!dibs__opt_flag(cmd, "quiet"))
            dibs__cli_say("%s: %s", read->path, dibsx_buf_text(&why));
        code = DIBS__EXIT_CONFIG;
    } else {
        say_sum(cmd, read, sum);
    }
    dibsx_buf_fini(&why);
    return code;
}

static int
load_all(const dibs__command *cmd, const dibs__read_jobs *files, size_t count)
{
    bool json = dibs__opt_flag(cmd, "json");
    char who[DIBS__RUN_NOTE_SIZE];
    dibs_client *cl = NULL;
    dibs__report report;
    int code = dibs__cli_open(cmd, &cl), first = code, printed = 0;

    dibs__board_whoami(who, sizeof(who));
    if (json && !code) {
        dibs__report_begin(&report);
        dibsx_json_key(&report.js, "files");
        dibsx_json_open(&report.js, '[');
    }
    for (size_t i = 0; i < count && !code; i++) {
        dibs__load_sum sum = {.verdict = DIBS__SET_SAME};
        bool failed;
        int one = load_file(cmd, cl, who, &files[i], &sum, &failed);

        if (json)
            json_load(&report.js, &files[i], failed ? NULL : &sum);
        first = first ? first : one;
    }
    if (json && !code) {
        dibsx_json_close(&report.js, ']');
        printed = dibs__report_end(&report);
    }
    dibs_close(cl);
    return first ? first : printed;
}

static int load_files(const dibs__command *cmd)
{
    dibs__read_jobs *files = NULL;
    size_t count = 0;
    int code = dibs__jobs_open(cmd, &files, &count);

    if (code == 0 || code == DIBS__EXIT_CONFIG)
        dibs__jobs_say(cmd, files, count);
    if (code == 0)
        code = load_all(cmd, files, count);
    dibs__jobs_close(files, count);
    return code;
}

static const dibs__option options[] = {
    {.name = "force",
     .help = "Load the file whatever version the store has of its set. The "
             "trail has an entry of that."},
    {.name = "dry-run", .help = "Say what would be done, and do nothing."},
};

const dibs__option_rows dibs__options_job_load =
    DIBS__OPTION_ROWS("job load", options);

const dibs__verb dibs__verb_job_load = {
    .name = "job load",
    .also = "apply",
    .operands = "FILE...",
    .summary = "load jobs files into the store",
    .about =
        "A file is a set of jobs with a version. A higher version replaces "
        "the set; the same version with other content is refused, so that "
        "two files do not overwrite each other; a lower version is older and "
        "changes nothing. A file without a version replaces what was loaded "
        "from the same file. A job that is gone from the file is never due "
        "again, and keeps its history. A change of schedule or zone makes "
        "nothing late: the job is due at its next time. If a file has a "
        "mistake, nothing is loaded. A load that was interrupted is finished "
        "by the next load of the same file. dibs job apply does the same.\n",
    .examples = "At a deployment:\n"
                "  dibs job load jobs/*.yaml\n"
                "To see what would change:\n"
                "  dibs job load --dry-run jobs.yaml\n",
    .exits = "0 the files are loaded, or were before\n"
             "1 there is no such file\n"
             "75 another client loads other content into the set at the same "
             "time\n"
             "78 a file has mistakes, or its version does not win\n",
    .options = "json",
    .min_operands = 1,
    .max_operands = -1,
    .kind = DIBS__FILES,
    .run = load_files,
};
