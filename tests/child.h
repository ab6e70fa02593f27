/* child.h - what a process of its own does in a test.
 *
 * The child is this program, started anew: a fork alone would leave it with the
 * locks of threads that it does not have, and sanitizers refuse to go on there. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_CHILD_H
#define DIBS_TESTS_CHILD_H

#include <sys/types.h>

enum { CHILD_WORDS = 8, CHILD_WORD = 1024 };

typedef struct child_part {
    const char *name;
    int (*play)(char **words); /* its exit code; the words end with a NULL */
} child_part;

/* In main(), before anything else: a process that was started for a part plays it
 * and exits. The parts end with a zeroed one. */
void child_play(int argc, char **argv, const child_part *parts);

/* Starts a child for a part, with words up to a NULL. It has the descriptors of this
 * process and is killed with the thread that started it. -1 when it cannot. */
pid_t child_start(const char *part, ...) __attribute__((sentinel));

/* A descriptor as a word. */
const char *child_fd(int fd, char out[16]);

/* Waits until it has ended: its exit code, or 1000 and the signal. A child that was
 * not in time (pace.h) ends this process too. */
int child_code(pid_t child);

/* How many descriptors this process has open; -1 when it cannot be told. */
int open_fds(void);

#endif
