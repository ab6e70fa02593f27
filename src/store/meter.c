/* meter.c - the rule of meters. Pure. */
/* SPDX-License-Identifier: MIT */
#include "store/meter.h"
#include "base/fail.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

dibs_status dibs__meter_check(const dibs__meter *report, dibs_error *err)
{
    if (report->window_ms < 1 || report->window_ms > DIBS__METER_MAX_MS)
        return dibsx_fail(err, DIBS_INVALID,
                          "the window of a meter is from 1 ms to 24 h");
    if (report->good < 0 || report->bad < 0 || report->slow < 0 ||
        report->good > DIBS__METER_CALLS_MAX ||
        report->bad > DIBS__METER_CALLS_MAX ||
        report->slow > report->good + report->bad ||
        report->mark >= DIBS__METER_MARKS)
        return dibsx_fail(err, DIBS_INVALID,
                          "a report counts up to %" PRId64 " calls of a kind, "
                          "and no more slow ones than it has in all",
                          DIBS__METER_CALLS_MAX);
    return DIBS_OK;
}

/* Drops the cells that are not in the window. After the clock was set back, those that
 * seem to begin later go too: they would stay for too long. */
static void
drop_old(dibs__meter_window *window, int64_t from_ms, int64_t now_ms)
{
    size_t kept = 0;

    for (size_t i = 0; i < window->count; i++)
        if (window->cells[i].start_ms > from_ms &&
            window->cells[i].start_ms <= now_ms)
            window->cells[kept++] = window->cells[i];
    window->count = kept;
}

/* The cell for calls that end now. */
static dibs__meter_cell *
find_cell(dibs__meter_window *window, int64_t width_ms, int64_t now_ms)
{
    if (window->count > 0 && now_ms - window->cells[0].start_ms < width_ms)
        return &window->cells[0];
    if (window->count == DIBS__METER_CELLS)
        window->count--;
    memmove(&window->cells[1], &window->cells[0],
            window->count * sizeof(window->cells[0]));
    window->count++;
    window->cells[0] = (dibs__meter_cell){.start_ms = now_ms};
    return &window->cells[0];
}

static void sum_up(const dibs__meter_window *window, dibs__sums *out)
{
    uint32_t marks = 0;

    out->good = out->bad = out->slow = 0;
    for (size_t i = 0; i < window->count; i++) {
        out->good += window->cells[i].good;
        out->bad += window->cells[i].bad;
        out->slow += window->cells[i].slow;
        marks |= window->cells[i].marks;
    }
    out->reporters = (uint32_t)__builtin_popcount(marks);
}

bool dibs__meter_add(dibs__meter_window *window, const dibs__meter *report,
                     int64_t now_ms, dibs__sums *out)
{
    int64_t width_ms =
        (report->window_ms + DIBS__METER_CELLS - 1) / DIBS__METER_CELLS;
    bool adds = report->good > 0 || report->bad > 0;

    if (window->version != report->version)
        *window = (dibs__meter_window){.version = report->version};
    drop_old(window, now_ms - report->window_ms, now_ms);
    if (adds) {
        dibs__meter_cell *cell = find_cell(window, width_ms, now_ms);

        cell->good += report->good;
        cell->bad += report->bad;
        cell->slow += report->slow;
        if (report->bad > 0 || report->slow > 0)
            cell->marks |= UINT32_C(1) << report->mark;
    }
    sum_up(window, out);
    return adds;
}

void dibs__meter_write(const dibs__meter_window *window,
                       char out[DIBS__METER_TEXT])
{
    size_t len =
        (size_t)snprintf(out, DIBS__METER_TEXT, "%" PRIu64, window->version);

    for (size_t i = 0; i < window->count && len < DIBS__METER_TEXT; i++) {
        const dibs__meter_cell *at = &window->cells[i];

        len += (size_t)snprintf(out + len, DIBS__METER_TEXT - len,
                                " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64
                                " %" PRIu32,
                                at->start_ms, at->good, at->bad, at->slow,
                                at->marks);
    }
}

/* The next number, after a space. */
static bool read_number(const char **text, int64_t *out)
{
    char *end;

    if (**text != ' ')
        return false;
    *out = strtoll(*text + 1, &end, 10);
    if (end == *text + 1 || *out < 0)
        return false;
    *text = end;
    return true;
}

bool dibs__meter_read(const char *text, dibs__meter_window *out)
{
    char *at;
    const char *rest;

    *out = (dibs__meter_window){.version = strtoull(text, &at, 10)};
    for (rest = at; *rest != '\0'; out->count++) {
        dibs__meter_cell *cell = &out->cells[out->count];
        int64_t marks;

        if (out->count == DIBS__METER_CELLS ||
            !read_number(&rest, &cell->start_ms) ||
            !read_number(&rest, &cell->good) ||
            !read_number(&rest, &cell->bad) ||
            !read_number(&rest, &cell->slow) || !read_number(&rest, &marks))
            return false;
        cell->marks = (uint32_t)marks;
    }
    return at != text;
}

void dibs__meter_state(dibs__sums *out, const void *data, size_t len)
{
    if (len > sizeof(out->state) - 1)
        len = sizeof(out->state) - 1;
    if (len > 0)
        memcpy(out->state, data, len);
    out->state[len] = '\0';
}

dibs_status dibs__meter_status(const dibs__meter *report, const dibs__sums *out,
                               dibs_error *err)
{
    if (report->version == out->version)
        return DIBS_OK;
    return dibsx_fail(err, DIBS_STALE, "the version is %" PRIu64, out->version);
}
