/* job_file.h - a jobs file: a set of definitions, with a version.
 *
 *     version: 42
 *     set: billing
 *     board: main
 *     defaults: {zone: Europe/Berlin}
 *     jobs:
 *       nightly: {schedule: '0 2 * * *', run: [/usr/local/bin/nightly]}
 *
 * All mistakes are reported, and a file with one gives nothing. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_JOBS_JOB_FILE_H
#define DIBS_JOBS_JOB_FILE_H

#include "jobs/definition.h"
#include "jobs/job_reader.h"

enum { DIBS__JOB_FILE_MAX = 16 * 1024 * 1024, DIBS__JOB_FILE_NODES = 1000000 };

typedef struct dibs__job_entry {
    dibs__job *job;
    char hash[DIBS__JOB_HASH_SIZE];
} dibs__job_entry;

typedef struct dibs__job_file {
    int64_t version; /* 0: the file has none */
    char set[DIBS__JOB_NAME_MAX + 1];
    char board[DIBS__JOB_NAME_MAX + 1];
    char hash[DIBS__JOB_HASH_SIZE]; /* of all definitions and the board */
    dibs__job_entry *entries;       /* in the order of the file */
    size_t count;
    const dibs__job_entry **by_name; /* the same, in the order of names */
    size_t mistakes;                 /* also of a file that gives nothing */
    size_t warnings;
} dibs__job_file;

/* Reads the text of a file. `path` names the set if the file does not. INVALID: there
 * are mistakes, and the sink has heard of up to DIBS__JOB_NOTES_MAX; `out` is empty but
 * for their number. End with dibs__job_file_fini() in any case. */
DIBS_MUST_CHECK dibs_status dibs__job_file_read(const char *text, size_t len,
                                                const char *path,
                                                const dibs__job_sink *sink,
                                                dibs__job_file *out,
                                                dibs_error *err);
void dibs__job_file_fini(dibs__job_file *file);

/* The entry of this name, or NULL. */
const dibs__job_entry *
dibs__job_file_find(const dibs__job_file *file, const char *name);

#endif
