/* attention.c - what of a picture needs a look. Pure; any thread. */
/* SPDX-License-Identifier: MIT */
#include "serve/attention.h"
#include "serve/row.h"
#include <string.h>

static const char *stale_of(const dibs_lease_info *row)
{
    for (size_t i = 0; i < row->holder_count; i++)
        if (row->holders[i].stale)
            return row->holders[i].stale;
    return NULL;
}

static void add_stale(dibs__attention *at, const dibs_lease_info *row)
{
    const char *stale = stale_of(row);

    if (!stale)
        return;
    at->total++;
    if (at->count < DIBS__ATTENTION_MAX)
        at->notices[at->count++] = (dibs__notice){.row = row, .stale = stale};
}

/* Keeps the longest behind the first `from` notices, in order. */
static void
add_wait(dibs__attention *at, size_t from, const dibs_lease_info *row)
{
    const int64_t waited_ms = dibs__serve_row_waited_ms(row);
    size_t place = at->count;

    if (waited_ms < DIBS__LONG_WAIT_MS)
        return;
    at->total++;
    while (place > from && at->notices[place - 1].waited_ms < waited_ms)
        place--;
    if (place == DIBS__ATTENTION_MAX)
        return;
    if (at->count < DIBS__ATTENTION_MAX)
        at->count++;
    memmove(&at->notices[place + 1], &at->notices[place],
            (at->count - place - 1) * sizeof(at->notices[0]));
    at->notices[place] = (dibs__notice){.row = row, .waited_ms = waited_ms};
}

void dibs__attention_find(dibs__attention *at,
                          const dibs__serve_picture *picture)
{
    size_t gone;

    at->count = at->total = 0;
    for (size_t i = 0; i < picture->count; i++)
        add_stale(at, picture->rows[i]);
    gone = at->count;
    for (size_t i = 0; i < picture->count; i++)
        add_wait(at, gone, picture->rows[i]);
}
