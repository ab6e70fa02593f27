/* proxy.h - stands between clients and a server and spoils what passes.
 *
 * One thread forwards bytes both ways between a loopback port of its own and
 * that of the server. What it does to them is set by the functions here, from any
 * thread, and holds from the next byte on. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_CHAOS_PROXY_H
#define DIBS_TESTS_CHAOS_PROXY_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PROXY_PAIRS = 256, PROXY_CHUNK = 4096 };

/* Bytes on their way in one direction. */
typedef struct proxy_flow {
    char *bytes; /* PROXY_CHUNK of them */
    size_t len;
    size_t sent;
    int64_t due_ns; /* not before */
    bool cut;       /* the connection ends with the last of them */
} proxy_flow;

/* A client and the server as it has it. */
typedef struct proxy_pair {
    int client;
    int server;
    proxy_flow up;   /* to the server */
    proxy_flow down; /* to the client */
    bool spoilt;     /* nothing comes back on it any more */
} proxy_pair;

typedef enum proxy_mode {
    PROXY_PASS,
    PROXY_DROP,     /* connections end, new ones too */
    PROXY_HOLE,     /* nothing passes; later it all does, late */
    PROXY_HALF_OPEN /* requests arrive, answers never come; later: good again
                       on new connections */
} proxy_mode;

typedef struct proxy {
    int port;
    int server_port;
    int listener;
    int wake_fd;
    pthread_t thread;
    proxy_pair pairs[PROXY_PAIRS];
    uint64_t random;
    atomic_bool stopping;
    atomic_int mode;       /* proxy_mode */
    atomic_long cut_after; /* bytes of answers until the cut; negative: none */
    atomic_bool reset;     /* cut by a reset, not an orderly end */
    atomic_int delay_ms;   /* before answers go on */
    atomic_int jitter_ms;  /* up to so much more */
    atomic_long rate;      /* bytes a second in each direction; 0: no limit */
    atomic_long passed;    /* bytes of answers since the last proxy_arm() */
    atomic_int cuts;
} proxy;

/* End with proxy_stop(). */
bool proxy_start(proxy *px, int server_port);
bool proxy_start_at(proxy *px, int port, int server_port); /* 0: any port */
void proxy_stop(proxy *px);

/* Counts from here on; the connection whose answer goes past `bytes` is cut
 * there, once. Negative: no cut. */
void proxy_arm(proxy *px, long bytes);

void proxy_set_mode(proxy *px, proxy_mode mode);

/* From now on every connection that is asked something gets no answer, ever; or
 * connections made from now on are good again. */
void proxy_swallow(proxy *px, bool on);

/* Answers are late by delay to delay + jitter, and no more than `rate` bytes a
 * second pass. Zeros: no more. */
void proxy_slow(proxy *px, int delay_ms, int jitter_ms, long rate);

#endif
