/* pipeline_world.h - pipelines to a server, and short forms to put a command to one. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_PIPELINE_WORLD_H
#define DIBS_TESTS_PIPELINE_WORLD_H

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

/* A pipeline with what it borrows. */
typedef struct piped {
    dibs__redis_conf conf;
    dibs__pipeline *pl;
    dibs_error err; /* of the last put() on it; not for many threads */
} piped;

/* A pipeline to a URL that is in order. End with pipe_close(). */
void pipe_open(piped *pd, const char *url);
void pipe_open_server(piped *pd, const server *sv);
void pipe_open_port(piped *pd, int port); /* on 127.0.0.1 */
void pipe_close(piped *pd);

/* Puts a command, whose words have no spaces, within `ms`. The reply is as text
 * (nil: "(nil)", an array: its elements with spaces between, an error with its
 * "-"); "" when the status is not DIBS_OK. */
enum { TEXT_MAX = 256 };
dibs_status put(piped *pd, int64_t ms, const char *command, char *text);

/* The same on any thread, for those who need no more than the status. */
dibs_status put_quietly(dibs__pipeline *pl, int64_t ms, const char *command,
                        char *text, dibs_error *err);

/* Puts a command that must be answered so. */
void expect(piped *pd, const char *command, const char *answer);

/* Puts a command that must fail so; the message is in pd->err. */
void expect_status(piped *pd, int64_t ms, const char *command,
                   dibs_status status);

/* Puts a command again and again until it is answered, for ten seconds. */
void expect_soon(piped *pd, const char *command, const char *answer);

/* Has so many threads put commands at once, `rounds` each. Every answer must be the
 * one to its own command. */
void expect_crowd(piped *pd, int threads, int rounds);

/* Waits until a thread of this process, which writes its number there when it
 * begins, waits for something. */
void await_asleep(atomic_int *tid);

#endif
