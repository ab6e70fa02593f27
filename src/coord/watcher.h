/* watcher.h - what watches of values and of leaders share: a handle that waits until a
 * version changes, and drives the machine of watch_machine.h in real time.
 *
 * A watch lives on the thread that waits for it: that thread listens, looks and
 * fetches. The keeper passes the tells of the store on. Locks: cl->mutex guards all of
 * it. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_COORD_WATCHER_H
#define DIBS_COORD_WATCHER_H

#include "coord/handle.h"
#include "coord/watch_machine.h"

/* For messages: "cannot LOOK NAME", "THING NAME did not change". */
typedef struct dibs__watcher_words {
    const char *area; /* of the log */
    const char *look;
    const char *thing;
} dibs__watcher_words;

typedef struct dibs__watcher {
    dibs__handle handle; /* first, so that one is the other */
    dibs_client *cl;
    const dibs__watcher_words *words;
    const char *name; /* as the caller knows it */
    dibs__watch machine;
    pthread_cond_t cond;
    bool waiting; /* a thread waits for the next change */
    bool cancelled;
    bool deaf;          /* the store forbids it to listen; said once */
    bool away;          /* the last look failed */
    dibs_error failure; /* of that */
} dibs__watcher;

/* The functions of the handle. */
void dibs__watcher_wake(dibs__handle *handle);
void dibs__watcher_hear(dibs__handle *handle, const dibs__notice *notice);
void dibs__watcher_hear_missed(dibs__handle *handle);

#define DIBS__WATCHER_KIND                                                     \
    {                                                                          \
        .noun = "a watch", .wake = dibs__watcher_wake,                         \
        .hear = dibs__watcher_hear, .hear_missed = dibs__watcher_hear_missed   \
    }

/* Adds it to its client; the owner has set cl, words, name, and the handle. Locks: none
 * held, as in cancel and free. */
DIBS_MUST_CHECK dibs_status dibs__watcher_start(dibs__watcher *w,
                                                dibs_error *err);

/* Begins a wait, with cl->mutex locked if it is DIBS_OK; ends it, and unlocks. NULL is
 * DIBS_INVALID. */
DIBS_MUST_CHECK dibs_status dibs__watcher_begin(dibs__watcher *w,
                                                dibs_error *err);
void dibs__watcher_end(dibs__watcher *w);

/* Sleeps and listens until a look is due; *fetch: the value itself is. Locks:
 * cl->mutex, let go meanwhile. */
DIBS_MUST_CHECK dibs_status dibs__watcher_await(dibs__watcher *w,
                                                dibsx_nsec deadline,
                                                bool *fetch, dibs_error *err);

/* Notes how a look ended. DIBS_OK: the wait goes on, as it worked or may work later.
 * Locks: cl->mutex, let go for the log. */
DIBS_MUST_CHECK dibs_status dibs__watcher_note(dibs__watcher *w, dibs_status rc,
                                               const dibs_error *failure,
                                               dibs_error *err);

void dibs__watcher_cancel(dibs__watcher *w);

/* Frees it with what it is the first member of. */
void dibs__watcher_free(dibs__watcher *w);

#endif
