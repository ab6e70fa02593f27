/* fail.h - the one way to raise an error: fill the record, return the status.
 *
 *     return dibsx_fail(err, DIBS_INVALID, "the name is longer than %d bytes",
 *                       DIBS_NAME_MAX);
 */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_BASE_FAIL_H
#define DIBS_BASE_FAIL_H

#include <dibs/types.h>

/* `err` may be NULL. Retriable is set for UNAVAIL, UNKNOWN, BUSY, TIMEOUT and EARLY. A
 * message that does not fit is cut. */
dibs_status dibsx_fail(dibs_error *err, dibs_status status, const char *format,
                       ...) __attribute__((format(printf, 3, 4)));

/* The same with the store's own code ("SQLITE_FULL", "ENOENT"). */
dibs_status
dibsx_fail_at(dibs_error *err, dibs_status status, const char *origin,
              const char *format, ...) __attribute__((format(printf, 4, 5)));

/* No memory for `thing`, a noun with its article: the message becomes a sentence
 * that says what to do. Answers DIBS_NOMEM. */
dibs_status dibsx_nomem(dibs_error *err, const char *thing, ...)
    __attribute__((format(printf, 2, 3)));

/* An earlier request has had no answer, so this failure does not mean that nothing
 * changed: the same detail, as DIBS_UNKNOWN. */
dibs_status dibsx_unanswered(dibs_error *err);

/* Whether a step had no answer that counts: it may work later. */
static inline bool dibsx_is_away(dibs_status rc)
{
    return rc == DIBS_UNAVAIL || rc == DIBS_UNKNOWN;
}

/* "ENOENT" for the number, for the origin of dibsx_fail_at(). */
const char *dibsx_errno_name(int number);

#endif
