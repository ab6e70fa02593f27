/* lock.h - leases on named resources.
 *
 * A holder has a lease for a time (its ttl). The client renews it in the
 * background until the release. A lease ends by release, expiry or revocation. A
 * former holder may still write late; only the fencing token makes that
 * harmless. Pass dibs_lock_fence() to the guarded resource, which refuses a
 * smaller one.
 *
 * Threads: any thread may use a handle. Acquire, try, adopt, renew, upgrade,
 * downgrade, transfer, accept, release, free and dibs_with_lock() talk to the
 * store and block. One of them at a time may run on a handle; another fails with
 * DIBS_INVALID and changes nothing. All other calls return at once.
 */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_LOCK_H
#define DIBS_LOCK_H

#include <dibs/client.h>
#include <dibs/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dibs_lock dibs_lock;

/* The kind of lease. A name serves either as a lock (exclusive and shared) or as
 * a semaphore of one capacity. While the name has a holder or a waiter, the
 * store refuses the other kind with DIBS_MISMATCH. */
typedef enum dibs_lock_mode {
    DIBS_EXCLUSIVE = 0, /* one holder: a mutex, or the writer */
    DIBS_SHARED = 1,    /* many holders, all shared: a reader */
    DIBS_PERMITS = 2    /* opts.permits out of opts.capacity: a semaphore */
} dibs_lock_mode;

enum {
    DIBS_LOCK_NO_RENEW = 1 << 0,  /* the caller renews; default: automatic */
    DIBS_LOCK_BARGE = 1 << 1,     /* acquire a free name ahead of the queue */
    DIBS_LOCK_REENTRANT = 1 << 2, /* the owner may acquire again */
    DIBS_LOCK_STICKY = 1 << 3     /* the client keeps a released lease */
};

/* The library renews a lease every ttl_ms / DIBS_RENEWALS_PER_TTL, or more often
 * (renew_every_ms). A program that renews by hand should do the same: one renewal
 * may then fail without a loss. */
enum { DIBS_RENEWALS_PER_TTL = 3 };

/* Called once per loss, on the keeper thread. If the lease expires, the callback
 * runs before the store can grant the name to another owner. After a revocation
 * it may run later: at the notice, or at the next renewal. If the program
 * releases or re-acquires the handle before the callback runs, the callback is
 * skipped. The same holds for a re-entrant handle whose outer handle is
 * re-acquired.
 *
 * The callback must return quickly: it delays all callbacks of the client, other
 * losses included. It may release the lock, which then does not contact the
 * store. It must not free the lock or close the client. */
typedef void dibs_lock_lost_fn(dibs_lock *lock, void *arg);

/* Called on the keeper thread when dibs_lease_yield() asks the holder to
 * release. The holder may ignore it, notify a worker, or call
 * dibs_lock_release_async(). The rules of dibs_lock_lost_fn apply;
 * dibs_lock_release() may block here. */
typedef void dibs_lock_yield_fn(dibs_lock *lock, void *arg);

/* Zero or NULL in any field but size selects the default, given last here. */
typedef struct dibs_lock_opts {
    size_t size;         /* sizeof(dibs_lock_opts); the macro sets it */
    dibs_lock_mode mode; /* DIBS_EXCLUSIVE */
    uint32_t flags;      /* DIBS_LOCK_*; 0 */
    int64_t ttl_ms;      /* lease length, 10 ms to 24 h; the client's */
    int64_t wait_ms;     /* 0 tries once; negative: no timeout */
    uint32_t retries;    /* after DIBS_BUSY, _TIMEOUT, _UNAVAIL, _UNKNOWN; 0 */
    int64_t retry_delay_ms; /* before each retry, 50 to 150 % of it; 100 */
    int64_t hold_min_ms;    /* an earlier release keeps others out until this
                               long after the grant; to 365 d; 0 */
    int64_t hold_max_ms;    /* no renewal extends the lease beyond; no bound */
    int32_t priority;       /* waiters with a higher one go first; 0 */
    const char *label;      /* listings show it; the client's */
    dibs_lock_lost_fn *on_lost;
    void *on_lost_arg; /* borrowed until dibs_lock_free() returns */

    uint32_t permits;  /* with DIBS_PERMITS: how many to acquire; 1 */
    uint32_t capacity; /* ... out of how many, the same for all; required */
    int64_t
        lock_delay_ms; /* added to an expired lease before the next grant; 0 */
    int64_t progress_ms;     /* renewal needs a dibs_lock_tick() this often */
    const char *identity;    /* the owner, 1 to 31 bytes; the thread */
    const char *const *meta; /* "key=value" texts for listings; NULL ends */
    dibs_lock_yield_fn *on_yield;
    void *on_yield_arg; /* borrowed until dibs_lock_free() returns */

    /* Replicas that must acknowledge a grant: "async" none, "wait:K" K of them
     * (1 to 9). A failover to a replica that acknowledged keeps the lease.
     * Ignored on the fallback store. NULL: the client's. */
    const char *durability;

    /* Renews the lease this often, from 10 ms to a third of ttl_ms. A shorter one
     * notices sooner that the store has lost the lease. The client's. */
    int64_t renew_every_ms;
} dibs_lock_opts;

#define DIBS_LOCK_OPTS(...)                                                    \
    (&(dibs_lock_opts){.size = sizeof(dibs_lock_opts), __VA_ARGS__})

/* Makes a handle. Does not contact the store. The handle copies strings. On
 * failure *out is NULL. Free it with dibs_lock_free(), before dibs_close().
 *   DIBS_INVALID  the name or an option is malformed, or two options conflict: a
 *                 semaphore is neither reentrant nor sticky; a sticky lock has no
 *                 hold_min_ms, hold_max_ms, progress_ms or DIBS_LOCK_NO_RENEW */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_lock_new(dibs_client *client,
                                                   const char *name,
                                                   const dibs_lock_opts *opts,
                                                   dibs_lock **out,
                                                   dibs_error *err);

/* Releases the lease if it is held, then frees the handle. The client logs a
 * failed release. Handles that re-entered the lease keep it. Cancels an
 * asynchronous acquire; no other call may be in progress. Waits for callbacks of
 * this lock that run on another thread. NULL is a no-op. */
DIBS_API void dibs_lock_free(dibs_lock *lock);

/* Acquires the lease, waits up to opts.wait_ms and repeats that opts.retries
 * times. The wait includes that for a store which is away: the call asks again
 * until the store answers. After any status but DIBS_OK the handle holds nothing new.
 *   DIBS_OK           held; dibs_lock_fence() is valid
 *   DIBS_BUSY         another owner holds the name (wait_ms is 0)
 *   DIBS_TIMEOUT      not granted in time; the place in the queue is gone
 *   DIBS_CANCELLED    dibs_lock_cancel() or dibs_close() ended the wait
 *   DIBS_MISMATCH     the name is in use in another mode or capacity
 *   DIBS_UNAVAIL      the store is out of reach and changed nothing; or too few
 *                     replicas acknowledged ("wait:K") and the grant was returned
 *   DIBS_UNKNOWN      no answer; a grant that the store made ends within one ttl
 *   DIBS_UNSUPPORTED  the store lacks the mode, sticky leases, on_yield, or
 *                     replicas for "wait:K"
 *   DIBS_INVALID      this handle holds the lease already; or the owner holds the
 *                     name through another handle and would wait for ever; or the
 *                     owner holds a reader's lease and asks for a writer's
 *
 * DIBS_LOCK_REENTRANT: if the owner holds the name through such a handle of this
 * client, the acquire only counts. It needs no round trip and has the same lease
 * and fence. The last release ends the lease. The owner is the calling thread,
 * or opts.identity.
 *
 * DIBS_LOCK_STICKY: the client keeps the lease after the release. The next
 * acquire of the handle reuses it: no round trip, the same fence. The client
 * releases it when another owner asks for the name. It does not keep a lease
 * that was upgraded or downgraded, or one of the fallback store. */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_lock_acquire(dibs_lock *lock,
                                                       dibs_error *err);

/* The same without a wait and without retries, whatever the options say. */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_lock_try(dibs_lock *lock,
                                                   dibs_error *err);

/* Ends the wait of an acquire on another thread, or of an asynchronous one. A
 * no-op without one. Does not block; not safe in a signal handler. */
DIBS_API void dibs_lock_cancel(dibs_lock *lock);

/* Takes over a lease that another process acquired and left (dibs_lock_leave()),
 * by renewing it. The lease counts as a reader's until an upgrade or a downgrade
 * has succeeded, because a renewal does not tell its mode.
 *   DIBS_OK       held
 *   DIBS_LOST     that owner no longer holds the name under that fence, or the
 *                 answer came after the ttl
 *   DIBS_INVALID  the handle is in use, or owner or fence is malformed
 *   DIBS_UNAVAIL, DIBS_UNKNOWN  not held; repeat the call within the ttl */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_lock_adopt(dibs_lock *lock,
                                                     const char *owner,
                                                     uint64_t fence,
                                                     dibs_error *err);

/* Renews the lease now. Only DIBS_LOCK_NO_RENEW and dibs_lock_leave() need it.
 *   DIBS_LOST  the lease has ended; stop work
 *   DIBS_UNAVAIL, DIBS_UNKNOWN  not extended; valid for dibs_lock_valid_ms() */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_lock_renew(dibs_lock *lock,
                                                     dibs_error *err);

/* Turns a reader's lease into the writer's in one step, with a new fence. Does
 * not wait for other readers: a holder that must write releases and acquires
 * anew.
 *   DIBS_OK       the lease is exclusive, or was
 *   DIBS_BUSY     other readers hold the name; nothing changed
 *   DIBS_LOST     the lease has ended
 *   DIBS_UNKNOWN  no answer; counts as a reader's, the call may be repeated
 *   DIBS_INVALID  a semaphore, or a handle that re-entered another's lease */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_lock_upgrade(dibs_lock *lock,
                                                       dibs_error *err);

/* Turns the writer's lease into a reader's without a gap. The fence stays.
 *   DIBS_OK       the lease is shared, or was
 *   DIBS_LOST     the lease has ended
 *   DIBS_UNKNOWN  no answer; counts as a reader's
 *   DIBS_INVALID  as dibs_lock_upgrade(); or a further acquire for writing
 *                 (DIBS_LOCK_REENTRANT) has not been released */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_lock_downgrade(dibs_lock *lock,
                                                         dibs_error *err);

/* The size of a buffer for a token. */
#define DIBS_TOKEN_SIZE 64

/* Hands the lease to another process: a new owner and a new fence in one step.
 * That process passes `token` to dibs_lock_accept() within the ttl. Keep the token
 * secret; of several processes that have it, one gets the lease. Once the request
 * is sent, this handle holds nothing, whatever the status. Without an accept the
 * lease stands in the store until its ttl.
 *   DIBS_OK           handed over; after any other status `token` is ""
 *   DIBS_LOST         this handle holds no lease of its own
 *   DIBS_INVALID      acquired more than once: release to depth 1 first; not sent
 *   DIBS_UNSUPPORTED  the lease is on the fallback store, or the store cannot
 *                     transfer; not sent */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_lock_transfer(
    dibs_lock *lock, char token[DIBS_TOKEN_SIZE], dibs_error *err);

/* Takes over a lease by its token, with a new fence, and uses the token up. `lock`
 * is a free handle on the same name.
 *   DIBS_OK        held
 *   DIBS_LOST      too late, or accepted already
 *   DIBS_MISMATCH  lease and handle differ in mode; the token stays valid
 *   DIBS_INVALID   not a token, or the handle is in use
 *   DIBS_UNAVAIL   not held; repeat the call within the ttl
 *   DIBS_UNKNOWN   not held; the token may be used up, and then the lease stands
 *                  in the store until its ttl */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_lock_accept(dibs_lock *lock,
                                                      const char *token,
                                                      dibs_error *err);

/* Reports progress, for opts.progress_ms. Does not block. A no-op without it. */
DIBS_API void dibs_lock_tick(dibs_lock *lock);

/* Releases the lease. With DIBS_LOCK_REENTRANT only the last release ends it.
 * The acquire is undone after every status but DIBS_INVALID and DIBS_FORKED.
 *   DIBS_OK       the lease was valid to the end
 *   DIBS_LOST     the lease had ended, or was not held
 *   DIBS_UNAVAIL, DIBS_UNKNOWN  the store may keep the name until the ttl
 *   DIBS_INVALID  another call runs on this handle; nothing changed */
DIBS_API dibs_status dibs_lock_release(dibs_lock *lock, dibs_error *err);

/* Drops the lease without a release: renewal stops, and the lease stands in the
 * store until its ttl, for dibs_lock_adopt(). A lease that was waited for may
 * still be a claim of 3 s; dibs_lock_renew() first extends it to the ttl. A
 * no-op on a handle that re-entered another's lease, or while another call runs
 * on it. Does not contact the store. */
DIBS_API void dibs_lock_leave(dibs_lock *lock);

typedef enum dibs_lock_state {
    DIBS_LOCK_FREE = 0,    /* not held by this handle */
    DIBS_LOCK_WAITING = 1, /* an acquire is in progress */
    DIBS_LOCK_HELD = 2,
    DIBS_LOCK_SUSPECT = 3, /* held; renewal fails, validity is running out */
    DIBS_LOCK_LOST = 4     /* was held; expired or was revoked */
} dibs_lock_state;

/* These four compare clocks on every call. A process that was stopped or
 * suspended therefore gets the truth from its first call. They never block. */
DIBS_API dibs_lock_state dibs_lock_state_get(const dibs_lock *lock);

/* Call it before each side effect. No system call, no mutex; safe in a signal
 * handler.
 *   DIBS_OK    the lease is valid
 *   DIBS_LOST  the lease has ended, or is not held */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_lock_check(const dibs_lock *lock);

/* The time for which the lease is valid yet. 0: it is not. */
DIBS_API int64_t dibs_lock_valid_ms(const dibs_lock *lock);

/* The fencing token of the lease. 0: not held. */
DIBS_API uint64_t dibs_lock_fence(const dibs_lock *lock);

/* The fallback that granted the current or last lease. The calls from here to
 * dibs_lock_lost_fd() take the client's mutex for a moment. */
typedef enum dibs_fallback {
    DIBS_FALLBACK_NONE = 0,  /* the client's store granted it */
    DIBS_FALLBACK_LOCAL = 1, /* the embedded store did; see DIBS_AWAY_LOCAL */
    DIBS_FALLBACK_OPEN = 2   /* no store did; see DIBS_AWAY_OPEN */
} dibs_fallback;

DIBS_API dibs_fallback dibs_lock_fallback(const dibs_lock *lock);

/* Replicas that acknowledged the grant of the current or last lease. 0 with
 * "async" and on the fallback store. */
DIBS_API uint32_t dibs_lock_replicas_acked(const dibs_lock *lock);

/* The place in the queue of the acquire that is in progress, 1 for the next to be
 * served. The latest answer of the store has it; a waiter asks at least once a second.
 * 0: none is known, because no acquire waits, the latest ask failed, or the store has
 * no queue (a quorum). */
DIBS_API uint32_t dibs_lock_place(const dibs_lock *lock);

/* Acquires of this handle without a release: 0 or 1, or more with
 * DIBS_LOCK_REENTRANT. */
DIBS_API uint32_t dibs_lock_depth(const dibs_lock *lock);

/* The owner of the current or last lease; "" before the first. */
DIBS_API void
dibs_lock_owner(const dibs_lock *lock, char owner[DIBS_OWNER_SIZE]);

/* A file descriptor that becomes readable when the lease is lost, driven by the
 * kernel's clock. Poll it; do not read or close it, the lock owns it. A release
 * or the next acquire resets it. -1: the process has no descriptor left. */
DIBS_API int dibs_lock_lost_fd(dibs_lock *lock);

/* Acquires, calls fn(lock, arg) on the calling thread, releases. `fn` must not
 * release the lock. The client logs a release that failed.
 *   DIBS_OK    fn ran and the lease was valid throughout
 *   DIBS_LOST  fn ran and the lease ended meanwhile
 *   others     fn did not run; as dibs_lock_new() and dibs_lock_acquire() */
typedef void dibs_lock_fn(dibs_lock *lock, void *arg);
DIBS_API DIBS_MUST_CHECK dibs_status dibs_with_lock(dibs_client *client,
                                                    const char *name,
                                                    const dibs_lock_opts *opts,
                                                    dibs_lock_fn *fn, void *arg,
                                                    dibs_error *err);

/* The scoped form (GCC, Clang; not C++). The block runs if the acquire succeeds;
 * otherwise it is skipped. Leaving the block releases, except by longjmp().
 *
 *     DIBS_WITH_LOCK(client, "hourly-task", .ttl_ms = 300000) {
 *         handle_hourly_task(dibs_lock_fence(dibs_held));
 *     }
 *
 * `dibs_held` is the lock inside the block. The client logs why it skipped a
 * block. A client without a log prints it to standard error, once for each
 * status; a busy lock is not worth a word there. dibs_with_lock() returns the
 * status instead. */
#if defined(__GNUC__) && !defined(__cplusplus)
#define DIBS_WITH_LOCK(client, name, ...)                                      \
    for (dibs_lock * dibs_held __attribute__((cleanup(dibs_scope_end))) =      \
             dibs_scope_begin((client), (name), DIBS_LOCK_OPTS(__VA_ARGS__));  \
         dibs_held; dibs_scope_end(&dibs_held))
#endif

/* For the macro: a held lock or NULL, and its release. */
DIBS_API dibs_lock *dibs_scope_begin(dibs_client *client, const char *name,
                                     const dibs_lock_opts *opts);
DIBS_API void dibs_scope_end(dibs_lock **held);

#ifdef __cplusplus
}
#endif
#endif
