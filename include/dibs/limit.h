/* limit.h - rate limits that programs share: so many tokens in a period.
 *
 * A limit hands out `count` tokens in each period, and up to `burst` of them at
 * once. In any span W all clients together get no more than burst + W * count /
 * period_ms. The clock of the store counts; clocks of clients have no part in it.
 * The limit is its name: every user of the name gives the same numbers. Where they
 * differ, those of the last call are in force.
 *
 * A call that gets no answer may have cost its tokens. A quorum (redlock:) has no
 * limits: DIBS_UNSUPPORTED. docs/coordination.md has what each store promises.
 *
 * Threads: any number of threads may take tokens of one limit. They block for the
 * store, and for as long as wait_ms says.
 */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_LIMIT_H
#define DIBS_LIMIT_H

#include <dibs/client.h>
#include <dibs/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dibs_limit dibs_limit;

/* For `chunk`: tokens of 50 ms, at most a quarter of the burst. */
#define DIBS_LIMIT_AUTO INT64_C(-1)

/* Zero in any field but size and count selects the default, given last here. */
typedef struct dibs_limit_opts {
    size_t size;       /* sizeof(dibs_limit_opts); the macro sets it */
    int64_t count;     /* tokens in a period; needed */
    int64_t period_ms; /* 1,000 */
    int64_t burst;     /* tokens that may be taken at once; count */
    int64_t wait_ms;   /* how long a call may wait for its tokens; negative:
                          without limit; 0: it does not wait */
    int64_t chunk;     /* tokens that the client reserves at a time, for hot
                          paths: most calls are then local. Each client may have
                          so many tokens unused, beyond the limit. 0: none */
    dibs_away on_unavailable; /* when the store is out of reach: DIBS_AWAY_FAIL
                                 fails; DIBS_AWAY_LOCAL counts this client's
                                 share here; DIBS_AWAY_OPEN grants */
    int64_t clients; /* with DIBS_AWAY_LOCAL: clients that share the limit; 1 */
} dibs_limit_opts;

#define DIBS_LIMIT_OPTS(...)                                                   \
    (&(dibs_limit_opts){.size = sizeof(dibs_limit_opts), __VA_ARGS__})

/* Makes a handle on a limit, without a call to the store. Free it with
 * dibs_limit_free(), before dibs_close().
 *   DIBS_INVALID      no count, a negative number, or numbers too large to count
 *   DIBS_UNSUPPORTED  a quorum; the message says why */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_limit_new(dibs_client *client,
                                                    const char *name,
                                                    const dibs_limit_opts *opts,
                                                    dibs_limit **out,
                                                    dibs_error *err);

/* Takes n tokens, and sleeps until they may be used. Calls that wait are served in
 * the order in which the store got them.
 *   DIBS_BUSY       over the limit, for longer than wait_ms; dibs_limit_retry_ms()
 *                   says how long
 *   DIBS_INVALID    n is below 1, or above the burst
 *   DIBS_CANCELLED  dibs_close() ended the sleep; the tokens are spent
 *   DIBS_UNAVAIL    the store is out of reach; nothing was taken
 *   DIBS_UNKNOWN    no answer; the tokens may be spent */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_limit_take(dibs_limit *limit,
                                                     int64_t n,
                                                     dibs_error *err);

/* How long after the last DIBS_BUSY the tokens would have been there; 0 without
 * one. Does not block. */
DIBS_API int64_t dibs_limit_retry_ms(const dibs_limit *limit);

/* The tokens left after the last answer of the store. Does not block. */
DIBS_API int64_t dibs_limit_remaining(const dibs_limit *limit);

/* Frees the handle; no other thread may use it any more. Reserved tokens are lost.
 * NULL is a no-op. */
DIBS_API void dibs_limit_free(dibs_limit *limit);

/* A limit of which tokens are out. The rate is that of the last draw, in the smallest
 * numbers that say the same: 100 in a second are 1 in 10,000 us. */
typedef struct dibs_limit_info {
    const char *name; /* valid during the call only */
    int64_t count;    /* tokens in a period */
    int64_t period_us;
    int64_t out;     /* tokens that were taken and have not come back */
    int64_t full_ms; /* until all of them have */
} dibs_limit_info;

/* Return false to end the listing. */
typedef bool dibs_limit_fn(const dibs_limit_info *info, void *arg);

/* Calls `each` for every limit of which tokens are out and whose name begins with
 * `begins` (NULL: all). The order is that of the bytes of names. A store forgets a
 * limit whose tokens have all come back. `each` may use the client.
 *   DIBS_UNSUPPORTED  a quorum; the message says why */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_limit_list(dibs_client *client,
                                                     const char *begins,
                                                     dibs_limit_fn *each,
                                                     void *arg,
                                                     dibs_error *err);

#ifdef __cplusplus
}
#endif
#endif
