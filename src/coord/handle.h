/* handle.h - the handles of a client that this folder makes, in one list.
 *
 * A node is embedded in each handle. The list is attached to the client with the first
 * one; it also passes the notices of the store on. Stores do not count ears: the client
 * listens to a topic or does not, whichever handle asked.
 *
 *   (1) A tell reaches every handle of its topic.
 *   (2) The client gives a topic up with the last handle of it. One that was made
 *       meanwhile may not be heard, and learns that tells were missed.
 *   (3) dibs_close() wakes every handle, and waits until no call is under way.
 *
 * Locks: cl->mutex for everything here. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_COORD_HANDLE_H
#define DIBS_COORD_HANDLE_H

#include "core/client.h"
#include "store/topic.h"

typedef struct dibs__handle dibs__handle;

/* The same for all handles of a primitive. hear and hear_missed never let the mutex go,
 * and are NULL where no topic is. Thread: the keeper, mostly. */
typedef struct dibs__handle_kind {
    const char *noun; /* "a watch" */
    /* The client is being closed: calls end. May let the mutex go; the handle does not
     * leave meanwhile. NULL: they end without it. */
    void (*wake)(dibs__handle *handle);
    void (*hear)(dibs__handle *handle, const dibs__notice *notice);
    void (*hear_missed)(dibs__handle *handle);
} dibs__handle_kind;

/* The owner sets kind and topic. */
struct dibs__handle {
    const dibs__handle_kind *kind;
    char topic[DIBS__TOPIC_MAX]; /* "": none */
    char address[DIBS_OWNER_SIZE];
    bool ear;    /* the client listens: the last of the topic gives that up */
    bool waking; /* wake() is under way */
    struct dibs__handles *all;
    dibs__handle *next;
    dibs__handle **at; /* what points to it in the list */
};

/* Adds it to the list of the client, which stays until the handle leaves. The keeper
 * runs if the kind hears. DIBS_NOMEM. */
DIBS_MUST_CHECK dibs_status dibs__handle_join(dibs_client *cl,
                                              dibs__handle *handle,
                                              dibs_error *err);

/* Takes it out; no call of it is under way. True: it was the last of a client that is
 * closed; the caller frees the client after it. Lets the mutex go for the store, and while
 * wake() is under way. */
DIBS_MUST_CHECK bool dibs__handle_leave(dibs__handle *handle);

/* A call begins, and ends: the client is not closed between. */
void dibs__handle_begin(dibs__handle *handle);
void dibs__handle_end(dibs__handle *handle);

/* Opens the doorbell and asks for an ear. As topic.h says; DIBS_UNSUPPORTED. Lets the
 * mutex go meanwhile. */
DIBS_MUST_CHECK dibs_status dibs__handle_listen(dibs__handle *handle,
                                                dibsx_nsec deadline,
                                                dibs_error *err);

/* The next handle of a client and of this kind; `after` NULL: the first. */
dibs__handle *
dibs__handle_next(const dibs__handle_kind *kind, const dibs_client *cl,
                  const dibs__handle *after);

#endif
