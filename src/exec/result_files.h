/* result_files.h - the folder of a command, with the files through which it passes results
 * on: $DIBS_RESULT, which the command writes, and $DIBS_NEEDS, which has the results that it
 * needs. The command of a queue has $DIBS_ITEM_RESULT, and perhaps the data of its item. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_EXEC_RESULT_FILES_H
#define DIBS_EXEC_RESULT_FILES_H

#include "base/buf.h"
#include <dibs/types.h>
#include <limits.h>
#include <sys/types.h>

enum { DIBS__RESULT_MAX = 4096 };

/* The name of the file in its folder. */
#define DIBS__RESULT_NAME "result"

/* The result of a step that another one needs. */
typedef struct dibs__need {
    const char *step;
    const void *result;
    size_t len;
} dibs__need;

/* Each kind has names of its own for its folders. */
typedef enum dibs__files_kind {
    DIBS__FILES_STEP, /* of a job */
    DIBS__FILES_ITEM  /* of a queue */
} dibs__files_kind;

typedef struct dibs__result_files {
    char dir[PATH_MAX]; /* a folder that its user alone may enter; "": none */
    int dir_fd;
    uid_t uid;
    dibs__files_kind kind;
} dibs__result_files;

/* Makes the folder in `where` (NULL: $TMPDIR, or /tmp) for a command that runs as `user`
 * (NULL: as this process), with the needs in it as a JSON object of texts, for a step.
 * Remove with dibs__result_files_remove(). */
DIBS_MUST_CHECK dibs_status dibs__result_files_make(
    dibs__result_files *files, dibs__files_kind kind, const char *where,
    const char *user, const dibs__need *needs, size_t count, dibs_error *err);
void dibs__result_files_remove(dibs__result_files *files);

/* Removes folders there that processes left which were killed: those that are at least
 * so old and in nobody's use. Says nothing: what cannot be removed stays. A make whose
 * folder is swept before it is in use makes another one. */
void dibs__result_files_sweep(dibs__files_kind kind, const char *where,
                              int64_t age_s);

/* Appends the variables, each with a NUL behind it: DIBS_RESULT, DIBS_NEEDS, and for
 * each need DIBS_NEEDS_STEP with its result (the step in capitals, other characters
 * than letters and digits as _). A result with a NUL in it is in the file alone. */
void dibs__result_files_env(const dibs__result_files *files,
                            const dibs__need *needs, size_t count,
                            dibsx_buf *to);

/* Reads what the command has written, when it has ended; nothing is an empty result.
 * DIBS_INVALID: it is too long, or is no file of its user. */
DIBS_MUST_CHECK dibs_status dibs__result_files_read(
    const dibs__result_files *files, char result[DIBS__RESULT_MAX], size_t *len,
    dibs_error *err);

/* The same as a text for people: what comes first, up to a NUL, without newlines at the
 * end. */
DIBS_MUST_CHECK dibs_status
dibs__result_files_read_text(const dibs__result_files *files,
                             char text[DIBS__RESULT_MAX + 1], dibs_error *err);

#endif
