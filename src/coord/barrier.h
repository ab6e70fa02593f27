/* barrier.h - the inside of a barrier handle, shared by its two files: barrier.c has the
 * handle, barrier_call.c one wait of it. Locks: cl->mutex for everything here. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_COORD_BARRIER_H
#define DIBS_COORD_BARRIER_H

#include "coord/barrier_machine.h"
#include "coord/barrier_roll.h"
#include "coord/handle.h"
#include "coord/session.h"
#include <dibs/barrier.h>

struct dibs_barrier {
    dibs__handle handle; /* first, so that one is the other */
    dibs_client *cl;
    char name[DIBS_NAME_MAX + 1]; /* with the client's prefix */
    char who[DIBS__WHO_MAX];
    int64_t wait_ms; /* 0: without limit */
    dibs__barrier_party machine;
    dibs__session_seat seat; /* its id is that of the machine's number: */
    uint64_t id_number;
    uint64_t kept_fence; /* of the seat that the session was given last */
    pthread_cond_t cond;
    bool waiting;      /* a call is under way, */
    bool cancelled;    /* and is to end */
    bool listens;      /* an ear was answered, and no MISSED came since */
    dibsx_nsec ear_at; /* when to ask for the next one */
    dibsx_nsec roll_at;
    bool late_roll;             /* the last roll was taken when time was up */
    dibs__barrier_roll *before; /* the last; NULL: the barrier is too large */
    dibs__meet answer;          /* the last; its texts are not kept */
    dibs_error failure;         /* of the last request; DIBS_OK: answered */
};

/* Waits once, from its arrival to the outcome. The mutex is let go meanwhile. */
DIBS_MUST_CHECK dibs_status dibs__barrier_call(dibs_barrier *b,
                                               dibs_error *err);

#endif
