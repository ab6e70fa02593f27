/* job_files.h - the jobs files of the daemon, read and checked. Any thread. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_JOB_FILES_H
#define DIBS_SERVE_JOB_FILES_H

#include "jobs/job_file.h"

enum { DIBS__SERVE_JOB_FILES_MAX = 256 };

typedef struct dibs__serve_job_files {
    char *texts; /* the paths, each with its NUL */
    const char **paths;
    dibs__job_file *files;
    const dibs__job_file **list; /* of all files, for a node */
    size_t count;
    char board[DIBS__JOB_NAME_MAX + 1];
} dibs__serve_job_files;

/* Hears of a mistake or a warning: "file:line:column: message". */
typedef void dibs__serve_note_fn(void *arg, bool warning, const char *line);

/* Reads files whose paths have commas between (NULL: none), for this board (NULL: that
 * of the files, else main). REFUSED: they cannot be used; err says why, and `note` has
 * heard of every mistake. End with dibs__serve_job_files_fini() in any case. */
DIBS_MUST_CHECK dibs_status dibs__serve_job_files_read(
    const char *paths, const char *board, dibs__serve_note_fn *note, void *arg,
    dibs__serve_job_files *out, dibs_error *err);
void dibs__serve_job_files_fini(dibs__serve_job_files *jf);

/* The words of a text with commas between, NULL at the end; *texts has them. Free both
 * with dibsx_free(). NULL: no memory. */
const char **dibs__serve_split(const char *text, char **texts, size_t *count);

#endif
