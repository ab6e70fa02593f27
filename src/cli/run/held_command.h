/* held_command.h - a command that runs while this process has one lock, and what it
 * writes. If the lock is lost, all processes of the command are dead before another can
 * have it. Main thread only; a thread of its own takes the output. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CLI_RUN_HELD_COMMAND_H
#define DIBS_CLI_RUN_HELD_COMMAND_H

#include "cli/command.h"

typedef struct dibs__held_command dibs__held_command;

/* Reads --ttl and --stop, finds out whether commands can be run, and blocks signals: call
 * it before the first thread is made. 0, or an exit code after a message. Free it with
 * dibs__held_command_free() in any case. */
int dibs__held_command_new(const dibs__command *cmd, char *const *argv,
                           dibs__held_command **out);

/* Takes the lock without waiting. BUSY: another has it. `name` is borrowed. */
DIBS_MUST_CHECK dibs_status dibs__held_command_lock(dibs__held_command *hc,
                                                    dibs_client *cl,
                                                    const char *name,
                                                    dibs_error *err);

/* Runs the command to the end of its tree. OK: it exited with 0, and wrote *len bytes to
 * its standard output, which had room for `*len`. CANCELLED: anything else;
 * dibs__held_command_code() is the exit code for it, and err says why. */
dibs_status dibs__held_command_run(dibs__held_command *hc, char *data,
                                   size_t *len, dibs_error *err);
/* Whether the lock is still held, as far as this process knows. */
bool dibs__held_command_held(const dibs__held_command *hc);
int dibs__held_command_code(const dibs__held_command *hc);

/* Gives the lock back. If a signal ended all this before the command began, this process
 * dies of it. Before the client is closed. NULL is a no-op. */
void dibs__held_command_free(dibs__held_command *hc);

#endif
