/* state.h - shared values: bytes with a version and an optional expiry; commits, which
 * change several of them together; watches.
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

/* Commits: several values, and the members of ordered indexes, change together or
 * not at all.
 *
 * An index is a name with members, in the order of their numbers and then of their
 * bytes. Only commits change it. Numbers are 0 to DIBS_INDEX_AT_MAX: microseconds
 * of the store's clock, fencing tokens, or counts.
 *
 * All names of a commit have the same {tag}, on every store: the text between the
 * first "{" and the next "}", as in "shop:{42}:cart". A commit that names one value
 * or one index, and nothing else, needs no tag. */
#define DIBS_COMMITS_MAX  64   /* of one call */
#define DIBS_CHECKS_MAX   64   /* of one commit */
#define DIBS_CHANGES_MAX  320  /* of one commit */
#define DIBS_GET_MANY_MAX 64   /* values of one call */
#define DIBS_LOOKS_MAX    32   /* indexes of one call */
#define DIBS_LOOK_MAX     1024 /* entries of one look */
#define DIBS_INDEX_AT_MAX ((INT64_C(1) << 53) - 1)

/* A value must have this version; DIBS_VERSION_NONE: there must be none. */
typedef struct dibs_commit_check {
    const char *key;
    uint64_t version;
} dibs_commit_check;

typedef enum dibs_commit_verb {
    DIBS_COMMIT_PUT = 0,    /* writes the value `name` */
    DIBS_COMMIT_DELETE = 1, /* removes the value `name`, if there is one */
    DIBS_COMMIT_ENTER =
        2, /* puts `member` into the index `name`, or moves it */
    DIBS_COMMIT_LEAVE = 3, /* takes `member` out of it, if it is in it */
    DIBS_COMMIT_RING = 4   /* rings the bell `name`, and changes nothing */
} dibs_commit_verb;

/* One change. The changes of a commit have no order: none may concern the same
 * value, or the same member, as another. */
typedef struct dibs_commit_change {
    dibs_commit_verb verb;
    const char *name;   /* of the value or the index */
    const void *data;   /* put */
    size_t len;         /* put */
    int64_t ttl_ms;     /* put; 0: no expiry */
    const char *member; /* enter, leave: 1 to DIBS_NAME_MAX bytes */
    int64_t at;         /* enter: its number */
    bool
        from_now; /* enter: `at` is microseconds from now on the store's clock */
    bool
        counted; /* enter: `size` is wanted. Commits of several clients that count
                        one index wait for each other; others need not */
    uint64_t size; /* out, enter: the members of the index after the commit; 0
                        if they are not counted */
} dibs_commit_change;

/* A commit, and below the line its answer. The store compares its clock first, then
 * the checks in their order, and then makes all changes.
 *   DIBS_OK       all changes are made
 *   DIBS_STALE    a value has another version: nothing changed
 *   DIBS_EARLY    the store's clock is below not_before_us: nothing changed
 *   DIBS_LATE     the store's clock is above not_after_us: nothing changed
 *   DIBS_UNAVAIL  the store is out of reach: nothing changed
 *   DIBS_UNKNOWN  no answer: all changes may have been made, or none. Repeat the
 *                 commit as it was. DIBS_STALE is then ambiguous: `found` shows
 *                 whose change it was, if the data names its writer. DIBS_EARLY to
 *                 a repeated commit decides nothing: the first may yet be done */
typedef struct dibs_commit {
    const dibs_commit_check *checks;
    size_t check_count;
    dibs_commit_change *changes;
    size_t change_count;
    int64_t not_before_us; /* on the store's wall clock; 0: no bound */
    int64_t not_after_us;  /* likewise */
    /* ---- */
    dibs_status rc;
    size_t failed;    /* STALE: the first check that does not hold */
    dibs_value found; /* STALE: the value it found; version 0: there is none */
    uint64_t
        version;    /* OK: of all that it wrote. It rises, as all versions do */
    int64_t now_us; /* the store's wall clock; 0 without an answer */
} dibs_commit;

/* Sends up to DIBS_COMMITS_MAX commits in one request. They are independent of each
 * other. Every commit gets its own `rc`; the call returns that of the first that is
 * not DIBS_OK. The caller frees what was found with dibs_commit_free(), whatever
 * the call returns.
 *   DIBS_INVALID      a commit breaks a bound, or its names have no common tag; err
 *                     says which. No commit was made
 *   DIBS_UNSUPPORTED  a quorum; the message says why */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_state_commit(dibs_client *client,
                                                       dibs_commit *commits,
                                                       size_t count,
                                                       dibs_error *err);

/* Frees what the commits found. They may be sent again. */
DIBS_API void dibs_commit_free(dibs_commit *commits, size_t count);

/* Reads up to DIBS_GET_MANY_MAX values as of one moment; in a cluster, those with the
 * same tag. The version is 0 where there is no value. On success the caller frees
 * each with dibs_value_free(); otherwise all are zeroed. */
DIBS_API DIBS_MUST_CHECK dibs_status
dibs_state_get_many(dibs_client *client, const char *const *keys, size_t count,
                    dibs_value *out, dibs_error *err);

/* A look at an index: its entries with numbers from `from` to `up_to`. */
typedef struct dibs_index_look {
    const char *index;
    int64_t from; /* 0: from the first */
    int64_t
        up_to; /* DIBS_INDEX_NOW: the store's clock; DIBS_INDEX_AT_MAX: all */
    uint32_t skip;  /* entries to pass over; 0 */
    uint32_t limit; /* entries to show, up to DIBS_LOOK_MAX */
    int64_t next; /* out: the number of the first entry behind those shown, also
                     above `up_to`; -1: there is none */
} dibs_index_look;

#define DIBS_INDEX_NOW (-1)

/* One entry. Valid during the call only. */
typedef struct dibs_index_entry {
    size_t look; /* which of the looks it is for */
    const char *member;
    int64_t at; /* its number */
} dibs_index_entry;

/* Returns false to see no more. It may use the client. */
typedef bool dibs_index_fn(const dibs_index_entry *entry, void *arg);

/* Calls `each` on the calling thread for the first entries of up to DIBS_LOOKS_MAX
 * indexes, in order. All are of one moment; in a cluster, those with the same tag.
 * *now_us (may be NULL) receives the store's wall clock.
 *   DIBS_INVALID  a look breaks a bound */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_index_first(
    dibs_client *client, dibs_index_look *looks, size_t count, int64_t *now_us,
    dibs_index_fn *each, void *arg, dibs_error *err);

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

/* A bell: a name that commits ring (DIBS_COMMIT_RING), and that any number of clients
 * hear. A program that waits for work in indexes sleeps until the first number of them or
 * a ring. A ring has no content and may be lost: the program also looks by itself now and
 * then. A ring that nobody hears costs the store nothing. */
typedef struct dibs_bell dibs_bell;

/* How often dibs_bell_listen() is called while a program wants to hear. */
#define DIBS_BELL_LISTEN_MS 15000

/* Makes a bell, without a call to the store. Free it with dibs_bell_free().
 *   DIBS_UNSUPPORTED  a quorum; the message says why */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_bell_new(dibs_client *client,
                                                   const char *name,
                                                   dibs_bell **out,
                                                   dibs_error *err);

/* Listens, and goes on listening. The caller looks at the store after the first call,
 * and whenever the descriptor is readable. One thread at a time.
 *   DIBS_OK       the bell hears rings for twice DIBS_BELL_LISTEN_MS; if any may have
 *                 been lost, the descriptor becomes readable
 *   DIBS_UNAVAIL  the store cannot be heard now: look more often, and try again
 *   DIBS_DENIED   the store forbids it */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_bell_listen(dibs_bell *bell,
                                                      dibs_error *err);

/* A descriptor that is readable after a ring, until dibs_bell_clear(). It belongs to
 * the bell. */
DIBS_API int dibs_bell_fd(const dibs_bell *bell);

/* Makes the descriptor quiet. True: rings may have been lost since the last call, and
 * dibs_bell_listen() is due. */
DIBS_API bool dibs_bell_clear(dibs_bell *bell);

/* Frees the bell; no other thread may use it any more. NULL is a no-op. */
DIBS_API void dibs_bell_free(dibs_bell *bell);

#ifdef __cplusplus
}
#endif
#endif
