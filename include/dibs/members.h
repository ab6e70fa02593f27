/* members.h - groups: the clients that are there now.
 *
 * A member has a seat in its group, a lease that excludes nobody. The client keeps it;
 * a member that dies is gone when its seat ends. An election with minimum_nodes counts
 * the members of the group that has its name.
 *
 * Threads: any thread may make these calls. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_MEMBERS_H
#define DIBS_MEMBERS_H

#include <dibs/client.h>
#include <dibs/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dibs_member dibs_member;

enum {
    DIBS_MEMBER_QUICK = 1 << 0 /* counts for minimum_nodes at once, and not only
                                  a ttl later */
};

/* Zero or NULL in any field but size selects the default, given last here. */
typedef struct dibs_member_opts {
    size_t size;        /* sizeof(dibs_member_opts); the macro sets it */
    uint32_t flags;     /* DIBS_MEMBER_*; 0 */
    uint32_t minimum;   /* members that dibs_member_enough_ms() asks for; 1 */
    int64_t ttl_ms;     /* of the seat, 100 ms to 24 h; the client's */
    const char *member; /* its name, to 63 bytes; host:pid */
    const char *label;  /* listings show it; the client's */
    const char *const *meta; /* "key=value" texts that others see; NULL ends */
} dibs_member_opts;

#define DIBS_MEMBER_OPTS(...)                                                  \
    (&(dibs_member_opts){.size = sizeof(dibs_member_opts), __VA_ARGS__})

/* Takes a seat in the group. The client keeps it until dibs_member_leave(), and takes
 * another one when the store has lost it or was away for longer than ttl_ms. On failure
 * *out is NULL.
 *   DIBS_INVALID      the name or an option is malformed
 *   DIBS_MISMATCH     the name is a barrier or a latch
 *   DIBS_UNAVAIL      the store did not answer in time
 *   DIBS_UNKNOWN      neither did it, and may have a seat until its ttl is over
 *   DIBS_UNSUPPORTED  a quorum; the message says why */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_member_join(
    dibs_client *client, const char *group, const dibs_member_opts *opts,
    dibs_member **out, dibs_error *err);

/* Gives the seat up and frees the handle. NULL is a no-op. */
DIBS_API void dibs_member_leave(dibs_member *member);

/* No call to the store, no mutex.
 *   DIBS_OK    the seat has not ended
 *   DIBS_LOST  it may have; the client is about to take another one */
DIBS_API DIBS_MUST_CHECK dibs_status
dibs_member_check(const dibs_member *member);

/* For so long at least opts.minimum members have a seat; 0: too few have one, or it is
 * not known. As the store said last; no call to it. */
DIBS_API int64_t dibs_member_enough_ms(const dibs_member *member);

/* The fencing token of the seat; 0: it has none. Another one after the seat was lost. */
DIBS_API uint64_t dibs_member_fence(const dibs_member *member);

/* Counts anew: the store says after this call whether opts.minimum members have a
 * seat. A program that was granted a lease calls it before it relies on both. The seat
 * must be the same as when it asked: see docs/coordination.md, minimum_nodes.
 *   DIBS_BUSY      too few
 *   DIBS_LOST      the seat has ended
 *   DIBS_MISMATCH  it has, and the name is a barrier or a latch now
 *   DIBS_UNAVAIL   the store did not answer in time */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_member_recount(dibs_member *member,
                                                         dibs_error *err);

/* One member. */
typedef struct dibs_member_info {
    const char *member; /* its name; host:pid if it gave none */
    const char *host;
    int64_t pid;
    const char *label;     /* "": none */
    const char *meta;      /* "key=value" texts, separated by tabs; "": none */
    uint64_t fence;        /* of its seat; a later seat has a higher one */
    int64_t since_wall_us; /* when it took the seat, on the store's clock */
    int64_t left_ms;       /* of its seat, if the member does not keep it */
    bool counts; /* for minimum_nodes; a new member does not count yet */
} dibs_member_info;

/* The texts are valid during the call only. Return false to end the listing. */
typedef bool dibs_member_fn(const dibs_member_info *info, void *arg);

/* Calls `each` for every member, in the order in which they joined.
 *   DIBS_NOTFOUND     the group has no member
 *   DIBS_MISMATCH     the name is a barrier or a latch
 *   DIBS_UNSUPPORTED  a quorum; the message says why */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_members_list(dibs_client *client,
                                                       const char *group,
                                                       dibs_member_fn *each,
                                                       void *arg,
                                                       dibs_error *err);

/* One group. */
typedef struct dibs_group_info {
    const char *group; /* valid during the call only */
    uint32_t members;
    uint32_t counting; /* members that count for minimum_nodes */
} dibs_group_info;

/* Return false to end the listing. */
typedef bool dibs_group_fn(const dibs_group_info *info, void *arg);

/* Calls `each` for every group that has a member and whose name begins with `begins`
 * (NULL: all), in the order of the bytes of names. `each` may use the client. A group
 * that gains its first member or loses its last meanwhile may be missed.
 *   DIBS_UNSUPPORTED  a quorum; the message says why */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_group_list(dibs_client *client,
                                                     const char *begins,
                                                     dibs_group_fn *each,
                                                     void *arg,
                                                     dibs_error *err);

#ifdef __cplusplus
}
#endif
#endif
