/* health.h - the health of the store, checked at most once in five seconds for all
 * who ask, by one thread. The others wait for it for a moment, and hear what it was before
 * if the store takes longer. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_HEALTH_H
#define DIBS_SERVE_HEALTH_H

#include "base/clock.h"
#include "base/json.h"
#include <dibs/dibs.h>
#include <pthread.h>

enum { DIBS__SERVE_PARTS_MAX = 5 };

typedef struct dibs__serve_part {
    char name[16];
    bool ok;
    int64_t took_us;
} dibs__serve_part;

typedef struct dibs__serve_health {
    pthread_mutex_t mutex;
    pthread_cond_t checked;
    bool can_wait; /* for it; false: the system had no condition left */
    bool checking;
    dibsx_nsec checked_at; /* 0: never */
    bool healthy;
    dibs__serve_part parts[DIBS__SERVE_PARTS_MAX];
    size_t count;
} dibs__serve_health;

void dibs__serve_health_init(dibs__serve_health *health);
void dibs__serve_health_fini(dibs__serve_health *health);

/* Blocks for the store if nobody else does, else for a second at most. `data` is the store
 * of what is no lock, and a part "data" if it is another. Not healthy before the first check
 * has ended. */
bool dibs__serve_health_ask(dibs__serve_health *health, dibs_client *cl,
                            dibs_client *data);

/* Writes "checks":[...]. */
void dibs__serve_health_json(dibs__serve_health *health, dibsx_json *js);

#endif
