/* barrier.h - barriers: a number of parties wait until all of them have come.
 *
 * A barrier has `parties`. Each of them is a handle, usually in a process of its own.
 * dibs_barrier_wait() ends when as many parties wait as the barrier has. Then the next
 * generation begins, so the same handles can wait again.
 *
 * A party takes a seat with its first wait, and keeps it between two waits. If its
 * process dies, the seat ends within ttl_ms. A party that dies, leaves or times out
 * breaks the generation that gathers: all others get DIBS_BROKEN, and may wait again.
 * All parties of a generation get the same outcome. A quorum (redlock:) has no barriers:
 * DIBS_UNSUPPORTED.
 *
 * Threads: a handle waits on one thread at a time. Any thread may make these calls.
 */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_BARRIER_H
#define DIBS_BARRIER_H

#include <dibs/client.h>
#include <dibs/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The most parties that a barrier can have. */
#define DIBS_BARRIER_MAX 1000000

typedef struct dibs_barrier dibs_barrier;

enum {
    DIBS_BARRIER_WITHDRAW = 1 << 0 /* a wait that times out takes back its own
                                      arrival only, and a party that leaves
                                      then breaks nothing: the others wait on */
};

/* Zero or NULL in any field but size and parties selects the default, given last
 * here. */
typedef struct dibs_barrier_opts {
    size_t size;       /* sizeof(dibs_barrier_opts); the macro sets it */
    uint32_t flags;    /* DIBS_BARRIER_*; 0 */
    uint32_t parties;  /* 1 to DIBS_BARRIER_MAX; needed */
    int64_t ttl_ms;    /* of the seat, 100 ms to 24 h; the client's */
    int64_t wait_ms;   /* how long a wait may take; without limit */
    const char *label; /* names the party in messages; the client's */
} dibs_barrier_opts;

#define DIBS_BARRIER_OPTS(...)                                                 \
    (&(dibs_barrier_opts){.size = sizeof(dibs_barrier_opts), __VA_ARGS__})

/* Makes the handle of one party, without a call to the store. Free it with
 * dibs_barrier_free(), before dibs_close().
 *   DIBS_INVALID      the name or an option is malformed
 *   DIBS_UNSUPPORTED  a quorum; the message says why */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_barrier_new(
    dibs_client *client, const char *name, const dibs_barrier_opts *opts,
    dibs_barrier **out, dibs_error *err);

/* Arrives, and waits for the other parties. *generation is the number of the
 * generation that opened; it rises, and may be NULL. While the store is out of
 * reach, the call goes on trying.
 *   DIBS_OK         all parties have come
 *   DIBS_BROKEN     a party died, left or gave up: nobody passed. The message names
 *                   who is missing, where the store knows
 *   DIBS_TIMEOUT    wait_ms is over; the arrival does not count. The message names
 *                   who is missing
 *   DIBS_BUSY       all seats are taken, for longer than the ttl or wait_ms
 *   DIBS_LOST       the seat has ended: the process was stopped for longer than
 *                   ttl_ms, or the store lost data. The arrival does not count
 *   DIBS_MISMATCH   the barrier has another number of parties, or the name is a latch
 *                   or a group
 *   DIBS_CANCELLED  dibs_barrier_cancel() or dibs_close() ended the wait, as a
 *                   time-out would
 *   DIBS_UNAVAIL    wait_ms is over and the store was out of reach; no arrival counts
 *   DIBS_UNKNOWN    as DIBS_UNAVAIL, but the arrival may count for ttl_ms more
 *   DIBS_INVALID    another thread waits with this handle */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_barrier_wait(dibs_barrier *barrier,
                                                       uint64_t *generation,
                                                       dibs_error *err);

/* Ends the wait of dibs_barrier_wait() on another thread. A no-op without one. Does not
 * block; not safe in a signal handler. */
DIBS_API void dibs_barrier_cancel(dibs_barrier *barrier);

/* Gives the seat up and frees the handle; no thread may wait with it. If another party
 * has arrived, that breaks the generation. NULL is a no-op. */
DIBS_API void dibs_barrier_free(dibs_barrier *barrier);

typedef struct dibs_barrier_state {
    uint64_t generation; /* that gathers */
    uint32_t parties;    /* that the barrier has */
    uint32_t seated;     /* parties that live */
    uint32_t arrived;    /* parties that wait */
} dibs_barrier_state;

/* A party that has a seat. */
typedef struct dibs_barrier_party {
    const char *who; /* "host:pid label"; valid during the call */
    bool arrived;
    int64_t left_ms; /* until its seat ends, if it is not renewed */
} dibs_barrier_party;

/* Called for each party, the one that sat first first. False: no more. */
typedef bool dibs_barrier_party_fn(const dibs_barrier_party *party, void *arg);

/* Looks at a barrier; `each` may be NULL.
 *   DIBS_NOTFOUND  no party has a seat
 *   DIBS_MISMATCH  the name is a latch or a group */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_barrier_show(
    dibs_client *client, const char *name, dibs_barrier_state *out,
    dibs_barrier_party_fn *each, void *arg, dibs_error *err);

/* The name is valid during the call only. Return false to end the listing. */
typedef bool
dibs_barrier_fn(const char *name, const dibs_barrier_state *state, void *arg);

/* Calls `each` for every barrier whose name begins with `begins` (NULL: all) and where
 * a party has a seat, in the order of the bytes. `each` may use the client. A barrier
 * that comes or goes meanwhile may be missed.
 *   DIBS_UNSUPPORTED  a quorum; the message says why */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_barrier_list(dibs_client *client,
                                                       const char *begins,
                                                       dibs_barrier_fn *each,
                                                       void *arg,
                                                       dibs_error *err);

#ifdef __cplusplus
}
#endif
#endif
