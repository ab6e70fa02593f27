/* breaker.h - circuit breakers that programs share: calls to a service that fails are
 * refused for a while, by all clients at once.
 *
 * A breaker is closed, and then calls pass; or open, and then they are refused. It
 * opens when bad calls of all clients reach a threshold or a rate within a window.
 * After the recovery time it is half-open: a few calls pass as probes, no more than
 * `probes` at a time over all clients. If these go well it closes; one that does not
 * opens it again. A breaker is its name: every user of the name gives the same options.
 *
 *     dibs_pass pass;
 *     if (dibs_breaker_enter(br, &pass, &err) == DIBS_OK)
 *         dibs_breaker_leave(br, &pass, call_the_service());
 *     else
 *         use_the_fallback();
 *
 * A closed breaker costs a call one look at a word, and no call to the store. Reports
 * are sent beside the calls: every second, 20 ms after a bad call, or at once at the
 * threshold. While the store is away, each client decides by its own calls; the log has
 * one line then, and one when the store is back. On a quorum (redlock:) that is always
 * so. docs/coordination.md has what each store promises.
 *
 * Threads: any number of threads may use one breaker. enter blocks for the store in its
 * first call, and when it asks for the permit of a probe; leave never does. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_BREAKER_H
#define DIBS_BREAKER_H

#include <dibs/client.h>
#include <dibs/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dibs_breaker dibs_breaker;

typedef enum dibs_breaker_state {
    DIBS_BREAKER_CLOSED = 0,
    DIBS_BREAKER_OPEN = 1,
    DIBS_BREAKER_HALF_OPEN = 2, /* open and recovered: probes may pass */
    DIBS_BREAKER_FORCED = 3     /* open until somebody closes it */
} dibs_breaker_state;

/* Called when it opens and when it closes, also for this client alone. Thread: one of
 * the client. Must neither free the breaker nor close the client. */
typedef void
dibs_breaker_fn(dibs_breaker *breaker, dibs_breaker_state state, void *arg);

/* Zero in any field but size selects the default, given last here. */
typedef struct dibs_breaker_opts {
    size_t size;       /* sizeof(dibs_breaker_opts); the macro sets it */
    int64_t threshold; /* so many bad calls open it; 5 if no rate is given, else
                          none */
    int64_t rate_percent; /* so many bad calls of a hundred open it; none */
    int64_t min_calls;    /* the rates need so many calls; 10 */
    int64_t sampling_ms;  /* the window in which calls are counted; 60,000; at
                              most a day */
    int64_t recovery_ms;  /* from open to half-open; 30,000; at most a day. A
                              client that has known it before adds up to a
                              tenth of its own */
    int64_t probes;       /* at a time, over all clients; 1; at most 1,000.
                              One client makes 16 at most */
    int64_t need;         /* good probes that close it; 1 */
    int64_t
        probe_ttl_ms;    /* a probe that takes longer is void, and its permit is
                              free; 10,000; at most an hour */
    int64_t min_clients; /* it opens for all only with bad calls of so many
                              clients; a client opens for itself alone anyway; 1; at
                              most 32 */
    int64_t slow_ms;     /* a call that took so long is slow; none is */
    int64_t slow_percent; /* so many slow calls of a hundred open it; 50 with
                              slow_ms, else none */
    int64_t ramp_ms; /* after it has closed, a share of the calls passes that
                              rises to all of them in so long; 0: all at once */
    dibs_breaker_fn *on_change;
    void *arg; /* for on_change */
} dibs_breaker_opts;

#define DIBS_BREAKER_OPTS(...)                                                 \
    (&(dibs_breaker_opts){.size = sizeof(dibs_breaker_opts), __VA_ARGS__})

/* The right to make one call; the caller's. Its fields are for the library. */
typedef struct dibs_pass {
    uint64_t version, permit;
} dibs_pass;

typedef struct dibs_breaker_info {
    dibs_breaker_state state; /* as this client sees it */
    bool alone;               /* by its own calls, without the store */
    uint64_t version;         /* of the value in the store; 0: none */
    int64_t retry_ms; /* as dibs_breaker_retry_ms(); of a list, and of a handle
                         that has made no call, until it has recovered */
    int64_t good, bad, slow; /* calls of all clients in the window, of a list in
                                the last 60 s; while it is open, good probes */
    int64_t reporters;       /* clients with bad or slow calls, at least */
} dibs_breaker_info;

/* Makes a handle, without a call to the store. Free it with dibs_breaker_free(),
 * before dibs_close().
 *   DIBS_INVALID  a number that is negative or too large; the message says which */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_breaker_new(
    dibs_client *client, const char *name, const dibs_breaker_opts *opts,
    dibs_breaker **out, dibs_error *err);

/* Asks whether a call may be made. After DIBS_OK make it, then say how it ended. A
 * store that is away fails no call.
 *   DIBS_BUSY       open; dibs_breaker_retry_ms() says for how long
 *   DIBS_MISMATCH   open, and other users of the name have another number of
 *                   probes
 *   DIBS_DENIED, DIBS_UNSUPPORTED  open, and the store forbids or lacks permits for
 *                   probes; nobody can close the breaker but by force */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_breaker_enter(dibs_breaker *breaker,
                                                        dibs_pass *pass,
                                                        dibs_error *err);

/* Says how the call ended, and ends the pass. A pass that is dropped counts for
 * nothing; the permit of a probe is then free after probe_ttl_ms. The second form also
 * says how long the call took: it is slow from slow_ms on, and a slow probe is bad. */
DIBS_API void
dibs_breaker_leave(dibs_breaker *breaker, dibs_pass *pass, bool good);
DIBS_API void dibs_breaker_leave_after(dibs_breaker *breaker, dibs_pass *pass,
                                       bool good, int64_t took_ms);

/* How long until a call may pass; 0: it may now; -1: until somebody closes the
 * breaker. Does not block. A handle hears of changes from its first
 * dibs_breaker_enter() on, or from the beginning if it has on_change; before that,
 * dibs_breaker_get() asks for them. */
DIBS_API int64_t dibs_breaker_retry_ms(const dibs_breaker *breaker);

/* Asks the store for the state. While the store is away, tells what this client
 * knows. A handle that has made no call changes no state, whatever the calls of others
 * were. */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_breaker_get(dibs_breaker *breaker,
                                                      dibs_breaker_info *out,
                                                      dibs_error *err);

/* Sets the state for all clients: closed; open, which recovers; or forced.
 *   DIBS_INVALID  half-open, which is no state of its own */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_breaker_force(
    dibs_breaker *breaker, dibs_breaker_state state, dibs_error *err);

/* Sends the calls that are not reported yet, and frees the handle. While the store is
 * away they are lost. No other thread may use it any more, and passes of it are over.
 * NULL is a no-op. */
DIBS_API void dibs_breaker_free(dibs_breaker *breaker);

/* The name is valid during the call only. Return false to end the listing. */
typedef bool dibs_breaker_each_fn(const char *name,
                                  const dibs_breaker_info *info, void *arg);

/* Calls `each` for every breaker that is open, or has closed within a day, and whose name
 * begins with `begins` (NULL: all). The order is that of the bytes of names. A breaker
 * that has never opened is not listed: it has no value in the store. A list changes no
 * state. `each` may use the client.
 *   DIBS_UNSUPPORTED  a quorum; the message says why */
DIBS_API DIBS_MUST_CHECK dibs_status
dibs_breaker_list(dibs_client *client, const char *begins,
                  dibs_breaker_each_fn *each, void *arg, dibs_error *err);

/* "closed", "open", "half-open" or "forced". */
DIBS_API const char *dibs_breaker_state_name(dibs_breaker_state state);

#ifdef __cplusplus
}
#endif
#endif
