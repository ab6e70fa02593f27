/* hub.h - events for everybody who listens: one ring, and the route of its streams.
 *
 * Any thread publishes. Streams read on the loop's thread. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_HUB_H
#define DIBS_SERVE_HUB_H

#include "http/exchange.h"
#include "serve/look.h"
#include "serve/ring.h"
#include "serve/viewer.h"
#include <pthread.h>

/* Topics are bits; dibs__hub_topics() has their names. */
enum {
    DIBS__HUB_LOCKS = 1 << 0,
    DIBS__HUB_FEED = 1 << 1,
    DIBS__HUB_SERIES = 1 << 2,
    DIBS__HUB_JOBS = 1 << 3,
    DIBS__HUB_RUNS = 1 << 4,
    DIBS__HUB_ALL = (1 << 5) - 1
};

typedef void dibs__hub_wake_fn(void *arg);

typedef struct dibs__serve_hub {
    dibs__hub_wake_fn *wake;
    void *wake_arg;
    dibs__serve_look *look;     /* borrowed: looks on while anybody listens */
    dibs__serve_viewer *viewer; /* likewise; NULL: none */

    pthread_mutex_t mutex; /* for all below */
    dibs__ring ring;
    bool draining;
    size_t streams;
    uint64_t gaps; /* that streams got */
} dibs__serve_hub;

/* End with dibs__hub_fini(), when there are no streams any more. */
DIBS_MUST_CHECK dibs_status dibs__hub_init(dibs__serve_hub *hub,
                                           const char *epoch,
                                           dibs__hub_wake_fn *wake,
                                           void *wake_arg, dibs_error *err);
void dibs__hub_fini(dibs__serve_hub *hub);

/* Adds an event, a JSON object; `name` NULL: it is about many. */
void dibs__hub_publish(dibs__serve_hub *hub, uint32_t topic, const char *event,
                       const char *name, const char *json, size_t len);

/* A change of which nothing is known is a gap. */
void dibs__hub_gap(dibs__serve_hub *hub, uint32_t topic, const char *name);

/* As dibs__serve_seen_fn: publishes the difference of two pictures. */
void dibs__hub_seen(void *arg, const dibs__serve_picture *before,
                    const dibs__serve_picture *now);

/* Streams that are open, and gaps that streams got. */
void dibs__hub_count_get(dibs__serve_hub *hub, size_t *streams, uint64_t *gaps);

/* Streams say goaway and end. */
void dibs__hub_drain(dibs__serve_hub *hub);

/* Reads "locks,feed"; false: one of them is not known. NULL or "": all. Pure. */
DIBS_MUST_CHECK bool dibs__hub_topics(const char *text, uint32_t *out);

#endif
