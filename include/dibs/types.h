/* types.h - what every dibs header shares: export marks, status codes, the
 * error record, the version. Self-contained; usable from C99 and C++11. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TYPES_H
#define DIBS_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define DIBS_API        __attribute__((visibility("default")))
#define DIBS_MUST_CHECK __attribute__((warn_unused_result))
#else
#define DIBS_API
#define DIBS_MUST_CHECK
#endif

/* The one place where the version is written; the build reads it from here. */
#define DIBS_VERSION_MAJOR 0
#define DIBS_VERSION_MINOR 1
#define DIBS_VERSION_PATCH 0

/* Names of locks and keys of values: 1 to DIBS_NAME_MAX bytes, the prefix of
 * the client included; no control characters. */
#define DIBS_NAME_MAX 255

/* An owner is 128 random bits in hexadecimal, with the closing NUL. */
#define DIBS_OWNER_SIZE 33

#ifdef __cplusplus
extern "C" {
#endif

/* Every call that can fail returns one of these. The values are part of the
 * ABI: append, never renumber. */
typedef enum dibs_status {
    DIBS_OK = 0,

    /* Outcomes that a correct program meets in normal running. */
    DIBS_BUSY = 1,      /* held by another owner */
    DIBS_TIMEOUT = 2,   /* the deadline passed first */
    DIBS_LOST = 3,      /* the lease expired or was taken away */
    DIBS_STALE = 4,     /* the version or the fencing token is out of date */
    DIBS_NOTFOUND = 5,  /* there is no such thing */
    DIBS_MISMATCH = 6,  /* the name lives as another kind, or with another N */
    DIBS_CANCELLED = 7, /* the wait was ended by dibs_lock_cancel() */

    /* Failures. */
    DIBS_UNAVAIL = 16,     /* store out of reach; nothing was changed */
    DIBS_UNKNOWN = 17,     /* no answer; the change may have been made */
    DIBS_INVALID = 18,     /* a bad argument, a bad URL, a wrong moment */
    DIBS_UNSUPPORTED = 19, /* this store cannot do that */
    DIBS_NOMEM = 20,
    DIBS_INTERNAL = 21, /* a broken invariant; please report it */
    DIBS_DENIED = 22,   /* permission or authentication refused */
    DIBS_REFUSED = 23,  /* the store is there but unfit to be used */
    DIBS_FORKED = 24    /* the handle belongs to the parent process */
} dibs_status;

/* Filled in when a call fails, if the caller passed one. Owned by the caller,
 * needs no cleanup, may be reused, is never read. */
typedef struct dibs_error {
    dibs_status status;
    bool retriable;    /* the same call may succeed later, unchanged */
    char origin[32];   /* the store's own code: SQLITE_FULL, ENOSPC, ... */
    char message[216]; /* one line, no newline at the end */
} dibs_error;

DIBS_API const char *dibs_status_name(dibs_status status); /* "BUSY" */
DIBS_API const char *dibs_status_text(dibs_status status); /* never NULL */

/* The version of the library that runs, as "0.1.0"; static. */
DIBS_API const char *dibs_version(void);

#ifdef __cplusplus
}
#endif
#endif
