/* latch_machine.h - a wait for a latch: when to look, to listen and to sleep.
 *
 * No I/O: time and answers are arguments. The first look finds a latch that is open
 * already; a wait that goes on listens, and looks again once it does, so that no
 * opening falls between. Then a tell ends it. As tells may be lost, it also looks by
 * itself, at first after a second, later every ten.
 *
 *     LOOK --open--> OPEN            told: OPEN, or LOOK
 *       | gathers                    missed: EAR, LOOK
 *       v
 *     EAR --listens--> LOOK --gathers--> SLEEP --time--> LOOK or EAR
 *
 *   (1) OPEN is final: the latch was open at a moment during the wait.
 *   (2) After an ear that was answered DIBS_OK there is a look that begins later.
 *   (3) A MISSED that comes while a look is under way leads to another look.
 *   (4) One that comes while an ear is under way leads to another ear: the answer may
 *       be older than the loss. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_COORD_LATCH_MACHINE_H
#define DIBS_COORD_LATCH_MACHINE_H

#include "base/clock.h"
#include "base/rand.h"
#include <dibs/types.h>

enum {
    DIBS__LATCH_FIRST_MS = 1000, /* until the first look by itself */
    DIBS__LATCH_LAST_MS = 10000, /* between looks, in the end */
    DIBS__LATCH_AWAY_MS = 1000   /* between attempts while the store is away */
};

typedef enum dibs__latch_todo {
    DIBS__LATCH_LOOK,
    DIBS__LATCH_EAR,
    DIBS__LATCH_SLEEP, /* until a moment, or a tell */
    DIBS__LATCH_OPEN   /* the wait is over */
} dibs__latch_todo;

typedef struct dibs__latch {
    bool open;
    bool missed;         /* since the look under way began */
    bool cut;            /* a MISSED came since the ear under way began */
    bool listens;        /* an ear was answered, and no MISSED came since */
    uint64_t generation; /* that the last look found gathering; 0: none yet */
    int64_t span_ms;
    dibsx_nsec look_at;
    dibsx_nsec ear_at;
    dibsx_prng prng;
} dibs__latch;

void dibs__latch_init(dibs__latch *la, uint64_t seed);

dibs__latch_todo
dibs__latch_next(const dibs__latch *la, dibsx_nsec now, dibsx_nsec *until);

/* A look begins; its answer: DIBS_OK open, DIBS_BUSY or DIBS_NOTFOUND not yet, or
 * what the store met. */
void dibs__latch_looks(dibs__latch *la);
void dibs__latch_looked(dibs__latch *la, dibsx_nsec now, dibs_status rc,
                        uint64_t generation);

/* An ear begins; its answer. */
void dibs__latch_ears(dibs__latch *la);
void dibs__latch_eared(dibs__latch *la, dibsx_nsec sent_at, dibsx_nsec now,
                       dibs_status rc);

/* That generation has opened; another one may be older than a reset. */
void dibs__latch_told(dibs__latch *la, uint64_t generation);
void dibs__latch_missed(dibs__latch *la);

#endif
