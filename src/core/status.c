/* status.c - names and texts of the statuses, and the version. */
/* SPDX-License-Identifier: MIT */
#include <dibs/types.h>

/* One table for both: status, its name, what it says to a person. */
#define STATUSES(X)                                                            \
    X(OK, "done")                                                              \
    X(BUSY, "held by another owner")                                           \
    X(TIMEOUT, "not granted in time")                                          \
    X(LOST, "the lease has ended")                                             \
    X(STALE, "out of date")                                                    \
    X(NOTFOUND, "not found")                                                   \
    X(MISMATCH, "in use as another kind")                                      \
    X(CANCELLED, "the wait was cancelled")                                     \
    X(BROKEN, "a party died or gave up")                                       \
    X(FULL, "the queue is full")                                               \
    X(EARLY, "not yet time for it")                                            \
    X(LATE, "too late for it")                                                 \
    X(UNAVAIL, "store out of reach; nothing was changed")                      \
    X(UNKNOWN, "no answer; the change may have been made")                     \
    X(INVALID, "invalid")                                                      \
    X(UNSUPPORTED, "not supported by this store")                              \
    X(NOMEM, "out of memory")                                                  \
    X(INTERNAL, "internal error")                                              \
    X(DENIED, "permission denied")                                             \
    X(REFUSED, "the store is unfit to be used")                                \
    X(FORKED, "the handle belongs to the parent process")

#define NAME_CASE(id, text)                                                    \
    case DIBS_##id:                                                            \
        return #id;
#define TEXT_CASE(id, text)                                                    \
    case DIBS_##id:                                                            \
        return text;
#define VERSION_TEXT_(a, b, c) #a "." #b "." #c
#define VERSION_TEXT(a, b, c)  VERSION_TEXT_(a, b, c)

const char *dibs_status_name(dibs_status status)
{
    switch (status) {
        STATUSES(NAME_CASE)
    }
    return "?";
}

const char *dibs_status_text(dibs_status status)
{
    switch (status) {
        STATUSES(TEXT_CASE)
    }
    return "unknown status";
}

const char *dibs_version(void)
{
    return VERSION_TEXT(DIBS_VERSION_MAJOR, DIBS_VERSION_MINOR,
                        DIBS_VERSION_PATCH);
}
