/* acquire_counts.h - counts how the acquires of one name ended. Pure.
 *
 * Owns its two histograms. Not locked: that is up to the owner. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_STATS_ACQUIRE_COUNTS_H
#define DIBS_CORE_STATS_ACQUIRE_COUNTS_H

#include "core/stats/histogram.h"

typedef struct dibs__counts {
    uint64_t acquired;
    uint64_t busy;
    uint64_t failed;
    uint64_t released;
    uint64_t lost;
    uint64_t contended;
    dibs__histogram wait;
    dibs__histogram hold;
} dibs__counts;

/* Zeroed storage has counted nothing. */
void dibs__counts_fini(dibs__counts *ct);
bool dibs__counts_empty(const dibs__counts *ct);

/* An acquire has ended with this status; a lease has ended. */
void dibs__counts_acquired(dibs__counts *ct, dibs_status rc, uint64_t waited_us,
                           bool contended);
void dibs__counts_ended(dibs__counts *ct, bool lost, uint64_t held_us);

/* Adds what `from` has. */
void dibs__counts_merge(dibs__counts *ct, const dibs__counts *from);

/* Everything but the name and the distributions; `waiting` acquires have not ended yet. */
void dibs__counts_show(const dibs__counts *ct, uint64_t waiting,
                       dibs_name_stats *out);

/* The text that is kept in a store, at most DIBS__COUNTS_MAX bytes:
 *
 *     dibs-stats 1
 *     ACQUIRED BUSY FAILED RELEASED LOST CONTENDED
 *     the waits, as dibs__histogram_write() has it
 *     the holds, likewise
 *
 * and back. DIBS_MISMATCH: it is no such text, or one of a later version.
 * DIBS_NOMEM. *out is then empty. */
enum { DIBS__COUNTS_MAX = 16 << 10 };
void dibs__counts_write(const dibs__counts *ct, dibsx_buf *out);
DIBS_MUST_CHECK dibs_status dibs__counts_read(const char *text,
                                              dibs__counts *out);

#endif
