/* job_ask.h - what requests about jobs and runs ask for. Threads of the server. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_JOB_ASK_H
#define DIBS_SERVE_JOB_ASK_H

#include "http/exchange.h"
#include "serve/board_picture.h"

/* The board of ?board=, or the daemon's own. False: it was refused. */
DIBS_MUST_CHECK bool
dibs__serve_ask_board(dibs__http_exchange *ex, dibs__board *out);

/* A picture of that board: the look's, or one of its own for another board. NULL after an
 * answer that says why. End with dibs__board_picture_drop(). */
dibs__board_picture *dibs__serve_take_board(dibs__http_exchange *ex);

/* A moment of the query or of a field: RFC 3339. *out_s stays as it is without one.
 * False: it was refused. */
DIBS_MUST_CHECK bool
dibs__serve_ask_moment(dibs__http_exchange *ex, const char *what,
                       const char *text, int64_t *out_s);

/* "ann via serve": who a change is by, for the record of a job or a run. */
void dibs__serve_who(dibs__http_exchange *ex, char out[DIBS__RUN_NOTE_SIZE]);

/* A change was made: lists show it at once. */
void dibs__serve_changed(dibs__http_exchange *ex);

/* 202 with the id of a run and where it is. */
void dibs__serve_answer_run(dibs__http_exchange *ex, const dibs__board *board,
                            const char *id);

#endif
