/* driver.h - how a ground of queues or jobs drives its store: which one it is, what is drawn,
 * when a fault is due, and the faults on servers and connections.
 *
 * For one thread of one program, which has one store. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_CHAOS_DRIVER_H
#define DIBS_TESTS_CHAOS_DRIVER_H

#include "ground.h"

/* A store that loses nothing of what it answered, and how it is killed; NULL: it is
 * embedded, and dies with all who have it open. A list ends with one without a name. */
typedef struct driver_place {
    const char *name, *kill;
} driver_place;

extern const ground *driver_ground; /* the embedded store, unless chosen */

/* False: the list has none of that name. */
bool driver_choose(const driver_place *places, const char *name);
bool driver_is_embedded(void);

/* Starts the store and writes its URL; an embedded one is `file` in the folder. */
bool driver_begin(const char *folder, const char *file, char url[URL_ROOM]);
void driver_end(void);

/* The same seed draws the same numbers. */
void driver_seed(uint64_t seed);
uint64_t driver_draw(void);

/* Whether the moment has come; then the next one is a span later. */
bool driver_is_due(int64_t *at_ns, int64_t span_ms);

/* Kill -9 of the server, and its return after up to away_ms. False: it did not come
 * back. */
bool driver_kill_server(int64_t away_ms);

/* Connections end: an answer is cut at a byte, or all are for up to away_ms, or requests
 * arrive and answers do not. Without a proxy the server ends them. */
void driver_cut(int64_t away_ms);

#endif
