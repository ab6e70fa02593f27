/* want.h - an acquire that a request waits for, without a thread of its own.
 *
 *     begun --> granted --> answered: the lease is left to the client
 *        |          +-----> the client has gone: given back
 *        +----> gone: cancelled, and given back if it was granted meanwhile
 *
 * Two own it: the request (loop thread) and the asynchronous call (threads of the
 * client). The last one frees it. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_WANT_H
#define DIBS_SERVE_WANT_H

#include "http/server.h"
#include <dibs/dibs.h>

/* Takes the handle over, acquires it, and answers `ex` later: 201 with the token, or
 * the failure. */
void dibs__serve_want_begin(dibs__http_exchange *ex, dibs_lock *lock,
                            const char *name, int64_t wait_ms);

/* Answers with a lease that is held: its token, fence and time. */
void dibs__serve_answer_lease(dibs__http_exchange *ex, int status,
                              const dibs_lock *lock);

/* Answers that a name was not granted, and adds its holder if that is known. */
void dibs__serve_answer_busy(dibs__http_exchange *ex, const dibs_error *err,
                             const char *name);

/* The time that a client may rely on: less than there is, for clocks differ. Pure. */
int64_t dibs__serve_valid_ms(int64_t valid_ms);

#endif
