/* noun_sums.h - metrics of elections, queues, breakers and deadlocks, from the look and
 * the catalogs. A noun has as many labels as DIBS__NOUN_LABELS_MAX. Further queues are
 * "other"; further elections and breakers are left out.
 *
 * Any thread. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_NOUN_SUMS_H
#define DIBS_SERVE_NOUN_SUMS_H

#include "base/buf.h"
#include "serve/catalog.h"
#include "serve/look.h"

enum { DIBS__NOUN_LABELS_MAX = 100 };

/* A thing whose changes are counted. */
typedef struct dibs__noun_changed {
    char name[DIBS_NAME_MAX + 1];
    uint64_t version; /* a term, or the version of a breaker */
    int state;
    uint64_t changes;
} dibs__noun_changed;

typedef struct dibs__noun_changes {
    dibs__noun_changed *at; /* DIBS__NOUN_LABELS_MAX of them; NULL: none yet */
    size_t count;
    dibsx_nsec seen_at; /* of the latest page that was compared */
} dibs__noun_changes;

typedef struct dibs__noun_sums {
    pthread_mutex_t mutex; /* for all below */
    dibs__noun_changes elections, breakers;
    uint64_t deadlocks; /* when they were last looked for: */
    dibsx_nsec looked_at;
} dibs__noun_sums;

void dibs__noun_sums_init(dibs__noun_sums *sums);
void dibs__noun_sums_fini(dibs__noun_sums *sums);

/* Append the metrics. */
void dibs__noun_sums_elections(dibs__noun_sums *sums,
                               const dibs__serve_picture *picture,
                               dibsx_buf *out);
void dibs__noun_sums_queues(const dibs__catalog_page *page, dibsx_buf *out);
void dibs__noun_sums_breakers(dibs__noun_sums *sums,
                              const dibs__catalog_page *page, dibsx_buf *out);

/* How many deadlocks there are; `waits`: somebody waits at all. Asks the store for them
 * once a second at most. */
uint64_t
dibs__noun_sums_deadlocks(dibs__noun_sums *sums, dibs_client *cl, bool waits);

#endif
