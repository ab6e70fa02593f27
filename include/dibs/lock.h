/* lock.h - leases on named resources.
 *
 * A lock is held for a time (its ttl) and renewed in the background until it is
 * released. It ends by release, by expiry or by loss; only the fencing token
 * makes a late write by a former holder harmless: hand dibs_lock_fence() to
 * whatever is being guarded and let that refuse a smaller one.
 *
 * Threads: a handle may be used from any thread. Only acquire, try, adopt,
 * renew, release and free talk to the store; what reads the handle is cheap
 * enough to call before each side effect.
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

/* What an acquire asks of the name. A name is used either as a lock, exclusive
 * and shared, or as permits of one capacity; the other kind is refused with
 * DIBS_MISMATCH while anybody holds it or waits for it. */
typedef enum dibs_lock_mode {
    DIBS_EXCLUSIVE = 0, /* the whole of it: a mutex, or the writer */
    DIBS_SHARED = 1,    /* beside others that share: a reader */
    DIBS_PERMITS = 2    /* opts.permits out of opts.capacity: a semaphore */
} dibs_lock_mode;

enum {
    DIBS_LOCK_NO_RENEW = 1 << 0,  /* the caller renews; default: automatic */
    DIBS_LOCK_BARGE = 1 << 1,     /* take it when free, whoever is queued */
    DIBS_LOCK_REENTRANT = 1 << 2, /* its owner may acquire it again */
    DIBS_LOCK_STICKY = 1 << 3     /* kept after release while nobody waits */
};

/* The library renews a lease every ttl_ms / DIBS_RENEWALS_PER_TTL. A program that
 * renews by hand should do the same: one renewal may then fail without a loss. */
enum { DIBS_RENEWALS_PER_TTL = 3 };

/* Called once per loss, on the client's keeper thread, when the lease can no
 * longer be trusted and before the store could grant it to another. Must not
 * block and must not free the lock; it may release it, which then asks no store.
 * What does ask one keeps other callbacks of the client waiting, those of other
 * losses too; check, state and lost_fd tell the truth meanwhile. A loss that the
 * program meets first is not told: when the handle is released or acquired again
 * by then, or that through which it entered is acquired again, a call would be
 * taken for news of the next lease. */
typedef void dibs_lock_lost_fn(dibs_lock *lock, void *arg);

/* Called on the keeper thread when somebody asks the holder to give the lease
 * back (dibs_lease_yield()). It may give it back by dibs_lock_release_async(), tell
 * others, or ignore it; it must not block, as dibs_lock_release() does while the
 * store is slow, and must not free the lock. */
typedef void dibs_lock_yield_fn(dibs_lock *lock, void *arg);

/* Zero or NULL in any field but size means the default. */
typedef struct dibs_lock_opts {
    size_t size;            /* sizeof(dibs_lock_opts); the macro sets it */
    dibs_lock_mode mode;    /* DIBS_EXCLUSIVE */
    uint32_t flags;         /* DIBS_LOCK_* */
    int64_t ttl_ms;         /* lease length, 10 ms to 24 h; the client's */
    int64_t wait_ms;        /* 0 tries once, negative waits without limit */
    uint32_t retries;       /* further tries after a busy or timed-out one */
    int64_t retry_delay_ms; /* before each of them, with jitter; 100 */
    int64_t hold_min_ms;    /* others are kept out this long, to 365 d */
    int64_t hold_max_ms;    /* renewal stops after this; 0: no bound */
    int32_t priority;       /* higher goes first in the queue */
    const char *label;      /* shown to others; the client's */
    dibs_lock_lost_fn *on_lost;
    void *on_lost_arg; /* borrowed until dibs_lock_free() */

    uint32_t permits;  /* DIBS_PERMITS: how many at once; 1 */
    uint32_t capacity; /* ... out of how many; all must say the same */
    int64_t
        lock_delay_ms;    /* when the holder died, others wait this much more */
    int64_t progress_ms;  /* renewal needs a dibs_lock_tick() this often */
    const char *identity; /* who the owner is, for re-entry; the thread */
    const char *const *meta; /* "key=value" texts, shown to others; NULL ends */
    dibs_lock_yield_fn *on_yield;
    void *on_yield_arg; /* borrowed until dibs_lock_free() */

    /* Who must have the lease before it counts: "async", the store alone; or
     * "wait:K", K of its replicas too (1 to 9), so that a failover to one of them
     * does not lose it. What stands in for a store that is away has none. NULL:
     * the client's. */
    const char *durability;
} dibs_lock_opts;

#define DIBS_LOCK_OPTS(...)                                                    \
    (&(dibs_lock_opts){.size = sizeof(dibs_lock_opts), __VA_ARGS__})

/* Makes a handle; touches no store. Strings are copied. `client` is borrowed
 * and must outlive the handle. On failure *out is NULL. Free it with
 * dibs_lock_free(). */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_lock_new(dibs_client *client,
                                                   const char *name,
                                                   const dibs_lock_opts *opts,
                                                   dibs_lock **out,
                                                   dibs_error *err);

/* Releases the lease if it is held (an error is logged, not returned), then
 * frees the handle. NULL is a no-op. */
DIBS_API void dibs_lock_free(dibs_lock *lock);

/* Takes the lease, waiting up to opts.wait_ms, with opts.retries.
 *   DIBS_OK         held; dibs_lock_fence() is valid
 *   DIBS_BUSY       someone else holds it (wait_ms was 0)
 *   DIBS_TIMEOUT    not granted in time; the place in the queue is given up
 *   DIBS_CANCELLED  dibs_lock_cancel() ended the wait, likewise
 *   DIBS_MISMATCH   the name is in use as another kind of lock
 *   DIBS_UNAVAIL    not held; the store was not changed, or too few replicas had
 *                   it ("wait:K") and it was given back
 *   DIBS_UNSUPPORTED  "wait:K" on a store that has no replicas
 *   DIBS_UNKNOWN    not held; if the store did grant it, nobody has it and it
 *                   ends by itself within one ttl
 *   DIBS_INVALID    this handle holds it already, or this thread does through
 *                   another handle, so that the wait would never end; or it has
 *                   a reader's lease only, as far as is known, and asks for more
 *
 * With DIBS_LOCK_REENTRANT an acquire by the owner that holds the name, through
 * any such handle of the client, only counts: no round trip, the same lease, the
 * same fence. The lease is given back when each acquire has had its release. The
 * owner is the calling thread, or what opts.identity names.
 *
 * With DIBS_LOCK_STICKY a release keeps the lease while nobody waits, and the
 * next acquire of the handle takes it up again without a round trip, under the
 * same fence. It is given up at once when somebody else asks for the name, and
 * not kept when it was upgraded or downgraded. */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_lock_acquire(dibs_lock *lock,
                                                       dibs_error *err);

/* The same, once and without waiting, whatever the options say. */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_lock_try(dibs_lock *lock,
                                                   dibs_error *err);

/* Ends a wait in another thread; a no-op when none is on. Not safe in a signal
 * handler. */
DIBS_API void dibs_lock_cancel(dibs_lock *lock);

/* Takes over a lease that another process acquired and left, known by its owner
 * and fence, by renewing it. Whether it is a reader's or a writer's is not known
 * then: it counts as a reader's until an upgrade or a downgrade was answered.
 * DIBS_LOST: it is held no longer. */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_lock_adopt(dibs_lock *lock,
                                                     const char *owner,
                                                     uint64_t fence,
                                                     dibs_error *err);

/* Needed only with DIBS_LOCK_NO_RENEW. DIBS_LOST: stop work, it is gone.
 * DIBS_UNAVAIL, DIBS_UNKNOWN: still valid for dibs_lock_valid_ms(). */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_lock_renew(dibs_lock *lock,
                                                     dibs_error *err);

/* From many readers' lock to the one writer's, in one step and with a new fence.
 * DIBS_BUSY: others share it; nothing changed, and nobody waits: who must write
 * releases and acquires anew. DIBS_LOST: it is held no longer. */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_lock_upgrade(dibs_lock *lock,
                                                       dibs_error *err);

/* From writer to reader, without a gap; the fence stays. DIBS_INVALID: others that
 * asked for a writer's lease have entered through it (DIBS_LOCK_REENTRANT).
 * DIBS_UNKNOWN: held, and not to be relied on as more than a reader's. */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_lock_downgrade(dibs_lock *lock,
                                                         dibs_error *err);

/* Long enough for the text of any token. */
#define DIBS_TOKEN_SIZE 64

/* Hands the lease on: it gets another owner and a new fence in one step, and this
 * handle is void at once, whatever the answer. `token` is for the process that
 * goes on, and is a secret until then; it must be accepted within the ttl. */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_lock_transfer(
    dibs_lock *lock, char token[DIBS_TOKEN_SIZE], dibs_error *err);

/* Takes over what was handed on. `lock` is a handle on the same name. DIBS_LOST:
 * it was not accepted in time. DIBS_MISMATCH: it was handed on in another mode than
 * the handle's (as a reader's, say, after a downgrade); the token stays good. */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_lock_accept(dibs_lock *lock,
                                                      const char *token,
                                                      dibs_error *err);

/* Says that the work goes on, for opts.progress_ms. Cheap; a no-op else. */
DIBS_API void dibs_lock_tick(dibs_lock *lock);

/* Gives the lease back. The lock is not held afterwards, whatever the answer.
 *   DIBS_OK       it was held to the end
 *   DIBS_LOST     it had ended before
 *   DIBS_UNAVAIL, DIBS_UNKNOWN   it may stand in the store until its ttl */
DIBS_API dibs_status dibs_lock_release(dibs_lock *lock, dibs_error *err);

/* Forgets the lease without giving it back: it stands until its time is up, for
 * another process to adopt. Renewal stops. A lease that was waited for may yet be
 * a short claim: dibs_lock_renew() first makes it whole. A no-op on a handle that
 * entered through another. */
DIBS_API void dibs_lock_leave(dibs_lock *lock);

typedef enum dibs_lock_state {
    DIBS_LOCK_FREE = 0,    /* not held by this handle */
    DIBS_LOCK_WAITING = 1, /* an acquire is on */
    DIBS_LOCK_HELD = 2,
    DIBS_LOCK_SUSPECT = 3, /* held; renewal fails, validity is running out */
    DIBS_LOCK_LOST = 4     /* was held and ended unasked */
} dibs_lock_state;

/* Each compares clocks when called, so a process that was stopped or suspended
 * learns the truth on its first look. They never block. */
DIBS_API dibs_lock_state dibs_lock_state_get(const dibs_lock *lock);

/* DIBS_OK while the lease may be relied on, else DIBS_LOST: for before each side
 * effect. No system call, no lock; safe in a signal handler. */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_lock_check(const dibs_lock *lock);
DIBS_API int64_t dibs_lock_valid_ms(const dibs_lock *lock); /* 0: do not rely */
DIBS_API uint64_t dibs_lock_fence(const dibs_lock *lock);   /* 0: not held */

/* Who keeps the current or last lease: the client's store, or what stood in for
 * it as on_unavailable says. */
typedef enum dibs_fallback {
    DIBS_FALLBACK_NONE = 0,
    DIBS_FALLBACK_LOCAL = 1,
    DIBS_FALLBACK_OPEN = 2
} dibs_fallback;

DIBS_API dibs_fallback dibs_lock_fallback(const dibs_lock *lock);

/* How many replicas had the current or last lease when it was granted, of those
 * that opts.durability asked for; 0 with "async". */
DIBS_API uint32_t dibs_lock_replicas_acked(const dibs_lock *lock);

/* How many acquires of this handle have had no release yet: 0 or 1, or more
 * with DIBS_LOCK_REENTRANT. */
DIBS_API uint32_t dibs_lock_depth(const dibs_lock *lock);

/* The owner of the current or last acquisition, "" before the first. */
DIBS_API void
dibs_lock_owner(const dibs_lock *lock, char owner[DIBS_OWNER_SIZE]);

/* A file descriptor that becomes readable when the lease is lost, by the
 * kernel's clock. Owned by the lock; poll it, do not read or close it. -1 when
 * the system has none to give. It is quiet again after the next acquire. */
DIBS_API int dibs_lock_lost_fd(dibs_lock *lock);

/* Execute with lock: acquires, calls fn(lock, arg), releases.
 * DIBS_OK when fn ran and the lease was held throughout; DIBS_LOST when fn ran
 * but the lease ended meanwhile; else fn was not called and the status is that
 * of dibs_lock_acquire(). A release that did not reach the store is logged. */
typedef void dibs_lock_fn(dibs_lock *lock, void *arg);
DIBS_API DIBS_MUST_CHECK dibs_status dibs_with_lock(dibs_client *client,
                                                    const char *name,
                                                    const dibs_lock_opts *opts,
                                                    dibs_lock_fn *fn, void *arg,
                                                    dibs_error *err);

/* The scoped form. The block runs when the lease was got and is skipped when it
 * was not; leaving it by any way but longjmp releases.
 *
 *     DIBS_WITH_LOCK(client, "hourly-task", .ttl_ms = 300000) {
 *         handle_hourly_task(dibs_lock_fence(dibs_held));
 *     }
 *
 * `dibs_held` is the lock inside the block. What kept the block from running is
 * logged by the client; use dibs_with_lock() to have the status. */
#if defined(__GNUC__) && !defined(__cplusplus)
#define DIBS_WITH_LOCK(client, name, ...)                                      \
    for (dibs_lock * dibs_held __attribute__((cleanup(dibs_scope_end))) =      \
             dibs_scope_begin((client), (name), DIBS_LOCK_OPTS(__VA_ARGS__));  \
         dibs_held; dibs_scope_end(&dibs_held))
#endif
DIBS_API dibs_lock *dibs_scope_begin(dibs_client *client, const char *name,
                                     const dibs_lock_opts *opts);
DIBS_API void dibs_scope_end(dibs_lock **held);

#ifdef __cplusplus
}
#endif
#endif
