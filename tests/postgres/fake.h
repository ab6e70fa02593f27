/* fake.h - a hostile server. It speaks as much of PostgreSQL's protocol as brings a
 * client to a point of interest, and does harm there.
 *
 * It stands for no store: what a store does is tested on real servers. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_POSTGRES_FAKE_H
#define DIBS_TESTS_POSTGRES_FAKE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FAKE_URL = 96, FAKE_PACKET = 4096 };

/* Where the harm is done: when the client has said who it is; in the answer to the
 * first statement of a connection; to a LISTEN; to a step. */
typedef enum fake_point {
    FAKE_AT_LOGIN,
    FAKE_AT_GREETING,
    FAKE_AT_LISTEN,
    FAKE_AT_STEP
} fake_point;

typedef struct fake fake;

struct fake {
    fake_point point;
    void (*harm)(fake *fk, int fd); /* what it does; then it hangs up */
    void *arg;                      /* for `harm` */
    int listener;
    int port;
    atomic_int fd; /* of the connection, or -1 */
    atomic_bool over;
    atomic_int harmed; /* how often it came to that */
    pthread_t thread;
};

/* Serves one connection after the other, on a thread, until it is stopped. point,
 * harm and arg are set before. */
bool fake_start(fake *fk);
void fake_stop(fake *fk);

/* By which a client reaches it. */
void fake_url(const fake *fk, char out[FAKE_URL]);

/* Messages of the protocol, one after the other. */
typedef struct fake_packet {
    uint8_t bytes[FAKE_PACKET];
    size_t len;
} fake_packet;

/* A message of this type, with these bytes in it. */
void fake_put(fake_packet *pk, char type, const void *body, size_t len);

/* False when the client has gone, or the server is to stop. */
bool fake_send(fake *fk, int fd, const void *bytes, size_t len);

#endif
