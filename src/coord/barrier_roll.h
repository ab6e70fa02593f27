/* barrier_roll.h - the parties of a barrier as one look saw them, to name those that are
 * missing. Any thread; each roll belongs to its caller. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_COORD_BARRIER_ROLL_H
#define DIBS_COORD_BARRIER_ROLL_H

#include "core/client.h"
#include "store/roster.h"

/* Barriers up to this size name their parties; in larger ones a look by each party
 * would cost the square of their number. */
enum { DIBS__ROLL_MAX = 256, DIBS__ROLL_WHO = 72 };

typedef struct dibs__roll_party {
    uint64_t fence; /* of its seat */
    bool arrived;
    char who[DIBS__ROLL_WHO];
} dibs__roll_party;

typedef struct dibs__barrier_roll {
    bool seen; /* there was a look, and it was answered */
    uint32_t arrived;
    uint32_t count; /* seats */
    dibs__roll_party parties[DIBS__ROLL_MAX];
} dibs__barrier_roll;

/* Looks. Locks: none held. */
void dibs__barrier_roll_take(dibs_client *cl, const char *name,
                             dibs__barrier_roll *out);

/* The reason of a time-out, and of a break between two looks: "1 of 3 parties came;
 * missing: web2:4711". Rolls that were not seen say less. */
void dibs__barrier_roll_late(const dibs__barrier_roll *roll, uint32_t parties,
                             char *out, size_t size);
void dibs__barrier_roll_broken(const dibs__barrier_roll *before,
                               const dibs__barrier_roll *after,
                               uint32_t parties, char *out, size_t size);

#endif
