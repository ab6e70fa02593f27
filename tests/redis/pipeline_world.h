/* pipeline_world.h - links to a server, and short ways to put a command to one. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_LINK_WORLD_H
#define DIBS_TESTS_LINK_WORLD_H

#include "check.h"
#include "child.h"
#include "server.h"

#include "base/clock.h"
#include "store/redis/pipe/pipeline.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* After those above. */
#include <cmocka.h>

/* A link with what it borrows. */
typedef struct way {
    dibs__redis_conf conf;
    dibs__pipeline *ln;
    dibs_error err; /* of the last put() on this way; not for many threads */
} way;

/* A link to a URL that is in order. End with way_close(). */
void way_open(way *wy, const char *url);
void way_open_server(way *wy, const server *sv);
void way_open_port(way *wy, int port); /* on 127.0.0.1 */
void way_close(way *wy);

/* Puts a command, whose words have no spaces, within `ms`. The reply is as text
 * (nil: "(nil)", an array: its elements with spaces between, an error with its
 * "-"); "" when the status is not DIBS_OK. */
enum { TEXT_MAX = 256 };
dibs_status put(way *wy, int64_t ms, const char *command, char *text);

/* The same on any thread, for those who need no more than the status. */
dibs_status put_quietly(dibs__pipeline *ln, int64_t ms, const char *command,
                        char *text, dibs_error *err);

/* Puts a command that must be answered so. */
void expect(way *wy, const char *command, const char *answer);

/* Puts a command that must fail so; the message is in wy->err. */
void expect_status(way *wy, int64_t ms, const char *command,
                   dibs_status status);

/* Puts a command again and again until it is answered, for ten seconds. */
void expect_soon(way *wy, const char *command, const char *answer);

/* Has so many threads put commands at once, `rounds` each. Every answer must be the
 * one to its own command. */
void expect_crowd(way *wy, int threads, int rounds);

/* Waits until a thread of this process, which writes its number there when it
 * begins, waits for something. */
void await_asleep(atomic_int *tid);

#endif
