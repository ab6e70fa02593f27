/* run_on.h - runs a command on a server that a test has started. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_RUN_ON_H
#define DIBS_TESTS_RUN_ON_H

enum { RUN_ON_WORDS = 32 };

/* Runs `command`, at most RUN_ON_WORDS of it and a NULL, with the URL as its last
 * argument. It ends when we do. Its exit code, 128 and the signal that ended it, 127
 * when there is no such program, or 125 when it could not be started. */
int run_on(char *url, char **command);

#endif
