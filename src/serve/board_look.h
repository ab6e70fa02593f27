/* board_look.h - the look at the board: all of its jobs, once a second while anybody asks
 * or listens, for all of them.
 *
 *     look thread: picture --> told to those who wait --> difference to the hub
 *     others:      take the latest picture, read it, let go of it
 *
 * While nobody asks it looks every 20 s, for the counts of runs. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_BOARD_LOOK_H
#define DIBS_SERVE_BOARD_LOOK_H

#include "serve/board_picture.h"
#include "serve/hub.h"
#include "serve/job_sums.h"
#include "serve/life.h"

typedef struct dibs__board_look {
    dibs__board board;
    dibs__serve_hub *hub; /* borrowed */
    int64_t every_ms;
    dibs__job_sums sums;

    dibs__serve_life life;       /* its mutex is for all below */
    dibs__board_picture *latest; /* NULL before the first */
    dibsx_nsec wanted_at;        /* when it was last asked for */
    size_t waiting;              /* for a picture that is new enough */
    dibsx_nsec changed_at;       /* when this daemon last changed something */
} dibs__board_look;

/* End with dibs__board_look_fini(). */
DIBS_MUST_CHECK dibs_status dibs__board_look_init(
    dibs__board_look *look, dibs_client *cl, const char *board,
    dibs__serve_hub *hub, int64_t every_ms, dibs_error *err);
void dibs__board_look_fini(dibs__board_look *look);

DIBS_MUST_CHECK dibs_status dibs__board_look_start(dibs__board_look *look,
                                                   dibs_error *err);
void dibs__board_look_stop(dibs__board_look *look);

/* A picture that is as old as the pace at most; waits for it, for `wait_ms`. It may be
 * older, or NULL before the first. End with dibs__board_picture_drop(). */
dibs__board_picture *
dibs__board_look_take(dibs__board_look *look, int64_t wait_ms);

/* This daemon has changed something: the next picture must be of a later time. */
void dibs__board_look_again(dibs__board_look *look);

#endif
