/* lasting.h - answers that outlast the function of their route: one that comes later,
 * and streams. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_HTTP_LASTING_H
#define DIBS_HTTP_LASTING_H

#include "http/exchange.h"

/* An answer that is to come later. The function of the route returns without one,
 * and the connection waits without a thread.
 *
 * `ask` is called at once, after every dibs__http_wake(), and with `over` at the end
 * of the wait or when the server stops. It answers and returns true; false: there is
 * nothing to answer yet. `gone` is called once afterwards, also when the client has
 * left. Both on the loop thread: they must not block. */
typedef struct dibs__http_later {
    bool (*ask)(dibs__http_exchange *ex, void *arg, bool over);
    void (*gone)(void *arg);
    void *arg;
    int64_t wait_ms; /* at least 1 */
} dibs__http_later;

void dibs__http_answer_later(dibs__http_exchange *ex,
                             const dibs__http_later *later);

enum { DIBS__HTTP_PULL_MAX = 64 * 1024 }; /* bytes that a pull may append */

/* Appends the next bytes of a stream. Nothing appended: there are none yet, and
 * the server asks again after dibs__http_wake(). False: the stream ends after
 * these. Loop thread: must not block. */
typedef bool dibs__http_pull_fn(void *arg, dibsx_buf *out);

/* Moves bytes into a pull, as many as it may append. True: some are left, so that a
 * frame may be out in part. */
DIBS_MUST_CHECK bool dibs__http_pull_part(dibsx_buf *from, dibsx_buf *out);

/* The stream is over: it has ended, was refused, its client has gone, or the
 * server stops. Called once, after the last pull. Any thread of the server. */
typedef void dibs__http_gone_fn(void *arg);

/* Texts are borrowed until `gone`. A stream has no queue of its own: it is asked
 * for more when the client has taken what was given before. */
typedef struct dibs__http_stream {
    const char *type; /* "text/event-stream" */
    dibs__http_pull_fn *pull;
    dibs__http_gone_fn *gone;
    void *arg;
    int64_t idle_ms;  /* after so long without bytes ...; 0: never */
    const char *idle; /* ... these are sent: ": beat\n\n" */
} dibs__http_stream;

/* Answers with a stream, and status 200. 503 instead when there are too many
 * (dibs__http_opts.streams_max). */
void dibs__http_answer_stream(dibs__http_exchange *ex,
                              const dibs__http_stream *stream);

/* How much of a stream was sent, as the kernel counts it, and whether the client's end
 * has acknowledged as much as was sent when that was `mark`; false also when nobody
 * knows. On a unix socket the client has to read it for that. Loop thread, while the
 * exchange has its connection. */
uint64_t dibs__http_sent(const dibs__http_exchange *ex);
bool dibs__http_acked(const dibs__http_exchange *ex, uint64_t mark);

#endif
