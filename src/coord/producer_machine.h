/* producer_machine.h - a producer of a queue, without I/O. Pure.
 *
 * As lane_machine.h, for a lane that pushes: it has no lease, and the store keeps its last
 * answer for a minute.
 *
 *   (1) One request is under way at a time. It is sent again as it was until it has an
 *       answer, or is given up with its lane.
 *   (2) A lane is used, and a request sent again, within DIBS__PUSH_AGAIN_MS of the first
 *       send: the store knows the number for certain.
 *   (3) LOST to a request of which every try before cannot have left means that nothing
 *       was done; to others it may have been done. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_COORD_PRODUCER_MACHINE_H
#define DIBS_COORD_PRODUCER_MACHINE_H

#include "coord/lane_machine.h"

enum { DIBS__PUSH_AGAIN_MS = 50000 };

typedef struct dibs__producer {
    uint64_t lane;   /* 0: draw one */
    uint64_t number; /* of the request under way, or the last one */
    bool asking;
    bool doubt;
    dibsx_nsec asked_at; /* the first try of the request, or of the last one */
} dibs__producer;

/* Whether the next push needs a new lane; the store forgets one that is not used. */
bool dibs__producer_needs_lane(const dibs__producer *p, dibsx_nsec now);
void dibs__producer_open(dibs__producer *p, uint64_t lane);

/* The next number. */
uint64_t dibs__producer_ask(dibs__producer *p, dibsx_nsec now);

/* As dibs__consumer_answered(). DIBS_FULL is an answer. */
dibs__asked
dibs__producer_answered(dibs__producer *p, dibsx_nsec now, dibs_status rc);

/* Gives a request up that had no answer: it may have been done. */
void dibs__producer_end(dibs__producer *p);

#endif
