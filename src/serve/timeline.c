/* timeline.c - see timeline.h. */
/* SPDX-License-Identifier: MIT */
#include "serve/timeline.h"

#include "base/alloc.h"
#include <stdlib.h>
#include <string.h>

static int oldest_first(const void *a, const void *b)
{
    const dibs__board_run_id *one = *(const dibs__board_run_id *const *)a;
    const dibs__board_run_id *two = *(const dibs__board_run_id *const *)b;

    if (one->at_us != two->at_us)
        return one->at_us < two->at_us ? -1 : 1;
    return strcmp(one->id, two->id);
}

static int newest_first(const void *a, const void *b)
{
    return oldest_first(b, a);
}

/* How many runs of a row have this number or a later one. */
static size_t count_from(const dibs__board_row *row, int64_t from_us)
{
    size_t count = 0;

    while (count < row->run_count &&
           row->runs[row->run_count - 1 - count].at_us >= from_us)
        count++;
    return count;
}

bool dibs__timeline_pick(const dibs__board_picture *picture, int64_t from_us,
                         int64_t to_us, size_t max, dibs__timeline_ids *out)
{
    size_t total = 0, within = 0, later;

    for (size_t i = 0; i < picture->count; i++)
        total += count_from(&picture->rows[i], from_us);
    later = total;
    *out =
        (dibs__timeline_ids){.at = dibsx_zalloc_n(total + 1, sizeof(*out->at))};
    if (!out->at)
        return false;
    for (size_t i = 0; i < picture->count; i++) {
        const dibs__board_row *row = &picture->rows[i];

        for (size_t k = count_from(row, from_us); k > 0; k--) {
            const dibs__board_run_id *id = &row->runs[row->run_count - k];

            out->at[id->at_us <= to_us ? within++ : --later] = id;
        }
    }
    qsort(out->at, within, sizeof(*out->at), newest_first);
    qsort(out->at + within, total - within, sizeof(*out->at), oldest_first);
    out->count = total < max ? total : max;
    out->complete = total <= max;
    return true;
}
