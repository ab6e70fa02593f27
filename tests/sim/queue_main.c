/* queue_main.c - clients of a queue in simulated time: the machine of coord/lane_machine.h,
 * with the rule of store/deliver.h as its store, on a shelf of arrays; slow, lost and late requests, rings that bring items and get lost,
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

static dibsx_nsec now_of(const world *w)
{
    return w->now_us * 1000;
}

static void forget_items(client *cl)
{
    for (size_t i = 0; i < HAND; i++)
        if (cl->hand[i].token.id) {
            dibs__consumer_drop(&cl->machine, &cl->hand[i]);
            cl->hand[i].token.id = 0;
        }
}

static void open_client(client *cl, int who)
{
    forget_items(cl);
    cl->life++;
    dibs__consumer_init(&cl->machine, TTL_MS);
    cl->machine.place_ms = PLACE_MS;
    dibs__consumer_open(&cl->machine, 1 + (uint64_t)who + 16 * cl->life);
}

static bool is_open(const client *cl)
{
    return cl->machine.state == DIBS__LANE_OPEN;
}

/* Takes a delivery in hand, of an answer or of a ring. */
static void begin_item(world *w, client *cl, dibs__token token, bool rings)
{
    dibs__lane_item *room = NULL, *older;

    for (size_t i = 0; i < HAND; i++) {
        if (cl->hand[i].token.id == 0 && !room)
            room = &cl->hand[i];
        if (cl->hand[i].token.id == token.id && w->mutant == NO_REPLACE &&
            !cl->hand[i].settling)
            return;
    }
    if (!room) {
        w->wrong = "the simulation has no room for an item";
        return;
    }
    room->token = token;
    if (!(rings ? dibs__consumer_rung : dibs__consumer_take)(&cl->machine, room,
                                                             now_of(w), &older))
        room->token.id = 0;
    else if (older)
        older->token.id = 0;
}

/* Settles some of what is in hand; how many there are. */
static unsigned settle_some(world *w, client *cl, request *rq)
{
    unsigned count = 0;

    for (size_t i = 0; i < HAND && rq->number > 1; i++) {
        dibs__lane_item *item = &cl->hand[i];

        if (item->token.id == 0)
            continue;
        count++;
        if (!chance(w, 500) || item->settling)
            continue;
        rq->settle[rq->settle_count++] = (dibs__settlement){
            .verb = chance(w, 700)   ? DIBS__ITEM_ACK
                    : chance(w, 800) ? DIBS__ITEM_NACK
                                     : DIBS__ITEM_UNBEGUN,
            .token = item->token,
            .ms =
                chance(w, 300) ? (int64_t)dibsx_prng_below(&w->prng, 3000) : 0};
        dibs__consumer_settle(&cl->machine, item);
        if (w->mutant == NO_BELIEF_END)
            item->settling = false;
    }
    return count;
}

/* Writes the next request: some settlements, and perhaps an ask. */
static void write_request(world *w, int who)
{
    client *cl = &w->clients[who];
    request *rq = &cl->flying;
    dibs__lane_ask ask;
    bool places = chance(w, 600);
    unsigned count;

    dibs__consumer_ask(&cl->machine, places, now_of(w), &ask);
    *rq = (request){.who = who,
                    .life = cl->life,
                    .lane = ask.lane,
                    .number = ask.number,
                    .seen = ask.seen,
                    .span_ms = ask.span_ms,
                    .places = places && !ask.opens};
    count = settle_some(w, cl, rq);
    rq->want = count < HAND / 2 && chance(w, 800)
                   ? 1 + (uint32_t)dibsx_prng_below(&w->prng, 2)
                   : 0;
    rq->heard_count = dibs__consumer_heard(&cl->machine, rq->heard, HAND);
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
                           .rq = {.lane = cl->machine.lane},
                           .loses = chance(w, 200)});
    dibs__consumer_end(&cl->machine);
    forget_items(cl);
}

static void proceed(world *w, int who)
{
    client *cl = &w->clients[who];

    if (!is_open(cl)) {
        if (chance(w, 500))
            open_client(cl, who);
        else
            return;
    }
    dibs__consumer_look(&cl->machine, now_of(w));
    if (!is_open(cl)) {
        give_up(w, cl, chance(w, 500));
        return;
    }
    if (w->mutant == NO_WAIT_ANSWER && chance(w, 100))
        cl->machine.asking = false;
    if (!cl->machine.asking && (cl->machine.number == 0 || chance(w, 700))) {
        write_request(w, who);
        send_request(w, cl);
    } else if (cl->machine.number > 1 && chance(w, 200)) {
        dibs__consumer_tend(&cl->machine, now_of(w));
        sim_add(w, (event){.kind = TEND_LANE,
                           .at_us = w->now_us + span_us(w, 0, 60),
                           .rq = {.who = who,
                                  .life = cl->life,
                                  .lane = cl->machine.lane,
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
            if (cl->hand[j].token.id == s->token.id &&
                cl->hand[j].token.fence == s->token.fence) {
                dibs__consumer_drop(&cl->machine, &cl->hand[j]);
                cl->hand[j].token.id = 0;
            }
    }
}

static void be_answered(world *w, const event *ev)
{
    const request *rq = &ev->rq;
    client *cl = &w->clients[rq->who];

    if (!is_open(cl) || cl->life != rq->life || !cl->machine.asking ||
        rq->number != cl->machine.number)
        return;
    if (dibs__consumer_answered(
            &cl->machine,
            w->mutant == VALID_FROM_ANSWER ? now_of(w) : rq->sent_us * 1000,
            now_of(w), rq->rc, rq->stamp) != DIBS__ASKED_DONE) {
        give_up(w, cl, false);
        return;
    }
    end_settled(w, cl, rq);
    for (size_t i = 0; i < rq->told_count; i++)
        begin_item(w, cl, rq->told[i], false);
    if (!is_open(cl))
        give_up(w, cl, false);
}

/* A ring that brings an item. */
static void hear_ring(world *w, const event *ev)
{
    client *cl = &w->clients[ev->rq.who];
    uint64_t top = cl->machine.top;

    if (!is_open(cl) || cl->machine.lane != ev->rq.lane)
        return;
    if (w->mutant == NO_RING_VALID && cl->machine.valid_until <= now_of(w))
        cl->machine.valid_until = now_of(w) + 200000000;
    if (w->mutant == NO_RING_FENCE)
        cl->machine.top = 0;
    begin_item(w, cl, ev->token, true);
    if (cl->machine.top < top)
        cl->machine.top = top;
}

static void be_tended(world *w, const event *ev)
{
    client *cl = &w->clients[ev->rq.who];

    if (!is_open(cl) || cl->life != ev->rq.life)
        return;
    if (w->mutant == OLD_TEND)
        cl->machine.tends_since = 0;
    dibs__consumer_tended(&cl->machine, ev->rq.sent_us * 1000, now_of(w),
                          ev->rq.rc);
    if (!is_open(cl))
        give_up(w, cl, false);
}

/* ---- events */

static void push_next(world *w)
{
    producer *pr = &w->producer;
    event ev;

    if (!pr->machine.asking && w->push_count < PUSHES - 1) {
        if (dibs__producer_needs_lane(&pr->machine, now_of(w)))
            dibs__producer_open(&pr->machine, 1000000 + pr->lanes++);
        (void)dibs__producer_ask(&pr->machine, now_of(w));
        pr->push = ++w->push_count;
        pr->delayed = chance(w, 150);
        pr->priority = (int32_t)dibsx_prng_below(&w->prng, 3);
    } else if (pr->machine.asking) {
        (void)dibs__producer_answered(&pr->machine, now_of(w), DIBS_UNKNOWN);
    }
    if (!pr->machine.asking)
        return;
    ev = (event){.kind = PUSH_ITEM,
                 .at_us = w->now_us + span_us(w, 0, 30),
                 .rq = {.lane = pr->machine.lane, .number = pr->machine.number},
                 .push = pr->push,
                 .delayed = pr->delayed,
                 .priority = pr->priority,
                 .loses = chance(w, 100)};
    sim_add(w, ev);
    if (!chance(w, 150))
        return;
    ev.at_us = w->now_us + span_us(w, 30, 3000);
    ev.loses = true;
    sim_add(w, ev);
}

/* LOST: the store has forgotten the lane, and the push is given up. */
static void be_pushed(world *w, const event *ev)
{
    producer *pr = &w->producer;

    if (!pr->machine.asking || ev->rq.number != pr->machine.number ||
        ev->rq.lane != pr->machine.lane)
        return;
    if (dibs__producer_answered(&pr->machine, now_of(w), ev->rq.rc) ==
            DIBS__ASKED_DONE &&
        ev->rq.rc == DIBS_OK)
        w->pushes[ev->push].answered = true;
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

/* A try had no answer in time. */
static void try_again(world *w, client *cl)
{
    if (dibs__consumer_answered(&cl->machine, 0, now_of(w), DIBS_UNKNOWN, 0) ==
        DIBS__ASKED_AGAIN)
        send_request(w, cl);
    else
        give_up(w, cl, chance(w, 500));
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
        if (is_open(cl) && cl->life == ev->rq.life && cl->machine.asking &&
            cl->machine.number == ev->rq.number && cl->tries == ev->rq.try)
            try_again(w, cl);
        break;
    case DEATH:
        give_up(w, &w->clients[ev->rq.who], false);
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
        if (w->clients[who].machine.lane == lane && !chance(w, 200))
            sim_add(w,
                    (event){.kind = RING,
                            .at_us = w->now_us +
                                     span_us(w, 0, chance(w, 100) ? 4000 : 40),
                            .rq = {.who = who, .lane = lane},
                            .token = token});
}

/* ---- what must hold */

static void check_belief(world *w, const client *cl, dibs__token token)
{
    const dibs__item *item = sim_item(w, token.id);
    const dibs__lane *lane = sim_lane(w, cl->machine.lane);

    if (!item || !lane || item->lane != cl->machine.lane ||
        item->fence != token.fence)
        w->wrong = "I1: a client believes in what it does not have";
    else if (lane->until_us < cl->machine.valid_until / 1000)
        w->wrong = "I1: a client believes for too long";
}

static void check_believers(world *w)
{
    for (int who = 0; who < CLIENTS; who++)
        for (size_t i = 0; i < HAND; i++) {
            const client *cl = &w->clients[who];

            if (cl->hand[i].token.id &&
                dibs__consumer_believes(&cl->machine, &cl->hand[i], now_of(w)))
                check_belief(w, cl, cl->hand[i].token);
        }
}

/* The store has forgotten what the client saw, or did it otherwise: its next request
 * will be refused. */
static bool is_behind(const client *cl, const dibs__lane *lane)
{
    if (!cl->machine.asking)
        return lane->stamp != cl->machine.stamp;
    return lane->number != cl->machine.number && lane->stamp != cl->flying.seen;
}

static bool
is_known(const client *cl, const dibs__lane *lane, const dibs__item *item)
{
    const dibs__consumer *c = &cl->machine;

    for (size_t i = 0; i < HAND; i++)
        if (cl->hand[i].token.id == item->id &&
            (cl->hand[i].token.fence == item->fence ||
             (c->asking && cl->hand[i].settling)))
            return true;
    /* The next answer has it. */
    return item->told == 0 ||
           (c->asking && lane->number == c->number && item->told == c->number);
}

static void check_known(world *w)
{
    for (int who = 0; who < CLIENTS; who++) {
        const client *cl = &w->clients[who];
        const dibs__lane *lane = sim_lane(w, cl->machine.lane);

        if (!lane || !dibs__consumer_is_valid(&cl->machine, now_of(w)) ||
            is_behind(cl, lane))
            continue;
        for (size_t i = 0; i < w->store.item_count; i++) {
            const dibs__item *item = &w->store.items[i];

            if (item->lane == cl->machine.lane && !is_known(cl, lane, item))
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

    for (int who = 0; who < CLIENTS && w->mutant == NO_MUTANT; who++)
        dibs__consumer_check(&w->clients[who].machine);
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
