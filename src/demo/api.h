/* api.h - the HTTP interface of a worker. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_DEMO_API_H
#define DIBS_DEMO_API_H

#include "demo/work.h"
#include "http/server.h"

/* Starts the server of a worker on its port of the loopback interface. End with
 * dibs__demo_api_stop(). */
DIBS_MUST_CHECK dibs_status dibs__demo_api_start(dibs__demo_work *work,
                                                 dibs__http_server **out,
                                                 dibs_error *err);

/* To be called after dibs__demo_work_stop(). Requests under way have `grace_ms`. NULL
 * is a no-op. */
void dibs__demo_api_stop(dibs__demo_work *work, dibs__http_server *server,
                         int64_t grace_ms);

#endif
