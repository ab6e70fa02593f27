/* topic_stream.h - streams of the events of durable topics.
 *
 * A stream has a subscription of its own, on a thread of the library, since it may begin
 * at any position. It hands events over in a buffer of bounded size, and waits while the
 * client does not read: the store keeps what is to come. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_TOPIC_STREAM_H
#define DIBS_SERVE_TOPIC_STREAM_H

#include "http/exchange.h"
#include <dibs/events.h>
#include <pthread.h>

enum { DIBS__TOPIC_STREAMS_MAX = 64 };

typedef struct dibs__serve_topics {
    bool made;
    pthread_mutex_t mutex; /* for all below */
    pthread_cond_t cond;
    size_t streams;
} dibs__serve_topics;

/* End with dibs__topics_fini() after the server has ended, before the client is closed:
 * it waits for subscriptions to end. */
DIBS_MUST_CHECK dibs_status dibs__topics_init(dibs__serve_topics *topics,
                                              dibs_error *err);
void dibs__topics_fini(dibs__serve_topics *topics);

void dibs__topic_stream_answer(dibs__http_exchange *ex, const char *topic,
                               const dibs_reader_opts *opts);

/* The pairs of an event, a gap or a fork; and "event", "gap" or "fork". */
void dibs__topic_event_json(dibsx_json *js, const dibs_event *event);
const char *dibs__topic_event_name(dibs_event_kind kind);

#endif
