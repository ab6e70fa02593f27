/* histogram.h - a histogram of time spans: counts in buckets, eight to each doubling
 * from a microsecond to three days. Pure.
 *
 * Only buckets with a count use memory, so that a name costs little. A quantile is
 * within a sixteenth of the exact value. Owns its cells. Not locked: that is up to
 * the owner. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_STATS_HISTOGRAM_H
#define DIBS_CORE_STATS_HISTOGRAM_H

#include "base/buf.h"
#include <dibs/monitor.h>

/* Eight of one microsecond each, then eight per doubling up to 2^38. */
enum { DIBS__HISTOGRAM_BUCKETS = 8 + 8 * 35 };

typedef struct dibs__histogram_cell {
    uint32_t bucket;
    uint32_t count; /* stays at its maximum */
} dibs__histogram_cell;

typedef struct dibs__histogram {
    dibs__histogram_cell *cells; /* by bucket, rising */
    uint32_t used;
    uint32_t room;
    uint64_t count;
    uint64_t total_us;
    uint64_t max_us;
} dibs__histogram;

/* Zeroed storage is an empty histogram. */
void dibs__histogram_fini(dibs__histogram *hg);

/* Without memory for its bucket a span counts in count, total and max alone. */
void dibs__histogram_add(dibs__histogram *hg, uint64_t span_us);

/* Adds what `from` has. */
void dibs__histogram_merge(dibs__histogram *hg, const dibs__histogram *from);

void dibs__histogram_show(const dibs__histogram *hg, dibs_spans *out);

/* A copy of the cells with the middle of each, to be freed with dibsx_free(); *len is
 * their number. NULL: there are none, or memory is short, and *len is 0 then. */
dibs_span_count *
dibs__histogram_copy_counts(const dibs__histogram *hg, size_t *len);

/* One line of text without its end: "count total max bucket:count ..."; and back.
 * DIBS_MISMATCH: the text is none. DIBS_NOMEM. *out is then empty. */
void dibs__histogram_write(const dibs__histogram *hg, dibsx_buf *out);
DIBS_MUST_CHECK dibs_status dibs__histogram_read(const char *text,
                                                 dibs__histogram *out);

#endif
