/* grant_world.h - a store of one name in memory, for tests of the grant rule.
 *
 * Every step loads a fresh roll from the rows, runs, and writes back by the
 * marks alone, as a store does; marks that do not tell the truth fail the test.
 * Rows are in no order. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_GRANT_WORLD_H
#define DIBS_TESTS_GRANT_WORLD_H

#include "store/grant.h"
#include "unit.h"

enum { WORLD_TTL_MS = 30000, WORLD_ROWS = 64, WORLD_TEXT = 1024 };

typedef struct world {
    dibs__party rows[WORLD_ROWS];
    size_t count;
    dibs__roll roll; /* of the last step */
    int64_t now_us;
    int64_t wall_us;
    uint64_t watermark;
    char notified[WORLD_TEXT]; /* by the last step: "+a " granted, "-a " broken,
                                  "?a " wanted, "!a " asked to yield */
    char shown[WORLD_TEXT];
    dibs__answer ans;
    dibs_error err;
} world;

typedef struct world_want {
    dibs__mode mode;
    uint32_t permits;
    uint32_t capacity;
    int32_t priority;
} world_want;

/* The fields of a want, to be put between braces. */
#define WANT_X       DIBS__EXCLUSIVE, 1, 0, 0
#define WANT_S       DIBS__SHARED, 1, 0, 0
#define WANT_P(k, n) DIBS__PERMITS, k, n, 0

void world_init(world *w);
void world_fini(world *w);

/* Time goes by, on both clocks. */
void world_pass(world *w, int64_t span_ms);

/* The owner's row, or NULL. */
dibs__party *world_row(world *w, const char *owner);

/* Puts a row there that no step has made. */
dibs__party *world_plant(world *w, const char *owner);

/* The two halves of a step. Commit also looks whether the invariants hold. */
dibs__roll *world_load(world *w);
void world_commit(world *w);

/* "a b* c~ | d e ": who holds (* a claim, ~ a ghost), then who waits. */
const char *world_show(world *w);

/* Appends to a text of WORLD_TEXT bytes, with a space behind it. */
void world_note(char *out, const char *before, const char *owner,
                const char *after);

/* Whole steps. The answer and the error are left in the world. */
dibs_status world_acquire(world *w, const char *owner, const world_want *what,
                          uint32_t flags);
dibs__renewal
world_renew(world *w, const char *owner, uint64_t fence, int64_t ttl_ms);
dibs_status
world_release(world *w, const char *owner, bool unanswered, int64_t keep_ms);
dibs_status world_take(world *w, uint64_t fence, uint32_t *broken);

/* `to_owner` NULL: the owner stays. For WORLD_TTL_MS. */
dibs_status world_turn(world *w, const char *owner, uint64_t fence,
                       dibs__mode mode, const char *to_owner);

/* Nothing may be marked by it. */
dibs_status world_yield(world *w, uint64_t fence, uint32_t *asked);

#endif
