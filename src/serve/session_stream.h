/* session_stream.h - the stream of a session: what happens to its leases, and beats. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_SESSION_STREAM_H
#define DIBS_SERVE_SESSION_STREAM_H

#include "http/exchange.h"
#include "serve/session.h"

/* Answers with the stream of the session, which replaces the one before when it begins.
 * Locks: mutex. */
void dibs__session_stream_answer(dibs__serve_session *se,
                                 dibs__http_exchange *ex);

#endif
