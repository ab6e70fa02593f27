/* reader_machine.h - a reader of one topic, without I/O. Pure.
 *
 * A caller asks what to do, does it, and says how it ended; tells of the store come
 * in between. Time is an argument.
 *
 *                +----------- EAR <--- missed, or 10 s after the last one
 *                v             ^
 *      (new) -> EAR -> READ --> SLEEP --> BOUNDS --> (nothing new) SLEEP
 *                       ^         |         |
 *                       +- told --+         +------> (other bounds) READ
 *
 * Correctness is the position before each entry, never a tell: a tell only makes it
 * soon.
 *
 *   (1) A reader at p that is shown an entry with the prior b has missed (p, b] if b > p:
 *       GAP. If b < p, the store has lost (b, p] after the reader saw it: FORK.
 *   (2) Bounds are believed in one order only. If the last position was above p before
 *       a read was sent, and the read finds nothing, all in between was trimmed: GAP.
 *       A last position below p is a FORK.
 *   (3) While the store answers, bounds are asked for LOOK_MS after the last answer at the
 *       latest, and a read follows every tell or miss. So the reader reaches the end.
 *   (4) A reader that begins at the oldest entry, or at a time, has no position until its
 *       first entry. Before that there is no FORK, and a GAP only if entries since that
 *       time are gone. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_COORD_READER_MACHINE_H
#define DIBS_COORD_READER_MACHINE_H

#include "base/clock.h"
#include "store/log.h"

enum {
    DIBS__READER_LOOK_MS = 1000,
    DIBS__READER_EAR_MS = 10000 /* between two ears */
};

typedef enum dibs__reader_todo {
    DIBS__READER_SLEEP,
    DIBS__READER_EAR,   /* listen to the topic of the log */
    DIBS__READER_READ,  /* read entries after `at` */
    DIBS__READER_BOUNDS /* look at the bounds of the log */
} dibs__reader_todo;

typedef enum dibs__reader_from {
    DIBS__FROM_END,
    DIBS__FROM_START,   /* the oldest entry that is kept */
    DIBS__FROM_TIME,    /* the first entry of this time or later */
    DIBS__FROM_POSITION /* the first entry after a position */
} dibs__reader_from;

typedef enum dibs__reader_news {
    DIBS__READER_NOTHING,
    DIBS__READER_EVENT, /* the entry is the next */
    DIBS__READER_GAP,   /* entries were trimmed */
    DIBS__READER_FORK   /* the store has lost entries */
} dibs__reader_news;

typedef struct dibs__reader {
    uint64_t at;    /* the position of the reader */
    bool placed;    /* `at` is one; false only before a start at the end */
    bool anchored;  /* `at` was a position of this topic */
    uint64_t since; /* of a start at a time: in us; 0: of none */
    uint64_t bound; /* the last position, before the read under way was sent */
    uint64_t told;  /* a position of a tell, not seen yet; 0: none */
    uint64_t gap_from; /* of the last GAP or FORK: (from, to] */
    uint64_t gap_to;

    bool due;           /* read before the time */
    bool missed;        /* since the last ear was sent */
    bool eared;         /* the store has told all since the last ear */
    dibsx_nsec look_at; /* the next look at the bounds */
    dibsx_nsec ear_at;
} dibs__reader;

void dibs__reader_init(dibs__reader *r, dibs__reader_from from,
                       uint64_t number);

/* The next thing to do. The caller does it before it asks again, and reports the
 * outcome below. *until: how long to sleep. */
dibs__reader_todo
dibs__reader_next(dibs__reader *r, dibsx_nsec now, dibsx_nsec *until);

/* The store told the topic a position. True when the caller should ask again now. */
bool dibs__reader_told(dibs__reader *r, uint64_t position);

/* Tells may have been lost. */
void dibs__reader_missed(dibs__reader *r);

void dibs__reader_eared(dibs__reader *r, dibsx_nsec sent_at, dibsx_nsec now,
                        dibs_status rc);

/* The answer to a look at the bounds. NOTHING, GAP or FORK. */
dibs__reader_news
dibs__reader_bounded(dibs__reader *r, dibsx_nsec now, dibs_status rc,
                     const dibs__log_span *span);

/* A read has ended with `count` entries, which are shown next; `more`: it stopped at
 * its limit. NOTHING or GAP. */
dibs__reader_news dibs__reader_read(dibs__reader *r, dibsx_nsec now,
                                    dibs_status rc, size_t count, bool more);

/* Shows the entries of a read, one by one. After a GAP or FORK the same one is shown
 * again. NOTHING: it is before the start. */
dibs__reader_news
dibs__reader_show(dibs__reader *r, const dibs__log_entry *entry);

#endif
