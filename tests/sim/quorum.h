/* quorum.h - a simulated quorum: nodes with clocks of their own, clients that ask
 * a majority of them, and a bad network between.
 *
 * Everything is drawn from one seed; by half of the seeds it is about a name, by the
 * others about up to three slots of one. The clients are the code under test: the
 * ballot, the view of the clocks, the search for a slot, and the lease machine. The
 * nodes follow src/store/redis/lua/quorum_*.lua. A minority of the nodes is ill at any time: down,
 * restarted with or without what it knew, or with its clock set. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_SIM_QUORUM_H
#define DIBS_TESTS_SIM_QUORUM_H

#include "base/clock.h"
#include "base/rand.h"
#include "core/machine/lease.h"
#include "store/quorum/ballot.h"
#include "store/quorum/skew.h"
#include "store/quorum/slots.h"

enum { PEERS_MAX = 6, MAIL_MAX = 8192, GONE_MAX = 64 };
enum { SLOTS_MAX = 3, JOBS_MAX = 16 };
enum { TTL_MS = 2000, LONGEST_MS = 3000, LIMIT_MS = 200, RUN_SECONDS = 120 };

/* What is left out, to see that it is missed. */
typedef enum mutant {
    MUTANT_NONE,
    MUTANT_NO_QUARANTINE, /* a node that forgot votes at once */
    MUTANT_NO_SKEW,       /* every clock is believed */
    MUTANT_ONE_PHASE,     /* different fences are not written back */
    MUTANT_LATE_COUNT,    /* validity from the end of the asking */
    MUTANT_REACHABLE,     /* a majority of those that answer */
    MUTANT_ANY_OWNER,     /* a write-back counts whoever holds */
    MUTANT_UNDER_WAY, /* who gave a slot back takes another where that may yet
                             arrive */
    MUTANT_FICKLE,    /* who asks again is given the highest fence of those that
                             answer */
    MUTANT_COUNT
} mutant;

typedef enum word_kind { GRANT, RAISE, RENEW, FILL, RELEASE } word_kind;

/* A request or its answer. Owners are numbers. */
typedef struct mail {
    dibsx_nsec at; /* world time */
    uint64_t order;
    bool answer;
    bool timer; /* neither: a moment at which the peer looks */
    word_kind kind;
    size_t node;
    int peer;
    uint64_t round; /* of the peer, so that late answers are told apart */
    uint64_t job;   /* of the lane; 0: none */
    uint64_t owner;
    uint32_t slot; /* 0: the name itself */
    uint64_t fence;
    int64_t ttl_ms;
    bool tomb;
    dibsx_nsec sent_at;   /* on the peer's clock */
    dibsx_nsec posted_at; /* world time */
    dibs_status rc;
    int64_t left_ms;
    int64_t wall_us;
    uint64_t taken;
    bool again;
} mail;

/* A lease as a node has it; the first one is that of the name itself. */
typedef struct held {
    uint64_t owner; /* 0: nobody */
    uint64_t fence;
    int64_t until_us;    /* on the clock of the node */
    dibsx_nsec given_at; /* world time */
} held;

typedef struct node {
    held held[SLOTS_MAX + 1]; /* by slot */
    uint64_t watermark;
    int64_t votes_from_us; /* on its own clock, as all below */
    int64_t seen_us;
    uint64_t gone[GONE_MAX]; /* tombstones, the latest */
    size_t gone_next;
    double rate;
    int64_t offset_us;
    int64_t step_us;      /* set by somebody */
    dibsx_nsec down_till; /* world time */
    dibsx_nsec ill_till;
} node;

/* LEAVING: what was given of a slot is given back, before the next is asked for. */
typedef enum phase { RESTING, GRANTING, RAISING, LEAVING, HOLDING } phase;

/* What a peer asks of a node while it looks for a slot: one after the other, each
 * until it is answered or its time is up. */
typedef struct job {
    mail ml;
    dibsx_nsec limit_at;
    bool needed; /* by who waits for it */
} job;

typedef struct lane {
    job jobs[JOBS_MAX]; /* the first one is under way */
    size_t count;
    dibsx_nsec doubt_until; /* one without an answer may yet arrive */
} lane;

typedef struct peer {
    int number;
    phase phase;
    dibs__lease lease;
    dibs__ballot ballot;
    dibs__skew skew;
    dibs__slots slots;
    lane lanes[DIBS__NODES_MAX];
    uint32_t awaited; /* nodes that are to let go of a slot */
    uint64_t owner;
    uint64_t fence;
    uint64_t floor; /* the highest fence believed when it began to ask */
    uint64_t round;
    uint64_t renewal; /* the round of the renewal under way; 0: none */
    dibs__ballot renewals;
    dibsx_nsec renewed_at;
    uint64_t repeat; /* the round in which it asks again for what it holds; 0 */
    dibs__ballot repeats;
    dibsx_nsec repeat_limit_at;
    double rate;
    dibsx_nsec offset;
    dibsx_nsec paused_until; /* world time */
    dibsx_nsec limit_at;     /* on its own clock, as all below */
    dibsx_nsec renew_limit_at;
    dibsx_nsec from_at;
    dibsx_nsec next_at;
    uint64_t turns;
} peer;

typedef struct world {
    uint64_t seed;
    mutant mutant;
    dibsx_prng prng;
    dibsx_nsec now;
    bool healed;
    int loss;
    int late;
    int64_t usual_ms; /* that a message takes at most, if it is not late */
    size_t count;
    uint32_t capacity; /* slots; 0: it is about a name */
    node nodes[DIBS__NODES_MAX];
    peer peers[PEERS_MAX];
    int peer_count;
    mail mails[MAIL_MAX];
    size_t mail_count;
    uint64_t last_order;
    uint64_t last_owner;
    uint64_t last_job;
    uint64_t last_fence; /* the highest that was ever believed */
    const char *wrong;   /* what a node has seen; NULL: all is well */
    uint64_t leases, split, lost, restarts, steps, permits, moves;
    uint64_t repeats, doubts; /* asked again for what is held; undecided */
} world;

bool world_chance(world *w, int of_thousand);
int64_t world_between(world *w, int64_t from, int64_t to);
void world_post(world *w, const mail *ml);

/* The nodes. */
int64_t node_wall_us(const world *w, size_t node);
void node_answer(world *w, mail *ml); /* makes a request its answer */
void node_strike(world *w);           /* something befalls one, perhaps */

/* The clients. */
dibsx_nsec peer_clock(const world *w, const peer *pr);
void peer_start(world *w, int number);
void peer_hear(world *w, const mail *ml);
void peer_look(world *w, peer *pr); /* at its clock */
void peer_send(world *w, peer *pr, mail ml);
void peer_wake_at(world *w, const peer *pr, dibsx_nsec at);

/* The lanes of a client. */
void lane_add(world *w, peer *pr, const mail *ml, dibsx_nsec limit_at,
              bool needed);
void lane_heard(world *w, peer *pr, const mail *ml);
void lane_look(world *w, peer *pr); /* whose time is up */
void lane_clear(peer *pr);          /* of what has not been begun, too */

#endif
