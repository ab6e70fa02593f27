/* inputs.h - what reaches a running `dibs run` from outside its loop: requests to
 * give the lock back, and the command's word that it gets on. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CLI_RUN_INPUTS_H
#define DIBS_CLI_RUN_INPUTS_H

#include <dibs/dibs.h>

/* Each is -1 when it is not wanted. */
typedef struct dibs__run_inputs {
    int yield_fd;   /* readable when somebody asks for the lock */
    int tick_fd;    /* readable when the command has written */
    int command_fd; /* where it writes: the only one that it inherits */
} dibs__run_inputs;

/* To be called before anything else is opened: shells can write only to
 * descriptors of one digit, and the lowest are free then. End with
 * dibs__run_inputs_close(). */
DIBS_MUST_CHECK dibs_status dibs__run_inputs_open(dibs__run_inputs *inputs,
                                                  bool yields, bool ticks,
                                                  dibs_error *err);
void dibs__run_inputs_close(dibs__run_inputs *inputs);

/* For on_yield; `arg` is the feeds. Runs on the keeper thread. */
dibs_lock_yield_fn dibs__run_inputs_yield;

/* Once the command has been started: only it writes from now on. */
void dibs__run_inputs_started(dibs__run_inputs *inputs);

/* Takes what has come, up to a bound. True when there was something; a feed that
 * has ended is closed. */
bool dibs__run_inputs_take(int *fd);

#endif
