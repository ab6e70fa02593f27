/* attempt_world.h - an executor for a test, and commands on it. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_ATTEMPT_WORLD_H
#define DIBS_TESTS_ATTEMPT_WORLD_H

#include "check.h"
#include "exec/executor.h"

#include <sys/types.h>

enum { WORLD_SLOTS = 64, WORLD_TEXT = 128 * 1024 };

typedef struct world {
    dibs__executor *ex;
    char text[WORLD_TEXT]; /* of world_text() */
    int fds;               /* that were open before */
} world;

int world_make(void **state);
int world_drop(void **state);

/* A shell text with PATH as all of its environment, and output that is kept. */
dibs__attempt_spec world_spec(const char *shell);

dibs__attempt *world_start(world *w, const dibs__attempt_spec *spec);
dibs__attempt *world_shell(world *w, const char *shell);

/* Serves the executor until the attempt has ended; it is to be freed. */
dibs__attempt_end world_await(world *w, dibs__attempt *at);

/* Serves it until one line of the output begins with `word`; the number behind that. */
pid_t world_number(world *w, dibs__attempt *at, const char *word);

/* All of the output that is kept. */
const char *world_text(world *w, dibs__attempt *at);

/* Whether a process lives: zombies do not. */
bool is_alive(pid_t pid);

/* Waits until it does not. */
void await_death(pid_t pid);

pid_t parent_of(pid_t pid);

/* The process of the world's executor. */
pid_t executor_pid(void);

#endif
