/* job_files.h - jobs files of the command line: read, checked, and reported on. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CLI_JOB_FILES_H
#define DIBS_CLI_JOB_FILES_H

#include "base/json.h"
#include "cli/command.h"
#include "jobs/job_file.h"

typedef struct dibs__job_note {
    bool warning;
    size_t line; /* 0: it concerns the whole file */
    size_t column;
    char *message;
} dibs__job_note;

typedef struct dibs__read_jobs {
    const char *path; /* as messages name it */
    dibs__job_file file;
    dibs__job_note *notes;
    size_t note_count;
    size_t mistakes; /* of which some may not be among the notes */
} dibs__read_jobs;

/* All operands. 0: every file is good; DIBS__EXIT_CONFIG: the notes say why not;
 * another exit code: a message was printed. End with dibs__jobs_close() in any case.
 * Two files must not have one job, or one set, of the same board. */
int dibs__jobs_open(const dibs__command *cmd, dibs__read_jobs **out,
                    size_t *count);
void dibs__jobs_close(dibs__read_jobs *files, size_t count);

/* Prints notes as lines "file:line:column: message" on standard error, unless
 * --quiet is given. */
void dibs__jobs_say(const dibs__command *cmd, const dibs__read_jobs *files,
                    size_t count);

/* "host:/path/of/file": an edit of a file differs from another file. */
void dibs__jobs_origin(const char *path, char *out, size_t size);

/* The pairs "mistakes", "mistake_count" and "warnings" of one file. */
void dibs__jobs_notes_json(const dibs__read_jobs *file, dibsx_json *js);

#endif
