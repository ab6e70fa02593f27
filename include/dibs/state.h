/* state.h - shared values: bytes with a version and an optional expiry.
 *
 * A version is never used twice in one store, not even after a delete, so a
 * compare-and-set cannot mistake a new value for an old one. Values survive a
 * restart of the store and a power cut once the call has returned DIBS_OK.
 */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STATE_H
#define DIBS_STATE_H

#include <dibs/client.h>
#include <dibs/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The longest value, in bytes. */
#define DIBS_VALUE_MAX (1024 * 1024)

/* As the version expected: whatever it is, or nothing there at all. */
#define DIBS_VERSION_ANY  UINT64_MAX
#define DIBS_VERSION_NONE UINT64_C(0)

typedef struct dibs_value {
    void *data; /* len bytes and a NUL beyond them */
    size_t len;
    uint64_t version;
    int64_t expires_ms; /* from now; -1: never */
} dibs_value;

/* Frees what dibs_state_get() put in; a zeroed one is a no-op. */
DIBS_API void dibs_value_free(dibs_value *value);

/* DIBS_NOTFOUND: no such key, or it has expired. On success *out is the
 * caller's; free it with dibs_value_free(). */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_state_get(dibs_client *client,
                                                    const char *key,
                                                    dibs_value *out,
                                                    dibs_error *err);

/* Writes whatever is there. ttl_ms 0 keeps it for ever. *version (may be NULL)
 * is the new version. DIBS_UNKNOWN: it may have been written. */
DIBS_API DIBS_MUST_CHECK dibs_status
dibs_state_set(dibs_client *client, const char *key, const void *data,
               size_t len, int64_t ttl_ms, uint64_t *version, dibs_error *err);

/* Writes only if the version is still `expected` (DIBS_VERSION_NONE: only if
 * there is nothing). DIBS_STALE: another got there first; nothing was changed
 * and *version is the version found, 0 when there is none. */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_state_cas(
    dibs_client *client, const char *key, uint64_t expected, const void *data,
    size_t len, int64_t ttl_ms, uint64_t *version, dibs_error *err);

/* Adds to a decimal integer (nothing there counts as 0) and keeps its expiry.
 * DIBS_INVALID: the value is not an integer, or the sum would overflow. */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_state_add(dibs_client *client,
                                                    const char *key,
                                                    int64_t delta, int64_t *sum,
                                                    dibs_error *err);

/* Removes the value. DIBS_NOTFOUND: nothing there. DIBS_STALE: there, but not
 * at `expected` (DIBS_VERSION_ANY for any). */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_state_delete(dibs_client *client,
                                                       const char *key,
                                                       uint64_t expected,
                                                       dibs_error *err);

/* One key of a listing; `key` is without the client's prefix. Borrowed for the
 * call. Return false to stop. */
typedef struct dibs_state_item {
    const char *key;
    size_t len;
    uint64_t version;
    int64_t expires_ms;
} dibs_state_item;

typedef bool dibs_state_fn(const dibs_state_item *item, void *arg);

/* Every key that begins with `begins` (NULL or "": all), in order. Keys with
 * "dibs.stats/" in them are the library's own (dibs/monitor.h), and left out
 * unless `begins` has that too. The calls are made after the store was read: they
 * may use the client. */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_state_list(dibs_client *client,
                                                     const char *begins,
                                                     dibs_state_fn *each,
                                                     void *arg,
                                                     dibs_error *err);

#ifdef __cplusplus
}
#endif
#endif
