/* find.h - finding the primary, for the other files of the sentinels.
 *
 * One thread asks at a time; a thread that comes meanwhile uses its answer:
 *
 *     find --> asking --> answered (another primary: all connections drop)
 *                   \---> no sentinel answered */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_SENTINEL_FIND_H
#define DIBS_STORE_REDIS_SENTINEL_FIND_H

#include "store/redis/sentinel/sentinel.h"
#include "store/redis/sentinel/watch.h"
#include <stdatomic.h>

enum { DIBS__SENTINELS_MAX = 32 };

/* If a sentinel does not answer this soon, the next one is asked; when none
 * does, the next round is more patient. */
enum { DIBS__SENTINEL_PATIENCE_MS = 200 };

/* An attempt to connect to the primary that is under way. */
typedef struct dibs__attempt {
    struct dibs__attempt *next;
    int abort_fd; /* -1: it cannot be given up */
    uint64_t moves;
} dibs__attempt;

struct dibs__sentinel {
    const dibs__redis_conf *conf;
    dibs__moved_fn *moved;
    void *moved_arg;

    pthread_mutex_t mutex; /* guards all that follows */
    pthread_cond_t asked;  /* `asking` has ended */
    bool asking;
    bool stopped;
    dibs__endpoint
        list[DIBS__SENTINELS_MAX]; /* the one that answered last is the first */
    size_t count;
    dibs__endpoint primary;
    dibsx_nsec answered_at; /* when a sentinel named it */
    dibs__attempt *attempts;
    _Atomic(uint64_t) moves; /* how often connections had to be dropped */
    dibs__sentinel_watch watch;
    bool doubted; /* the answer of the first of the list was of no use */

    /* The asking thread's. */
    dibs__conn *cn; /* to the first of the list, NULL: none */
    int64_t patience_ms;
};

/* Asks which server is the primary. */
DIBS_MUST_CHECK dibs_status dibs__sentinel_find(dibs__sentinel *sn,
                                                dibsx_nsec deadline,
                                                dibs__endpoint *out,
                                                dibs_error *err);

/* Another server is said to be the primary. */
void dibs__sentinel_heard(dibs__sentinel *sn, const dibs__endpoint *primary);

/* Drops all connections to the old primary. Locks: none held. */
void dibs__sentinel_tell_moved(dibs__sentinel *sn);

#endif
