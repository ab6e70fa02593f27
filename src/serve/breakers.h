/* breakers.h - the breakers whose calls clients report: a handle for each, kept so that
 * its reports are counted together. Any thread. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_BREAKERS_H
#define DIBS_SERVE_BREAKERS_H

#include <dibs/breaker.h>
#include <pthread.h>

enum { DIBS__BREAKERS_MAX = 128 };

typedef struct dibs__serve_breaker {
    dibs_breaker *breaker; /* NULL: the place is free */
    char name[DIBS_NAME_MAX + 1];
    dibs_breaker_opts opts;
    size_t users;
    uint64_t used; /* rises with each use */
} dibs__serve_breaker;

typedef struct dibs__serve_breakers {
    dibs_client *cl; /* borrowed */
    bool made;
    pthread_mutex_t mutex; /* for all below */
    dibs__serve_breaker places[DIBS__BREAKERS_MAX];
    uint64_t uses;
} dibs__serve_breakers;

/* End with dibs__breakers_fini(), before the client is closed. */
void dibs__breakers_init(dibs__serve_breakers *all, dibs_client *cl);
void dibs__breakers_fini(dibs__serve_breakers *all);

/* The handle of a name with these options. It is the caller's until
 * dibs__breakers_give(). DIBS_FULL: all handles are in use. Blocks for the store. */
DIBS_MUST_CHECK dibs_status dibs__breakers_take(dibs__serve_breakers *all,
                                                const char *name,
                                                const dibs_breaker_opts *opts,
                                                dibs__serve_breaker **out,
                                                dibs_error *err);
void dibs__breakers_give(dibs__serve_breakers *all, dibs__serve_breaker *at);

#endif
