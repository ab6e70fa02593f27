/* request.h - the way of a request, from its head to its answer. Not for users of the
 * server. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_HTTP_REQUEST_H
#define DIBS_HTTP_REQUEST_H

#include "http/inside.h"

/* The head is in: a copy is made of it. */
void dibs__http_begin(dibs__http_exchange *ex, const char *bytes, size_t len);

/* Bytes may have come for the body; returns how many were taken. */
size_t dibs__http_take(dibs__http_exchange *ex, const char *bytes, size_t len);

/* Answers at once with a refusal, and closes afterwards. */
void dibs__http_cut_short(dibs__http_exchange *ex, int status,
                          const char *message);

/* Sends the answer, which is whole; the other makes it so first. */
void dibs__http_send(dibs__http_exchange *ex);
void dibs__http_answer_now(dibs__http_exchange *ex);

/* From here on the exchange is one that a stop waits for. */
void dibs__http_engage(dibs__http_exchange *ex, dibs__http_phase phase,
                       int64_t span_ms);
dibs__http_job_fn dibs__http_work; /* on a thread of the pool */

#endif
