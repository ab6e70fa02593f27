/* check.h - whether a history kept the promises. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_HISTORY_CHECK_H
#define DIBS_TESTS_HISTORY_CHECK_H

#include "record.h"

/* All records of a run; `worker` says whose each is. */
typedef struct history {
    record *records;
    uint32_t *workers;
    size_t count;
    size_t room;
    const stop *stops;
    size_t stop_count;
} history;

bool history_add(history *hs, const record_log *log); /* false: no memory */
void history_fini(history *hs);

/* Prints each kind of violation with an example; returns how many there are. */
size_t history_check(const history *hs);

#endif
