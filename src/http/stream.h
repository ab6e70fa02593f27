/* stream.h - the turns of an answer that is a stream. Loop thread. Not for users of
 * the server. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_HTTP_STREAM_H
#define DIBS_HTTP_STREAM_H

#include "http/server.h"

/* Counts the stream in; false: there are too many. */
DIBS_MUST_CHECK bool dibs__http_stream_admit(dibs__http_exchange *ex);

/* Adds what the stream has now to what is to be sent, and frames it. */
void dibs__http_stream_fill(dibs__http_exchange *ex);

/* All of it is sent: asks for more, or parks the connection. */
void dibs__http_stream_go_on(dibs__http_exchange *ex);

/* Parked for as long as the stream may be silent: sends a sign of life. */
void dibs__http_stream_beat(dibs__http_exchange *ex);

/* How much the kernel has that the client has not acknowledged; -1: nobody knows. Counts
 * what was sent since there was so much `before`. */
int dibs__http_stream_unacked(const dibs__http_exchange *ex);
void dibs__http_stream_count(dibs__http_exchange *ex, int before, size_t sent);

/* Asks those that are parked. */
void dibs__http_streams_wake(dibs__http_server *server);

#endif
