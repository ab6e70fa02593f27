/* docs.h - what is written from the tables: help, man pages, completion,
 * docs/config.md. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CLI_DOCS_H
#define DIBS_CLI_DOCS_H

#include "base/buf.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/verbs.h"

/* A document is at most this long. */
enum { DIBS__DOC_MAX = 1024 * 1024 };

/* The verbs alone; these and the options of all; one verb's help. */
void dibs__help_brief(dibsx_buf *out, const dibs__colours *colours);
void dibs__help_overview(dibsx_buf *out, const dibs__colours *colours);
void dibs__help_verb(dibsx_buf *out, const dibs__verb *verb,
                     const dibs__colours *colours);

/* The exit codes of a verb and those that all have: a line for each code. */
void dibs__verb_exits(dibsx_buf *out, const dibs__verb *verb);

/* Words of `text` in lines of at most 79 columns, `indent` spaces before each
 * but the first, which begins at column `at`. */
void dibs__wrap(dibsx_buf *out, const char *text, size_t indent, size_t at);

/* Writes every man page into a folder that exists: 0, or an exit code. */
int dibs__man_write(const char *folder);

/* The completion script of a shell; false for a shell that is not known. */
bool dibs__completion(dibsx_buf *out, const char *shell);

void dibs__config_doc(dibsx_buf *out);

/* A line of a table's `exits` or `examples`; moves *text past it. False at the
 * end. The line is not NUL-terminated. */
bool dibs__next_line(const char **text, const char **line, size_t *len);

/* Prints a document and frees it: 0, or an exit code. */
int dibs__doc_print(dibsx_buf *out);

#endif
