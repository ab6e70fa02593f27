/* main.c - a use of the library in which the n-th call of a kind into the system
 * fails, for every n, and again with many failing from the n-th on.
 *
 *     loops [--runs N] [--only KIND] [--at N] URL
 *
 * With --runs each kind gets about so many, spread over all n; with --at it is one
 * n, and every step is told. Prints a line per kind; exit code 1 when something was
 * wrong. */
/* SPDX-License-Identifier: MIT */
#include "faults.h"
#include "script.h"

#include <dirent.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SPAN = 200, /* of many that fail */
    /* SQLite takes a lock that cannot be had for a busy one, and has patience
     * of its own with it, ten seconds when all fail. */
    LOCK_SPAN = 5,
    CALLS_MAX = 20000,
    HANG_MS = 60000, /* a run that takes longer hangs */
    SOON_MS = 100,   /* for what threads that are just ending still have, */
    SETTLE_MS = 2000 /* ... when it seems to stay */
};

typedef struct fault {
    fault_kind kind;
    unsigned long n;
    unsigned long span;
    int sort;
} fault;

static char position[128];
static bool judged; /* by one that knows whether the machine was slow */

/* Says where, and leaves a core file unless the judge decides what it was. */
static void hangs(int number)
{
    static const char text[] = " hangs\n";

    (void)number;
    faults_disarm();
    (void)!write(STDOUT_FILENO, position, strlen(position));
    (void)!write(STDOUT_FILENO, text, sizeof(text) - 1);
    if (judged)
        _exit(PACE_MISSED);
    abort();
}

static int count_fds(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int count = 0;

    while (dir && readdir(dir))
        count++;
    if (dir)
        closedir(dir);
    return count;
}

static void show_fds(void)
{
    char path[64], to[PATH_MAX];

    for (int fd = 0; fd < 256; fd++) {
        ssize_t len;

        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        len = readlink(path, to, sizeof(to) - 1);
        if (len > 0)
            printf("  %d is %.*s\n", fd, (int)len, to);
    }
}

/* What there is more of than before a run. */
typedef struct rest {
    long blocks;
    int fds;
} rest;

static rest count_rest(rest before)
{
    return (rest){.blocks = faults_blocks() - before.blocks,
                  .fds = count_fds() - before.fds};
}

static bool is_over(rest left)
{
    return left.blocks <= 0 && left.fds <= 0;
}

/* A thread may just be ending, and a node of a quorum whose vote nobody awaits be
 * answering the peer: both get their time. */
static rest settle(rest before, int limit_ms)
{
    rest left = count_rest(before);

    for (int ms = 0; !is_over(left) && ms < limit_ms; ms += 5) {
        poll(NULL, 0, 5);
        left = count_rest(before);
    }
    return left;
}

static rest run_once(script *sc, const fault *ft, int limit_ms)
{
    rest before = count_rest((rest){0});

    snprintf(position, sizeof(position), "%s %lu, %lu of sort %d",
             fault_name(ft->kind), ft->n, ft->span, ft->sort);
    sc->what = position;
    if (sc->verbose)
        printf("%s\n", position);
    alarm((unsigned)(pace_ms(HANG_MS) / 1000));
    faults_arm(ft->kind, ft->n, ft->span, ft->sort);
    script_run(sc);
    faults_disarm();
    alarm(0);
    return settle(before, limit_ms);
}

/* What stays may be a cache, or the peer's, or a page of `memory:` for what a store keeps
 * for a while; a few turns in a row may each take one. What stays each time is a leak. */
static bool run(script *sc, const fault *ft)
{
    enum { TRIES = 16 };
    rest left = run_once(sc, ft, SOON_MS);
    bool hit = faults_count(ft->kind) >= ft->n;

    for (int i = 0; i < TRIES && !is_over(left); i++)
        left = run_once(sc, ft, SETTLE_MS);
    if (left.blocks > 0)
        script_breach(sc, "%ld blocks of memory are left, each time",
                      left.blocks);
    if (left.fds > 0) {
        script_breach(sc, "%d descriptors are left open, each time", left.fds);
        show_fds();
    }
    return hit;
}

/* Every n until there are fewer calls than that. */
static unsigned long run_all(script *sc, fault ft)
{
    bool hit = true;

    for (ft.n = 1; hit && ft.n <= CALLS_MAX; ft.n++)
        hit = run(sc, &ft);
    if (hit)
        script_breach(sc, "there is no end to it");
    return ft.n - 1;
}

/* How many calls there are when none fails. */
static unsigned long count_calls(script *sc, fault_kind kind)
{
    fault none = {.kind = kind, .n = CALLS_MAX + 1, .span = 1};

    (void)run(sc, &none);
    return faults_count(kind);
}

/* In one way only, or in several. */
static int sorts_of(fault_kind kind)
{
    return kind == FAULT_ALLOC || kind == FAULT_THREAD || kind == FAULT_MAP
               ? 1
               : FAULT_SORTS;
}

static unsigned long span_of(fault_kind kind)
{
    return kind == FAULT_LOCK ? LOCK_SPAN : SPAN;
}

static void try_one(script *sc, fault_kind kind, unsigned long n)
{
    for (int sort = 0; sort < sorts_of(kind); sort++) {
        fault once = {.kind = kind, .n = n, .span = 1, .sort = sort};
        fault many = {.kind = kind,
                      .n = n,
                      .span = span_of(kind),
                      .sort = sort};

        (void)run(sc, &once);
        (void)run(sc, &many);
    }
}

/* So many runs, spread over all n, sorts and spans, each with another primitive. */
static unsigned long run_some(script *sc, fault_kind kind, unsigned long wanted)
{
    static unsigned next;

    for (unsigned long i = 0; i < wanted; i++) {
        fault ft = {.kind = kind,
                    .span = i / 2 % 2 ? span_of(kind) : 1,
                    .sort = (int)(i % (unsigned long)sorts_of(kind))};

        sc->only = ++next;
        ft.n = 1 + i * count_calls(sc, kind) / wanted;
        (void)run(sc, &ft);
    }
    sc->only = 0;
    return wanted;
}

static void try_kind(script *sc, fault_kind kind, unsigned long wanted)
{
    unsigned long calls = count_calls(sc, kind);
    unsigned long runs = 0;
    unsigned breaches = sc->breaches;

    if (calls > 0 && wanted > 0)
        runs = run_some(sc, kind, wanted);
    for (int sort = 0; calls > 0 && !wanted && sort < sorts_of(kind); sort++) {
        fault once = {.kind = kind, .span = 1, .sort = sort};
        fault many = {.kind = kind, .span = span_of(kind), .sort = sort};

        runs += run_all(sc, once) + run_all(sc, many);
    }
    printf("%-8s calls %5lu, runs %6lu, violations %u\n", fault_name(kind),
           calls, runs, sc->breaches - breaches);
    fflush(stdout);
}

typedef struct wish {
    unsigned long runs; /* 0: all */
    unsigned long at;   /* 0: every n */
    const char *only;   /* NULL: every kind */
    const char *url;
} wish;

static bool read_line(int argc, char **argv, wish *ws)
{
    int i = 1;

    *ws = (wish){.runs = 0};
    for (; i + 2 < argc; i += 2) {
        if (strcmp(argv[i], "--runs") == 0)
            ws->runs = strtoul(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--at") == 0)
            ws->at = strtoul(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--only") == 0)
            ws->only = argv[i + 1];
        else
            return false;
    }
    ws->url = argv[argc - 1];
    return i + 1 == argc;
}

int main(int argc, char **argv)
{
    dibs_error err = {0};
    static script sc;
    dibs_status rc;
    wish ws;

    if (!read_line(argc, argv, &ws)) {
        fprintf(stderr, "usage: loops [--runs N] [--only KIND] [--at N] URL\n");
        return 2;
    }
    judged = getenv("DIBS_PACE") != NULL;
    signal(SIGALRM, hangs);
    rc = script_init(&sc, ws.url, &err);
    if (rc != DIBS_OK) {
        fprintf(stderr, "%s\n", err.message);
        return pace_explains(rc) ? PACE_MISSED : 2;
    }
    /* What is made once is made now. */
    for (int turn = 0; turn < COORD_NAMES + 1; turn++) {
        script_run(&sc);
        script_settle(&sc);
    }
    sc.verbose = ws.at > 0;
    for (int i = 0; i < FAULT_KINDS; i++) {
        fault_kind kind = (fault_kind)i;

        /* A database that cannot be read is a damaged one, says SQLite. */
        sc.also = kind == FAULT_READ && strncmp(ws.url, "sqlite:", 7) == 0
                      ? DIBS_REFUSED
                      : DIBS_OK;

        if (ws.only && strcmp(ws.only, fault_name(kind)) != 0)
            continue;
        if (ws.at)
            try_one(&sc, kind, ws.at);
        else
            try_kind(&sc, kind, ws.runs);
    }
    script_settle(&sc);
    printf("runs %u, steps granted %u, refused %u, violations %u\n", sc.turn,
           sc.granted, sc.refused, sc.breaches);
    script_fini(&sc);
    return sc.breaches == 0 ? 0 : sc.breaches == sc.late ? PACE_MISSED : 1;
}
