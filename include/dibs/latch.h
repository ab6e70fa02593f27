/* latch.h - latches: wait until a number of things have been done, anywhere.
 *
 * A latch gathers counts. It opens when `count` different ids have counted down, and
 * stays open until dibs_latch_reset(). An id counts once: a job that runs twice, or a
 * call that is repeated after DIBS_UNKNOWN, changes nothing. Clients that wait are not
 * counted and need not be known. A count outlives the client that made it; the store
 * keeps a latch for a day after the last count. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_LATCH_H
#define DIBS_LATCH_H

#include <dibs/client.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The most that a latch can wait for. */
#define DIBS_LATCH_MAX 1000000

typedef struct dibs_latch_state {
    uint64_t generation; /* changes with each reset */
    uint32_t count;      /* how many ids it waits for in all */
    uint32_t left;       /* how many have not counted yet; 0: it is open */
} dibs_latch_state;

/* Counts an id down. NULL: an id of its own for this call. *left is how many are
 * missing yet; it may be NULL. A latch that does not exist yet waits for `count`.
 *   DIBS_OK           counted now or before
 *   DIBS_MISMATCH     the latch waits for another number, or the name is a barrier or
 *                     a group
 *   DIBS_UNKNOWN      repeat the call with the same id
 *   DIBS_UNSUPPORTED  a quorum; the message says why */
DIBS_API DIBS_MUST_CHECK dibs_status
dibs_latch_count_down(dibs_client *client, const char *name, uint32_t count,
                      const char *id, uint32_t *left, dibs_error *err);

/* The same for one generation, as dibs_latch_show() has it: a count that comes after a
 * reset changes nothing. 0: the one that gathers. *out (may be NULL) is the latch after
 * the call; zeroed on failure.
 *   DIBS_STALE  the latch has another generation, or there is none any more */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_latch_count_down_in(
    dibs_client *client, const char *name, uint32_t count, uint64_t generation,
    const char *id, dibs_latch_state *out, dibs_error *err);

/* Waits until the latch is open, for wait_ms at most. -1: without limit; 0: looks
 * once. Nobody need have counted yet. While the store is out of reach, the call goes
 * on trying; the log has one line then ("latch").
 *   DIBS_OK         it is open
 *   DIBS_TIMEOUT    it did not open in time
 *   DIBS_CANCELLED  dibs_close() ended the wait
 *   DIBS_MISMATCH   as above
 *   DIBS_UNAVAIL    the time is over and the store was out of reach */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_latch_wait(dibs_client *client,
                                                     const char *name,
                                                     uint32_t count,
                                                     int64_t wait_ms,
                                                     dibs_error *err);

/* Looks at a latch.
 *   DIBS_NOTFOUND  nobody has counted, or the last count is too long ago
 *   DIBS_MISMATCH  the name is a barrier or a group */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_latch_show(dibs_client *client,
                                                     const char *name,
                                                     dibs_latch_state *out,
                                                     dibs_error *err);

/* Closes the latch and forgets all counts.
 *   DIBS_NOTFOUND, DIBS_MISMATCH  as above */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_latch_reset(dibs_client *client,
                                                      const char *name,
                                                      dibs_error *err);

/* The name is valid during the call only. Return false to end the listing. */
typedef bool
dibs_latch_fn(const char *name, const dibs_latch_state *state, void *arg);

/* Calls `each` for every latch whose name begins with `begins` (NULL: all), in the
 * order of the bytes of names. `each` may use the client. A latch that comes or goes
 * meanwhile may be missed.
 *   DIBS_UNSUPPORTED  a quorum; the message says why */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_latch_list(dibs_client *client,
                                                     const char *begins,
                                                     dibs_latch_fn *each,
                                                     void *arg,
                                                     dibs_error *err);

#ifdef __cplusplus
}
#endif
#endif
