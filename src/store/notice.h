/* notice.h - the notices that a store sends to the doorbell of a client.
 *
 * Notices are hints: any may be lost, late, repeated, or about a lease that has
 * ended. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_NOTICE_H
#define DIBS_STORE_NOTICE_H

#include <dibs/types.h>
#include <stddef.h>

typedef enum dibs__notice_kind {
    DIBS__NOTICE_GRANTED, /* the place in the queue became a claim */
    DIBS__NOTICE_BROKEN,  /* the lease was revoked; of the topic of a roster: a
                             generation broke */
    DIBS__NOTICE_WANTED, /* another was refused because of this lease, which was
                           acquired with DIBS__ASK_TELL */
    DIBS__NOTICE_YIELD,  /* another client asks for it back */
    DIBS__NOTICE_CHANGED, /* a step told a topic; topic.h has its owner */
    DIBS__NOTICE_OPENED,  /* as CHANGED: a generation of a roster has opened */
    DIBS__NOTICE_ITEMS, /* to a lane of a queue: ask; dibs__lane_address() is its
                             owner, the fence that of what was handed over, or 0 */
    DIBS__NOTICE_SAID,  /* a message to a topic, as CHANGED; it is in `said` */
    DIBS__NOTICE_MISSED /* notices may have been lost: waiters should ask again;
                           has neither owner nor fence */
} dibs__notice_kind;

/* The longest message, which fits into a write to a pipe and a NOTIFY. */
enum { DIBS__SAY_MAX = 3900 };

typedef struct dibs__said {
    size_t len;
    char data[];
} dibs__said;

/* A notice on the doorbell of a client. */
typedef struct dibs__notice {
    char owner[DIBS_OWNER_SIZE];
    dibs__notice_kind kind;
    uint64_t fence; /* of the grant, or of the lease that was revoked; of a
                       topic: the number that it got */
    /* A message, or what a change shows; else NULL. A reader of the doorbell frees it. */
    dibs__said *said;
} dibs__notice;

/* A message that was heard, with room for its data; NULL: no memory, or too long. */
dibs__said *dibs__said_new(size_t len);

/* The text of a put that shows its value (value.h). */
enum { DIBS__SHOWN_MAX = 31, DIBS__SHOWN_TEXT = 64 };

/* Frees what a notice has. */
void dibs__notice_drop(dibs__notice *notice);

/* Takes a notice at once: true when that was all that it called for; else it is kept
 * for doorbell_read. Thread: one that listens for the store, which holds no lock and
 * hears nothing else meanwhile. */
typedef bool dibs__notice_tap(void *arg, const dibs__notice *notice);

/* Reads "OWNER KIND FENCE", as the servers pass it on, and behind a change what was shown.
 * False when it is something else: anyone may have written to the channel. */
bool dibs__notice_read(const char *text, dibs__notice *notice);

#endif
