/* terminal.h - the terminal, and whose it is: the group of dibs or the command's. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CLI_RUN_TERMINAL_H
#define DIBS_CLI_RUN_TERMINAL_H

#include <stdbool.h>
#include <sys/types.h>

typedef struct dibs__terminal {
    int fd;     /* the controlling terminal; -1: none */
    pid_t own;  /* the process group of dibs */
    bool given; /* it was handed to the command, and not stopped since */
} dibs__terminal;

/* Opens the controlling terminal if there is one. End with dibs__terminal_fini(). */
void dibs__terminal_init(dibs__terminal *terminal);
void dibs__terminal_fini(dibs__terminal *terminal);

/* The command should have it from the start: dibs runs in the foreground and
 * reads and writes it. In a pipeline the other end may be reading the keyboard,
 * so that there it is only handed over when the command asks for it. */
bool dibs__terminal_wanted(const dibs__terminal *terminal);

/* True when it is now the group's; false when it is not ours to give. */
bool dibs__terminal_give(dibs__terminal *terminal, pid_t group);

/* Takes it back if the group, or one that has died, still has it. */
void dibs__terminal_take(dibs__terminal *terminal, pid_t group);

#endif
