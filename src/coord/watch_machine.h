/* watch_machine.h - a watch of one value, without I/O. Pure.
 *
 * A caller asks what to do, does it, and says how it ended; tells of the store come
 * in between. Time is an argument.
 *
 *               +----------- EAR <--- missed, or 10 s after the last one
 *               v             ^
 *     (new) -> EAR -> FETCH -> SLEEP -> LOOK --> (the same version) SLEEP
 *                       ^        |        |
 *                       +- told -+        +----> (another) FETCH -> deliver
 *
 * Correctness is the comparison of versions, never a tell: a tell only makes it soon.
 *
 *   (1) While the store answers, a look is sent LOOK_MS after the last answer at the
 *       latest, at the expiry of the value, and after every tell or miss that came
 *       after the last look was sent. So the last value is delivered.
 *   (2) A value is delivered once, if its version is another than that of the last
 *       one. A lower version counts too: the store has gone back.
 *   (3) `merged` is false only if no other change came between: the ear was in force
 *       all the time, nothing was missed, the first tell since the last value is that
 *       of this one, and the last value cannot have expired before. It is true when
 *       the value is gone, and for the next one: an absence has no version. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_COORD_WATCH_MACHINE_H
#define DIBS_COORD_WATCH_MACHINE_H

#include "base/clock.h"
#include "store/value.h"

enum {
    DIBS__WATCH_LOOK_MS = 1000,
    DIBS__WATCH_EAR_MS = 10000, /* between two ears */
    DIBS__WATCH_TELLS = 8       /* kept apart; more are merged */
};

typedef enum dibs__watch_todo {
    DIBS__WATCH_SLEEP,
    DIBS__WATCH_EAR,  /* listen to the topic of the value */
    DIBS__WATCH_LOOK, /* read its head */
    DIBS__WATCH_FETCH /* read the value */
} dibs__watch_todo;

typedef struct dibs__watch {
    bool fresh;             /* nothing was delivered yet */
    uint64_t known;         /* the version delivered last; 0: there was none */
    dibsx_nsec expires_at;  /* of that, at the latest; DIBSX_NEVER */
    dibsx_nsec lives_until; /* it has not expired before; DIBSX_NEVER */

    uint64_t tells[DIBS__WATCH_TELLS]; /* since then, the oldest first */
    size_t tell_count;
    bool unsure;          /* a tell may be missing among them */
    dibsx_nsec ear_since; /* the store tells all that is sent after this ... */
    dibsx_nsec ear_until; /* ... until this; 0: it does not */
    bool missed;          /* since the last ear was sent */

    bool other;         /* another version was seen: fetch it */
    bool due;           /* look before the time */
    dibsx_nsec look_at; /* the next look; DIBSX_NEVER before the first fetch */
    dibsx_nsec ear_at;
} dibs__watch;

void dibs__watch_init(dibs__watch *w);

/* The next thing to do. The caller does it before it asks again, and reports the outcome
 * below. *until: how long to sleep. */
dibs__watch_todo
dibs__watch_next(dibs__watch *w, dibsx_nsec now, dibsx_nsec *until);

/* The store told the topic a version. True when the caller should ask again now. */
bool dibs__watch_told(dibs__watch *w, uint64_t version);

/* Tells may have been lost. */
void dibs__watch_missed(dibs__watch *w);

/* The outcomes. `sent_at` is when it was sent, `now` when the answer came. A head may
 * also come without having been asked for. */
void dibs__watch_eared(dibs__watch *w, dibsx_nsec sent_at, dibsx_nsec now,
                       dibs_status rc);
void dibs__watch_looked(dibs__watch *w, dibsx_nsec sent_at, dibsx_nsec now,
                        dibs_status rc, const dibs__value_head *head);

typedef struct dibs__watch_news {
    bool merged; /* other changes may have come between */
    bool back;   /* the version is lower than the last */
} dibs__watch_news;

/* `head` is that of the value, or has version 0 (DIBS_NOTFOUND). True when it is to
 * be delivered. */
bool dibs__watch_fetched(dibs__watch *w, dibsx_nsec sent_at, dibsx_nsec now,
                         dibs_status rc, const dibs__value_head *head,
                         dibs__watch_news *news);

#endif
