/* tsv.h - reads the tables of the tests: lines of cells with tabs between them. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_TSV_H
#define DIBS_TESTS_TSV_H

#include <stdio.h>

enum { TSV_CELLS = 16, TSV_LINE = 2048 };

typedef struct tsv {
    FILE *file;
    char line[TSV_LINE];
    char *cell[TSV_CELLS];
    int count;
} tsv;

/* Opens JOBS_DATA/NAME and skips comments and the line of heads. */
void tsv_open(tsv *table, const char *name);

/* The next line; false at the end, when the file is closed. */
int tsv_next(tsv *table);

#endif
