/* client.c - a simulated client: what the core does around the lease machine,
 * with one request in flight per purpose, and pauses and crashes of its own. */
/* SPDX-License-Identifier: MIT */
#include "sim.h"

#include <assert.h>
#include <string.h>

enum { POLL_MS = 1000, WAIT_MS = 20000 };

dibsx_nsec sim_clock(const world *w, const client *cl)
{
    return cl->offset + (dibsx_nsec)((double)w->now * cl->rate);
}

dibsx_nsec sim_world_time(const client *cl, dibsx_nsec at)
{
    if (at == DIBSX_NEVER)
        return DIBSX_NEVER;
    return (dibsx_nsec)((double)(at - cl->offset) / cl->rate);
}

static void new_owner(world *w, char owner[DIBS_OWNER_SIZE])
{
    uint64_t bits[2] = {dibsx_prng_next(&w->prng), dibsx_prng_next(&w->prng)};

    dibsx_hex(bits, sizeof(bits), owner);
}

/* Now and then the client renews another lease shortly before this one is due, which
 * then goes along. */
static dibsx_nsec next_look(world *w, const client *cl)
{
    dibsx_nsec at = dibs__lease_next(&cl->lease);

    if (cl->lease.state == DIBS__LEASE_HELD && at == cl->lease.renew_at &&
        sim_chance(w, 300))
        at -= (dibsx_nsec)dibsx_prng_below(&w->prng, DIBS__LEASE_SOON);
    return at;
}

/* Looks again at the earliest of what it has to do; only the latest wake-up
 * counts. */
static void schedule(world *w, client *cl)
{
    event wake = {.kind = EVENT_WAKE, .client = cl->number};
    dibsx_nsec at = next_look(w, cl);
    dibs__lease_state state = cl->lease.state;

    wake.request = cl->wake = ++w->last_request;
    if (state == DIBS__LEASE_FREE || state == DIBS__LEASE_QUEUED ||
        (state == DIBS__LEASE_ASKING && cl->asking == 0))
        at = cl->next_at;
    else if (cl->work_until < at && state != DIBS__LEASE_ASKING)
        at = cl->work_until;
    if (at == DIBSX_NEVER)
        return;
    wake.at = sim_world_time(cl, at) + 1000;
    if (wake.at <= w->now)
        wake.at = w->now + 1000;
    sim_add(w, &wake);
}

void sim_client_start(world *w, int number)
{
    client *cl = &w->clients[number];

    *cl = (client){.number = number, .permits = 1};
    /* Rates within what the drift allowance of one in a hundred covers. */
    cl->rate = 1.0 + ((double)dibsx_prng_below(&w->prng, 900) - 450.0) / 1e5;
    cl->offset = sim_span(w, 1000, 100000000);
    cl->ttl_ms = 200 + (int64_t)dibsx_prng_below(&w->prng, 5000);
    cl->next_at = sim_clock(w, cl) + sim_span(w, 0, 500);
    schedule(w, cl);
}

static void ask(world *w, client *cl)
{
    event ev = {.what = ASK,
                .ttl_ms = cl->lease.terms.ttl_ms,
                .queue = cl->waits};

    memcpy(ev.owner, cl->lease.owner, sizeof(ev.owner));
    dibs__lease_asked(&cl->lease, sim_clock(w, cl));
    cl->asking = sim_send(w, cl, &ev);
}

static void begin(world *w, client *cl)
{
    dibs__terms terms = {.ttl_ms = cl->ttl_ms};
    char owner[DIBS_OWNER_SIZE];
    dibsx_nsec now = sim_clock(w, cl);

    new_owner(w, owner);
    cl->mode = DIBS__EXCLUSIVE;
    cl->permits = 1;
    if (w->capacity > 0) {
        cl->mode = DIBS__PERMITS;
        cl->permits = 1 + (uint32_t)dibsx_prng_below(&w->prng, w->capacity);
    } else if (w->seed % 3 == 1 && sim_chance(w, 600)) {
        cl->mode = DIBS__SHARED;
    }
    cl->waits = sim_chance(w, 800);
    cl->give_up_at =
        now + (w->healed ? 600 * DIBSX_SEC : sim_span(w, 50, WAIT_MS));
    cl->work_until = DIBSX_NEVER;
    terms.hold_max_ms = sim_chance(w, 100) ? 700 : 0;
    terms.manual = sim_chance(w, 100);
    dibs__lease_begin(&cl->lease, owner, &terms);
    ask(w, cl);
}

/* Ends belief first, then tells the store. */
static void leave(world *w, client *cl)
{
    event ev = {.what = RELEASE};
    bool unanswered;

    memcpy(ev.owner, cl->lease.owner, sizeof(ev.owner));
    unanswered = dibs__lease_leave(&cl->lease);
    ev.unanswered = unanswered;
    (void)sim_send(w, cl, &ev);
    cl->asking = 0;
    cl->next_at = sim_clock(w, cl) + sim_span(w, 0, 300);
    sim_note(w, cl, unanswered ? "leaves with a tombstone" : "leaves");
}

static void crash(world *w, client *cl)
{
    w->crashes++;
    sim_note(w, cl, "crashes");
    sim_client_start(w, cl->number);
}

/* After anything that may have brought the lease. */
static void settle(world *w, client *cl)
{
    dibsx_nsec now = sim_clock(w, cl);

    if (cl->lease.state == DIBS__LEASE_HELD && cl->work_until == DIBSX_NEVER) {
        cl->work_until = now + sim_span(w, 0, 2000);
        cl->acquisitions++;
        w->acquired++;
        sim_note(w, cl, "holds");
    } else if (cl->lease.state == DIBS__LEASE_QUEUED) {
        cl->next_at = now + sim_span(w, 1, POLL_MS);
    } else if (cl->lease.state == DIBS__LEASE_FREE) {
        cl->next_at = now + sim_span(w, 0, 300);
    } else if (cl->lease.state == DIBS__LEASE_ASKING) {
        cl->next_at = now + sim_span(w, 1, 100);
    }
}

static void renew(world *w, client *cl, dibsx_nsec now)
{
    event ev = {.what = RENEW, .fence = cl->lease.fence};

    memcpy(ev.owner, cl->lease.owner, sizeof(ev.owner));
    ev.ttl_ms = dibs__lease_renew_ms(&cl->lease, now);
    dibs__lease_renewing(&cl->lease);
    cl->renewing = sim_send(w, cl, &ev);
}

/* The client's own loop: what its clock says is due. */
static void look(world *w, client *cl)
{
    dibsx_nsec now = sim_clock(w, cl);
    dibs__lease_todo todo = dibs__lease_due(&cl->lease, now);
    dibs__lease_state state = cl->lease.state;

    if (todo == DIBS__LEASE_ANNOUNCE) {
        w->lost++;
        sim_note(w, cl, "is told of the loss");
        leave(w, cl);
    } else if (todo == DIBS__LEASE_RENEW ||
               dibs__lease_due_soon(&cl->lease, now)) {
        renew(w, cl, now);
    } else if (state == DIBS__LEASE_FREE && now >= cl->next_at) {
        begin(w, cl);
    } else if ((state == DIBS__LEASE_QUEUED ||
                (state == DIBS__LEASE_ASKING && cl->asking == 0)) &&
               now >= cl->next_at) {
        if (now >= cl->give_up_at)
            leave(w, cl);
        else
            ask(w, cl);
    } else if (state != DIBS__LEASE_ASKING && now >= cl->work_until) {
        leave(w, cl);
    }
}

static void answer(world *w, client *cl, const event *ev)
{
    dibsx_nsec now = sim_clock(w, cl);
    bool mine = memcmp(ev->owner, cl->lease.owner, DIBS_OWNER_SIZE) == 0;

    if (ev->what == ASK && ev->request == cl->asking) {
        cl->asking = 0;
        dibs__lease_answered(&cl->lease, ev->rc, &ev->ans, now);
        settle(w, cl);
    } else if (ev->what == RENEW && ev->request == cl->renewing && mine) {
        cl->renewing = 0;
        dibs__lease_renewed(&cl->lease, ev->sent_at, ev->rc, ev->left_ms, now);
    }
}

static void get_notice(world *w, client *cl, const event *ev)
{
    if (memcmp(ev->owner, cl->lease.owner, DIBS_OWNER_SIZE) != 0)
        return;
    if (dibs__lease_noticed(&cl->lease, ev->fence, sim_clock(w, cl))) {
        w->notified++;
        settle(w, cl);
        if (cl->lease.state == DIBS__LEASE_QUEUED)
            cl->next_at = sim_clock(w, cl);
    }
}

/* A paused client sees nothing until it wakes, and then all at once. */
static bool put_off(world *w, client *cl, const event *ev)
{
    event later = *ev;

    if (!w->healed && sim_chance(w, 2))
        cl->paused_until = w->now + sim_span(w, 10, 12000);
    if (w->now >= cl->paused_until)
        return false;
    later.at = cl->paused_until;
    sim_add(w, &later);
    return true;
}

void sim_client_event(world *w, const event *ev)
{
    client *cl = &w->clients[ev->client];

    if (put_off(w, cl, ev))
        return;
    if (!w->healed && sim_chance(w, 1)) {
        crash(w, cl);
        return;
    }
    if (ev->kind == EVENT_NOTICE)
        get_notice(w, cl, ev);
    else if (ev->kind == EVENT_WAKE) {
        if (ev->request != cl->wake)
            return;
        look(w, cl);
    } else
        answer(w, cl, ev);
    schedule(w, cl);
}
