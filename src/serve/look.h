/* look.h - the look: all locks of the store, once a second, for all who ask.
 *
 *     look thread: scan --> picture --> told to the listener --> pause
 *     others:      take the latest picture, read it, let go of it
 *
 * A picture does not change, so that any thread reads it without a mutex. While nobody
 * has asked for a picture for some seconds, the look rests but for one scan a minute.
 * The pause after a scan is at least 20 times as long as the scan took. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_LOOK_H
#define DIBS_SERVE_LOOK_H

#include "base/clock.h"
#include "base/lag.h"
#include "serve/life.h"
#include <dibs/dibs.h>
#include <stdatomic.h>

enum { DIBS__SERVE_NAMES_MAX = 100000, DIBS__SERVE_LISTENERS_MAX = 4 };

typedef struct dibs__serve_picture {
    atomic_size_t users;
    uint64_t number;    /* rises with each */
    dibsx_nsec seen_at; /* when the scan began */
    int64_t took_us;    /* the scan */
    dibs_status rc;     /* of the scan; rows are those of before if it failed */
    dibs_error err;
    dibs_lease_info **rows; /* by name, in the order of the store's listing */
    size_t count;
    bool complete; /* false: there are more names than a picture has */
} dibs__serve_picture;

/* Called on the look's thread once `now` is the latest picture; `before` is NULL at
 * first. */
typedef void dibs__serve_seen_fn(void *arg, const dibs__serve_picture *before,
                                 const dibs__serve_picture *now);

typedef struct dibs__serve_look {
    dibs_client *cl; /* borrowed */
    int64_t every_ms;
    struct {
        dibs__serve_seen_fn *seen;
        void *arg;
    } listeners[DIBS__SERVE_LISTENERS_MAX];
    size_t listener_count;

    dibs__serve_life life;       /* its mutex is for all below */
    dibs__serve_picture *latest; /* NULL before the first */
    dibsx_nsec wanted_at;        /* when it was last asked for */
    bool answered;               /* the store did, once */
    bool always;                 /* somebody listens all the time */
    bool away;     /* its thread does not run, or asks the store */
    dibsx_lag lag; /* of the thread */
} dibs__serve_look;

/* End with dibs__serve_look_fini(). */
DIBS_MUST_CHECK dibs_status dibs__serve_look_init(dibs__serve_look *look,
                                                  dibs_client *cl,
                                                  int64_t every_ms,
                                                  dibs_error *err);
void dibs__serve_look_fini(dibs__serve_look *look);

/* Pictures can be taken before, between and after these. A stop without a start is
 * a no-op. */
DIBS_MUST_CHECK dibs_status dibs__serve_look_start(dibs__serve_look *look,
                                                   dibs_error *err);
void dibs__serve_look_stop(dibs__serve_look *look);

/* Asks the thread for a sign of life; how long an earlier question has been without an
 * answer at `now`. While it asks the store it owes none: a slow store is no fault of the
 * daemon. */
dibsx_nsec dibs__serve_look_lag(dibs__serve_look *look, dibsx_nsec now);

/* Adds a listener, before the start. */
void dibs__serve_look_listen(dibs__serve_look *look, dibs__serve_seen_fn *seen,
                             void *arg);

/* Whether to look on while nobody asks. */
void dibs__serve_look_always(dibs__serve_look *look, bool always);

/* The latest picture that is no older than the look's pace; waits for it, for
 * `wait_ms` at most. May be older, or NULL before the first one. End with
 * dibs__serve_picture_drop(). */
dibs__serve_picture *
dibs__serve_look_take(dibs__serve_look *look, int64_t wait_ms);
void dibs__serve_picture_drop(dibs__serve_picture *picture);

/* The row of a name, or NULL. */
const dibs_lease_info *
dibs__serve_picture_find(const dibs__serve_picture *picture, const char *name);

/* Whether it would have a row of this name: one that is not complete ends with its last
 * row. */
bool dibs__serve_picture_covers(const dibs__serve_picture *picture,
                                const char *name);

/* Whether it tells of the name as it was at some moment after `since`: `info` is its row, or
 * NULL if the name was free. A failed scan tells nothing. */
bool dibs__serve_picture_tells(const dibs__serve_picture *picture,
                               const char *name, dibsx_nsec since,
                               const dibs_lease_info **info);

/* Whether the store has answered a scan yet. Until then the look does not rest. */
bool dibs__serve_look_answered(dibs__serve_look *look);

#endif
