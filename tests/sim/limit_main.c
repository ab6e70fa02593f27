/* limit_main.c - rate limits in simulated time: clients with stocks, slow and lost
 * requests, a store that is away, and clocks of clients that differ.
 *
 *     sim_limit [SEEDS [FIRST]]       so many seeds from FIRST on
 *     sim_limit --mutant N SEEDS      with a mistake planted, which must be noticed
 *
 * What must hold, after every event:
 *   - in any span W the store hands out no more than burst + rate * W, and the clients
 *     use no more than that and a chunk each, and what was on its way;
 *   - a stock and what is asked for it are no more than a chunk, and it is not used
 *     STOCK_MS after the last draw for it;
 *   - a call that is refused or granted ends within its wait and its requests;
 *   - while the store is away, a client uses no more than its share. */
/* SPDX-License-Identifier: MIT */
#include "base/rand.h"
#include "coord/limit_machine.h"
#include "seeds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MSEC ((dibsx_nsec)1000000)

enum { CLIENTS = 3, CALLS = 4, EVENTS = 256, SPAN_S = 60, DELAY_MS = 20 };
enum { BURST = 40, COUNT = 100, CHUNK = 10, TIMEOUT_MS = 500 };

typedef enum mutant {
    NO_MUTANT,
    ASKED_FORGOTTEN,   /* what is on its way to the stock does not count */
    UNANSWERED_COUNTS, /* a draw without an answer counts as granted */
    NO_SLEEP,          /* tokens that are granted ahead are used at once */
    STOCK_FOR_EVER,    /* a stock does not grow old */
    CLIENT_CLOCK,      /* the store takes the time from the client */
    AHEAD_TO_STOCK,    /* a draw for the stock may be granted ahead of time */
    MUTANTS
} mutant;

typedef enum kind { CALL, SERVE, ANSWER, USE, TROUBLE, FETCH } kind;

typedef struct event {
    kind kind;
    dibsx_nsec at;
    int client, call;
} event;

/* A call, or the fetch for the stock, which is the last of them. */
typedef struct request {
    bool busy;
    dibs__take take;
    dibs__draw draw;
    dibs__drawn drawn;
    dibs_status rc;
    dibsx_nsec sent_at, begun_at;
    int draws;
} request;

typedef struct peer {
    dibs__limiter machine;
    request requests[CALLS + 1];
    dibsx_nsec clock_off;  /* how far its clock is ahead */
    dibsx_nsec stocked_at; /* the last draw for the stock was sent */
    double level;          /* used while the store was away */
    dibsx_nsec level_at;
} peer;

/* Tokens run out of it at the rate: what is in it is used in some span beyond that. */
typedef struct bucket {
    double level;
    dibsx_nsec at;
} bucket;

typedef struct world {
    uint64_t seed;
    mutant mutant;
    dibsx_prng prng;
    dibsx_nsec now, away_until;
    event events[EVENTS];
    size_t count;
    dibs__rate rate;
    bucket handed, used;
    int64_t calls, granted;
    peer peers[CLIENTS];
    const char *wrong;
} world;

#include "events.h"
#include "luck.h"

static void later(world *w, kind what, dibsx_nsec at, int client, int call)
{
    add(w, (event){what, at, client, call});
}

static void pour(world *w, bucket *b, int64_t n, double most, const char *wrong)
{
    b->level -= (double)(w->now - b->at) / 1e9 * (double)COUNT;
    if (b->level < 0)
        b->level = 0;
    b->at = w->now;
    b->level += (double)n;
    if (b->level > most + 0.01)
        w->wrong = wrong;
}

/* What was granted a delay ago may be used now. */
static void use_tokens(world *w, int64_t n)
{
    pour(w, &w->used, n,
         (double)(BURST + CLIENTS * CHUNK) +
             (double)(2 * DELAY_MS * COUNT) / 1000,
         "clients use more than the limit and their chunks");
}

static dibsx_nsec clock_of(const world *w, const peer *p)
{
    return w->now + p->clock_off;
}

static void send(world *w, int client, int call)
{
    request *rq = &w->peers[client].requests[call];

    rq->sent_at = clock_of(w, &w->peers[client]);
    rq->rc = DIBS_UNKNOWN;
    rq->drawn = (dibs__drawn){0};
    rq->draws++;
    if (call == CALLS || rq->take.asked > 0)
        w->peers[client].stocked_at = w->now;
    if (w->mutant == AHEAD_TO_STOCK && call == CALLS)
        rq->draw.wait_us = 3000000;
    if (chance(w, 980))
        later(w, SERVE, w->now + span(w, 0, DELAY_MS), client, call);
    else
        later(w, ANSWER, w->now + TIMEOUT_MS * MSEC, client, call);
}

static void serve(world *w, int client, int call)
{
    peer *p = &w->peers[client];
    request *rq = &p->requests[call];
    bool lost = chance(w, 20);

    if (w->now < w->away_until) {
        rq->rc = DIBS_UNAVAIL;
    } else {
        dibsx_nsec clock = w->mutant == CLIENT_CLOCK ? clock_of(w, p) : w->now;

        (void)dibs__rate_draw(&w->rate, &rq->draw, clock / 1000, &rq->drawn);
        if (rq->drawn.wait_us == 0 && rq->drawn.granted > 0)
            pour(w, &w->handed, rq->drawn.granted, BURST,
                 "the store hands out more than the limit");
        rq->rc = rq->drawn.granted > 0 ? DIBS_OK : DIBS_BUSY;
        if (lost)
            rq->rc = DIBS_UNKNOWN;
    }
    later(w, ANSWER, w->now + (lost ? TIMEOUT_MS * MSEC : span(w, 0, DELAY_MS)),
          client, call);
}

static void end_call(world *w, int client, int call, dibs__take_todo todo)
{
    peer *p = &w->peers[client];
    request *rq = &p->requests[call];
    dibsx_nsec sleep = rq->take.sleep_us * 1000;

    if (todo == DIBS__TAKE_DONE && w->mutant != NO_SLEEP && sleep > 0) {
        if (sleep > rq->take.wait_us * 1000)
            w->wrong = "a call sleeps longer than it may wait";
        later(w, USE, w->now + sleep, client, call);
        return;
    }
    if (todo == DIBS__TAKE_DONE && !p->machine.away)
        use_tokens(w, rq->take.n);
    w->granted += todo == DIBS__TAKE_DONE;
    if (w->now - rq->begun_at >
        rq->take.wait_us * 1000 +
            rq->draws * (TIMEOUT_MS + 2 * DELAY_MS) * MSEC)
        w->wrong = "a call takes longer than its wait and its requests";
    rq->busy = false;
}

static void proceed(world *w, int client, int call)
{
    peer *p = &w->peers[client];
    request *rq = &p->requests[call];
    int64_t before = atomic_load(&p->machine.stock);
    dibs__take_todo todo =
        dibs__limiter_next(&p->machine, &rq->take, clock_of(w, p), &rq->draw);

    if (atomic_load(&p->machine.stock) < before && before > 0 &&
        todo == DIBS__TAKE_DONE && !p->machine.away &&
        w->now - p->stocked_at > DIBS__LIMIT_STOCK_MS * MSEC)
        w->wrong = "a stock is used that is too old";
    if (w->mutant == ASKED_FORGOTTEN && todo == DIBS__TAKE_DRAW) {
        p->machine.asked -= rq->take.asked;
        send(w, client, call);
        p->machine.asked = 0;
    } else if (todo == DIBS__TAKE_DRAW) {
        send(w, client, call);
    } else {
        end_call(w, client, call, todo);
    }
}

static void on_call(world *w, const event *ev)
{
    static const int64_t pauses_ms[] = {1, 5, 20, 300};
    peer *p = &w->peers[ev->client];
    request *rq = &p->requests[ev->call];

    if (!rq->busy) {
        *rq = (request){.busy = true, .begun_at = w->now};
        rq->take.n = 1 + (int64_t)dibsx_prng_below(&w->prng, 3);
        if (chance(w, 600))
            rq->take.wait_us = (int64_t)dibsx_prng_below(&w->prng, 2000) * 1000;
        w->calls++;
        proceed(w, ev->client, ev->call);
    }
    later(w, CALL,
          w->now + span(w, 0, pauses_ms[dibsx_prng_below(&w->prng, 4)]),
          ev->client, ev->call);
}

static void on_answer(world *w, const event *ev)
{
    peer *p = &w->peers[ev->client];
    request *rq = &p->requests[ev->call];
    dibs_status rc = rq->rc;
    dibs__take_todo todo;

    if (w->mutant == UNANSWERED_COUNTS && rc == DIBS_UNKNOWN) {
        rc = DIBS_OK;
        rq->drawn = (dibs__drawn){.granted = rq->draw.cost};
    }
    if (w->mutant == ASKED_FORGOTTEN)
        p->machine.asked += ev->call == CALLS ? rq->draw.cost : rq->take.asked;
    if (ev->call == CALLS) {
        dibs__limiter_fetched(&p->machine, rq->draw.cost, rq->sent_at,
                              clock_of(w, p), rc, &rq->drawn);
        rq->busy = false;
    } else {
        todo = dibs__limiter_drawn(&p->machine, &rq->take, rq->sent_at,
                                   clock_of(w, p), rc, &rq->drawn);
        if (todo == DIBS__TAKE_DRAW)
            proceed(w, ev->client, ev->call);
        else
            end_call(w, ev->client, ev->call, todo);
    }
    if (w->mutant == STOCK_FOR_EVER)
        atomic_store(&p->machine.stock_until, DIBSX_NEVER);
}

/* The worker of a client. */
static void on_fetch(world *w, const event *ev)
{
    peer *p = &w->peers[ev->client];
    request *rq = &p->requests[CALLS];

    if (dibs__limiter_probes(&p->machine, clock_of(w, p)))
        dibs__limiter_probed(&p->machine, clock_of(w, p),
                             w->now >= w->away_until);
    if (!rq->busy && atomic_load(&p->machine.stock) * 2 <= p->machine.chunk &&
        dibs__limiter_fetch(&p->machine, clock_of(w, p), &rq->draw)) {
        rq->busy = true;
        if (w->mutant == ASKED_FORGOTTEN)
            p->machine.asked -= rq->draw.cost;
        send(w, ev->client, CALLS);
    }
    later(w, FETCH, w->now + span(w, 1, 400), ev->client, 0);
}

static void check(world *w)
{
    for (int i = 0; i < CLIENTS; i++) {
        const dibs__limiter *lm = &w->peers[i].machine;

        if (atomic_load(&lm->stock) + lm->asked > CHUNK ||
            atomic_load(&lm->stock) < 0 || lm->asked < 0)
            w->wrong = "a stock is more than a chunk";
    }
}

static void handle(world *w, const event *ev)
{
    switch (ev->kind) {
    case CALL:
        on_call(w, ev);
        break;
    case SERVE:
        serve(w, ev->client, ev->call);
        break;
    case ANSWER:
        on_answer(w, ev);
        break;
    case USE:
        w->peers[ev->client].requests[ev->call].take.sleep_us = 0;
        end_call(w, ev->client, ev->call, DIBS__TAKE_DONE);
        break;
    case TROUBLE:
        w->away_until = w->now + span(w, 1, 3000);
        later(w, TROUBLE, w->now + span(w, 3000, 20000), 0, 0);
        break;
    case FETCH:
        on_fetch(w, ev);
        break;
    }
}

static void begin_peer(world *w, int i)
{
    static const dibs_away policies[] = {DIBS_AWAY_FAIL, DIBS_AWAY_LOCAL,
                                         DIBS_AWAY_FAIL};
    dibs__draw asked = {.name = "x",
                        .cost = 1,
                        .least = 1,
                        .count = COUNT,
                        .period_us = 1000000,
                        .burst = BURST,
                        .wait_us = INT64_MAX};
    dibs__draw rate, share;

    if (dibs__rate_check(&asked, &rate, NULL) != DIBS_OK)
        abort();
    asked.period_us *= CLIENTS;
    if (dibs__rate_check(&asked, &share, NULL) != DIBS_OK)
        abort();
    share.burst = BURST / CLIENTS;
    dibs__limiter_init(&w->peers[i].machine, &rate, i == 2 ? 0 : CHUNK,
                       policies[i], &share);
    w->peers[i].clock_off = span(w, 0, 3600000);
    later(w, FETCH, w->now + span(w, 0, 100), i, 0);
    for (int k = 0; k < CALLS; k++)
        later(w, CALL, w->now + span(w, 0, 100), i, k);
}

static const char *run_seed(world *w, uint64_t seed, mutant planted)
{
    memset(w, 0, sizeof(*w));
    w->seed = seed;
    w->mutant = planted;
    w->prng.state = seed * 0x9e3779b97f4a7c15u + 1;
    w->now = DIBSX_SEC;
    later(w, TROUBLE, w->now + span(w, 1000, 20000), 0, 0);
    for (int i = 0; i < CLIENTS; i++)
        begin_peer(w, i);
    while (!w->wrong && w->now < SPAN_S * DIBSX_SEC) {
        event ev = take_first(w);

        w->now = ev.at;
        handle(w, &ev);
        check(w);
    }
    if (!w->wrong && w->granted < COUNT)
        w->wrong = "hardly any call is granted";
    return w->wrong;
}

static world the_world;
static int64_t calls, granted; /* of all seeds */

static const char *run_one(uint64_t seed, int planted, dibsx_nsec *at)
{
    const char *wrong = run_seed(&the_world, seed, (mutant)planted);

    *at = the_world.now;
    calls += the_world.calls;
    granted += the_world.granted;
    return wrong;
}

static int report(uint64_t seeds)
{
    printf("%llu seeds of %d s: %lld of %lld calls granted\n",
           (unsigned long long)seeds, SPAN_S, (long long)granted,
           (long long)calls);
    return 0;
}

int main(int argc, char **argv)
{
    return seeds_main(argc, argv, run_one, report);
}
