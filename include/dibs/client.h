/* client.h - a client: one open store, its defaults and its background threads.
 *
 * Threads: a client may be used from any thread, and so may every handle made
 * from it. Two threads of its own are started when the first lease is taken:
 * the keeper (timers, doorbell, callbacks) and the renewer; sticky leases add one,
 * asynchronous calls up to four. All of them block all signals.
 *
 * Cancellation: no call is a cancellation point; a pthread_cancel() takes effect
 * after it. Signals: in a handler, call only what says that it is safe there. Exit:
 * a process may exit() while its threads are in calls or wait; what it held then
 * ends with its ttl.
 *
 * Fork: in a child process every call on an inherited client or handle answers
 * DIBS_FORKED and touches nothing; close and free calls do nothing. The child
 * opens a client of its own. Not, however, on a file of the embedded store that
 * the parent has open, for SQLite cannot tell the two apart: that is refused.
 * Open such a store after the fork, or run another program.
 */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CLIENT_H
#define DIBS_CLIENT_H

#include <dibs/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dibs_client dibs_client;

typedef enum dibs_log_level {
    DIBS_LOG_ERROR = 0,
    DIBS_LOG_WARN = 1,
    DIBS_LOG_INFO = 2,
    DIBS_LOG_DEBUG = 3,
    DIBS_LOG_TRACE = 4 /* every event in the life of a lease */
} dibs_log_level;

/* One line of log. `event` is a short fixed word ("lost", "granted"), `message`
 * one line of text. Both are borrowed for the call. May be called from any
 * thread, never with a lock of the library held. */
typedef void dibs_log_fn(dibs_log_level level, const char *event,
                         const char *message, void *arg);

/* What an acquire does when the store is out of reach. Each use of the last two
 * is counted, and logged when it begins and when it ends. */
typedef enum dibs_away {
    DIBS_AWAY_FAIL = 0,  /* it fails: nothing is held by accident */
    DIBS_AWAY_LOCAL = 1, /* the embedded store grants: one machine's promise */
    DIBS_AWAY_OPEN = 2   /* it is granted without a lock: no promise at all */
} dibs_away;

/* Zero or NULL in any field but size means the default. */
typedef struct dibs_client_opts {
    size_t size;        /* sizeof(dibs_client_opts); the macro sets it */
    const char *prefix; /* put before every name and key, "workflow:" say */
    const char *label;  /* shown to others beside host and pid */
    int64_t ttl_ms;     /* default lease length; 30,000 */
    int64_t timeout_ms; /* the longest one store step may take; 5,000 */
    dibs_log_fn *log;   /* default: no log */
    void *log_arg;      /* borrowed until dibs_close() */
    dibs_log_level log_level; /* the most detailed level wanted */
    dibs_away on_unavailable;
    const char *local_url; /* for DIBS_AWAY_LOCAL; the default place */
    bool share_stats; /* statistics per name go to the store, for all to see */
    const char *durability; /* of locks that do not say; "async" */
} dibs_client_opts;

#define DIBS_CLIENT_OPTS(...)                                                  \
    (&(dibs_client_opts){.size = sizeof(dibs_client_opts), __VA_ARGS__})

/* Opens a store. `url` NULL or "" means the embedded store at its default
 * place. Strings are copied. On failure *out is NULL and nothing is left open;
 * the embedded store may have created its file. Close with dibs_close().
 *   DIBS_INVALID   the URL or an option is malformed
 *   DIBS_REFUSED   unfit ground: network file system, foreign or newer file
 *   DIBS_DENIED    the file or folder may not be written
 *   DIBS_UNAVAIL   out of reach, or its driver library is not installed */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_open(const char *url,
                                               const dibs_client_opts *opts,
                                               dibs_client **out,
                                               dibs_error *err);

/* Ends the acquires that wait, with DIBS_CANCELLED, releases what is still held,
 * stops the threads and frees the client. Handles are best freed before; one that
 * was not answers DIBS_INVALID from here on and is still to be freed. Not to be
 * called from a callback of the client. NULL is a no-op. */
DIBS_API void dibs_close(dibs_client *client);

/* One round trip; *took_us (may be NULL) is how long it took. */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_ping(dibs_client *client,
                                               int64_t *took_us,
                                               dibs_error *err);

/* Changes how much is logged, tracing included, while the client runs. */
DIBS_API void dibs_log_level_set(dibs_client *client, dibs_log_level level);

/* The URL in use, with any password replaced; lives as long as the client. */
DIBS_API const char *dibs_url(const dibs_client *client);

typedef enum dibs_severity {
    DIBS_FINE = 0,    /* as it should be */
    DIBS_NOTE = 1,    /* worth knowing */
    DIBS_CAUTION = 2, /* weakens a guarantee */
    DIBS_DANGER = 3   /* breaks a guarantee */
} dibs_severity;

/* One finding about the store: what was looked at, what was found, what to do
 * about it (NULL when nothing need be done). Borrowed for the call. */
typedef struct dibs_finding {
    dibs_severity severity;
    const char *subject;
    const char *found;
    const char *advice;
} dibs_finding;

typedef void dibs_finding_fn(const dibs_finding *finding, void *arg);

/* Looks the store over and reports each finding. Changes nothing. */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_audit(dibs_client *client,
                                                dibs_finding_fn *each,
                                                void *arg, dibs_error *err);

/* Counts since the client was opened. Set size before the call; fields past
 * the library's own size are left alone. Never fails, never blocks. */
typedef struct dibs_stats {
    size_t size;
    uint64_t attempts; /* acquires asked for */
    uint64_t acquired; /* ... granted */
    uint64_t busy;     /* ... refused, or not granted in time */
    uint64_t failed;   /* ... ended by an error */
    uint64_t released; /* leases given back in time */
    uint64_t lost;     /* leases that ended before they were given back */
    uint64_t renewed;  /* renewals that the store confirmed */
    uint64_t renewals_failed; /* renewals that failed and were tried again */
    uint64_t rings;           /* doorbell notices that brought a grant */
    uint64_t polls;           /* asks made because no notice had come */
    uint64_t held;            /* leases held now */
    uint64_t waiting;         /* acquires waiting now */
    uint64_t fallbacks; /* acquires that on_unavailable turned elsewhere */
    uint64_t
        under_replicated; /* asks given back, as too few replicas had them */
} dibs_stats;

DIBS_API void dibs_stats_get(const dibs_client *client, dibs_stats *out);

#ifdef __cplusplus
}
#endif
#endif
