/* tails.h - streams of the output of runs: one thread reads for all of them.
 *
 *     reader: the run and its output from the store --> frames of each stream
 *     loop:   pulls the frames; the reader fetches more when they are gone
 *
 * A stream has one buffer of bounded size, and no queue. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_TAILS_H
#define DIBS_SERVE_TAILS_H

#include "http/exchange.h"
#include "serve/hub.h"
#include "serve/run_output.h"
#include <pthread.h>

struct dibs__serve_tail;

typedef struct dibs__serve_tails {
    dibs__hub_wake_fn *wake;
    void *wake_arg;
    bool made; /* by the init */

    pthread_mutex_t mutex; /* for all below */
    pthread_cond_t cond;
    pthread_t thread; /* from the first stream on */
    bool runs, stop, draining;
    struct dibs__serve_tail *first;
} dibs__serve_tails;

/* End with dibs__tails_fini(), when the server has stopped. */
DIBS_MUST_CHECK dibs_status dibs__tails_init(dibs__serve_tails *tails,
                                             dibs__hub_wake_fn *wake,
                                             void *wake_arg, dibs_error *err);
void dibs__tails_fini(dibs__serve_tails *tails);

/* Streams say goaway and end. */
void dibs__tails_drain(dibs__serve_tails *tails);

/* Answers with a stream; takes the output over, which dibsx_free() frees. */
void dibs__tails_answer(dibs__serve_tails *tails, dibs__http_exchange *ex,
                        dibs__run_output *ro);

#endif
