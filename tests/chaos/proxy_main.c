/* proxy_main.c - the proxy as a program.
 *
 *     proxy PORT SERVER_PORT [SEED]
 *
 * Listens on a loopback port and forwards to another. What it does to what passes
 * is told on standard input, one command a line:
 *
 *     pass            all is well
 *     drop            connections end, new ones too
 *     hole            nothing passes; after "pass" it does, late
 *     half            requests arrive, answers do not
 *     delay MS [MORE] answers are late by MS to MS + MORE
 *     rate BYTES      at most so many a second in each direction
 *     cut N           the answer that goes past N bytes from now ends there
 *     reset N         the same, with a reset
 *
 * Each is logged on standard output with its time and the bytes of answers that
 * have passed since the last cut. The end of the input is the end of it. */
/* SPDX-License-Identifier: MIT */
#include "proxy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static bool obey(proxy *px, const char *line)
{
    static const char *const modes[] = {"pass", "drop", "hole", "half"};
    char verb[16] = "";
    long one = 0, two = 0;

    if (sscanf(line, "%15s %ld %ld", verb, &one, &two) < 1)
        return true;
    for (int i = 0; i < 4; i++)
        if (strcmp(verb, modes[i]) == 0) {
            proxy_slow(px, 0, 0, 0);
            proxy_set_mode(px, (proxy_mode)i);
            return true;
        }
    if (strcmp(verb, "delay") == 0)
        proxy_slow(px, (int)one, (int)two, 0);
    else if (strcmp(verb, "rate") == 0)
        proxy_slow(px, 0, 0, one);
    else if (strcmp(verb, "cut") != 0 && strcmp(verb, "reset") != 0)
        return false;
    else {
        atomic_store(&px->reset, verb[0] == 'r');
        proxy_arm(px, one);
    }
    return true;
}

static void note(const proxy *px, const char *line, bool known)
{
    struct timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    printf("%lld.%06ld %s%.*s (passed %ld, cuts %d)\n", (long long)at.tv_sec,
           at.tv_nsec / 1000,
           known ? "" : "not known: ", (int)strcspn(line, "\n"), line,
           atomic_load(&px->passed), atomic_load(&px->cuts));
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static proxy px;
    char line[128];

    if (argc < 3 || argc > 4 ||
        !proxy_start_at(&px, (int)strtol(argv[1], NULL, 10),
                        (int)strtol(argv[2], NULL, 10))) {
        fprintf(stderr, "usage: proxy PORT SERVER_PORT [SEED]\n");
        return 2;
    }
    if (argc == 4)
        px.random += strtoull(argv[3], NULL, 10);
    while (fgets(line, sizeof(line), stdin))
        note(&px, line, obey(&px, line));
    proxy_stop(&px);
    return 0;
}
