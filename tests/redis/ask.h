/* ask.h - commands to a Redis server in blocking calls, for those who watch it
 * from outside: no part of dibs is used, so that none vouches for itself. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_REDIS_ASK_H
#define DIBS_TESTS_REDIS_ASK_H

#include <stdbool.h>
#include <stdio.h>

/* One connection. */
typedef struct asker {
    FILE *in;
    int fd;
} asker;

/* Connects to a unix socket. Close with asker_close(). */
bool asker_open(asker *as, const char *path);
void asker_close(asker *as);

/* Sends one command, `words` ended by NULL. */
bool asker_send(const asker *as, const char *const *words);

/* Reads one reply as text: elements of a list on lines of their own, an error
 * with its "-" before it. NULL when the connection ended. Free it with free(). */
char *asker_read(const asker *as);

#endif
