/* print.h - what verbs print: tables, JSON, holders and waiters.
 *
 * Data goes to stdout. Text that came from elsewhere is printed with control
 * characters replaced, so that a lock's label cannot drive a terminal. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CLI_PRINT_H
#define DIBS_CLI_PRINT_H

#include "base/buf.h"
#include "base/json.h"
#include "cli/command.h"

enum { DIBS__OUT_MAX = 256 * 1024 * 1024, DIBS__TABLE_COLUMNS = 16 };

/* Escape sequences, or "" when colour is off. */
typedef struct dibs__colours {
    const char *bold;
    const char *dim;
    const char *red;
    const char *yellow;
    const char *green;
    const char *off;
} dibs__colours;

/* As --color, NO_COLOR, TERM and the kind of stdout say. */
const dibs__colours *dibs__colours_of(const dibs__command *cmd);

/* Writes bytes to stdout; dibs__out_done() tells whether it worked. */
void dibs__out(const char *bytes, size_t len);
void dibs__out_text(const char *text);

/* Flushes stdout. 0, or the exit code after saying what went wrong. A pipe that
 * its reader has closed is no fault: there is no message, and main() ends the
 * process as SIGPIPE would. */
int dibs__out_done(void);

/* 0, or that exit code when stdout is a pipe whose reader has gone: for verbs that
 * may have nothing to print for a long time. */
int dibs__out_unread(void);

/* Appends text with control characters, and bytes that are not UTF-8, as '?'.
 */
void dibs__clean(dibsx_buf *buf, const char *text);

/* Columns as wide as their longest cell. End with dibs__table_fini(). */
typedef struct dibs__table {
    dibsx_buf cells; /* each with a NUL after it, row by row */
    size_t columns;
    size_t next; /* column of the next cell */
    size_t width[DIBS__TABLE_COLUMNS];
} dibs__table;

void dibs__table_init(dibs__table *table, size_t columns,
                      const char *const *heads);
void dibs__table_fini(dibs__table *table);
void dibs__table_cell(dibs__table *table, const char *text);
void dibs__table_cellf(dibs__table *table, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Appends the lines of a table whose cells are whole (dibsx_buf_ok()): so many at
 * most, the heads among them, each cut to so many columns. Heads are bold. */
void dibs__table_text(const dibs__table *table, const dibs__colours *colours,
                      size_t rows, size_t columns, dibsx_buf *out);

/* Appends as much of the text as fits, and returns the columns it takes. */
size_t dibs__cut(dibsx_buf *out, const char *text, size_t columns);

/* 0, or the exit code after saying what went wrong. */
int dibs__table_print(const dibs__table *table, const dibs__colours *colours);

/* A JSON object for stdout that begins with "schema":1. Begin, add pairs, end;
 * end prints it on one line and frees the buffer: 0, or an exit code. */
typedef struct dibs__report {
    dibsx_buf buf;
    dibsx_json js;
} dibs__report;

void dibs__report_begin(dibs__report *report);
int dibs__report_end(dibs__report *report);

/* "web-3 pid 812/worker (nightly)" */
void dibs__party_text(dibsx_buf *buf, const dibs_party *party);

/* "exclusive", "shared", "2 of 5" */
void dibs__mode_text(dibsx_buf *buf, const dibs_party *party,
                     uint32_t capacity);

/* A party as an object, or as pairs of an object that is open; a name with all
 * of its parties as pairs. */
void dibs__json_party(dibsx_json *js, const dibs_party *party);
void dibs__json_party_pairs(dibsx_json *js, const dibs_party *party);
void dibs__json_lease(dibsx_json *js, const dibs_lease_info *info);

/* A cell with a span; of microseconds as "850us", "1.2ms", "4.2s". */
void dibs__table_span(dibs__table *table, int64_t span_ms);
void dibs__table_span_us(dibs__table *table, uint64_t span_us);

/* "2025-01-31T12:00:00.250Z" */
void dibs__wall_text(int64_t wall_us, char *out, size_t size);

#endif
