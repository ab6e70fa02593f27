/* once.h - at most one start, or one success, per slot, over all who share the store. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CLI_RUN_ONCE_H
#define DIBS_CLI_RUN_ONCE_H

#include <dibs/dibs.h>

/* "day 2026-11-15", or "text " and the user's own; with its NUL. */
enum { DIBS__SLOT_SIZE = 256 };

typedef struct dibs__run_once {
    char key[DIBS_NAME_MAX + 1]; /* of the value that holds the last slot */
    char slot[DIBS__SLOT_SIZE];
    char before[DIBS__SLOT_SIZE]; /* the slot found there; "": none */
    uint64_t version;             /* of the value found, then of our own */
} dibs__run_once;

/* DIBS_INVALID: a word that looks like a slot of time and is none. */
DIBS_MUST_CHECK dibs_status dibs__run_once_check(const char *slot,
                                                 dibs_error *err);

/* `slot` is minute, hour, day or any other text, which may have "text:" before it;
 * `wall_us` is now. */
DIBS_MUST_CHECK dibs_status dibs__run_once_init(dibs__run_once *once,
                                                const char *name,
                                                const char *slot,
                                                int64_t wall_us,
                                                dibs_error *err);

/* *taken: the slot was used, or a later one of its kind. */
DIBS_MUST_CHECK dibs_status dibs__run_once_look(dibs__run_once *once,
                                                dibs_client *cl, bool *taken,
                                                dibs_error *err);

/* Looks again and takes the slot. Anything but DIBS_OK and !*taken: do not
 * start. */
DIBS_MUST_CHECK dibs_status dibs__run_once_take(dibs__run_once *once,
                                                dibs_client *cl, bool *taken,
                                                dibs_error *err);

/* Gives the slot back, and the one before has been used as it was: nothing was started
 * after all. */
dibs_status
dibs__run_once_undo(dibs__run_once *once, dibs_client *cl, dibs_error *err);

#endif
