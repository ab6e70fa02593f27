/* majority.h - the least that a lock on several servers can cost: one connection to
 * each, written to together, until a majority has answered. No library.
 *
 * A failure ends the program. One thread. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_BENCH_MAJORITY_H
#define DIBS_BENCH_MAJORITY_H

typedef struct majority majority;

enum { MAJORITY_MAX = 9 };

/* Connects to servers of this machine. Close with majority_close(). */
majority *majority_open(const int *ports, int count);
void majority_close(majority *mj);

/* SET NX PX at all of them, then a script that deletes the key if its value is still
 * the one that was set; each until a majority has answered. */
void majority_pair(void *mj);

#endif
