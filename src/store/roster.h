/* roster.h - the roster steps of the store contract: seats, arrivals, generations.
 *
 * A roster is the seats of a name, and the generation that gathers. A seat is a
 * lease that excludes nobody. A name is a group (seats alone), a barrier (as many
 * seats as it has parties) or a latch (ids that counted, without seats); it is one
 * of these while it has a seat, or as long as the latch is kept. Generations and the
 * fences of seats come from the fences of the store: they rise, and none is used
 * twice. store/meet.h has the rule. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_ROSTER_H
#define DIBS_STORE_ROSTER_H

#include "base/clock.h"
#include "store/roster_entry.h"
#include <dibs/types.h>

struct dibs__store;

enum {
    DIBS__UNUSED_SEAT_MS = 3000, /* of a seat until its fence is used */
    DIBS__BROKEN_KEPT = 64,      /* broken generations that a roster knows */
    DIBS__MEET_MAX = 32,         /* items of one step */
    DIBS__ROLL_CALL_MAX = 100000 /* entries of one; also in the SQL and Lua */
};

/* The actions of a party. The statuses are those of an item; nothing changed after
 * DIBS_MISMATCH (the name is another kind of roster, or needs another number) and
 * DIBS_LOST (there is no such seat).
 *   SIT       OK: `number` is the fence of the seat, which is also the record that
 *             the first call arrives after. BUSY: a barrier has no seat free.
 *             TIMEOUT: carried out after `by_us`; nothing changed
 *   KEEP      OK, LOST, TIMEOUT. `left_ms`: for how long `need` seats that count
 *             live yet; 0: there are fewer
 *   ARRIVE    counts a call, once: `after` is the number that the call before
 *             ended with. BUSY: counted in generation `number`, which gathers.
 *             OK: it has opened. STALE: it broke. TIMEOUT: the call was withdrawn,
 *             `number` is the record from now on. LOST: also when the call is over,
 *             and when more than DIBS__BROKEN_KEPT generations broke since.
 *             `left_ms`: until the first seat could end
 *   WITHDRAW  ends the call that began after `after`. TIMEOUT: it counts for
 *             nothing. OK, STALE: too late, as ARRIVE
 *   LEAVE     OK: the seat has ended; that breaks the generation, but for QUIET
 *   COUNT     a latch: counts an id, once. OK: the latch is open. BUSY: it gathers.
 *             STALE: `after` is not 0 and not the generation
 *   LOOK      changes nothing. As COUNT of a latch; OK of another roster, also of
 *             one whose seats have ended since; NOTFOUND: there is none
 *   RESET     a latch: OK: all counts are forgotten, `number` is the new
 *             generation. MISMATCH, NOTFOUND: as LOOK of another roster or none */
typedef enum dibs__meet_verb {
    DIBS__SIT,
    DIBS__KEEP,
    DIBS__ARRIVE,
    DIBS__WITHDRAW,
    DIBS__LEAVE,
    DIBS__COUNT,
    DIBS__LOOK,
    DIBS__RESET
} dibs__meet_verb;

/* FIXED: SIT: the name is a barrier of `need` parties. BREAK: WITHDRAW: breaks the
 * generation for all. QUIET: LEAVE: breaks nothing if the party has not arrived.
 * STRICT: SIT, KEEP: seats that were taken in another run of the server end first. */
enum {
    DIBS__MEET_FIXED = 1 << 0,
    DIBS__MEET_BREAK = 1 << 1,
    DIBS__MEET_STRICT = 1 << 2,
    DIBS__MEET_QUIET = 1 << 3
};

typedef struct dibs__meet {
    const char *name;
    const char *id; /* of a seat: as an owner; of a count: 1 to DIBS_NAME_MAX
                       bytes; else "" */
    dibs__meet_verb verb;
    uint32_t flags;    /* DIBS__MEET_* */
    uint64_t fence;    /* of the seat */
    uint64_t after;    /* ARRIVE, WITHDRAW, COUNT */
    uint32_t need;     /* parties, counts; of a group: of whom KEEP answers */
    int64_t ttl_ms;    /* of the seat; of a latch: kept after the last count */
    int64_t settle_ms; /* SIT: the seat counts so long after it was taken */
    int64_t by_us;     /* SIT, KEEP: refused after this moment of the store's
                          clock, as `clock_us` was; 0: never */
    const char *who;   /* SIT: "host:pid label" */

    dibs_status rc;   /* out */
    uint64_t number;  /* out: see the verb; else the generation */
    uint32_t here;    /* out: counted in the generation that gathers */
    uint32_t live;    /* out: seats */
    uint32_t parties; /* out: what the roster needs; of a group 0 */
    int64_t left_ms;  /* out */
    int64_t clock_us; /* out: the store's clock when the item was done */
} dibs__meet;

typedef struct dibs__roster_ops {
    /* Does up to DIBS__MEET_MAX items, one after the other; each is one atomic change
     * with its own status. One that opens or breaks a generation tells "roster:NAME"
     * of it, as DIBS__NOTICE_OPENED or _BROKEN with its number. DIBS_OK: each item
     * has its rc, which is DIBS_UNAVAIL or DIBS_UNKNOWN if its server, one of several,
     * did not answer. Otherwise it is as for other steps, where rc is not DIBS_OK. */
    dibs_status (*meet)(struct dibs__store *st, dibs__meet *items, size_t count,
                        dibsx_nsec deadline, dibs_error *err);

    /* The head, and each live seat in the order of its fence, or id that a latch
     * counted; of more than DIBS__ROLL_CALL_MAX only so many. `each` may be NULL.
     * DIBS_NOTFOUND: there is no such roster; *out is zeroed. */
    dibs_status (*roll_call)(struct dibs__store *st, const char *name,
                             dibsx_nsec deadline, dibs__roster_head *out,
                             dibs__seat_fn *each, void *arg, dibs_error *err);

    /* The rosters of a kind, in the order of the bytes of their names. A group or a
     * barrier without a live seat is none. Fewer than `max`, or than
     * DIBS__ROSTER_LIST_MAX: there are no more. The store is not locked while `each`
     * runs. A store that needs many requests for a list may give each of them the
     * time until `deadline`: it goes on while the server answers. */
    dibs_status (*rosters)(struct dibs__store *st,
                           const dibs__roster_query *query, dibsx_nsec deadline,
                           dibs__roster_fn *each, void *arg, dibs_error *err);
} dibs__roster_ops;

/* As DIBS__LEASE_STEPS(). */
#define DIBS__ROSTER_STEPS(X)                                                  \
    X(meet, MEET)                                                              \
    X(roll_call, ROLL_CALL)                                                    \
    X(rosters, ROSTERS)

/* Begins the answers of a step: none is there yet. */
static inline void
dibs__meet_clear(dibs__meet *items, size_t count, dibs_status rc)
{
    for (size_t i = 0; i < count; i++) {
        items[i].rc = rc;
        items[i].number = 0;
        items[i].here = items[i].live = items[i].parties = 0;
        items[i].left_ms = items[i].clock_us = 0;
    }
}

#endif
