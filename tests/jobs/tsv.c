/* tsv.c - reads the tables of the tests: lines of cells with tabs between them. */
/* SPDX-License-Identifier: MIT */
#include "tsv.h"

#include <stdlib.h>
#include <string.h>

int tsv_next(tsv *table)
{
    char *rest;

    do {
        if (!fgets(table->line, sizeof(table->line), table->file)) {
            fclose(table->file);
            return 0;
        }
    } while (table->line[0] == '#');
    table->line[strcspn(table->line, "\n")] = '\0';
    rest = table->line;
    for (table->count = 0; rest && table->count < TSV_CELLS; table->count++)
        table->cell[table->count] = strsep(&rest, "\t");
    return 1;
}

void tsv_open(tsv *table, const char *name)
{
    char path[4096];

    snprintf(path, sizeof(path), "%s/%s", JOBS_DATA, name);
    table->file = fopen(path, "r");
    if (!table->file || !tsv_next(table)) {
        perror(path);
        abort();
    }
}
