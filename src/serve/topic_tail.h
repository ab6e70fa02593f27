/* topic_tail.h - frames of a topic that wait until the client of a stream reads them.
 *
 * A source, on a thread of its own, puts frames into a buffer of bounded size, and waits
 * while the client does not read. Owns the buffer, and the count of such streams. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_TOPIC_TAIL_H
#define DIBS_SERVE_TOPIC_TAIL_H

#include "base/buf.h"
#include "http/exchange.h"
#include <dibs/types.h>
#include <pthread.h>

enum {
    DIBS__TOPIC_STREAMS_MAX = 64,
    DIBS__TOPIC_TEXT_MAX = 512 * 1024 /* of one frame as JSON */
};

typedef struct dibs__serve_topics {
    bool made;
    pthread_mutex_t mutex; /* for all below */
    pthread_cond_t cond;
    size_t streams;
} dibs__serve_topics;

/* End with dibs__topics_fini() after the server has ended, before the client is closed:
 * it waits for sources to end. */
DIBS_MUST_CHECK dibs_status dibs__topics_init(dibs__serve_topics *topics,
                                              dibs_error *err);
void dibs__topics_fini(dibs__serve_topics *topics);

typedef struct dibs__topic_tail dibs__topic_tail;

/* Ends a source: it puts nothing afterwards. May wait, on a thread of its own. */
typedef void dibs__topic_end_fn(void *source);

/* One more stream, whose source may begin; NULL: the request was refused. */
dibs__topic_tail *dibs__topic_tail_new(dibs__http_exchange *ex);

/* Frees one whose source did not begin. */
void dibs__topic_tail_drop(dibs__topic_tail *tl);

/* Answers the request with the stream, which ends the source when it is over. */
void dibs__topic_tail_answer(dibs__topic_tail *tl, dibs__topic_end_fn *end,
                             void *source);

/* Adds a frame; `id` may be NULL. Waits while the client does not read. False: the stream
 * is over. Thread: the source's, as the next. */
bool dibs__topic_tail_put(dibs__topic_tail *tl, const char *id,
                          const char *name, dibsx_buf *text);

/* The source has no more: the client is to come again. */
void dibs__topic_tail_close(dibs__topic_tail *tl);

#endif
