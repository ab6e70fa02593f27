/* net.c - the simulated network and store: events in order of time, requests
 * carried out by the grant rule, answers and notices lost or late. */
/* SPDX-License-Identifier: MIT */
#include "sim.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The longest that a request can be under way: within the life of a tombstone,
 * which is what makes leaving safe. */
enum { LATEST_MS = 6000, TIMEOUT_MS = 400 };

bool sim_chance(world *w, int of_thousand)
{
    return dibsx_prng_below(&w->prng, 1000) < (uint64_t)of_thousand;
}

dibsx_nsec sim_span(world *w, int64_t from_ms, int64_t to_ms)
{
    uint64_t span_us = (uint64_t)(to_ms - from_ms) * 1000;
    uint64_t us = dibsx_prng_below(&w->prng, span_us + 1);

    return from_ms * DIBSX_MS + (dibsx_nsec)us * 1000;
}

static bool before(const event *a, const event *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

void sim_add(world *w, const event *ev)
{
    size_t i = w->event_count++;

    assert(i < EVENTS_MAX);
    w->events[i] = *ev;
    w->events[i].order = ++w->last_order;
    for (; i > 0 && before(&w->events[i], &w->events[(i - 1) / 2]);
         i = (i - 1) / 2) {
        event other = w->events[(i - 1) / 2];
        w->events[(i - 1) / 2] = w->events[i];
        w->events[i] = other;
    }
}

event sim_next(world *w)
{
    event first = w->events[0];
    size_t i = 0;

    w->events[0] = w->events[--w->event_count];
    for (;;) {
        size_t least = i;
        event other;
        for (size_t child = 2 * i + 1;
             child <= 2 * i + 2 && child < w->event_count; child++)
            if (before(&w->events[child], &w->events[least]))
                least = child;
        if (least == i)
            return first;
        other = w->events[i];
        w->events[i] = w->events[least];
        w->events[least] = other;
        i = least;
    }
}

/* How long a message is under way. */
static dibsx_nsec delay(world *w)
{
    if (!w->healed && sim_chance(w, w->late))
        return sim_span(w, 1, LATEST_MS / 2);
    return sim_span(w, 0, 3);
}

static bool is_lost(world *w, int of_thousand)
{
    return !w->healed && sim_chance(w, of_thousand);
}

uint64_t sim_send(world *w, client *cl, event *ev)
{
    event timeout;

    ev->kind = EVENT_REQUEST;
    ev->client = cl->number;
    ev->request = ++w->last_request;
    ev->sent_at = sim_clock(w, cl);
    timeout = *ev;
    timeout.kind = EVENT_TIMEOUT;
    timeout.at = w->now + TIMEOUT_MS * DIBSX_MS;
    timeout.rc = DIBS_UNKNOWN;
    sim_add(w, &timeout);
    ev->at = w->now + delay(w);
    if (!is_lost(w, w->loss))
        sim_add(w, ev);
    return ev->request;
}

static void notify_all(world *w)
{
    for (size_t i = 0; i < w->roll.count; i++) {
        const dibs__party *party = &w->roll.parties[i];
        event notice = {.kind = EVENT_NOTICE, .fence = party->fence};

        if (!party->notify || is_lost(w, w->notice_loss))
            continue;
        notice.client = party->bell[0] - 'A';
        memcpy(notice.owner, party->owner, sizeof(notice.owner));
        notice.at = w->now + delay(w);
        sim_add(w, &notice);
    }
}

/* What a store does after a step: what was dropped goes, the rest stands. */
static void commit(world *w)
{
    size_t kept = 0;

    notify_all(w);
    for (size_t i = 0; i < w->roll.count; i++) {
        dibs__party party = w->roll.parties[i];
        if (party.mark == DIBS__DROPPED)
            continue;
        party.mark = DIBS__KEPT;
        party.notify = false;
        w->roll.parties[kept++] = party;
    }
    w->roll.count = kept;
    dibs__roll_check(&w->roll);
}

static void do_ask(world *w, event *ev)
{
    const client *cl = &w->clients[ev->client];
    char bell[2] = {(char)('A' + ev->client), '\0'};
    dibs__ask ask = {.name = "name",
                     .owner = ev->owner,
                     .mode = cl->mode,
                     .permits = cl->permits,
                     .capacity = cl->mode == DIBS__PERMITS ? w->capacity : 0,
                     .flags = ev->queue ? DIBS__ASK_QUEUE : 0,
                     .ttl_ms = ev->ttl_ms,
                     .who = "sim:1"};

    ev->rc = dibs__grant_acquire(&w->roll, &ask, bell, &ev->ans, NULL);
}

static void do_renew(world *w, event *ev)
{
    char bell[2] = {(char)('A' + ev->client), '\0'};
    dibs__renewal item = {.name = "name",
                          .owner = ev->owner,
                          .fence = ev->fence,
                          .ttl_ms = ev->ttl_ms};

    dibs__grant_renew(&w->roll, &item, bell);
    ev->rc = item.rc;
    ev->left_ms = item.left_ms;
}

static void do_release(world *w, event *ev)
{
    dibs__leave leave = {.name = "name",
                         .owner = ev->owner,
                         .unanswered = ev->unanswered};

    ev->rc = dibs__grant_release(&w->roll, &leave, NULL);
    memcpy(w->gone[w->gone_count++ % GONE_MAX], ev->owner, DIBS_OWNER_SIZE);
}

void sim_request(world *w, const event *ev)
{
    event answer = *ev;

    w->roll.now_us = w->now / 1000;
    w->roll.now_wall_us = w->roll.now_us + w->wall_us;
    if (ev->what == ASK)
        do_ask(w, &answer);
    else if (ev->what == RENEW)
        do_renew(w, &answer);
    else
        do_release(w, &answer);
    commit(w);
    answer.kind = EVENT_ANSWER;
    answer.at = w->now + delay(w);
    if (!is_lost(w, w->loss))
        sim_add(w, &answer);
}
