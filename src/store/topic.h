/* topic.h - the topic steps of the store contract: notices for every handle that
 * listens.
 *
 * A topic is "KIND:NAME". Stores tell one themselves inside a step that changes
 * something: put, add and delete tell "value:KEY" the new version, 0 for none; meet
 * tells "roster:NAME" the generation that opened or broke; append tells "log:TOPIC"
 * the position. A tell reaches the
 * doorbells of the handles that listen, as DIBS__NOTICE_CHANGED (_OPENED, _BROKEN)
 * with the address of the topic for its owner and the number for its fence. Where
 * nobody listens, a tell sends nothing. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_TOPIC_H
#define DIBS_STORE_TOPIC_H

#include "base/clock.h"
#include <dibs/types.h>

struct dibs__store;

/* How long a handle listens after an ear. Asking again in time costs nothing. */
enum { DIBS__EAR_MS = 30000 };

enum { DIBS__TOPIC_MAX = DIBS_NAME_MAX + 16 }; /* with its NUL */

typedef struct dibs__topic_ops {
    /* Listens to a topic for DIBS__EAR_MS, or no more. A handle listens or not:
     * ears are not counted. The doorbell must be open.
     *   DIBS_OK       every tell that begins from now on is noticed, in order, or
     *                 DIBS__NOTICE_MISSED is; after that one the handle may not
     *                 listen any more, and asks again
     *   DIBS_UNAVAIL  it does not listen, for now; the caller looks by itself
     *   DIBS_DENIED   the store forbids it; so does it later */
    dibs_status (*ear)(struct dibs__store *st, const char *topic, bool on,
                       dibsx_nsec deadline, dibs_error *err);

    /* Tells a topic a number; changes nothing. */
    dibs_status (*tell)(struct dibs__store *st, const char *topic,
                        uint64_t number, dibsx_nsec deadline, dibs_error *err);

    /* Sends a message of up to DIBS__SAY_MAX bytes to every handle that listens, as
     * DIBS__NOTICE_SAID; keeps nothing.
     *   DIBS_UNKNOWN  to each of them once, or not at all */
    dibs_status (*say)(struct dibs__store *st, const char *topic,
                       const void *data, size_t len, dibsx_nsec deadline,
                       dibs_error *err);
} dibs__topic_ops;

/* As DIBS__LEASE_STEPS(). */
#define DIBS__TOPIC_STEPS(X)                                                   \
    X(ear, EAR)                                                                \
    X(tell, TELL)                                                              \
    X(say, SAY)

/* The topics of a value, a roster, a log and of messages. Pure, as the next. */
void dibs__topic_of_value(const char *key, char out[DIBS__TOPIC_MAX]);
void dibs__topic_of_roster(const char *name, char out[DIBS__TOPIC_MAX]);
void dibs__topic_of_log(const char *topic, char out[DIBS__TOPIC_MAX]);
void dibs__topic_of_messages(const char *topic, char out[DIBS__TOPIC_MAX]);

/* The address in notices: the first 128 bits of its SHA-1. */
void dibs__topic_address(const char *topic, char out[DIBS_OWNER_SIZE]);

#endif
