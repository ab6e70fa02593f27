/* bench_crowd.c - thousands who wait at a latch or a barrier, and the threads and sockets
 * that a bare PUBLISH wakes.
 *
 *     bench_crowd latch PROCESSES WAITERS ROUNDS URL
 *         from the last count to the last of the threads that wait: "BARE OURS RATIO
 *         BARE_HEARD HEARD"; HEARD is when the last process has its first thread awake
 *     bench_crowd barrier PROCESSES WAITERS ROUNDS URL
 *         the same from the last of WAITERS + 1 parties that comes; then "ARRIVALS
 *         COMMANDS": arrivals a second, and commands of a round
 *     bench_crowd sockets 1 WAITERS ROUNDS URL
 *         from a PUBLISH to the last of so many sockets: "BARE"
 *
 * Each process has one client, or one socket that hears a PUBLISH and wakes the threads of
 * its process. Medians over the rounds, in microseconds. URL may be of PostgreSQL, where
 * nothing bare is measured (0). A Redis server is redis://127.0.0.1:PORT; it should be
 * idle and empty. */
/* SPDX-License-Identifier: MIT */
#include "bench/crowd.h"
#include "bench/duel.h"
#include "bench/sockets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char local[] = "redis://127.0.0.1:";

/* All rounds but the first, in which parties take their seats. */
typedef struct record {
    duel last, heard;
    samples arrivals; /* in thousandths of an arrival a second */
    samples commands; /* likewise */
} record;

static void record_init(record *re, size_t rounds)
{
    duel_init(&re->last, rounds);
    duel_init(&re->heard, rounds);
    samples_init(&re->arrivals, rounds);
    samples_init(&re->commands, rounds);
}

static void
record_add(record *re, const crowd_times *theirs, const crowd_times *own, int n)
{
    duel_add(&re->last, theirs->last, own->last);
    duel_add(&re->heard, theirs->heard, own->heard);
    samples_add(&re->arrivals, (int64_t)(n * 1e12 / (double)own->arrived));
    samples_add(&re->commands, (int64_t)own->commands * 1000);
}

static void record_print(record *re, crowd_kind kind)
{
    duel_print(&re->last);
    printf(" %.0f %.0f", samples_median(&re->heard.bare),
           samples_median(&re->heard.ours));
    samples_fini(&re->heard.ratios);
    if (kind == CROWD_BARRIER)
        printf(" %.0f %.0f", samples_median(&re->arrivals),
               samples_median(&re->commands));
    printf("\n");
}

static void measure_crowd(crowd_kind kind, const crowd_size *size,
                          const char *url, int port)
{
    crowd *bare = port ? crowd_new(CROWD_BARE, size, url, port) : NULL;
    crowd *ours = crowd_new(kind, size, url, port);
    record re;

    record_init(&re, size->rounds - 1);
    for (size_t i = 0; i < size->rounds; i++) {
        crowd_times theirs = {0}, own;

        if (bare)
            crowd_wake(bare, &theirs);
        crowd_wake(ours, &own);
        if (i > 0)
            record_add(&re, &theirs, &own, size->threads);
    }
    if (bare)
        crowd_free(bare);
    crowd_free(ours);
    record_print(&re, kind);
}

static void measure_sockets(const crowd_size *size, int port)
{
    sockets *sk = sockets_new(port, size->threads);
    samples times;

    samples_init(&times, size->rounds);
    for (size_t i = 0; i < size->rounds; i++)
        samples_add(&times, sockets_wake(sk));
    sockets_free(sk);
    printf("%.0f\n", samples_median(&times));
}

int main(int argc, char **argv)
{
    crowd_size size = {0};
    int port = 0;

    if (argc == 6) {
        size.processes = (int)strtol(argv[2], NULL, 10);
        size.threads = (int)strtol(argv[3], NULL, 10);
        size.rounds = strtoul(argv[4], NULL, 10);
        if (strncmp(argv[5], local, strlen(local)) == 0)
            port = (int)strtol(argv[5] + strlen(local), NULL, 10);
    }
    if (size.rounds < 1 || size.rounds > 10000 || size.threads < 1)
        give_up("usage", "bench_crowd WHAT PROCESSES WAITERS 1-10000 URL");
    size.rounds++;
    if (strcmp(argv[1], "latch") == 0)
        measure_crowd(CROWD_LATCH, &size, argv[5], port);
    else if (strcmp(argv[1], "barrier") == 0)
        measure_crowd(CROWD_BARRIER, &size, argv[5], port);
    else if (strcmp(argv[1], "sockets") == 0 && port != 0)
        measure_sockets(&size, port);
    else
        give_up("usage", "see the top of bench_crowd.c");
    return 0;
}
