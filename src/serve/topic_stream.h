/* topic_stream.h - streams of the events of durable topics, and of messages.
 *
 * A stream of events has a subscription of its own, on a thread of the library, since it
 * may begin at any position; a slow client makes it wait, and the store keeps what is to
 * come. A stream of messages has a listener, which a slow client makes miss some. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_TOPIC_STREAM_H
#define DIBS_SERVE_TOPIC_STREAM_H

#include "base/json.h"
#include "http/exchange.h"
#include <dibs/events.h>

void dibs__topic_stream_answer(dibs__http_exchange *ex, const char *topic,
                               const dibs_reader_opts *opts);

/* From the head of the answer on, the stream has each message, or says that it missed
 * some. */
void dibs__message_stream_answer(dibs__http_exchange *ex, const char *topic);

/* The pairs of an event, a gap or a fork; and "event", "gap" or "fork". */
void dibs__topic_event_json(dibsx_json *js, const dibs_event *event);
const char *dibs__topic_event_name(dibs_event_kind kind);

#endif
