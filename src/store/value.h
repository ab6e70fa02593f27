/* value.h - the value steps of the store contract.
 *
 * A value is bytes with a version that is never used twice in the store and an
 * optional expiry on the store's wall clock. A change that was answered DIBS_OK
 * survives a crash of the store, as far as the store can promise that. Every change
 * tells the topic of the value (topic.h); an expiry tells nothing. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_VALUE_H
#define DIBS_STORE_VALUE_H

#include "base/clock.h"
#include <dibs/state.h>

struct dibs__store;

typedef struct dibs__put {
    const char *key;
    const void *data;
    size_t len;        /* at most DIBS_VALUE_MAX */
    uint64_t expected; /* DIBS_VERSION_ANY, DIBS_VERSION_NONE, or a version */
    int64_t ttl_ms;    /* 0: for ever */
    /* The notice has "TTL_MS DATA" as well, if the data are printable and no longer than
     * DIBS__SHOWN_MAX. */
    bool shows;
} dibs__put;

/* Whether a put shows its value, and what: NULL when it does not, or without memory. */
bool dibs__put_shows(const dibs__put *put);
struct dibs__said *dibs__put_shown(const dibs__put *put);

/* A value without its bytes. */
typedef struct dibs__value_head {
    uint64_t version;   /* 0: nothing, or expired */
    int64_t expires_ms; /* from now; -1: never */
    dibs_status rc;     /* DIBS_OK: it was read */
} dibs__value_head;

enum { DIBS__HEADS_MAX = 32 };

typedef struct dibs__value_ops {
    /* DIBS_NOTFOUND: nothing, or expired. *out is then zeroed. Free it with
     * dibs_value_free(). */
    dibs_status (*get)(struct dibs__store *st, const char *key,
                       dibsx_nsec deadline, dibs_value *out, dibs_error *err);

    /* The heads of up to DIBS__HEADS_MAX values, in the order of the keys. In a
     * cluster they are read one after the other, and each has its own status:
     * DIBS_OK if one was read, and *err is then of the first one that was not. The
     * first key may take all the time, those after it a part. */
    dibs_status (*heads)(struct dibs__store *st, const char *const *keys,
                         size_t count, dibsx_nsec deadline,
                         dibs__value_head *out, dibs_error *err);

    /* DIBS_OK: written, *version is the new one. DIBS_STALE: the version is not
     * the one expected; nothing changed, *version is what was found or 0. */
    dibs_status (*put)(struct dibs__store *st, const dibs__put *put,
                       dibsx_nsec deadline, uint64_t *version, dibs_error *err);

    /* Adds to a decimal integer and keeps its expiry; nothing there counts as
     * 0. DIBS_INVALID: not an integer, or the sum overflows; nothing changed.
     * NOT idempotent: after DIBS_UNKNOWN the caller cannot tell. */
    dibs_status (*add)(struct dibs__store *st, const char *key, int64_t delta,
                       dibsx_nsec deadline, int64_t *sum, dibs_error *err);

    /* DIBS_OK: it was there and is gone. DIBS_NOTFOUND: there was nothing.
     * DIBS_STALE: there, at another version; nothing changed. */
    dibs_status (*del)(struct dibs__store *st, const char *key,
                       uint64_t expected, dibsx_nsec deadline, dibs_error *err);

    /* Every key that begins with `begins`, in order. The store is not locked
     * while `each` runs. For the deadline see the list of store/lease.h. */
    dibs_status (*list)(struct dibs__store *st, const char *begins,
                        dibsx_nsec deadline, dibs_state_fn *each, void *arg,
                        dibs_error *err);
} dibs__value_ops;

/* As DIBS__LEASE_STEPS(). A list of values is a scan, so that the name is its
 * own. */
#define DIBS__VALUE_STEPS(X)                                                   \
    X(get, GET)                                                                \
    X(heads, HEADS)                                                            \
    X(put, PUT)                                                                \
    X(add, ADD)                                                                \
    X(del, DEL)                                                                \
    X(list, SCAN)

#endif
