/* feed.h - the latest events of a worker, and the streams that follow them.
 *
 * Each event is formatted once, as the frame that streams send. A stream has its place
 * in the ring and nothing else: one that falls behind gets the number of events that
 * it has missed. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_DEMO_FEED_H
#define DIBS_DEMO_FEED_H

#include "http/server.h"
#include <pthread.h>

enum { DIBS__DEMO_FEED_MAX = 256 }; /* events that are kept */

typedef struct dibs__demo_feed {
    char epoch[9]; /* drawn at the start: numbers of another are not ours */
    pthread_mutex_t mutex; /* for what follows */
    uint64_t next;         /* the number of the next event; the first is 1 */
    char *frames[DIBS__DEMO_FEED_MAX]; /* event N at N modulo this */
    dibs__http_server *server;         /* to be woken, or NULL */
} dibs__demo_feed;

/* End with dibs__demo_feed_fini(), when there are no streams any more. */
DIBS_MUST_CHECK dibs_status dibs__demo_feed_init(dibs__demo_feed *feed,
                                                 dibs_error *err);
void dibs__demo_feed_fini(dibs__demo_feed *feed);

/* Adds an event, a JSON object. Any thread. */
void dibs__demo_feed_add(dibs__demo_feed *feed, const char *json, size_t len);

/* The server whose streams follow; NULL before it stops. */
void dibs__demo_feed_serve(dibs__demo_feed *feed, dibs__http_server *server);

/* Answers with a stream of what is kept, or what came after Last-Event-ID, and of
 * what is added from now on. */
void dibs__demo_feed_answer(dibs__demo_feed *feed, dibs__http_exchange *ex);

#endif
