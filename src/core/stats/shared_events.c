/* shared_events.c - tells viewers what happens to the leases of a client; see
 * shared_events.h.
 *
 *     note --> gathered --> PAUSE_MS later: a round
 *     round:   there are viewers, or were within BELIEF_MS  --> sent
 *              there are none                               --> dropped, and no event is
 *                                                              gathered for BELIEF_MS
 *              the store does not say                       --> as it was; counted
 *
 *   (1) A round (sharing.h) asks for viewers once in BELIEF_MS at most.
 *   (2) Events that viewers do not get, because there were too many or the store did not
 *       answer, are counted, and the next message says so.
 *
 * Thread: a worker, and at the end the one that closes the client. It removes the gathered
 * events under the mutex, and talks to the store without it. */
/* SPDX-License-Identifier: MIT */
#include "core/stats/shared_events.h"

#include "base/alloc.h"
#include "core/lease_event.h"
#include "core/log.h"
#include "core/names.h"
#include "core/reach.h"
#include "core/stats/sharing.h"
#include "core/who.h"
#include <dibs/state.h>
#include <stdio.h>
#include <string.h>

enum { PAUSE_MS = 250, BELIEF_MS = 2000 };

/* How long the last events of a client that is closed may take. */
enum { CLOSE_MS = 500 };

/* The most that is gathered, and the messages that it takes at most. */
enum { EVENTS_MAX = 128, ROUND_MESSAGES = 16 };

_Static_assert(((int)DIBS__SAY_MAX - (int)DIBS__VIEW_HEAD_MAX) /
                       (int)DIBS__VIEW_LINE_MAX * (int)ROUND_MESSAGES >=
                   (int)EVENTS_MAX,
               "a round has room for all that is gathered");

typedef struct gathered {
    size_t count;
    dibs__lease_event events[EVENTS_MAX];
} gathered;

struct dibs__shared_events {
    dibs__sharing sharing; /* first, so that one is the other */
    gathered *events;      /* NULL: none */
    uint64_t dropped;      /* since the last message */
    bool viewed;           /* there were viewers when it last looked, */
    dibsx_nsec look_again; /* ... and that is believed until then */
};

typedef struct dibs__shared_events shared_events;

/* DIBS_OK: somebody views; DIBS_NOTFOUND: nobody does; else the store does not say. */
static dibs_status find_viewers(dibs_client *cl, dibsx_nsec deadline)
{
    char key[DIBS_NAME_MAX + 1];
    dibs_value value = {0};
    dibs_error err = {0};
    dibs_status rc = dibs__name_full(cl, DIBS__VIEWERS_KEY, key, &err);

    if (rc == DIBS_OK)
        rc = dibs__reach_store(cl, deadline, &err);
    if (rc == DIBS_OK)
        rc = cl->st->ops->value->get(cl->st, key, deadline, &value, &err);
    dibs_value_free(&value);
    if (rc != DIBS_OK && rc != DIBS_NOTFOUND)
        dibs__log(cl, DIBS_LOG_DEBUG, "share",
                  "the store does not say whether somebody views: %s",
                  err.message);
    return rc;
}

static dibs_status send_text(dibs_client *cl, const dibsx_buf *text,
                             dibsx_nsec deadline, dibs_error *err)
{
    char name[DIBS_NAME_MAX + 1], topic[DIBS__TOPIC_MAX];
    dibs_status rc = dibs__name_full(cl, DIBS__VIEW_TOPIC, name, err);

    if (rc != DIBS_OK)
        return rc;
    dibs__topic_of_messages(name, topic);
    return cl->st->ops->topic->say(cl->st, topic, dibsx_buf_text(text),
                                   text->len, deadline, err);
}

/* Sends a part of the events, from *next on, that one message takes. */
static dibs_status
send_part(dibs_client *cl, const gathered *events, size_t *next,
          uint64_t dropped, dibsx_nsec deadline, dibs_error *err)
{
    dibs_status rc = DIBS_NOMEM;
    dibsx_buf text;

    dibsx_buf_init(&text, DIBS__SAY_MAX + 1);
    dibs__view_put_head(&text, dibsx_now() / DIBSX_MS, dropped);
    while (*next < events->count &&
           text.len + DIBS__VIEW_LINE_MAX <= DIBS__SAY_MAX)
        dibs__view_put_line(&text, &events->events[(*next)++]);
    if (dibsx_buf_ok(&text))
        rc = send_text(cl, &text, deadline, err);
    dibsx_buf_fini(&text);
    return rc;
}

/* How many of them viewers may not have got. */
static uint64_t send_events(dibs_client *cl, const gathered *events,
                            uint64_t dropped, dibsx_nsec deadline)
{
    size_t next = 0;

    while (next < events->count) {
        size_t first = next;
        dibs_error err = {0};
        dibs_status rc = send_part(cl, events, &next, dropped, deadline, &err);

        if (rc != DIBS_OK) {
            dibs__log(cl, DIBS_LOG_DEBUG, "share",
                      "viewers were not told of %zu events: %s",
                      events->count - first, err.message);
            return dropped + events->count - first;
        }
        dropped = 0;
    }
    return dropped;
}

/* Locks: cl->mutex, let go meanwhile. */
static void share_all(dibs_client *cl, dibs__sharing *sh, dibsx_nsec deadline)
{
    shared_events *se = (shared_events *)(void *)sh;
    gathered *events = se->events;
    uint64_t dropped = se->dropped;
    bool look = dibsx_now() >= se->look_again;
    dibs_status rc = se->viewed ? DIBS_OK : DIBS_NOTFOUND;

    if (!events)
        return;
    se->events = NULL;
    se->dropped = 0;
    pthread_mutex_unlock(&cl->mutex);
    if (look)
        rc = find_viewers(cl, deadline);
    if (rc == DIBS_OK)
        dropped = send_events(cl, events, dropped, deadline);
    else
        dropped += events->count;
    dibsx_free(events);
    pthread_mutex_lock(&cl->mutex);
    if (rc == DIBS_OK || rc == DIBS_NOTFOUND)
        se->viewed = rc == DIBS_OK;
    if (look)
        se->look_again = dibsx_after_ms(dibsx_now(), BELIEF_MS);
    if (se->viewed)
        se->dropped += dropped;
}

static void free_shared_events(dibs_client *cl, dibs__sharing *sh)
{
    shared_events *se = (shared_events *)(void *)sh;

    cl->shared_events = NULL;
    dibsx_free(se->events);
}

static const dibs__sharing_ops sharing_ops = {.pause_ms = PAUSE_MS,
                                              .close_ms = CLOSE_MS,
                                              .share = share_all,
                                              .free = free_shared_events};

/* Made when it is first needed; NULL: no memory. */
static shared_events *shared_events_of(dibs_client *cl)
{
    if (!cl->shared_events)
        cl->shared_events =
            dibs__sharing_new(cl, sizeof(shared_events), &sharing_ops);
    return cl->shared_events;
}

/* Room for one more event; NULL: it is dropped, and counted. */
static dibs__lease_event *gather(shared_events *se)
{
    if (!se->events)
        se->events = dibsx_zalloc(sizeof(*se->events));
    if (se->events && se->events->count < EVENTS_MAX)
        return &se->events->events[se->events->count++];
    se->dropped++;
    return NULL;
}

/* Locks: cl->mutex. */
static bool
is_worth_it(const dibs_lock *lock, const shared_events *se, dibsx_nsec now)
{
    return lock->st == lock->cl->st && lock->doubt != DIBS__ADOPTED &&
           !se->sharing.stopping && (se->viewed || now >= se->look_again);
}

/* Locks: cl->mutex. */
static void fill_event(const dibs_lock *lock, dibs__lease_event *event)
{
    char who[DIBS__WHO_MAX];

    event->mode = (dibs__mode)lock->mode;
    dibs__who_text(lock, who);
    snprintf(event->who, sizeof(event->who), "%.*s", (int)strcspn(who, "\t"),
             who);
    snprintf(event->name, sizeof(event->name), "%s",
             dibs__name_short(lock->cl, lock->name));
}

void dibs__shared_events_add(dibs_lock *lock, dibs_lease_event_kind kind,
                             uint64_t fence, dibsx_nsec since)
{
    dibs_client *cl = lock->cl;
    shared_events *se = shared_events_of(cl);
    dibsx_nsec now = dibsx_now();
    dibs__lease_event *event;

    if (!se || fence == 0 || !is_worth_it(lock, se, now))
        return;
    event = gather(se);
    if (event) {
        event->kind = kind;
        event->fence = fence;
        event->span_ms = now > since ? (now - since) / DIBSX_MS : 0;
        event->at_ms = now / DIBSX_MS;
        fill_event(lock, event);
    }
    dibs__sharing_due(cl, &se->sharing);
}
