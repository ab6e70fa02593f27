/* subscription.h - the ordinary channel of a doorbell, on a connection:
 * subscribing to it, a ping, and its messages. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_BELL_SUBSCRIPTION_H
#define DIBS_STORE_REDIS_BELL_SUBSCRIPTION_H

#include "store/doorbell.h"
#include "store/redis/wire/conn.h"
#include "store/redis/wire/roster_keys.h"
#include "store/topic.h"

/* The channel of a bell is this and its address. */
#define DIBS__BELL_CHANNEL "dibs:bell:"

/* The channel of a topic is this and the topic; of a roster's: the key of the
 * roster. */
#define DIBS__TOPIC_CHANNEL "dibs:"

enum { DIBS__CHANNEL_MAX = DIBS__KEY_MAX };

/* The limit of an attempt to connect, and how long the connection may be quiet
 * before a ping. */
enum { DIBS__BELL_CONNECT_MS = 1000, DIBS__BELL_QUIET_MS = 15000 };

/* Subscribes to the channel of an address and waits for the reply. */
DIBS_MUST_CHECK dibs_status dibs__subscription_ask(const char *address,
                                                   dibs__conn *cn,
                                                   dibs_error *err);

/* The same without waiting, and a ping. The replies come like any other. */
DIBS_MUST_CHECK dibs_status dibs__subscription_tell(const char *address,
                                                    dibs__conn *cn,
                                                    dibs_error *err);
DIBS_MUST_CHECK dibs_status dibs__subscription_ping(dibs__conn *cn,
                                                    dibs_error *err);

/* Whether a channel is one of a bell; else it is of a topic. */
bool dibs__subscription_is_bell(const char *channel);

/* Passes a message on to the doorbell; ignores other replies. */
void dibs__subscription_handle(dibs__doorbell *base, const redisReply *reply);

#endif
