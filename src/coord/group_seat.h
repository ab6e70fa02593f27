/* group_seat.h - a seat in a group, which the session of the client keeps.
 *
 * An election with minimum_nodes counts seats, and must not count a member at two
 * servers at once. So a seat that is not quick
 *   (1) counts when every seat that its member, or the process that it replaces, had
 *       before has ended for certain: settle_ms after it was taken;
 *   (2) ends with the run of the server: DIBS__MEET_STRICT;
 *   (3) is not kept by a request that the store carries out late. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_COORD_GROUP_SEAT_H
#define DIBS_COORD_GROUP_SEAT_H

#include "coord/session.h"

typedef struct dibs__group_opts {
    const char *group;
    const char *member; /* NULL: host:pid */
    const char *label;  /* NULL: the client's */
    const char *const *meta;
    int64_t ttl_ms;
    uint32_t need; /* of whom KEEP answers */
    bool quick;
} dibs__group_opts;

/* It must not move while it is in the session. */
typedef struct dibs__group_seat {
    dibs__session_seat seat;
    char name[DIBS_NAME_MAX + 1];
    char who[DIBS__WHO_MAX];
} dibs__group_seat;

/* Fills the seat, which is not in the session yet; the owner sets told and arg.
 * DIBS_INVALID, DIBS_UNSUPPORTED. */
DIBS_MUST_CHECK dibs_status dibs__group_seat_init(dibs_client *cl,
                                                  dibs__group_seat *gs,
                                                  const dibs__group_opts *opts,
                                                  dibs_error *err);

/* For how long the seat lives that a KEEP kept, from its send, on such a clock as below. */
int64_t dibs__group_kept_ms(const dibs__meet *answer);

/* For how long enough seats live, from the send of a KEEP: the span of its answer, on
 * a clock that may run 1 % faster than the store's, and no longer than the seat that
 * was kept. */
int64_t dibs__group_left_ms(const dibs__meet *answer);

#endif
