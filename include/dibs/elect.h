/* elect.h - elections: of many candidates one leads at a time.
 *
 * An election is the lease of its name: candidates wait in its queue, and the term of
 * a leader is its fencing token. A leader stops leading opts.stop_ms before the store
 * could grant the lease to another. In that time it stops its work.
 *
 * With opts.minimum_nodes a leader leads only while so many members have a seat at its
 * own server. If that is more than half of all members, no two lead, even if two
 * servers answer after a failover that lost the latest writes. Members are the
 * candidates, and the clients that join the group of that name (members.h).
 *
 * Threads: any thread may make these calls. Each election has two threads of its own,
 * which wait for the lease and run the callbacks.
 */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_ELECT_H
#define DIBS_ELECT_H

#include <dibs/client.h>
#include <dibs/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dibs_election dibs_election;

/* The end of a term. */
typedef enum dibs_lost_why {
    DIBS_LOST_EXPIRED = 1,  /* the store did not renew the lease in time */
    DIBS_LOST_TAKEN = 2,    /* the store refused it: revoked, or data lost */
    DIBS_LOST_FEW = 3,      /* fewer than opts.minimum_nodes members live */
    DIBS_LOST_RESIGNED = 4, /* it resigned, or handed the lead on */
} dibs_lost_why;

/* Called in turn on a thread of the election, gained first, each once per term. If
 * on_gained takes longer than the term, on_lost comes late: only start the work there.
 * on_lost returns when the work has stopped; with DIBS_ELECTION_STOPS it may return
 * before. Both may call check, term, stopped and resign. They must neither transfer, free
 * the election nor close the client. */
typedef void dibs_gained_fn(dibs_election *election, uint64_t term, void *arg);
typedef void dibs_unled_fn(dibs_election *election, uint64_t term,
                           dibs_lost_why why, void *arg);

enum {
    DIBS_ELECTION_STOPS = 1
                          << 0, /* dibs_election_stopped() says that the work of
                                     a lost term has stopped; the lease goes back
                                     then, or at its end */
    DIBS_ELECTION_ONCE = 1 << 1, /* one term: does not campaign after a loss */
    DIBS_ELECTION_QUICK =
        1 << 2 /* minimum_nodes: a member counts at once, and not only a seat
                  ttl later. After a failover two may lead for that long */
};

/* Zero or NULL in any field but size selects the default, given last here. */
typedef struct dibs_election_opts {
    size_t size;            /* sizeof(dibs_election_opts); the macro sets it */
    uint32_t flags;         /* DIBS_ELECTION_*; 0 */
    int64_t ttl_ms;         /* of the lease, 100 ms to 24 h; the client's */
    int64_t stop_ms;        /* to stop in, up to ttl_ms / 2; ttl_ms / 10 */
    int64_t renew_every_ms; /* as dibs_lock_opts; the client's */
    int32_t priority;       /* candidates with a higher one go first; 0 */
    const char *member;     /* its name, to 63 bytes; host:pid */
    const char *durability; /* as dibs_lock_opts; the client's */
    const char *const
        *meta; /* "key=value" texts that others see, an address for
                                one; NULL ends */
    dibs_gained_fn *on_gained;
    dibs_unled_fn *on_lost;
    void *arg;              /* borrowed until dibs_election_free() returns */
    uint32_t minimum_nodes; /* members that must live, itself among them; 0 */
    int64_t heartbeat_ms; /* minimum_nodes: between two, longer than stop_ms, to
                               24 h; a seat lives for three. ttl_ms / 6 */
} dibs_election_opts;

#define DIBS_ELECTION_OPTS(...)                                                \
    (&(dibs_election_opts){.size = sizeof(dibs_election_opts), __VA_ARGS__})

/* Makes a handle, without a call to the store. The handle copies strings. On failure
 * *out is NULL. Free it with dibs_election_free(), before dibs_close().
 *   DIBS_INVALID      the name or an option is malformed
 *   DIBS_UNSUPPORTED  minimum_nodes on a quorum; the message says why */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_election_new(
    dibs_client *client, const char *name, const dibs_election_opts *opts,
    dibs_election **out, dibs_error *err);

/* Resigns, waits for callbacks and frees the handle. The work must have stopped. NULL
 * is a no-op. */
DIBS_API void dibs_election_free(dibs_election *election);

/* Becomes a candidate and returns at once. The campaign goes on, over losses and
 * outages of the store, until dibs_election_resign(). A no-op for a candidate.
 *   DIBS_NOMEM  no memory, or no thread */
DIBS_API DIBS_MUST_CHECK dibs_status
dibs_election_campaign(dibs_election *election, dibs_error *err);

/* Waits until the candidate leads, for wait_ms at most; negative: without limit.
 * Campaigns if it does not yet.
 *   DIBS_TIMEOUT    another leads, too few members live, or the store is out of reach
 *   DIBS_CANCELLED  a resignation or dibs_close() ended the campaign
 *   DIBS_LOST       DIBS_ELECTION_ONCE: the term is over
 *   DIBS_MISMATCH, DIBS_DENIED, DIBS_UNSUPPORTED, DIBS_INVALID
 *                   the store refuses; the campaign goes on */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_election_wait(dibs_election *election,
                                                        int64_t wait_ms,
                                                        dibs_error *err);

/* Call it before each side effect. It compares clocks: a process that was stopped gets
 * the truth. No system call, no mutex.
 *   DIBS_OK    it leads
 *   DIBS_LOST  it does not, or not any more */
DIBS_API DIBS_MUST_CHECK dibs_status
dibs_election_check(const dibs_election *election);

/* The term, which is the fencing token of the lease. 0: it does not lead. */
DIBS_API uint64_t dibs_election_term(const dibs_election *election);

/* A file descriptor that becomes readable when the candidate stops leading, driven by
 * the kernel's clock. Poll it; do not read or close it, the election owns it. The next
 * term resets it, perhaps before the program looks. With DIBS_ELECTION_STOPS no term
 * begins before dibs_election_stopped(). -1: the process has no descriptor left. */
DIBS_API int dibs_election_lost_fd(dibs_election *election);

/* The work of the lost term has stopped, for DIBS_ELECTION_STOPS. The candidate does
 * not campaign again before this call. The call may come before on_lost. A no-op while
 * it leads. */
DIBS_API void dibs_election_stopped(dibs_election *election);

/* Ends the campaign, and the term of a leader: on_lost runs, then the lease goes to the
 * next candidate. The work must have stopped, or stop in on_lost. Returns when the
 * lease is released; in a callback at once.
 *   DIBS_UNAVAIL, DIBS_UNKNOWN  not a candidate any more; the store may keep the lease
 *                               until its ttl */
DIBS_API dibs_status dibs_election_resign(dibs_election *election,
                                          dibs_error *err);

/* Hands the lead to a candidate by its member name. The leader leads until the heir is
 * at the head of the queue. Then on_lost runs, and the heir gets the lease under a new
 * term. This candidate campaigns on. The work must have stopped, or stop in on_lost.
 * `dibs leader --transfer` asks any leader for the same, from another process: on_lost
 * runs, and the lease goes on when the work has stopped.
 *   DIBS_LOST         it does not lead, or not any more
 *   DIBS_NOTFOUND     no candidate has that name; nothing changed
 *   DIBS_BUSY         a transfer to another candidate is under way; nothing changed
 *   DIBS_TIMEOUT      the heir did not answer; nothing changed
 *   DIBS_UNSUPPORTED  the store has no queue or no values; nothing changed
 *   DIBS_INVALID      called in a callback of the election
 *   DIBS_UNAVAIL, DIBS_UNKNOWN  dibs_election_check() tells whether it still leads */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_election_transfer(
    dibs_election *election, const char *member, dibs_error *err);

/* A leader. */
typedef struct dibs_leader {
    char member[64]; /* "": nobody leads */
    char host[64];
    int64_t pid;
    uint64_t term;       /* 0: nobody leads */
    int64_t age_ms;      /* since it leads */
    int64_t left_ms;     /* of its lease, without a renewal */
    uint32_t candidates; /* that wait */
    uint32_t members;    /* of the group of that name, for minimum_nodes */
    char meta[256];      /* "key=value" texts, separated by tabs; cut to fit */
} dibs_leader;

/* Looks who leads.
 *   DIBS_NOTFOUND  nobody; *out is zeroed, but for candidates and members */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_leader_get(dibs_client *client,
                                                     const char *name,
                                                     dibs_leader *out,
                                                     dibs_error *err);

/* A watch of who leads. It reports the leader that is there at first (or nobody), and
 * then each change, in the order of terms. The last leader always arrives: at once as a
 * rule, and within about a second while the store answers. A leader or a gap that was
 * over before the watch looked may be skipped. */
typedef struct dibs_leader_watch dibs_leader_watch;

/* Makes a watch, without a call to the store. Free it with dibs_leader_watch_free(). */
DIBS_API DIBS_MUST_CHECK dibs_status
dibs_leader_watch_new(dibs_client *client, const char *name,
                      dibs_leader_watch **out, dibs_error *err);

/* Waits for the next change, for wait_ms at most. -1: without limit; 0: reports only a
 * change that it finds at once. While the store is out of reach, the call goes on
 * trying. One thread at a time.
 *   DIBS_TIMEOUT    no change in time
 *   DIBS_CANCELLED  dibs_leader_watch_cancel() or dibs_close() ended the wait
 *   DIBS_UNAVAIL    the time is over and the store was out of reach
 *   DIBS_INVALID    another thread waits for this watch */
DIBS_API DIBS_MUST_CHECK dibs_status
dibs_leader_watch_next(dibs_leader_watch *watch, int64_t wait_ms,
                       dibs_leader *out, dibs_error *err);

/* Ends the wait on another thread. A no-op without one. Does not block. */
DIBS_API void dibs_leader_watch_cancel(dibs_leader_watch *watch);

/* Frees the watch; no other thread may use it any more. NULL is a no-op. */
DIBS_API void dibs_leader_watch_free(dibs_leader_watch *watch);

#ifdef __cplusplus
}
#endif
#endif
