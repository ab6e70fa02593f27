/* signal_wait.h - waits of the library that a signal ends: a thread takes the signals
 * while the main thread waits. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CLI_SIGNAL_WAIT_H
#define DIBS_CLI_SIGNAL_WAIT_H

#include "base/clock.h"
#include "exec/signals.h"

#include <dibs/types.h>
#include <pthread.h>

typedef struct dibs__signal_wait {
    /* Ends the wait, on the thread of the signals. The wait may not have begun when
     * a signal comes: called again and again until the end. */
    void (*cancel)(void *arg);
    /* Called at tell_at, on the same thread, if the wait goes on then. NULL: never. */
    void (*tell)(void *arg);
    dibsx_nsec tell_at;
    void *arg;
    _Atomic int
        fatal;    /* the first signal that would end the process; 0: none */
    sigset_t set; /* the signals served, and the one that ends the thread */
    sigset_t old_mask;
    pthread_t thread;
} dibs__signal_wait;

/* Begins to take the signals, which are blocked (dibs__signals_block()). After DIBS_OK
 * call dibs__signal_wait_end(). */
DIBS_MUST_CHECK dibs_status dibs__signal_wait_begin(dibs__signal_wait *wait,
                                                    const dibs__signals *sig,
                                                    dibs_error *err);
void dibs__signal_wait_end(dibs__signal_wait *wait);

#endif
