/* state.h - shared values: bytes with a version and an optional expiry.
 *
 * A store never uses a version twice, not even after a delete. A compare-and-set
 * therefore cannot mistake a new value for an old one. A written value is as
 * durable as the store: docs/guarantees.md has the table, and memory: loses all
 * with the process. A quorum (redlock:) has no values: DIBS_UNSUPPORTED.
 *
 * Threads: any thread may make these calls. They block for the store.
 */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STATE_H
#define DIBS_STATE_H

#include <dibs/client.h>
#include <dibs/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The longest value in bytes. */
#define DIBS_VALUE_MAX (1024 * 1024)

/* Expected versions: any value or none; no value. */
#define DIBS_VERSION_ANY  UINT64_MAX
#define DIBS_VERSION_NONE UINT64_C(0)

typedef struct dibs_value {
    void *data; /* len bytes and a NUL beyond them */
    size_t len;
    uint64_t version;
    int64_t expires_ms; /* from now; -1: never */
} dibs_value;

/* Frees the data of dibs_state_get() and zeros *value. No-op on a zeroed one. */
DIBS_API void dibs_value_free(dibs_value *value);

/* Reads a value. On success the caller frees *out with dibs_value_free();
 * otherwise *out is zeroed.
 *   DIBS_NOTFOUND  no such key, or the value has expired */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_state_get(dibs_client *client,
                                                    const char *key,
                                                    dibs_value *out,
                                                    dibs_error *err);

/* Writes a value, whatever its version. ttl_ms 0: no expiry. *version (may be
 * NULL) receives the new version.
 *   DIBS_INVALID  the value is longer than DIBS_VALUE_MAX, or ttl_ms is negative
 *   DIBS_UNKNOWN  no answer; the value may have been written */
DIBS_API DIBS_MUST_CHECK dibs_status
dibs_state_set(dibs_client *client, const char *key, const void *data,
               size_t len, int64_t ttl_ms, uint64_t *version, dibs_error *err);

/* Writes a value if its version is `expected` (DIBS_VERSION_NONE: if there is
 * none). *version (may be NULL) receives the new version.
 *   DIBS_STALE    another version, which *version receives (0: none); nothing
 *                 changed
 *   DIBS_UNKNOWN  no answer; the value may have been written: read it */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_state_cas(
    dibs_client *client, const char *key, uint64_t expected, const void *data,
    size_t len, int64_t ttl_ms, uint64_t *version, dibs_error *err);

/* Adds to a decimal integer and keeps its expiry; no value counts as 0. *sum
 * (may be NULL) receives the result.
 *   DIBS_INVALID  not an integer, or the sum overflows; nothing changed
 *   DIBS_UNKNOWN  no answer; a repeated call may add twice */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_state_add(dibs_client *client,
                                                    const char *key,
                                                    int64_t delta, int64_t *sum,
                                                    dibs_error *err);

/* Removes a value if its version is `expected`, or in any case with
 * DIBS_VERSION_ANY.
 *   DIBS_NOTFOUND  no such key
 *   DIBS_STALE     another version; nothing changed */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_state_delete(dibs_client *client,
                                                       const char *key,
                                                       uint64_t expected,
                                                       dibs_error *err);

/* One key of a listing. Valid during the call only. */
typedef struct dibs_state_item {
    const char *key; /* without the client's prefix */
    size_t len;      /* of the value */
    uint64_t version;
    int64_t expires_ms; /* from now; -1: never */
} dibs_state_item;

/* Returns false to stop the listing. It may use the client. */
typedef bool dibs_state_fn(const dibs_state_item *item, void *arg);

/* Calls `each` on the calling thread for every key that begins with `begins`
 * (NULL or "": all), in order. Skips keys that contain "dibs.stats/", which
 * belong to the library (monitor.h), except when `begins` contains it too. */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_state_list(dibs_client *client,
                                                     const char *begins,
                                                     dibs_state_fn *each,
                                                     void *arg,
                                                     dibs_error *err);

/* A watch of one value. It reports the value that is there at first, and then each
 * change, a delete and an expiry too. The last value always arrives, also after a
 * lost connection, a restart or a failover. It arrives at once as a rule, and within
 * about a second while the store answers. Values in between may be skipped; `merged`
 * says so.
 *
 * The store tells watching clients of changes. If it cannot (docs/coordination.md),
 * the watch looks once a second. */
typedef struct dibs_watch dibs_watch;

typedef struct dibs_change {
    dibs_value value; /* version 0, no data: there is no value (any more) */
    bool merged; /* other changes may have come since the last report; always
                         true when the value is gone, or was */
    bool back;   /* the store went back to an older version: it lost data */
} dibs_change;

/* Makes a watch, without a call to the store. Free it with dibs_watch_free().
 *   DIBS_UNSUPPORTED  a quorum; the message says why */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_state_watch(dibs_client *client,
                                                      const char *key,
                                                      dibs_watch **out,
                                                      dibs_error *err);

/* Waits for the next change, for wait_ms at most. -1: without limit; 0: reports only
 * a change that it finds at once. A store that does not answer may add the timeout of
 * the client. While the store is out of reach, the call goes on trying. One thread at
 * a time. The caller frees out->value with dibs_value_free(); it is zeroed without
 * DIBS_OK.
 *   DIBS_TIMEOUT    no change in time
 *   DIBS_CANCELLED  dibs_watch_cancel() or dibs_close() ended the wait
 *   DIBS_UNAVAIL    the time is over and the store was out of reach
 *   DIBS_INVALID    another thread waits for this watch */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_watch_next(dibs_watch *watch,
                                                     int64_t wait_ms,
                                                     dibs_change *out,
                                                     dibs_error *err);

/* Ends the wait of dibs_watch_next() on another thread. A no-op without one. Does
 * not block; not safe in a signal handler. */
DIBS_API void dibs_watch_cancel(dibs_watch *watch);

/* Frees the watch; no other thread may use it any more. NULL is a no-op. */
DIBS_API void dibs_watch_free(dibs_watch *watch);

#ifdef __cplusplus
}
#endif
#endif
