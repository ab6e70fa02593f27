/* proxy.h - stands between clients and a server and spoils what comes back.
 *
 * One thread forwards bytes both ways between a loopback port of its own and
 * that of the server. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_REDIS_PROXY_H
#define DIBS_TESTS_REDIS_PROXY_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { PROXY_PAIRS = 16 };

/* A client and the server as it has it. */
typedef struct proxy_pair {
    int client;
    int server;
    bool spoilt; /* nothing comes back on it any more */
} proxy_pair;

typedef struct proxy {
    int port;
    int server_port;
    int listener;
    int wake_fd;
    pthread_t thread;
    proxy_pair pairs[PROXY_PAIRS];
    atomic_bool stopping;
    atomic_long cut_after; /* bytes of answers until the cut; negative: none */
    atomic_bool swallow;   /* answers stop, connections stay */
    atomic_int delay_ms;   /* before answers go on */
    atomic_long passed;    /* bytes of answers since the last proxy_arm() */
    atomic_int cuts;
} proxy;

/* End with proxy_stop(). */
bool proxy_start(proxy *px, int server_port);
void proxy_stop(proxy *px);

/* Counts from here on; the connection whose answer goes past `bytes` is cut
 * there, once. Negative: no cut. */
void proxy_arm(proxy *px, long bytes);

/* From now on every connection that is asked something gets no answer, ever; or
 * connections made from now on are good again. */
void proxy_swallow(proxy *px, bool on);

#endif
