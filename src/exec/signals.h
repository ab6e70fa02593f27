/* signals.h - the signals that `dibs run` serves, and dying of one properly. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_EXEC_SIGNALS_H
#define DIBS_EXEC_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

typedef struct dibs__signals {
    sigset_t served;   /* blocked here, read by whoever serves them */
    sigset_t old_mask; /* what the command starts with */
    struct sigaction old_chld;
} dibs__signals;

/* Blocks the signals that are served (all but those that were ignored when the
 * program started, nohup's say) and SIGPIPE. Before the first thread. */
void dibs__signals_block(dibs__signals *sig);

/* One that waits to be served and would end the process, or 0. */
int dibs__signals_pending(const dibs__signals *sig);

/* Its default action ends the process. */
bool dibs__signal_fatal(int number);

/* Asks to end. USR1 and USR2 mean what the command takes them for. */
bool dibs__signal_ends(int number);

/* Ends this process by the signal, so that a shell sees 128+N. */
_Noreturn void dibs__signal_die(int number);

/* Stops this process as the terminal would; `group`: with all of its process
 * group. Returns true when continued; false at once where nobody could continue it.
 * Another thread that takes SIGCONT makes the answer useless. */
bool dibs__signal_stop(bool group);

/* "TERM", "SIGTERM" or "15"; 0 when it is none. */
int dibs__signal_parse(const char *text);

#endif
