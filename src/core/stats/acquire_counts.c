/* acquire_counts.c - counts how the acquires of one name ended; see
 * acquire_counts.h. */
/* SPDX-License-Identifier: MIT */
#include "core/stats/acquire_counts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define HEAD "dibs-stats 1\n"

void dibs__counts_fini(dibs__counts *ct)
{
    dibs__histogram_fini(&ct->wait);
    dibs__histogram_fini(&ct->hold);
    *ct = (dibs__counts){0};
}

bool dibs__counts_empty(const dibs__counts *ct)
{
    return ct->acquired == 0 && ct->busy == 0 && ct->failed == 0 &&
           ct->released == 0 && ct->lost == 0;
}

void dibs__counts_acquired(dibs__counts *ct, dibs_status rc, uint64_t waited_us,
                           bool contended)
{
    bool refused = rc == DIBS_BUSY || rc == DIBS_TIMEOUT;

    if (rc == DIBS_OK) {
        ct->acquired++;
        dibs__histogram_add(&ct->wait, waited_us);
    } else if (refused || rc == DIBS_CANCELLED) {
        ct->busy++;
    } else {
        ct->failed++;
    }
    if (contended || refused)
        ct->contended++;
}

void dibs__counts_ended(dibs__counts *ct, bool lost, uint64_t held_us)
{
    if (lost)
        ct->lost++;
    else
        ct->released++;
    dibs__histogram_add(&ct->hold, held_us);
}

void dibs__counts_merge(dibs__counts *ct, const dibs__counts *from)
{
    ct->acquired += from->acquired;
    ct->busy += from->busy;
    ct->failed += from->failed;
    ct->released += from->released;
    ct->lost += from->lost;
    ct->contended += from->contended;
    dibs__histogram_merge(&ct->wait, &from->wait);
    dibs__histogram_merge(&ct->hold, &from->hold);
}

void dibs__counts_show(const dibs__counts *ct, uint64_t waiting,
                       dibs_name_stats *out)
{
    *out = (dibs_name_stats){
        .size = sizeof(*out),
        .attempts = ct->acquired + ct->busy + ct->failed + waiting,
        .acquired = ct->acquired,
        .busy = ct->busy,
        .failed = ct->failed,
        .released = ct->released,
        .lost = ct->lost,
        .contended = ct->contended,
        .wait_total_us = ct->wait.total_us,
        .hold_total_us = ct->hold.total_us,
    };
    dibs__histogram_show(&ct->wait, &out->wait);
    dibs__histogram_show(&ct->hold, &out->hold);
}

void dibs__counts_write(const dibs__counts *ct, dibsx_buf *out)
{
    dibsx_buf_printf(out,
                     HEAD "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
                          " %" PRIu64 " %" PRIu64 "\n",
                     ct->acquired, ct->busy, ct->failed, ct->released, ct->lost,
                     ct->contended);
    dibs__histogram_write(&ct->wait, out);
    dibsx_buf_putc(out, '\n');
    dibs__histogram_write(&ct->hold, out);
    dibsx_buf_putc(out, '\n');
}

/* Copies the next line without its end and moves beyond it. False when there is
 * none, or when it is too long. */
static bool next_line(const char **text, char *line, size_t size)
{
    size_t len = strcspn(*text, "\n");

    if ((*text)[len] != '\n' || len >= size)
        return false;
    memcpy(line, *text, len);
    line[len] = '\0';
    *text += len + 1;
    return true;
}

static bool read_numbers(const char *line, dibs__counts *out)
{
    int end = -1;

    return sscanf(line,
                  "%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
                  " %" SCNu64 "%n",
                  &out->acquired, &out->busy, &out->failed, &out->released,
                  &out->lost, &out->contended, &end) == 6 &&
           end >= 0 && line[end] == '\0';
}

static dibs_status read_histogram(const char **text, dibs__histogram *out)
{
    char line[DIBS__COUNTS_MAX / 2];

    if (!next_line(text, line, sizeof(line)))
        return DIBS_MISMATCH;
    return dibs__histogram_read(line, out);
}

dibs_status dibs__counts_read(const char *text, dibs__counts *out)
{
    char line[128];
    dibs_status rc = DIBS_MISMATCH;

    *out = (dibs__counts){0};
    if (strncmp(text, HEAD, strlen(HEAD)) != 0)
        return rc;
    text += strlen(HEAD);
    if (next_line(&text, line, sizeof(line)) && read_numbers(line, out))
        rc = read_histogram(&text, &out->wait);
    if (rc == DIBS_OK)
        rc = read_histogram(&text, &out->hold);
    if (rc != DIBS_OK)
        dibs__counts_fini(out);
    return rc;
}
