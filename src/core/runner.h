/* runner.h - the threads of asynchronous calls: they do steps that talk to the store, and run
 * callbacks.
 *
 * A few runners, each started when it is first needed. The steps of one key are
 * done by one runner, in order. Callbacks are run by any runner, or by
 * dibs_async_process() once the program has asked for the descriptor.
 *
 *   (1) A call is under way from dibs__runner_enter() to dibs__runner_leave(). The close of
 *       the client waits for it, and for callbacks that run.
 *   (2) A node is in one list at most.
 *
 * Owns the runners; attached to the client with the first call. Locks: cl->mutex for
 * everything here. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_RUNNER_H
#define DIBS_CORE_RUNNER_H

#include "core/attach.h"
#include <dibs/async.h>
#include <pthread.h>

typedef struct dibs__call_node dibs__call_node;

/* A step or a callback of a call, inside which it lives. */
struct dibs__call_node {
    dibs__call_node *next; /* in a list */
    dibs__call_node **at;  /* what points at it there; NULL: in none */
    /* A step, or the callback: then false means that none ran. The call may be freed.
     * Locks: cl->mutex, let go meanwhile. */
    bool (*run)(dibs__call_node *node);
};

/* In the order in which they came. */
typedef struct dibs__call_list {
    dibs__call_node *first;
    dibs__call_node **end;
    size_t count;
} dibs__call_list;

enum { DIBS__RUNNERS = 4 };

typedef struct dibs__runner {
    dibs_client *cl;
    pthread_t thread;
    bool running;
    bool idle;
    pthread_cond_t cond;
    dibs__call_list ready; /* steps to do */
    void *room;            /* for the steps themselves, freed with the runner */
} dibs__runner;

typedef struct dibs__async {
    dibs__attached attached; /* first, so that one is the other */
    dibs__runner runners[DIBS__RUNNERS];
    dibs__call_list ended; /* callbacks to run */
    bool announced;        /* the event is set */
    size_t calls;          /* under way */
    size_t calling;        /* callbacks that run */
    bool stopping;         /* the runners are to end */
    int fd; /* eventfd of the program's loop; -1: runners call back */
} dibs__async;

/* Attaches the runners to the client, before those who use them: they end after them then.
 * False: no memory. */
DIBS_MUST_CHECK bool dibs__runner_attach(dibs_client *cl);

/* Begins a call: *out is the runner of the key, running. */
DIBS_MUST_CHECK dibs_status dibs__runner_enter(dibs_client *cl, uint64_t key,
                                               dibs__runner **out,
                                               dibs_error *err);

/* The call is over: its callback is about to run, or never will. */
void dibs__runner_leave(dibs_client *cl);

/* Whether it has nothing to do. */
bool dibs__runner_is_idle(const dibs__runner *rn);

/* Adds a step, behind the others or before them. */
void dibs__runner_add(dibs__runner *rn, dibs__call_node *step, bool first);

/* Takes out the first step, if it is one of this kind; NULL if not. */
dibs__call_node *
dibs__runner_take(dibs__runner *rn, bool (*run)(dibs__call_node *node));

/* Adds a callback, which is run soon, and never inside this. */
void dibs__runner_post(dibs__runner *rn, dibs__call_node *callback);

/* Take a step and a callback out; false when it is in no list. */
bool dibs__runner_remove(dibs__runner *rn, dibs__call_node *step);
bool dibs__runner_unpost(dibs__runner *rn, dibs__call_node *callback);

#endif
