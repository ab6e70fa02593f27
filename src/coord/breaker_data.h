/* breaker_data.h - all that a client keeps of a circuit breaker, and what any thread may
 * do with it without a lock. The machine is breaker_machine.h. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_COORD_BREAKER_DATA_H
#define DIBS_COORD_BREAKER_DATA_H

#include "base/clock.h"
#include "base/rand.h"
#include "store/meter.h"
#include <stdatomic.h>

enum {
    DIBS__BREAKER_REPORT_MS = 1000, /* between reports */
    DIBS__BREAKER_SOON_MS = 20,     /* from a bad call to the report of it */
    DIBS__BREAKER_LOOK_MS = 10000,  /* between looks without calls */
    DIBS__BREAKER_KEEP_MS =
        86400000,               /* a value lives so long once it is over */
    DIBS__BREAKER_PERMITS = 16, /* probes of one client at a time */
    DIBS__BREAKER_CELLS = 8
};

typedef enum dibs__breaker_state {
    DIBS__BREAKER_CLOSED,
    DIBS__BREAKER_OPEN,
    DIBS__BREAKER_FORCED /* open until somebody closes it */
} dibs__breaker_state;

/* As in dibs_breaker_opts; all of them are set. */
typedef struct dibs__breaker_rules {
    int64_t threshold; /* 0: none; so the two rates */
    int64_t rate_percent, slow_percent;
    int64_t min_calls;
    int64_t sampling_ms, recovery_ms, probe_ttl_ms, ramp_ms;
    uint32_t probes, need, min_clients;
} dibs__breaker_rules;

typedef struct dibs__breaker_permit {
    enum {
        DIBS__PERMIT_FREE,
        DIBS__PERMIT_ASKED,
        DIBS__PERMIT_PROBING,
        DIBS__PERMIT_OVER /* to be released */
    } use;
    uint64_t id;
    uint64_t gen;
    uint64_t released; /* of the breaker, when it was asked for */
    bool own;          /* without the store */
    dibsx_nsec valid_until;
    char owner[DIBS_OWNER_SIZE]; /* the caller's */
} dibs__breaker_permit;

typedef struct dibs__breaker {
    dibs__breaker_rules rules;
    bool shared; /* the store can count and has values */
    uint32_t mark;
    dibsx_prng prng;

    _Atomic uint64_t word;     /* gen * 2 + 1 when calls pass at once; the first
                                  never does, for the handle begins to listen */
    _Atomic dibsx_nsec ask_at; /* else: before this, calls are refused */
    struct {
        _Atomic int64_t good;
        char apart[64 - sizeof(int64_t)]; /* from the cell of another thread */
    } cells[DIBS__BREAKER_CELLS];

    bool known; /* what follows is: */
    uint64_t version;
    dibs__breaker_state state;
    dibsx_nsec stated_at;  /* when that was learnt */
    bool shown;            /* ... from a notice, which may have been late */
    dibsx_nsec recover_at; /* when it is open */
    dibsx_nsec ramp_until; /* when it is closed */
    double ramp_share;     /* of a call that may pass already */

    enum {
        DIBS__BREAKER_FOLLOWS,
        DIBS__BREAKER_TRIPPED,
        DIBS__BREAKER_RESUMED
    } own;
    uint64_t gen;
    dibs__meter_window window; /* of the calls of this client and generation */
    uint32_t own_goods;        /* probes without the store */
    dibs__breaker_permit permits[DIBS__BREAKER_PERMITS];
    uint64_t last_id;
    uint64_t released; /* so many permits were */

    int64_t good, bad, slow; /* of this version, to be reported */
    int64_t probe_goods;     /* likewise */
    enum {
        DIBS__BREAKER_WANTS_NOTHING,
        DIBS__BREAKER_WANTS_OPEN,
        DIBS__BREAKER_WANTS_CLOSED
    } wants; /* to put, in the place of `version` */

    bool away;   /* the store did not answer */
    bool called; /* a call was made; before, it only looks */
    bool active;
    bool listening;
    bool cut;   /* a MISSED came since the ear under way began */
    bool again; /* a tell or a MISSED since the last report calls for another */
    uint64_t told; /* the version of that tell; 0: none */
    dibsx_nsec report_at, ear_at, heard_until;
    dibs__sums sums; /* of the last answer */
} dibs__breaker;

/* The pass of a call: its generation and its permit, 0 when it is no probe. */
typedef struct dibs__breaker_pass {
    uint64_t gen, permit;
} dibs__breaker_pass;

/* Lets a call pass if the breaker is closed: one word is read. Any thread. */
static inline bool
dibs__breaker_enter_at_once(const dibs__breaker *br, uint64_t *gen)
{
    uint64_t word = atomic_load_explicit(&br->word, memory_order_acquire);

    *gen = word >> 1;
    return (word & 1) != 0;
}

/* Refuses a call if it is open and has not recovered. Any thread. */
static inline bool
dibs__breaker_refuse_at_once(const dibs__breaker *br, dibsx_nsec now)
{
    return now < atomic_load_explicit(&br->ask_at, memory_order_relaxed);
}

/* Counts a call that went well, if it began in this generation, and calls pass. Any
 * thread; `cell` is best another for each. */
static inline bool
dibs__breaker_good_at_once(dibs__breaker *br, uint64_t gen, unsigned cell)
{
    if (atomic_load_explicit(&br->word, memory_order_acquire) != gen * 2 + 1)
        return false;
    atomic_fetch_add_explicit(&br->cells[cell % DIBS__BREAKER_CELLS].good, 1,
                              memory_order_relaxed);
    return true;
}

#endif
