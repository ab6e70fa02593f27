/* http_world.h - a server with routes for every purpose, and clients that speak
 * to it over bare sockets. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_HTTP_WORLD_H
#define DIBS_TESTS_HTTP_WORLD_H

#include "http/server.h"
#include "pace.h"
#include "unit.h"

#include <pthread.h>

enum { REPLY_MAX = 64 * 1024 };

typedef struct http_world {
    dibs__http_server *server;
    int port;
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    int inside;  /* functions of GET /wait that have begun */
    bool let_go; /* ... and may end */
    int asked;   /* requests that world_count_in() let pass */
    int posts;   /* functions of POST /json that were called */
    int freed;   /* answers of GET /owned that were freed */

    /* GET /ticks sends "tick N\n" for each, GET /flood without end. */
    unsigned ticks;
    bool over;       /* ... and ends */
    int64_t idle_ms; /* ... or sends ": beat\n\n" */
    int open;        /* streams of either that are not gone, and GET /later */
    size_t pulled;   /* bytes of floods */
} http_world;

/* Starts it with these limits; routes and the rest are filled in. */
void world_start(http_world *wd, dibs__http_opts opts);
void world_stop(http_world *wd, int64_t grace_ms);

/* Waits until so many are inside GET /wait; lets them all go. */
void world_await_inside(http_world *wd, int count);
void world_let_go(http_world *wd);

/* As a gate that lets all pass; waits until so many have come by: the pool has them, or
 * their answer is on its way, before the server hears of anything later. */
bool world_count_in(dibs__http_exchange *ex);
void world_await_asked(http_world *wd, int count);

/* Streams that begin from now on may be silent for so long. */
void world_set_idle(http_world *wd, int64_t idle_ms);

/* More ticks, by all at once; the end of them. */
void world_tick(http_world *wd, unsigned count);
void world_end(http_world *wd);

/* Waits until so many streams are there. */
void world_await_open(http_world *wd, int count);

/* How often POST /json has reached its function so far. */
int world_posts(http_world *wd);

typedef struct reply {
    int status; /* 0: the connection ended before one came */
    size_t len; /* of the body */
    char head[8192];
    char body[REPLY_MAX];
} reply;

/* Each fails the test when something takes longer than any of it should. */
int client_open(const http_world *wd);
int client_try(const http_world *wd); /* -1: nobody listens */
void client_send(int fd, const char *text);
void client_send_bytes(int fd, const char *bytes, size_t len);
void client_read(int fd, reply *rp);
size_t client_read_some(int fd, char *out, size_t size); /* 0: the end */
bool client_at_end(int fd); /* nothing more comes, and it is closed */

/* One request on a connection of its own. */
void ask(const http_world *wd, const char *request, reply *rp);

/* The value of a header of the reply into out; false when it has none. */
bool reply_header(const reply *rp, const char *name, char *out, size_t size);

#endif
