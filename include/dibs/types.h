/* types.h - shared by all dibs headers: export marks, status codes, the error
 * record, the version. Self-contained; usable from C99 and C++11. */
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

/* The build reads the version from here; it is written nowhere else. */
#define DIBS_VERSION_MAJOR 0
#define DIBS_VERSION_MINOR 1
#define DIBS_VERSION_PATCH 0

/* Names of locks and keys of values have 1 to DIBS_NAME_MAX bytes, including the
 * client's prefix. They are UTF-8 without control characters, and so are identities
 * and metadata: every store answers DIBS_INVALID to others. In labels such bytes
 * become question marks. Values are any bytes. */
#define DIBS_NAME_MAX 255

/* An owner is 128 random bits in hexadecimal, with the closing NUL. */
#define DIBS_OWNER_SIZE 33

#ifdef __cplusplus
extern "C" {
#endif

/* The result of a call. Each call lists the statuses with a meaning of its own.
 * Besides, any call that talks to the store may return UNAVAIL, UNKNOWN,
 * INVALID, UNSUPPORTED, NOMEM, INTERNAL, DENIED, REFUSED and FORKED as described
 * here. The values are part of the ABI: append, never renumber. */
typedef enum dibs_status {
    DIBS_OK = 0,

    /* Outcomes that a correct program meets in normal operation. */
    DIBS_BUSY = 1,      /* another owner holds the name */
    DIBS_TIMEOUT = 2,   /* the deadline passed first */
    DIBS_LOST = 3,      /* the lease expired, was revoked, or is not held */
    DIBS_STALE = 4,     /* the version or the fencing token is out of date */
    DIBS_NOTFOUND = 5,  /* no such name, key or holder */
    DIBS_MISMATCH = 6,  /* the name is in use in another mode or capacity */
    DIBS_CANCELLED = 7, /* a cancel, a free or dibs_close() ended the wait */
    DIBS_BROKEN = 8,    /* a party of the barrier died or gave up */
    DIBS_FULL = 9,      /* the queue has as many items as it may have */
    DIBS_EARLY = 10,    /* it is not yet time for it on the store's clock */
    DIBS_LATE = 11,     /* it is too late for it on the store's clock */

    /* Failures. */
    DIBS_UNAVAIL = 16,     /* the store is out of reach; nothing changed */
    DIBS_UNKNOWN = 17,     /* no answer; the change may have been made */
    DIBS_INVALID = 18,     /* bad argument, bad URL, or called at a bad time */
    DIBS_UNSUPPORTED = 19, /* this store cannot do that */
    DIBS_NOMEM = 20,       /* no memory, or no thread */
    DIBS_INTERNAL = 21,    /* an invariant is broken; please report it */
    DIBS_DENIED = 22,      /* permission or authentication failed */
    DIBS_REFUSED = 23,     /* the store answers but is unfit for use */
    DIBS_FORKED = 24       /* the handle belongs to the parent process */
} dibs_status;

/* Detail of a failure. A caller may pass NULL. A call that fails fills it in;
 * after DIBS_OK its content means nothing. The caller owns it; it needs no
 * set-up and no cleanup. */
typedef struct dibs_error {
    dibs_status status;
    bool retriable;    /* the same call may succeed later */
    char origin[32];   /* the store's own code: SQLITE_FULL, ENOSPC, ... */
    char message[216]; /* one line, no newline at the end */
} dibs_error;

/* The name of a status ("BUSY") and a short text for people. Static strings,
 * never NULL, for any number. */
DIBS_API const char *dibs_status_name(dibs_status status);
DIBS_API const char *dibs_status_text(dibs_status status);

/* The version of the running library, such as "0.1.0". A static string. */
DIBS_API const char *dibs_version(void);

#ifdef __cplusplus
}
#endif
#endif
