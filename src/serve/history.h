/* history.h - the latest holds of all locks, as far as the look has seen them: shorter
 * ones than its step can be missing.
 *
 * The look's thread adds, any thread reads. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_HISTORY_H
#define DIBS_SERVE_HISTORY_H

#include "base/json.h"
#include "serve/look.h"
#include <pthread.h>

enum {
    DIBS__SERVE_HOLDS_MAX = 64 * 1024,
    DIBS__SERVE_HOLDS_SHOWN = 256,
    DIBS__SERVE_HOLDS_CHAINS = 16 * 1024
};

typedef struct dibs__serve_hold {
    dibs_lease_info *row; /* the name, and one holder as it was first seen */
    int64_t granted_wall_us;
    int64_t ended_wall_us; /* 0: it is held, as far as is known */
    int64_t waited_ms;     /* -1: it was not seen while it waited */
    bool expired;          /* its time was over when it ended */
    uint64_t before;       /* the number of the one before in its chain, or 0 */
} dibs__serve_hold;

typedef struct dibs__serve_history {
    pthread_mutex_t mutex;
    dibs__serve_hold *holds; /* a ring; they are numbered from 1 on */
    uint64_t count;          /* that were ever added */
    uint64_t *newest;        /* of each chain, by the hash of names; 0: none */
    int64_t since_wall_us;
} dibs__serve_history;

DIBS_MUST_CHECK dibs_status
dibs__serve_history_init(dibs__serve_history *history, dibs_error *err);
void dibs__serve_history_fini(dibs__serve_history *history);

/* As dibs__serve_seen_fn. */
void dibs__serve_history_seen(void *arg, const dibs__serve_picture *before,
                              const dibs__serve_picture *now);

/* Writes the pairs of the answer: holds of a name, newest first. */
void dibs__serve_history_json(dibs__serve_history *history, const char *name,
                              size_t limit, dibsx_json *js);

#endif
