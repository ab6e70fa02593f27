/* error.h - what a result code of SQLite means for the caller. Pure. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_SQLITE_ERROR_H
#define DIBS_STORE_SQLITE_ERROR_H

#include <dibs/types.h>

/* A failure as SQLite told it. */
typedef struct dibs__sqlite_fault {
    int code;           /* its result code, extended or not */
    int sys;            /* errno behind it, 0 when there was none */
    bool committing;    /* met while a change was being committed */
    const char *detail; /* its own message; NULL: none */
    const char *path;   /* of the database; NULL: in memory */
} dibs__sqlite_fault;

/* Raises it: fills err, returns the status. */
dibs_status dibs__sqlite_fail(const dibs__sqlite_fault *fault, dibs_error *err);

#endif
