/* subscription.h - the ordinary channel of a doorbell, on a connection: subscribing
 * to it, a sign of life, and the messages that come. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_BELL_SUBSCRIPTION_H
#define DIBS_STORE_REDIS_BELL_SUBSCRIPTION_H

#include "store/doorbell.h"
#include "store/redis/wire/conn.h"

/* The channel of a bell is this and its address. */
#define DIBS__BELL_CHANNEL "dibs:bell:"

/* How long an attempt to connect may take, and nothing may be heard before the
 * server is asked whether it is there. */
enum { DIBS__BELL_CONNECT_MS = 1000, DIBS__BELL_QUIET_MS = 15000 };

/* Subscribes to the channel of an address and waits for the reply. */
DIBS_MUST_CHECK dibs_status dibs__subscription_ask(const char *address,
                                                   dibs__conn *cn,
                                                   dibs_error *err);

/* The same without waiting, and a question whether the server is there: replies
 * are heard like any other. */
DIBS_MUST_CHECK dibs_status dibs__subscription_tell(const char *address,
                                                    dibs__conn *cn,
                                                    dibs_error *err);
DIBS_MUST_CHECK dibs_status dibs__subscription_ping(dibs__conn *cn,
                                                    dibs_error *err);

/* Passes a message on to who listens; other replies are none. */
void dibs__subscription_handle(dibs__doorbell *base, const redisReply *reply);

#endif
