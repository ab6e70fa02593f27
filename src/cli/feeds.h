/* feeds.h - what reaches a running `dibs run` from outside its loop: requests to
 * give the lock back, and the command's word that it gets on. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CLI_FEEDS_H
#define DIBS_CLI_FEEDS_H

#include <dibs/dibs.h>

/* Each is -1 when it is not wanted. */
typedef struct dibs__feeds {
    int yield_fd;   /* readable when somebody asks for the lock */
    int tick_fd;    /* readable when the command has written */
    int command_fd; /* where it writes: the only one that it inherits */
} dibs__feeds;

/* To be called before anything else is opened: shells can write only to
 * descriptors of one digit, and the lowest are free then. End with
 * dibs__feeds_close(). */
DIBS_MUST_CHECK dibs_status dibs__feeds_open(dibs__feeds *feeds, bool yields,
                                             bool ticks, dibs_error *err);
void dibs__feeds_close(dibs__feeds *feeds);

/* For on_yield; `arg` is the feeds. Runs on the keeper thread. */
dibs_lock_yield_fn dibs__feeds_yield;

/* Once the command has been started: only it writes from now on. */
void dibs__feeds_started(dibs__feeds *feeds);

/* Takes what has come, up to a bound. True when there was something; a feed that
 * has ended is closed. */
bool dibs__feeds_take(int *fd);

#endif
