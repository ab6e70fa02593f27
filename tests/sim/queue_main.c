/* queue_main.c - clients of a queue in simulated time: the rule of store/deliver.h as their
 * store, on a shelf of arrays; slow, lost and late requests, rings that bring items and get lost,
 * clients that die, lanes that run out, a store that goes back to an earlier state.
 *
 *     sim_queue [SEEDS [FIRST]]       so many seeds from FIRST on
 *     sim_queue --mutant N SEEDS      with a mistake planted, which must be noticed
 *
 * What must hold, after every event:
 *   I1   a client that believes in an item has it at the store, under that token, for as
 *        long; until the store has gone back
 *   I2   an item is acked once, and one client learns of it; until then too
 *   I3   a push makes one item; until then too
 *   I4   an item whose push was answered is there, acked or dead; until then too
 *   I5   a live lane's items are known to its client, or its next answer has them
 *   I6   and the rest of dibs__deliver_check()
 *   I7   the fences of an item rise, also when the store has gone back
 *   I10  no item is ready before it is due */
/* SPDX-License-Identifier: MIT */
#include "queue_sim.h"
#include "seeds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool chance(world *w, unsigned of_1000)
{
    return dibsx_prng_below(&w->prng, 1000) < of_1000;
}

static int64_t span_us(world *w, int64_t low_ms, int64_t high_ms)
{
    return (low_ms +
            (int64_t)dibsx_prng_below(&w->prng,
                                      (uint64_t)(high_ms - low_ms) + 1)) *
           1000;
}

void sim_add(world *w, event ev)
{
    if (w->event_count == EVENTS)
        w->wrong = "the simulation has no room for an event";
    else
        w->events[w->event_count++] = ev;
}

static event take_first(world *w)
{
    size_t first = 0;
    event ev;

    for (size_t i = 1; i < w->event_count; i++)
        if (w->events[i].at_us < w->events[first].at_us)
            first = i;
    ev = w->events[first];
    w->events[first] = w->events[--w->event_count];
    return ev;
}

/* ---- clients that take */

static void open_client(world *w, int who)
{
    client *cl = &w->clients[who];
    uint64_t life = cl->life;

    memset(cl, 0, sizeof(*cl));
    cl->life = life + 1;
    cl->lane = 1 + (uint64_t)who + 16 * cl->life;
    cl->open = true;
    cl->valid_us = INT64_MAX; /* until number 1 is answered it has nothing */
}

static bool is_valid(const world *w, const client *cl)
{
    return cl->open && cl->valid_us > w->now_us;
}

static bool believes(const world *w, const client *cl, size_t i)
{
    return is_valid(w, cl) && cl->hand[i].id != 0 && !cl->hand[i].settling;
}

/* Takes a delivery in hand. Of an item that it has the later fence counts. */
static void begin_item(world *w, client *cl, dibs__token token)
{
    held *room = NULL;

    for (size_t i = 0; i < HAND; i++) {
        if (cl->hand[i].id == token.id && !cl->hand[i].settling) {
            if (w->mutant == NO_REPLACE ||
                cl->hand[i].token.fence >= token.fence)
                return;
            room = &cl->hand[i];
            break;
        }
        if (cl->hand[i].id == 0 && !room)
            room = &cl->hand[i];
    }
    if (!room) {
        w->wrong = "the simulation has no room for an item";
        return;
    }
    *room = (held){.id = token.id, .token = token};
    if (token.fence > cl->top)
        cl->top = token.fence;
}

/* Writes the next request: some settlements, and perhaps an ask. */
static void write_request(world *w, int who, request *rq)
{
    client *cl = &w->clients[who];
    unsigned count = 0;
    bool empty = true;

    *rq = (request){.who = who,
                    .life = cl->life,
                    .lane = cl->lane,
                    .number = ++cl->number,
                    .seen = cl->stamp};
    for (size_t i = 0; i < HAND && rq->number > 1; i++) {
        held *h = &cl->hand[i];

        if (h->id == 0)
            continue;
        empty = false;
        count++;
        if (!chance(w, 500) || h->settling)
            continue;
        rq->settle[rq->settle_count++] = (dibs__settlement){
            .verb = chance(w, 700)   ? DIBS__ITEM_ACK
                    : chance(w, 800) ? DIBS__ITEM_NACK
                                     : DIBS__ITEM_UNBEGUN,
            .token = h->token,
            .ms =
                chance(w, 300) ? (int64_t)dibsx_prng_below(&w->prng, 3000) : 0};
        h->settling = w->mutant != NO_BELIEF_END;
    }
    rq->want = count < HAND / 2 && chance(w, 800)
                   ? 1 + (uint32_t)dibsx_prng_below(&w->prng, 2)
                   : 0;
    rq->span_ms = empty ? PLACE_MS : TTL_MS;
    memcpy(rq->heard, cl->heard, sizeof(rq->heard));
    rq->heard_count = cl->heard_count;
    cl->heard_count = 0;
    cl->flying = *rq;
    cl->is_flying = true;
    if (empty)
        cl->tends_after_us = INT64_MAX;
    /* A number that was sent with an empty hand may shorten the lane. */
    if (empty && rq->number > 1 &&
        cl->valid_us > w->now_us + (int64_t)PLACE_MS * 1000)
        cl->valid_us = w->now_us + (int64_t)PLACE_MS * 1000;
}

static void send_request(world *w, client *cl)
{
    request rq = cl->flying;

    rq.sent_us = w->now_us;
    rq.try = ++cl->tries;
    sim_add(w, (event){.kind = SERVE,
                       .at_us = w->now_us + span_us(w, 0, 30),
                       .rq = rq,
                       .loses = chance(w, 60)});
    if (chance(w, 120)) /* a copy that comes late */
        sim_add(w, (event){.kind = SERVE,
                           .at_us = w->now_us +
                                    span_us(w, 30, chance(w, 500) ? 300 : 6000),
                           .rq = rq,
                           .loses = true});
    sim_add(w, (event){.kind = RETRY,
                       .at_us = w->now_us + span_us(w, 100, 200),
                       .rq = rq});
}

static void give_up(world *w, client *cl, bool leaves)
{
    if (leaves)
        sim_add(w, (event){.kind = LEAVE_LANE,
                           .at_us = w->now_us + span_us(w, 0, 60),
                           .rq = {.lane = cl->lane},
                           .loses = chance(w, 200)});
    cl->open = false;
}

static void proceed(world *w, int who)
{
    client *cl = &w->clients[who];

    if (!cl->open) {
        if (chance(w, 500))
            open_client(w, who);
        else
            return;
    }
    if (cl->number > 1 && !is_valid(w, cl)) {
        give_up(w, cl, chance(w, 500));
        return;
    }
    if (cl->is_flying && w->mutant == NO_WAIT_ANSWER && chance(w, 100))
        cl->is_flying = false;
    if (!cl->is_flying && (cl->number == 0 || chance(w, 700))) {
        request rq;

        write_request(w, who, &rq);
        send_request(w, cl);
    } else if (cl->number > 1 && chance(w, 200)) {
        sim_add(w, (event){.kind = TEND_LANE,
                           .at_us = w->now_us + span_us(w, 0, 60),
                           .rq = {.who = who,
                                  .life = cl->life,
                                  .lane = cl->lane,
                                  .sent_us = w->now_us},
                           .loses = chance(w, 100)});
    }
}

/* Clears what was settled, and notes which acks were told. */
static void end_settled(world *w, client *cl, const request *rq)
{
    for (size_t i = 0; i < rq->settle_count; i++) {
        const dibs__settlement *s = &rq->settle[i];

        if (s->verb == DIBS__ITEM_ACK && s->rc == DIBS_OK)
            sim_note_told(w, s->token);
        for (size_t j = 0; j < HAND; j++)
            if (cl->hand[j].id == s->token.id &&
                cl->hand[j].token.fence == s->token.fence)
                cl->hand[j].id = 0;
    }
}

static void be_answered(world *w, const event *ev)
{
    const request *rq = &ev->rq;
    client *cl = &w->clients[rq->who];
    int64_t valid_us =
        (w->mutant == VALID_FROM_ANSWER ? w->now_us : rq->sent_us) +
        rq->span_ms * 1000 - DRIFT_US;

    if (!cl->open || cl->life != rq->life || !cl->is_flying ||
        rq->number != cl->number)
        return;
    if (rq->rc == DIBS_LOST) {
        give_up(w, cl, false);
        return;
    }
    end_settled(w, cl, rq);
    cl->is_flying = false;
    if (cl->tends_after_us == INT64_MAX)
        cl->tends_after_us = w->now_us;
    cl->stamp = rq->stamp;
    if (cl->valid_us <= w->now_us) {
        give_up(w, cl, false);
        return;
    }
    if (cl->valid_us == INT64_MAX || cl->valid_us < valid_us)
        cl->valid_us = valid_us;
    for (size_t i = 0; i < rq->told_count; i++)
        begin_item(w, cl, rq->told[i]);
    /* It lists them, as a repeat kept what was unheard. */
    for (size_t i = 0; i < rq->told_count && cl->heard_count < HAND; i++)
        cl->heard[cl->heard_count++] = rq->told[i];
    if (cl->valid_us <= w->now_us)
        give_up(w, cl, false);
}

/* A ring that brings an item. */
static void hear_ring(world *w, const event *ev)
{
    client *cl = &w->clients[ev->rq.who];

    if (!cl->open || cl->lane != ev->rq.lane || cl->number < 2)
        return;
    if (w->mutant == NO_RING_VALID && cl->valid_us <= w->now_us)
        cl->valid_us = w->now_us + 200000;
    if (!is_valid(w, cl) || cl->heard_count == HAND)
        return;
    if (w->mutant != NO_RING_FENCE && ev->token.fence <= cl->top)
        return;
    begin_item(w, cl, ev->token);
    cl->heard[cl->heard_count++] = ev->token;
}

static void be_tended(world *w, const event *ev)
{
    client *cl = &w->clients[ev->rq.who];
    int64_t valid_us = ev->rq.sent_us + (int64_t)TTL_MS * 1000 - DRIFT_US;

    if (!cl->open || cl->life != ev->rq.life || !is_valid(w, cl))
        return;
    if (ev->rq.rc == DIBS_OK && cl->valid_us < valid_us &&
        (ev->rq.sent_us > cl->tends_after_us || w->mutant == OLD_TEND))
        cl->valid_us = valid_us;
}

/* ---- events */

static void push_next(world *w)
{
    producer *pr = &w->producer;

    if (!pr->is_flying && w->push_count < PUSHES - 1) {
        pr->number++;
        pr->push = ++w->push_count;
        pr->delayed = chance(w, 150);
        pr->priority = (int32_t)dibsx_prng_below(&w->prng, 3);
        pr->is_flying = true;
    }
    if (!pr->is_flying)
        return;
    sim_add(w, (event){.kind = PUSH_ITEM,
                       .at_us = w->now_us + span_us(w, 0, 30),
                       .rq = {.lane = pr->lane, .number = pr->number},
                       .push = pr->push,
                       .delayed = pr->delayed,
                       .priority = pr->priority,
                       .loses = chance(w, 100)});
    if (chance(w, 150))
        sim_add(w, (event){.kind = PUSH_ITEM,
                           .at_us = w->now_us + span_us(w, 30, 3000),
                           .rq = {.lane = pr->lane, .number = pr->number},
                           .push = pr->push,
                           .delayed = pr->delayed,
                           .priority = pr->priority,
                           .loses = true});
}

static void be_pushed(world *w, const event *ev)
{
    producer *pr = &w->producer;

    if (!pr->is_flying || ev->rq.number != pr->number ||
        ev->rq.lane != pr->lane)
        return;
    pr->is_flying = false;
    if (ev->rq.rc == DIBS_OK)
        w->pushes[ev->push].answered = true;
    else {
        /* The store has forgotten the lane: another, and the push is given up. */
        pr->lane++;
        pr->number = 0;
    }
}

/* The store goes back once, and from then on again and again. */
static void plan_restart(world *w, int64_t in_us)
{
    int64_t at_us = w->now_us + in_us;

    sim_add(w, (event){.kind = SNAPSHOT, .at_us = at_us});
    sim_add(w, (event){.kind = RESTART,
                       .at_us =
                           at_us + span_us(w, 1, chance(w, 700) ? 200 : 2000)});
}

static void handle(world *w, event *ev)
{
    client *cl;

    switch (ev->kind) {
    case WAKE:
        proceed(w, ev->rq.who);
        ev->at_us = w->now_us + span_us(w, 10, chance(w, 20) ? 4000 : 150);
        sim_add(w, *ev);
        break;
    case PRODUCE:
        push_next(w);
        ev->at_us = w->now_us + span_us(w, 50, 400);
        sim_add(w, *ev);
        break;
    case RETRY:
        cl = &w->clients[ev->rq.who];
        if (cl->open && cl->life == ev->rq.life && cl->is_flying &&
            cl->number == ev->rq.number && cl->tries == ev->rq.try)
            send_request(w, cl);
        break;
    case DEATH:
        w->clients[ev->rq.who].open = false;
        ev->at_us = w->now_us + span_us(w, 1000, 20000);
        sim_add(w, *ev);
        break;
    case SNAPSHOT:
        sim_store_save(w);
        break;
    case RESTART:
        sim_store_restore(w);
        plan_restart(w, span_us(w, 500, 3000));
        break;
    case RING:
        hear_ring(w, ev);
        break;
    case ANSWER:
        be_answered(w, ev);
        break;
    case TENDED:
        be_tended(w, ev);
        break;
    case PUSHED:
        be_pushed(w, ev);
        break;
    default:
        sim_store_serve(w, ev);
        if (ev->loses)
            break;
        ev->at_us = w->now_us + span_us(w, 0, chance(w, 30) ? 4000 : 30);
        if (ev->kind != LEAVE_LANE) {
            ev->kind = ev->kind == SERVE       ? ANSWER
                       : ev->kind == TEND_LANE ? TENDED
                                               : PUSHED;
            sim_add(w, *ev);
        }
    }
}

void sim_ring(world *w, uint64_t lane, dibs__token token)
{
    for (int who = 0; who < CLIENTS; who++)
        if (w->clients[who].lane == lane && !chance(w, 200))
            sim_add(w,
                    (event){.kind = RING,
                            .at_us = w->now_us +
                                     span_us(w, 0, chance(w, 100) ? 4000 : 40),
                            .rq = {.who = who, .lane = lane},
                            .token = token});
}

/* ---- what must hold */

static void check_believers(world *w)
{
    for (int who = 0; who < CLIENTS; who++)
        for (size_t i = 0; i < HAND; i++) {
            const client *cl = &w->clients[who];
            const dibs__item *item;
            const dibs__lane *lane;

            if (!believes(w, cl, i))
                continue;
            item = sim_item(w, cl->hand[i].id);
            lane = sim_lane(w, cl->lane);
            if (!item || !lane || item->lane != cl->lane ||
                item->fence != cl->hand[i].token.fence)
                w->wrong = "I1: a client believes in what it does not have";
            else if (lane->until_us < cl->valid_us)
                w->wrong = "I1: a client believes for too long";
        }
}

/* The store has forgotten what the client saw, or did it otherwise: its next request
 * will be refused. */
static bool is_behind(const client *cl, const dibs__lane *lane)
{
    if (!cl->is_flying)
        return lane->stamp != cl->stamp;
    return lane->number != cl->number && lane->stamp != cl->flying.seen;
}

static bool
is_known(const client *cl, const dibs__lane *lane, const dibs__item *item)
{
    for (size_t i = 0; i < HAND; i++)
        if (cl->hand[i].id == item->id &&
            (cl->hand[i].token.fence == item->fence ||
             (cl->is_flying && cl->hand[i].settling)))
            return true;
    /* The next answer has it. */
    return item->told == 0 || (cl->is_flying && lane->number == cl->number &&
                               item->told == cl->number);
}

static void check_known(world *w)
{
    for (int who = 0; who < CLIENTS; who++) {
        const client *cl = &w->clients[who];
        const dibs__lane *lane = cl->open ? sim_lane(w, cl->lane) : NULL;

        if (!lane || !is_valid(w, cl) || is_behind(cl, lane))
            continue;
        for (size_t i = 0; i < w->store.item_count; i++) {
            const dibs__item *item = &w->store.items[i];

            if (item->lane == cl->lane && !is_known(cl, lane, item))
                w->wrong = "I5: a live lane has an item that its client does "
                           "not know of";
        }
    }
}

static void check_pushes(world *w)
{
    for (size_t i = 1; i <= w->push_count && !w->rolled; i++) {
        const pushed *p = &w->pushes[i];

        if (p->made > 1)
            w->wrong = "I3: a push made two items";
        if (p->acked > 1 || p->told > p->acked)
            w->wrong = "I2: an ack was accepted or told twice";
        if (p->answered && p->made == 0)
            w->wrong = "I4: an answered push made no item";
        if (p->answered && !p->acked && !p->died && !sim_item(w, p->id))
            w->wrong = "I4: an item is lost";
    }
}

static void check_all(world *w)
{
    const char *wrong = NULL;

    if (!w->rolled)
        check_believers(w);
    check_known(w);
    check_pushes(w);
    wrong =
        dibs__deliver_check(&w->store.head, w->store.lanes, w->store.lane_count,
                            w->store.items, w->store.item_count, w->now_us,
                            w->store.watermark);
    if (wrong && !w->wrong)
        w->wrong = wrong;
}

static const char *run_seed(world *w, uint64_t seed, mutant planted)
{
    memset(w, 0, sizeof(*w));
    w->seed = seed;
    w->mutant = planted;
    w->prng.state = seed * 0x9e3779b97f4a7c15u + 1;
    w->now_us = 1000000;
    w->store.watermark = 1;
    w->store.head.conf.tries = 5;
    w->producer.lane = 1000000;
    for (int i = 0; i < CLIENTS; i++) {
        sim_add(w, (event){.kind = WAKE, .at_us = w->now_us, .rq = {.who = i}});
        sim_add(w, (event){.kind = DEATH,
                           .at_us = w->now_us + span_us(w, 1000, 20000),
                           .rq = {.who = i}});
    }
    sim_add(w, (event){.kind = PRODUCE, .at_us = w->now_us});
    if (chance(w, 700))
        plan_restart(w, span_us(w, 1000, SPAN_S * 500));
    while (!w->wrong && w->now_us < (int64_t)SPAN_S * 1000000) {
        event ev = take_first(w);

        w->now_us = ev.at_us;
        handle(w, &ev);
        check_all(w);
    }
    if (!w->wrong && w->acked_total == 0)
        w->wrong = "nothing was done";
    return w->wrong;
}

static world the_world;
static uint64_t acked, lost; /* of all seeds */

static const char *run_one(uint64_t seed, int planted, dibsx_nsec *at)
{
    const char *wrong = run_seed(&the_world, seed, (mutant)planted);

    *at = the_world.now_us * 1000;
    acked += the_world.acked_total;
    lost += the_world.store.head.lost;
    return wrong;
}

static int report(uint64_t seeds)
{
    printf("%llu seeds of %d s, %llu items acked, %llu deliveries lost\n",
           (unsigned long long)seeds, SPAN_S, (unsigned long long)acked,
           (unsigned long long)lost);
    return 0;
}

int main(int argc, char **argv)
{
    return seeds_main(argc, argv, run_one, report);
}
