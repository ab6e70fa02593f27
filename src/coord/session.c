/* session.c - the session of a client; see session.h.
 *
 * Owns the list of seats and the round under way, attached to the client with the
 * first seat. The keeper's timer queues the round, a worker sends it. Locks: cl->mutex
 * guards all of it. */
/* SPDX-License-Identifier: MIT */
#include "coord/session.h"
#include "base/alloc.h"
#include "base/rand.h"
#include "core/attach.h"
#include "core/reach.h"
#include "core/timer.h"
#include "core/worker.h"
#include <stdio.h>
#include <string.h>

enum { EVERY_PART = 3, RETRY_PART = 4, RETRY_MIN_MS = 20, LEAVE_MS = 1000 };

#define US_PER_MS INT64_C(1000)

/* An item of the round, with copies of what its owner has: that may leave meanwhile. */
typedef struct round_item {
    dibs__session_seat *seat; /* NULL: it left */
    char name[DIBS_NAME_MAX + 1];
    char id[DIBS_OWNER_SIZE];
    char who[DIBS__WHO_MAX];
} round_item;

typedef struct session {
    dibs__attached attached; /* first, so that one is the other */
    dibs__timer timer;
    dibs__job job;
    dibs__session_seat *first;
    bool sending; /* a round is under way */
    bool ended;   /* no round begins any more */
    dibs__meet items[DIBS__MEET_MAX];
    round_item round[DIBS__MEET_MAX];
} session;

static session *session_of_timer(dibs__timer *timer)
{
    return (session *)(void *)((char *)timer - offsetof(session, timer));
}

static session *session_of_job(dibs__job *job)
{
    return (session *)(void *)((char *)job - offsetof(session, job));
}

static int64_t every_of(const dibs__session_seat *seat)
{
    int64_t every_ms =
        seat->every_ms > 0 ? seat->every_ms : seat->ttl_ms / EVERY_PART;

    return every_ms > 0 ? every_ms : 1;
}

static void set_timer(dibs_client *cl, session *se)
{
    dibsx_nsec at = DIBSX_NEVER;

    for (const dibs__session_seat *seat = se->first; seat; seat = seat->next)
        if (seat->due_at < at)
            at = seat->due_at;
    dibs__timer_set(cl, &se->timer, at);
}

/* Thread: the keeper. */
static void queue_round(dibs_client *cl, dibs__timer *timer, dibsx_nsec now)
{
    session *se = session_of_timer(timer);

    if (!se->sending && !se->ended && !dibs__worker_add(cl, &se->job))
        dibs__timer_set(cl, timer, dibsx_after_ms(now, RETRY_MIN_MS));
}

static bool is_due(const session *se, dibsx_nsec now)
{
    for (const dibs__session_seat *seat = se->first; seat; seat = seat->next)
        if (seat->due_at <= now)
            return true;
    return false;
}

/* See (4). */
static int64_t
date_of(const dibs_client *cl, const dibs__session_seat *seat, dibsx_nsec now)
{
    int64_t late_ms = seat->late_ms > 0 ? seat->late_ms : cl->timeout_ms;

    if (!seat->dated || seat->clock_us == 0)
        return 0;
    return seat->clock_us + (now - seat->clock_at) / 1000 + late_ms * US_PER_MS;
}

static void fill_item(const dibs_client *cl, dibs__session_seat *seat,
                      round_item *part, dibs__meet *item, dibsx_nsec now)
{
    part->seat = seat;
    snprintf(part->name, sizeof(part->name), "%s", seat->name);
    snprintf(part->id, sizeof(part->id), "%s", seat->id);
    snprintf(part->who, sizeof(part->who), "%s", seat->who ? seat->who : "");
    *item = (dibs__meet){.name = part->name,
                         .id = part->id,
                         .who = part->who,
                         .verb = seat->fence ? DIBS__KEEP : DIBS__SIT,
                         .flags = seat->flags,
                         .fence = seat->fence,
                         .need = seat->need,
                         .ttl_ms = seat->ttl_ms,
                         .settle_ms = seat->settle_ms,
                         .by_us = date_of(cl, seat, now)};
    seat->due_at = DIBSX_NEVER;
}

/* Adds the seats that are due soon and are silent, or not, after `count` items. */
static size_t add_seats(const dibs_client *cl, session *se, bool silent,
                        size_t count, dibsx_nsec now)
{
    for (dibs__session_seat *seat = se->first; seat && count < DIBS__MEET_MAX;
         seat = seat->next) {
        if (seat->is_silent != silent ||
            seat->due_at > dibsx_after_ms(now, every_of(seat) / 2))
            continue;
        if (!seat->id[0] && !dibsx_random_hex(seat->id, sizeof(seat->id))) {
            seat->due_at = dibsx_after_ms(now, RETRY_MIN_MS);
            continue;
        }
        fill_item(cl, seat, &se->round[count], &se->items[count], now);
        count++;
    }
    return count;
}

/* The next items of the round: 0 when no seat is due. See (1). */
static size_t fill_round(const dibs_client *cl, session *se, dibsx_nsec now)
{
    size_t count;

    if (se->ended || !is_due(se, now))
        return 0;
    count = add_seats(cl, se, false, 0, now);
    return add_seats(cl, se, true, count, now);
}

/* A store that hangs is asked again before the shortest ttl is over, and holds up no
 * caller that leaves. Locks: none held. */
static dibs_status
send_items(dibs_client *cl, dibs__meet *items, size_t count, dibsx_nsec sent_at)
{
    dibsx_nsec deadline = dibs__client_deadline(cl, sent_at);
    dibs_status rc;

    for (size_t i = 0; i < count; i++) {
        int64_t span_ms = items[i].verb == DIBS__LEAVE
                              ? LEAVE_MS
                              : items[i].ttl_ms / EVERY_PART;
        dibsx_nsec end = dibsx_after_ms(sent_at, span_ms);

        if (end < deadline)
            deadline = end;
    }
    rc = dibs__reach_store(cl, deadline, NULL);
    dibs__meet_clear(items, count, DIBS_UNAVAIL);
    if (rc == DIBS_OK)
        rc = cl->st->ops->roster->meet(cl->st, items, count, deadline, NULL);
    for (size_t i = 0; rc != DIBS_OK && i < count; i++)
        if (items[i].rc != DIBS_OK)
            items[i].rc = rc;
    return rc;
}

static void unlist_seat(session *se, dibs__session_seat *seat)
{
    dibs__session_seat **at = &se->first;

    while (*at != seat)
        at = &(*at)->next;
    *at = seat->next;
    seat->listed = false;
    for (size_t i = 0; i < DIBS__MEET_MAX; i++)
        if (se->round[i].seat == seat)
            se->round[i].seat = NULL;
}

static int64_t retry_of(const dibs__session_seat *seat)
{
    int64_t retry_ms = every_of(seat) / RETRY_PART;

    return retry_ms > RETRY_MIN_MS ? retry_ms : RETRY_MIN_MS;
}

/* A seat that was lost before it was ever kept is not taken again at once: the store
 * might go on like that. */
static void lose_seat(session *se, dibs__session_seat *seat, dibsx_nsec now)
{
    if (!seat->sits) {
        unlist_seat(se, seat);
        return;
    }
    seat->due_at = seat->was_kept ? now : dibsx_after_ms(now, every_of(seat));
    seat->was_kept = false;
    seat->id[0] = '\0';
    seat->fence = 0;
}

static void
take_answer(session *se, dibs__session_seat *seat, const dibs__meet *item)
{
    dibsx_nsec now = dibsx_now();

    if (item->clock_us != 0) {
        seat->clock_us = item->clock_us;
        seat->clock_at = now;
    }
    seat->due_at = dibsx_after_ms(now, every_of(seat));
    if (!dibsx_is_away(item->rc))
        seat->is_silent = false;
    if (item->rc == DIBS_LOST ||
        (item->rc == DIBS_TIMEOUT && seat->sits && item->verb == DIBS__KEEP)) {
        lose_seat(se, seat, now);
    } else if (dibsx_is_away(item->rc) || item->rc == DIBS_TIMEOUT) {
        seat->due_at = dibsx_after_ms(now, retry_of(seat));
    } else if (item->rc == DIBS_OK && item->verb == DIBS__SIT) {
        seat->fence = item->number;
        seat->due_at = now;
    } else if (item->rc == DIBS_OK) {
        seat->was_kept = true;
    }
    if (seat->hurried && seat->listed)
        seat->due_at = now;
    seat->hurried = false;
}

/* A step that fails ends at the first item without an answer, which its server kept
 * waiting for. In one that is done all of these are of servers that did not answer. */
static void mark_silent(session *se, size_t count, dibs_status rc)
{
    bool goes_on = true;

    for (size_t i = 0; i < count && goes_on; i++) {
        if (!dibsx_is_away(se->items[i].rc))
            continue;
        if (se->round[i].seat)
            se->round[i].seat->is_silent = true;
        goes_on = rc == DIBS_OK;
    }
}

/* Thread: a worker. */
static void send_rounds(dibs_client *cl, dibs__job *job)
{
    session *se = session_of_job(job);
    dibsx_nsec sent_at;
    dibs_status rc;
    size_t count;

    if (se->sending)
        return;
    se->sending = true;
    while ((count = fill_round(cl, se, sent_at = dibsx_now())) > 0) {
        pthread_mutex_unlock(&cl->mutex);
        rc = send_items(cl, se->items, count, sent_at);
        pthread_mutex_lock(&cl->mutex);
        mark_silent(se, count, rc);
        for (size_t i = 0; i < count; i++) {
            dibs__session_seat *seat = se->round[i].seat;

            if (!seat)
                continue;
            se->round[i].seat = NULL;
            take_answer(se, seat, &se->items[i]);
            if (seat->told)
                seat->told(cl, seat, &se->items[i], sent_at);
        }
    }
    se->sending = false;
    if (!se->ended)
        set_timer(cl, se);
    pthread_cond_broadcast(&cl->over);
}

/* Ends every seat that is left; if the store is away, each ends with its ttl. */
static void leave_all(dibs_client *cl, session *se)
{
    bool answers = atomic_load(&cl->reached);

    while (se->first) {
        size_t count = 0;

        while (se->first && count < DIBS__MEET_MAX) {
            dibs__session_seat *seat = se->first;

            fill_item(cl, seat, &se->round[count], &se->items[count], 0);
            se->items[count].verb = DIBS__LEAVE;
            count += seat->fence != 0;
            unlist_seat(se, seat);
        }
        if (!answers || count == 0)
            continue;
        pthread_mutex_unlock(&cl->mutex);
        answers =
            cl->st->ops->roster->meet(cl->st, se->items, count,
                                      dibs__client_deadline(cl, dibsx_now()),
                                      NULL) == DIBS_OK;
        pthread_mutex_lock(&cl->mutex);
    }
}

static void stop_session(dibs_client *cl, dibs__attached *at)
{
    session *se = (session *)(void *)at;

    pthread_mutex_lock(&cl->mutex);
    se->ended = true;
    while (se->sending)
        pthread_cond_wait(&cl->over, &cl->mutex);
    leave_all(cl, se);
    pthread_mutex_unlock(&cl->mutex);
}

static void free_session(dibs_client *cl, dibs__attached *at)
{
    (void)cl;
    dibsx_free(at);
}

static session *find_session(const dibs_client *cl)
{
    dibs__attached *at = cl->attached;

    while (at && at->free != free_session)
        at = at->next;
    return (session *)(void *)at;
}

/* The session of a client, made when first needed; NULL: no memory. */
static session *session_of(dibs_client *cl)
{
    session *se = find_session(cl);

    if (se || !dibs__timer_reserve(cl, 1))
        return se;
    se = dibsx_zalloc(sizeof(*se));
    if (!se) {
        dibs__timer_unreserve(cl, 1);
        return NULL;
    }
    se->attached.stop = stop_session;
    se->attached.free = free_session;
    se->timer.fire = queue_round;
    se->job = (dibs__job){.run = send_rounds, .kind = DIBS__JOB_TEND};
    dibs__attach(cl, &se->attached);
    return se;
}

dibs_status
dibs__session_add(dibs_client *cl, dibs__session_seat *seat, dibs_error *err)
{
    session *se = session_of(cl);
    dibs_status rc =
        se ? dibs__timer_ready(cl, err) : dibsx_nomem(err, "a session");
    dibsx_nsec now = dibsx_now();

    if (rc != DIBS_OK)
        return rc;
    if (se->ended)
        return dibsx_fail(err, DIBS_INVALID, "the client is closed");
    if (seat->sits) {
        seat->id[0] = '\0';
        seat->fence = 0;
    }
    seat->listed = true;
    seat->was_kept = seat->is_silent = seat->hurried = false;
    seat->clock_us = 0;
    seat->due_at = seat->sits ? now : dibsx_after_ms(now, every_of(seat));
    seat->next = se->first;
    se->first = seat;
    set_timer(cl, se);
    return DIBS_OK;
}

void dibs__session_hurry(dibs_client *cl, dibs__session_seat *seat)
{
    session *se = find_session(cl);

    if (!seat->listed)
        return;
    seat->hurried = seat->due_at == DIBSX_NEVER;
    if (seat->hurried)
        return;
    seat->due_at = dibsx_now();
    if (!se->sending)
        set_timer(cl, se);
}

void dibs__session_leave(dibs_client *cl, dibs__session_seat *seat)
{
    char name[DIBS_NAME_MAX + 1], id[DIBS_OWNER_SIZE];
    dibs__meet item = {.name = name,
                       .id = id,
                       .verb = DIBS__LEAVE,
                       .flags = seat->flags,
                       .fence = seat->fence,
                       .need = seat->need};

    if (!seat->listed)
        return;
    snprintf(name, sizeof(name), "%s", seat->name);
    snprintf(id, sizeof(id), "%s", seat->id);
    unlist_seat(find_session(cl), seat);
    if (item.fence == 0)
        return;
    pthread_mutex_unlock(&cl->mutex);
    (void)send_items(cl, &item, 1, dibsx_now());
    pthread_mutex_lock(&cl->mutex);
}
