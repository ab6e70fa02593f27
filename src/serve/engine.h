/* engine.h - the job engine of the daemon: a node of the board, on a thread of its own.
 *
 *     LOADING --files are loaded--> RUNNING --told to stop--> DRAINING --> ENDED
 *        |  ^                          |                                   ^
 *        +--+ the store is away        +-----the node could not go on------+
 *        +--> REFUSED: a file does not win; the daemon goes on without these files
 *
 * New files are given to a second node; the first one drains once they are loaded. The
 * main thread calls all of these but those that say so. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_ENGINE_H
#define DIBS_SERVE_ENGINE_H

#include "jobs/run_step.h"
#include "serve/counts.h"
#include "serve/log.h"
#include "serve/serve.h"
#include <stdatomic.h>

typedef enum dibs__engine_phase {
    DIBS__ENGINE_OFF,
    DIBS__ENGINE_LOADING,
    DIBS__ENGINE_RUNNING,
    DIBS__ENGINE_DRAINING,
    DIBS__ENGINE_REFUSED,
    DIBS__ENGINE_ENDED
} dibs__engine_phase;

struct dibs__engine_node;

typedef struct dibs__serve_engine {
    const dibs__serve_opts *opts; /* borrowed, as are log and client */
    dibs__serve_log *log;
    dibs_client *cl;
    dibs__serve_counts *counts; /* borrowed; a reload may fail later */
    pthread_mutex_t mutex;      /* for the list of nodes */
    struct dibs__engine_node
        *nodes; /* the newest first; main thread changes it */
    char board[DIBS__JOB_NAME_SIZE]; /* set by the init */
} dibs__serve_engine;

/* Reads and checks the files. REFUSED: err says why. End with
 * dibs__engine_fini(). */
DIBS_MUST_CHECK dibs_status dibs__engine_init(dibs__serve_engine *engine,
                                              const dibs__serve_opts *opts,
                                              dibs__serve_log *log,
                                              dibs_error *err);
void dibs__engine_fini(dibs__serve_engine *engine);

/* Begins to work with a client. */
DIBS_MUST_CHECK dibs_status dibs__engine_start(dibs__serve_engine *engine,
                                               dibs_client *cl,
                                               dibs__serve_counts *counts,
                                               dibs_error *err);

/* Reads the files again, and goes on with them once they are loaded. After a failure, also
 * a later one, it goes on with those it has. */
DIBS_MUST_CHECK dibs_status dibs__engine_reload(dibs__serve_engine *engine,
                                                dibs_error *err);

/* Nothing new is begun; commands have the time that the settings give them. Waits for
 * nothing. */
void dibs__engine_drain(dibs__serve_engine *engine);

/* Waits until nothing runs any more. */
void dibs__engine_stop(dibs__serve_engine *engine);

/* Any thread. */
dibs__engine_phase dibs__engine_phase_of(dibs__serve_engine *engine);
const char *dibs__engine_phase_name(dibs__engine_phase phase);

/* How far the clock of the store is behind, after it was set back. Any thread. */
int64_t dibs__engine_behind_us(dibs__serve_engine *engine);

/* Only the check of files, for `dibs serve --check`. */
DIBS_MUST_CHECK dibs_status dibs__engine_check(const dibs__serve_opts *opts,
                                               dibs_error *err);

#endif
