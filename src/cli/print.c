/* print.c - printing: stdout, colour, tables, JSON. Runs on the main thread. */
/* SPDX-License-Identifier: MIT */
#include "cli/print.h"

#include "base/clock.h"
#include "base/text.h"
#include "show/data_json.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const dibs__colours plain = {"", "", "", "", "", ""};
static const dibs__colours bright = {"\033[1m",  "\033[2m",  "\033[31m",
                                     "\033[33m", "\033[32m", "\033[0m"};

static bool is_set(const char *variable)
{
    const char *value = getenv(variable);

    return value && *value;
}

static bool colour_by_itself(void)
{
    const char *term = getenv("TERM");

    if (is_set("NO_COLOR"))
        return false;
    return isatty(STDOUT_FILENO) && term && *term && strcmp(term, "dumb") != 0;
}

const dibs__colours *dibs__colours_of(const dibs__command *cmd)
{
    const char *when = dibs__opt_text(cmd, "color");

    if (strcmp(when, "never") == 0)
        return &plain;
    if (strcmp(when, "always") == 0)
        return &bright;
    return colour_by_itself() ? &bright : &plain;
}

/* The error of the first failed write; the stream itself forgets it. */
static int write_error;

void dibs__out(const char *bytes, size_t len)
{
    if (fwrite(bytes, 1, len, stdout) != len && !write_error)
        write_error = errno;
}

void dibs__out_text(const char *text)
{
    dibs__out(text, strlen(text));
}

int dibs__out_done(void)
{
    static bool said;

    if (fflush(stdout) == 0 && !ferror(stdout) && !write_error)
        return 0;
    if (!write_error)
        write_error = errno;
    if (write_error == EPIPE)
        return DIBS__EXIT_SIGNAL + SIGPIPE;
    if (!said)
        dibs__cli_say("cannot write to standard output: %s",
                      strerror(write_error));
    said = true;
    return DIBS__EXIT_INTERNAL;
}

int dibs__out_unread(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO};

    if (poll(&out, 1, 0) > 0 && (out.revents & POLLERR))
        write_error = EPIPE;
    return write_error ? dibs__out_done() : 0;
}

void dibs__clean(dibsx_buf *buf, const char *text)
{
    dibsx_text_clean(buf, text);
}

/* Columns on the screen, taking every character for one wide. */
static size_t width_of(const char *text)
{
    size_t width = 0;

    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

void dibs__table_init(dibs__table *table, size_t columns,
                      const char *const *heads)
{
    memset(table, 0, sizeof(*table));
    dibsx_buf_init(&table->cells, DIBS__OUT_MAX);
    table->columns = columns;
    for (size_t i = 0; i < columns; i++)
        dibs__table_cell(table, heads[i]);
}

void dibs__table_fini(dibs__table *table)
{
    dibsx_buf_fini(&table->cells);
}

void dibs__table_cell(dibs__table *table, const char *text)
{
    size_t from = table->cells.len, width;

    dibs__clean(&table->cells, *text ? text : "-");
    dibsx_buf_putc(&table->cells, '\0');
    if (!dibsx_buf_ok(&table->cells))
        return;
    width = width_of(table->cells.data + from);
    if (width > table->width[table->next])
        table->width[table->next] = width;
    table->next = (table->next + 1) % table->columns;
}

void dibs__table_cellf(dibs__table *table, const char *format, ...)
{
    char text[512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    dibs__table_cell(table, text);
}

size_t dibs__cut(dibsx_buf *out, const char *text, size_t columns)
{
    size_t len = 0, width = 0;

    while (text[len]) {
        width += ((unsigned char)text[len] & 0xc0) != 0x80;
        if (width > columns)
            break;
        len++;
    }
    dibsx_buf_add(out, text, len);
    return width > columns ? columns : width;
}

/* Appends one row and returns the first cell of the next. */
static const char *put_row(const dibs__table *table, const char *cell,
                           size_t columns, dibsx_buf *out)
{
    for (size_t i = 0; i < table->columns; i++) {
        size_t gap =
            i + 1 < table->columns ? table->width[i] - width_of(cell) + 2 : 0;

        columns -= dibs__cut(out, cell, columns);
        for (; gap > 0 && columns > 0; gap--, columns--)
            dibsx_buf_putc(out, ' ');
        cell += strlen(cell) + 1;
    }
    return cell;
}

void dibs__table_text(const dibs__table *table, const dibs__colours *colours,
                      size_t rows, size_t columns, dibsx_buf *out)
{
    const char *cell = table->cells.data;
    const char *end = cell + table->cells.len;

    for (size_t row = 0; row < rows && cell < end; row++) {
        dibsx_buf_puts(out, row == 0 ? colours->bold : "");
        cell = put_row(table, cell, columns, out);
        dibsx_buf_puts(out, row == 0 ? colours->off : "");
        dibsx_buf_putc(out, '\n');
    }
}

int dibs__table_print(const dibs__table *table, const dibs__colours *colours)
{
    dibsx_buf text;
    bool ok = dibsx_buf_ok(&table->cells);

    dibsx_buf_init(&text, DIBS__OUT_MAX);
    if (ok) {
        dibs__table_text(table, colours, SIZE_MAX, SIZE_MAX, &text);
        ok = dibsx_buf_ok(&text);
        dibs__out(text.data, ok ? text.len : 0);
    }
    dibsx_buf_fini(&text);
    return ok ? dibs__out_done() : dibs__cli_nomem("the table");
}

void dibs__report_begin(dibs__report *report)
{
    dibsx_buf_init(&report->buf, DIBS__OUT_MAX);
    dibsx_json_init(&report->js, &report->buf);
    dibsx_json_open(&report->js, '{');
    dibsx_json_pair_int(&report->js, "schema", 1);
}

int dibs__report_end(dibs__report *report)
{
    int code = DIBS__EXIT_INTERNAL;

    dibsx_json_close(&report->js, '}');
    dibsx_buf_putc(&report->buf, '\n');
    if (dibsx_buf_ok(&report->buf)) {
        dibs__out(report->buf.data, report->buf.len);
        code = dibs__out_done();
    } else {
        code = dibs__cli_nomem("the output");
    }
    dibsx_buf_fini(&report->buf);
    return code;
}

void dibs__party_text(dibsx_buf *buf, const dibs_party *party)
{
    dibs__clean(buf, party->host);
    dibsx_buf_printf(buf, " pid %lld", (long long)party->pid);
    if (*party->identity) {
        dibsx_buf_putc(buf, '/');
        dibs__clean(buf, party->identity);
    }
    if (*party->label) {
        dibsx_buf_puts(buf, " (");
        dibs__clean(buf, party->label);
        dibsx_buf_putc(buf, ')');
    }
}

void dibs__mode_text(dibsx_buf *buf, const dibs_party *party, uint32_t capacity)
{
    if (capacity)
        dibsx_buf_printf(buf, "%u of %u", (unsigned)party->permits,
                         (unsigned)capacity);
    else
        dibsx_buf_puts(buf, party->mode);
}

void dibs__json_party_pairs(dibsx_json *js, const dibs_party *party)
{
    dibsx_json_pair_text(js, "owner", party->owner);
    dibsx_json_pair_text(js, "host", party->host);
    dibsx_json_pair_int(js, "pid", party->pid);
    dibsx_json_pair_text(js, "identity", party->identity);
    dibsx_json_pair_text(js, "label", party->label);
    dibs__json_meta(js, party->meta);
    dibsx_json_pair_text(js, "mode", party->mode);
    dibsx_json_pair_uint(js, "permits", party->permits);
    dibsx_json_pair_int(js, "priority", party->priority);
    dibsx_json_pair_uint(js, "fence", party->fence);
    dibsx_json_pair_int(js, "ttl_ms", party->ttl_ms);
    dibsx_json_pair_int(js, "age_ms", party->age_ms);
    dibsx_json_pair_int(js, "left_ms", party->left_ms);
    dibsx_json_pair_bool(js, "claim", party->claim);
    dibsx_json_pair_bool(js, "released", party->left);
    dibsx_json_pair_text(js, "stale", party->stale);
}

void dibs__json_party(dibsx_json *js, const dibs_party *party)
{
    dibsx_json_open(js, '{');
    dibs__json_party_pairs(js, party);
    dibsx_json_close(js, '}');
}

static void json_parties(dibsx_json *js, const char *key,
                         const dibs_party *parties, size_t count)
{
    dibsx_json_key(js, key);
    dibsx_json_open(js, '[');
    for (size_t i = 0; i < count; i++)
        dibs__json_party(js, &parties[i]);
    dibsx_json_close(js, ']');
}

void dibs__json_lease(dibsx_json *js, const dibs_lease_info *info)
{
    dibsx_json_pair_text(js, "name", info->name);
    dibsx_json_pair_uint(js, "capacity", info->capacity);
    json_parties(js, "holders", info->holders, info->holder_count);
    json_parties(js, "waiters", info->waiters, info->waiter_count);
}

void dibs__table_span(dibs__table *table, int64_t span_ms)
{
    char text[32];

    dibsx_duration_text(span_ms, text, sizeof(text));
    dibs__table_cell(table, text);
}

void dibs__table_span_us(dibs__table *table, uint64_t span_us)
{
    if (span_us < 1000)
        dibs__table_cellf(table, "%uus", (unsigned)span_us);
    else if (span_us < 100000)
        dibs__table_cellf(table, "%u.%ums", (unsigned)(span_us / 1000),
                          (unsigned)(span_us / 100 % 10));
    else
        dibs__table_span(table, (int64_t)(span_us / 1000));
}

void dibs__wall_text(int64_t wall_us, char *out, size_t size)
{
    dibsx_wall_text(wall_us, out, size);
}
