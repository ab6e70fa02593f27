/* run_output.h - what the commands of a run have written, as frames of a stream or as
 * text. Blocks for the store. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_RUN_OUTPUT_H
#define DIBS_SERVE_RUN_OUTPUT_H

#include "base/buf.h"
#include "base/clock.h"
#include "jobs/board.h"

enum {
    DIBS__OUTPUT_FRAMES_MAX = 48 * 1024, /* bytes that one call appends */
    DIBS__OUTPUT_TAIL = 500
};

/* How far the output of each step was shown. */
typedef struct dibs__output_place {
    uint32_t attempt; /* 0: nothing of it */
    uint64_t bytes;
    bool begun, ended; /* that was said */
} dibs__output_place;

typedef struct dibs__run_output {
    dibs__board board;
    char run[DIBS__RUN_ID_SIZE];
    char step[DIBS__JOB_NAME_SIZE]; /* "": all */
    uint32_t attempt;               /* 0: the last one of each step */
    size_t tail; /* lines to begin with; 0: all, as after the first frames */
    dibsx_nsec follow_at; /* when to ask for output soon again */
    dibs__output_place places[DIBS__JOB_STEPS_MAX];
} dibs__run_output;

/* Reads a place as frames have it in their id: "INDEX:ATTEMPT:BYTES,...". False: it is
 * none. */
DIBS_MUST_CHECK bool
dibs__output_resume(dibs__run_output *ro, const char *text);

/* Appends frames for what has come since: `line` with [at, "out" or "sys", text, step],
 * and `end` after the last one. *over: that was it. NOTFOUND: there is no such run or
 * step. */
DIBS_MUST_CHECK dibs_status dibs__output_frames(dibs__run_output *ro,
                                                dibsx_buf *out, bool *over,
                                                dibs_error *err);

/* Appends all of it as text. */
DIBS_MUST_CHECK dibs_status dibs__output_text(const dibs__run_output *ro,
                                              dibsx_buf *out, dibs_error *err);

#endif
