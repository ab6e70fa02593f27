/* client.h - a client: one open store, its defaults and its background threads.
 *
 * Threads: any thread may use a client and every handle made from it. The client
 * starts threads when it first needs them; all of them block all signals.
 *   keeper   timers, notices and the callbacks on_lost and on_yield; with the
 *            first acquire, adopt or accept
 *   renewer  with the first renewal
 *   workers  up to four for each of: requests that nobody waits for, such as
 *            the release of a sticky lease or shared statistics; what keeps seats
 *            and deliveries alive; the callback on_lost of queues
 *   runners  up to four, with asynchronous calls
 * A store adds its own, except SQLite:
 *   doorbell   one with Redis and PostgreSQL; in a cluster one per server, up to 32
 *   Sentinel   one
 *   quorum     two per node
 *   advisory   one, with advisory=1
 *   resolver   one for the time of each lookup of a host name
 *
 * Blocking: a call that talks to the store blocks the calling thread. Most calls
 * are one step of the store, which takes timeout_ms at most. An acquire may wait
 * for wait_ms besides.
 *
 * Cancellation: no call is a cancellation point. A pthread_cancel() takes effect
 * after the call. Signals: dibs_lock_check() and dibs_jobs_stop() are the only
 * calls that are safe in a signal handler. Exit: a process may exit() while its threads are in calls.
 * Leases that it holds then end with their ttl.
 *
 * Fork: a child process cannot use an inherited client or handle. Calls return
 * DIBS_FORKED and change nothing; dibs_lock_check() returns DIBS_LOST; close and
 * free do nothing. Remedy: the child opens a client of its own. SQLite cannot
 * share a file across a fork: if the parent has it open, dibs_open() refuses it
 * in the child. Remedy: open it after the fork, or call exec().
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
    DIBS_LOG_TRACE = 4 /* every step of every lease */
} dibs_log_level;

/* Receives one log line. `event` is a short fixed word ("lost", "granted"),
 * `message` one line of text; both are valid during the call only. The client
 * calls it from any thread, several at once, and holds no mutex meanwhile. A
 * slow log delays the thread that logs. */
typedef void dibs_log_fn(dibs_log_level level, const char *event,
                         const char *message, void *arg);

/* The fallback of an acquire that finds the store out of reach. The client
 * counts such acquires (dibs_stats.fallbacks). It logs one warning ("away") when
 * an acquire falls back, or begins to wait for the store. It logs another
 * ("back") when the store answers again, with the time. */
typedef enum dibs_away {
    DIBS_AWAY_FAIL = 0,  /* none: the acquire fails */
    DIBS_AWAY_LOCAL = 1, /* the embedded store: excludes on this machine only */
    DIBS_AWAY_OPEN = 2   /* granted without a lock: excludes nobody */
} dibs_away;

/* Zero or NULL in any field but size selects the default, given last here. */
typedef struct dibs_client_opts {
    size_t size;        /* sizeof(dibs_client_opts); the macro sets it */
    const char *prefix; /* prepended to every name and key ("workflow:"); "" */
    const char *label;  /* listings show it beside host and pid; "" */
    int64_t ttl_ms;     /* lease length, 10 ms to 24 h; 30,000 */
    int64_t timeout_ms; /* limit of one store step, to 24 h; 5,000 */
    dibs_log_fn *log;   /* no log */
    void *log_arg;      /* borrowed until dibs_close() returns */
    dibs_log_level log_level; /* the most detailed level; DIBS_LOG_ERROR */
    dibs_away on_unavailable; /* DIBS_AWAY_FAIL */
    const char *local_url;    /* for DIBS_AWAY_LOCAL; the default store */
    bool share_stats; /* adds statistics per name to the store (monitor.h) */
    const char *durability; /* for locks without one (lock.h); "async" */
    int64_t open_wait_ms;   /* dibs_open() waits for a store that is away;
                               negative: without limit; 0: it fails */
    bool lazy;              /* the first call contacts the store; dibs_open() */
    int64_t renew_every_ms; /* for locks without one, from 10 ms, never later
                               than a third of their ttl; a third of it */
    bool share_events;      /* tells viewers of its leases (viewer.h) */
} dibs_client_opts;

#define DIBS_CLIENT_OPTS(...)                                                  \
    (&(dibs_client_opts){.size = sizeof(dibs_client_opts), __VA_ARGS__})

/* Opens a store and connects to it, within timeout_ms. The client copies strings.
 * On failure *out is NULL; the embedded store may have created its file. Close
 * the client with dibs_close().
 *
 * `url` NULL or "" reads the configuration of the command `dibs`, so that both
 * exclude each other. These are DIBS_* variables, the user's file and the
 * machine's file, see dibs.yaml(5). The client takes url, prefix, store_timeout,
 * ttl, renew_every, durability, owner (as label), share_stats and share_events. A field
 * of `opts` that is set wins. Without any url, the store is the embedded one in its default
 * file; "sqlite:" selects it whatever is configured. With a URL the client reads
 * no configuration. No other thread may change the environment meanwhile. A
 * setuid program ignores the environment.
 *
 * A store that is not up yet: with open_wait_ms the call tries again for that
 * long. If on_unavailable names a fallback, it then succeeds all the same. With
 * lazy, or lazy=1 in the URL, the call contacts no server. The first call that
 * needs the store does, and returns the statuses below; an acquire with wait_ms
 * or retries waits for the store.
 *   DIBS_INVALID      the URL, an option or a setting is malformed; err names the
 *                     variable, or file, line and column
 *   DIBS_REFUSED      the store is unfit: network file system, foreign or newer
 *                     file, no schema, or a danger with strict=1
 *   DIBS_DENIED       no write access to the file or folder, a wrong password, or
 *                     a configuration file that cannot be read
 *   DIBS_UNAVAIL      out of reach, or the driver library is not installed
 *   DIBS_UNSUPPORTED  the kernel is older than Linux 4.14 */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_open(const char *url,
                                               const dibs_client_opts *opts,
                                               dibs_client **out,
                                               dibs_error *err);

/* Ends waiting acquires with DIBS_CANCELLED, releases all leases, stops the
 * threads and frees the client. Blocks until running calls of handles and
 * callbacks have returned and the releases are sent, each within timeout_ms.
 * Calls that take the client itself, such as dibs_state_get(), must have
 * returned before. Free handles first. A handle left over fails with
 * DIBS_INVALID and must still be freed. A callback must not close its client.
 * NULL is a no-op. */
DIBS_API void dibs_close(dibs_client *client);

/* Makes one round trip to the store. *took_us (may be NULL) is its duration,
 * also after a failure. */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_ping(dibs_client *client,
                                               int64_t *took_us,
                                               dibs_error *err);

/* Compares the store's wall clock with that of this machine, in one round trip.
 * *ahead_us is how far the store is ahead; negative: behind. The true difference is
 * within *within_us (may be NULL) of it. */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_clock_compare(dibs_client *client,
                                                        int64_t *ahead_us,
                                                        int64_t *within_us,
                                                        dibs_error *err);

/* Changes the most detailed level that is logged. Does not block. */
DIBS_API void dibs_log_level_set(dibs_client *client, dibs_log_level level);

/* Asks the client's background thread for a sign of life. The result is for how many
 * milliseconds an earlier question has been without an answer; 0: there is none. A
 * watchdog asks now and then, and ends a process whose thread stands still. Does not
 * block. */
DIBS_API int64_t dibs_keeper_lag_ms(dibs_client *client);

/* The URL in use, with passwords replaced. Valid until dibs_close(). */
DIBS_API const char *dibs_url(const dibs_client *client);

/* Whether dibs_open() was asked for no contact, by its options or by the URL. */
DIBS_API bool dibs_is_lazy(const dibs_client *client);

typedef enum dibs_severity {
    DIBS_FINE = 0,    /* in order */
    DIBS_NOTE = 1,    /* worth knowing */
    DIBS_CAUTION = 2, /* weakens a guarantee */
    DIBS_DANGER = 3   /* breaks a guarantee */
} dibs_severity;

/* One finding about the store. Valid during the call only. */
typedef struct dibs_finding {
    dibs_severity severity;
    const char *subject; /* the thing checked */
    const char *found;   /* its state */
    const char *advice;  /* the remedy; NULL: none needed */
} dibs_finding;

typedef void dibs_finding_fn(const dibs_finding *finding, void *arg);

/* Checks the store's configuration and calls `each` for every finding, on the
 * calling thread. Changes nothing. */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_audit(dibs_client *client,
                                                dibs_finding_fn *each,
                                                void *arg, dibs_error *err);

enum { DIBS_SLACK_PARTS = 10 };

/* Counters since dibs_open(). A sticky lease counts once per use. */
typedef struct dibs_stats {
    size_t size;               /* sizeof(dibs_stats); the caller sets it */
    uint64_t attempts;         /* acquires started */
    uint64_t acquired;         /* acquires granted */
    uint64_t busy;             /* acquires refused, timed out or cancelled */
    uint64_t failed;           /* acquires ended by an error */
    uint64_t released;         /* leases released while valid */
    uint64_t lost;             /* leases that ended before their release */
    uint64_t renewed;          /* renewals that the store confirmed */
    uint64_t renewals_failed;  /* renewals refused, or without an answer */
    uint64_t rings;            /* grants announced by a notice */
    uint64_t polls;            /* retries of waiters that heard no notice */
    uint64_t held;             /* leases held now */
    uint64_t waiting;          /* acquires in progress now */
    uint64_t fallbacks;        /* acquires that used it, once each */
    uint64_t under_replicated; /* grants returned: too few replicas confirmed */
    uint64_t timed_out;        /* of busy: acquires that waited in vain */
    uint64_t cancelled;        /* of busy: acquires that the caller gave up */

    /* Renewals by how much of the lease was left when the answer came, as a part of
     * its ttl. [0]: up to a tenth, [1]: up to two tenths, and so on. A client that is
     * late has many in the first ones. The first renewal after a wait is in none. */
    uint64_t slack[DIBS_SLACK_PARTS];
    uint64_t slack_permille; /* their sum, in thousandths of a ttl */
} dibs_stats;

/* Fills the first out->size bytes of *out and leaves newer fields alone. Never
 * fails, never blocks. */
DIBS_API void dibs_stats_get(const dibs_client *client, dibs_stats *out);

#ifdef __cplusplus
}
#endif
#endif
