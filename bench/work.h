/* work.h - the command line of a program that measures work on a Redis server.
 *
 *     PROGRAM PORT WORK COUNT
 *
 * A failure ends the program. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_BENCH_WORK_H
#define DIBS_BENCH_WORK_H

#include "bench/raw.h"

#include <dibs/dibs.h>

/* Both sides: the bare driver, and a client of the server at `url`. */
typedef struct ground {
    raw *bare;
    dibs_client *client;
    const char *url;
    int port;
} ground;

typedef struct work {
    const char *word;
    void (*measure)(const ground *on, size_t count);
} work;

/* Measures what the command line names, of a list that ends with {NULL, NULL}, at most
 * `most` times. Returns what main() returns. */
int measure_work(int argc, char **argv, const work *list, long most);

#endif
