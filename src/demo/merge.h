/* merge.h - lines of several processes, in the order in which things happened.
 *
 * The next holder of a lock may be quicker to say so than the last one is to say
 * that it has let go. Each line therefore carries the moment that it tells of, on
 * the boot clock, which all processes of a machine share; lines are kept for a
 * moment and passed on in the order of these. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_DEMO_MERGE_H
#define DIBS_DEMO_MERGE_H

#include "base/clock.h"
#include "demo/output.h"

/* The stamp before a line: 16 hexadecimal digits, and a space. */
enum { DIBS__DEMO_STAMP_LEN = 17, DIBS__DEMO_MERGE_MAX = 1024 };

typedef struct dibs__demo_entry {
    dibsx_nsec at;
    size_t len;
    char *text; /* with its end, without its stamp */
} dibs__demo_entry;

typedef struct dibs__demo_merge {
    dibs__demo_output *output;                      /* borrowed */
    dibs__demo_entry entries[DIBS__DEMO_MERGE_MAX]; /* in order */
    size_t count;
} dibs__demo_merge;

void dibs__demo_merge_init(dibs__demo_merge *merge, dibs__demo_output *output);
void dibs__demo_merge_fini(dibs__demo_merge *merge);

/* Takes one line with its stamp and its end. */
void dibs__demo_merge_add(dibs__demo_merge *merge, const char *line,
                          size_t len);

/* Passes on what is old enough that nothing older can come. */
void dibs__demo_merge_pass(dibs__demo_merge *merge, dibsx_nsec now);

/* Passes on everything. */
void dibs__demo_merge_flush(dibs__demo_merge *merge);

/* When there will be something to pass on. */
dibsx_nsec dibs__demo_merge_due(const dibs__demo_merge *merge);

/* Writes the stamp of a moment. */
void dibs__demo_stamp(dibsx_nsec at, char out[DIBS__DEMO_STAMP_LEN + 1]);

#endif
