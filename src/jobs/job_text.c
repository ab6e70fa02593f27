/* job_text.c - see job_text.h. */
/* SPDX-License-Identifier: MIT */
#include "jobs/job_text.h"

#include "base/fail.h"

#include <stdio.h>

typedef struct first_note {
    char text[160];
    size_t line, column;
} first_note;

static void keep_first(void *arg, bool warning, size_t line, size_t column,
                       const char *message)
{
    first_note *first = arg;

    if (warning || first->text[0])
        return;
    (void)snprintf(first->text, sizeof(first->text), "%s", message);
    first->line = line;
    first->column = column;
}

dibs_status dibs__job_text_read(dibsx_buf *text, const char *what, bool places,
                                dibs__job_file *out, dibs_error *err)
{
    first_note first = {.line = 0};
    const dibs__job_sink sink = {keep_first, &first};
    dibs_status rc;

    *out = (dibs__job_file){.version = 0};
    if (!dibsx_buf_ok(text))
        return dibsx_fail(err, DIBS_INVALID,
                          "%.60s: the definition is too long", what);
    rc = dibs__job_file_read(dibsx_buf_text(text), text->len, what, &sink, out,
                             err);
    if (rc != DIBS_INVALID || !first.text[0])
        return rc;
    if (places)
        return dibsx_fail(err, DIBS_INVALID, "%.40s:%zu:%zu: %s", what,
                          first.line, first.column, first.text);
    return dibsx_fail(err, DIBS_INVALID, "%.40s: %s", what, first.text);
}
