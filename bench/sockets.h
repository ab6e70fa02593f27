/* sockets.h - connections that listen, all read by one thread: the least that it can
 * cost to tell so many clients. A failure ends the program. One thread. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_BENCH_SOCKETS_H
#define DIBS_BENCH_SOCKETS_H

#include <stdint.h>

typedef struct sockets sockets;

/* Free it with sockets_free(). */
sockets *sockets_new(int port, int count);
void sockets_free(sockets *sk);

/* Nanoseconds from a PUBLISH until the last of them has heard it. */
int64_t sockets_wake(sockets *sk);

#endif
