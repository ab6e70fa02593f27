/* event_witness.h - what the processes of the event ground did and were told, written down
 * where no store of ours has a hand in it. check_events.py looks at it afterwards.
 *
 * A delivery is committed before its consumer asks for the next one, so an event that a
 * group counts as handled has one. The tables are in event_witness.c. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_CHAOS_EVENT_WITNESS_H
#define DIBS_TESTS_CHAOS_EVENT_WITNESS_H

#include "witness.h"
#include "witness_db.h"

/* Who got something: a process of a group, in one of its turns. */
typedef struct reading {
    uint64_t group, who, turn;
} reading;

/* NULL when it cannot be opened; why is on stderr. Close it with witness_db_close(). */
witness_db *event_witness_open(const char *folder);

/* An event that a process is about to publish, and what it was told. */
void event_witness_publish(witness_db *db, uint64_t seq, uint64_t who);
void event_witness_published(witness_db *db, uint64_t seq, outcome how,
                             uint64_t position);

/* Events up to and with a position are about to be trimmed. */
void event_witness_trim(witness_db *db, uint64_t through);

/* A delivery. `kind` and `from` are those of dibs_event; `position` is the end of a gap. */
void event_witness_got(witness_db *db, const reading *by, uint64_t kind,
                       uint64_t from, uint64_t position, uint64_t seq);

/* The store was told that these were handled, and accepted it. */
void event_witness_accepted(witness_db *db, const reading *by,
                            const uint64_t *positions, size_t count);

/* The last position that a group has come to. */
uint64_t event_witness_last(witness_db *db, uint64_t group);

void event_witness_end(witness_db *db, uint64_t last, uint64_t faults);

#endif
