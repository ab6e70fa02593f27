/* turns.h - threads that take turns on one name and watch that nobody else does
 * meanwhile. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_REDIS_TURNS_H
#define DIBS_TESTS_REDIS_TURNS_H

#include "base/clock.h"
#include <dibs/dibs.h>

#include <stdatomic.h>

enum {
    TURNS_CLIENTS = 3,
    TURNS_EACH = 2, /* threads of each client */
    TURNS_LEAST = 20
};

typedef struct turns {
    const char *url;
    const char *name;
    int64_t ttl_ms;
    int64_t span_ms; /* for how long turns are begun, at least */
    atomic_bool over;
    atomic_int inside;
    atomic_llong counter;  /* read, then written: two holders lose a step */
    atomic_ullong fence;   /* of the last holder */
    atomic_llong taken;    /* turns */
    atomic_int two;        /* how often two were inside at once, */
    atomic_int backwards;  /* ... a fence did not rise, */
    atomic_int ended;      /* ... a lease did not last until its holder left, */
    atomic_int unserved;   /* ... an acquire failed, */
    atomic_int unanswered; /* ... a release did, */
    atomic_int odd;        /* ... one of them for another reason than time, */
    atomic_int warned;     /* ... and the library logged a warning */
} turns;

/* Takes turns until the time is over, and until there were TURNS_LEAST of them, which
 * takes longer on a slow machine; the results are in `tn`. While at it, calls nuisance(arg) every `every_ms` on the calling thread. */
void turns_run(turns *tn, void (*nuisance)(void *arg), void *arg,
               int64_t every_ms);

#endif
