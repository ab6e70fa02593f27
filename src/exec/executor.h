/* executor.h - a node's commands: started from a program with threads, each with its
 * whole tree of processes dead before the node's lease could pass to another.
 *
 * A process of its own, the executor, forks a guard for each command. It is this
 * program, executed anew, so main() begins with dibs__executor_play(). All calls are
 * for any thread; none but dibs__executor_close() waits for a command. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_EXEC_EXECUTOR_H
#define DIBS_EXEC_EXECUTOR_H

#include "base/buf.h"
#include "base/clock.h"
#include "exec/attempt.h"

typedef struct dibs__executor dibs__executor;
typedef struct dibs__attempt dibs__attempt;

/* Makes one for `slots` commands at a time (DIBS__SLOTS_MAX at most), which starts
 * its process with the first command. `program` is what to execute; NULL: this one.
 * It believes in no lease yet: dibs__executor_believe(). Free with
 * dibs__executor_close(). */
DIBS_MUST_CHECK dibs_status dibs__executor_open(size_t slots,
                                                const char *program,
                                                dibs__executor **out,
                                                dibs_error *err);

/* Kills what still runs, and returns when nothing is left of it. Frees the attempts
 * that dibs__executor_ended() has not given. */
void dibs__executor_close(dibs__executor *ex);

/* The node's lease lasts until then: no tree outlives that moment. DIBSX_NEVER: there
 * is no lease to lose. */
void dibs__executor_believe(dibs__executor *ex, dibsx_nsec valid_until,
                            int64_t ttl_ms);

/* How long before the end of the lease trees are killed: with less left, and the
 * time that a start takes, nothing is to be started. */
int64_t dibs__executor_margin_ms(dibs__executor *ex, int64_t ttl_ms);

/* Readable when dibs__executor_process() has something to do. */
int dibs__executor_fd(const dibs__executor *ex);

/* Takes in output and ends, without waiting. Output that is not taken in soon makes
 * its command wait. */
void dibs__executor_process(dibs__executor *ex);

/* The next attempt that has ended, each once; NULL: none has. */
dibs__attempt *dibs__executor_ended(dibs__executor *ex);

/* How many have not ended. */
size_t dibs__executor_running(dibs__executor *ex);

/* Starts a command. A failure means that nothing was started; a failure later, no
 * such program say, is an end of the attempt. DIBS_BUSY: all slots are taken.
 * DIBS_UNAVAIL: the executor has died, and its trees are dying. `arg` is the
 * caller's. Free with dibs__attempt_free(). */
DIBS_MUST_CHECK dibs_status dibs__attempt_start(dibs__executor *ex,
                                                const dibs__attempt_spec *spec,
                                                void *arg, dibs__attempt **out,
                                                dibs_error *err);
void *dibs__attempt_arg(const dibs__attempt *at);

/* Asks the tree to end, and kills it when its time for that is over, or at once. The
 * reason, CANCELLED or STOPPED, counts unless the command has ended before. */
void dibs__attempt_stop(dibs__attempt *at, dibs__attempt_reason reason,
                        bool at_once);

/* How it ended; RUNNING: it has not. Ended means that nothing is left of the tree. */
dibs__attempt_end dibs__attempt_result(dibs__attempt *at);

/* Its output by now: what is kept of the beginning and of the end (either may
 * be NULL), and how many bytes between them were left out. */
uint64_t
dibs__attempt_output(dibs__attempt *at, dibsx_buf *head, dibsx_buf *tail);

/* For one that dibs__executor_ended() gave. NULL is a no-op. */
void dibs__attempt_free(dibs__attempt *at);

#endif
