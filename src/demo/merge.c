/* merge.c - lines of several processes, in the order in which things happened.
 *
 * Owns the lines that are kept. Primary's main thread, save for the stamp. */
/* SPDX-License-Identifier: MIT */
#include "demo/merge.h"
#include "base/alloc.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The longest that a line is likely to be on its way. */
enum { KEPT_MS = 50 };

void dibs__demo_merge_init(dibs__demo_merge *merge, dibs__demo_output *output)
{
    merge->output = output;
    merge->count = 0;
}

void dibs__demo_merge_fini(dibs__demo_merge *merge)
{
    for (size_t i = 0; i < merge->count; i++)
        dibsx_free(merge->entries[i].text);
    merge->count = 0;
}

static void pass_first(dibs__demo_merge *merge, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        dibs__demo_output_lines(merge->output, merge->entries[i].text,
                                merge->entries[i].len);
        dibsx_free(merge->entries[i].text);
    }
    merge->count -= count;
    memmove(merge->entries, merge->entries + count,
            merge->count * sizeof(merge->entries[0]));
}

static void insert(dibs__demo_merge *merge, dibs__demo_entry entry)
{
    size_t at = merge->count;

    while (at > 0 && merge->entries[at - 1].at > entry.at)
        at--;
    memmove(merge->entries + at + 1, merge->entries + at,
            (merge->count - at) * sizeof(merge->entries[0]));
    merge->entries[at] = entry;
    merge->count++;
}

void dibs__demo_merge_add(dibs__demo_merge *merge, const char *line, size_t len)
{
    dibs__demo_entry entry = {.at = dibsx_now()};
    char stamp[DIBS__DEMO_STAMP_LEN + 1] = "", *end = stamp;

    if (len > DIBS__DEMO_STAMP_LEN) {
        memcpy(stamp, line, DIBS__DEMO_STAMP_LEN);
        entry.at = (dibsx_nsec)strtoll(stamp, &end, 16);
    }
    if (*end == ' ' && end == stamp + DIBS__DEMO_STAMP_LEN - 1) {
        line += DIBS__DEMO_STAMP_LEN;
        len -= DIBS__DEMO_STAMP_LEN;
    } else {
        entry.at = dibsx_now();
    }
    if (merge->count == DIBS__DEMO_MERGE_MAX)
        pass_first(merge, 1);
    entry.text = dibsx_zalloc(len + 1);
    entry.len = len;
    if (!entry.text)
        return;
    memcpy(entry.text, line, len);
    insert(merge, entry);
}

void dibs__demo_merge_pass(dibs__demo_merge *merge, dibsx_nsec now)
{
    size_t count = 0;

    while (count < merge->count &&
           merge->entries[count].at + KEPT_MS * DIBSX_MS <= now)
        count++;
    pass_first(merge, count);
}

void dibs__demo_merge_flush(dibs__demo_merge *merge)
{
    pass_first(merge, merge->count);
}

dibsx_nsec dibs__demo_merge_due(const dibs__demo_merge *merge)
{
    return merge->count ? dibsx_after_ms(merge->entries[0].at, KEPT_MS)
                        : DIBSX_NEVER;
}

void dibs__demo_stamp(dibsx_nsec at, char out[DIBS__DEMO_STAMP_LEN + 1])
{
    snprintf(out, DIBS__DEMO_STAMP_LEN + 1, "%016" PRIx64 " ", (uint64_t)at);
}
