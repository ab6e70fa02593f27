/* queue_store.c - the store of sim_queue: a shelf of arrays under the rule of
 * store/deliver.h, and the mistakes that are planted in it. */
/* SPDX-License-Identifier: MIT */
#include "queue_sim.h"

#include <string.h>

typedef struct sim_shelf {
    dibs__shelf base;
    world *w;
    event *ev;
} sim_shelf;

static world *of(dibs__shelf *sh)
{
    return ((sim_shelf *)sh)->w;
}

dibs__item *sim_item(world *w, uint64_t id)
{
    for (size_t i = 0; i < w->store.item_count; i++)
        if (w->store.items[i].id == id)
            return &w->store.items[i];
    return NULL;
}

dibs__lane *sim_lane(world *w, uint64_t lane)
{
    for (size_t i = 0; i < w->store.lane_count; i++)
        if (w->store.lanes[i].lane == lane)
            return &w->store.lanes[i];
    return NULL;
}

static pushed *push_of(world *w, uint64_t id)
{
    for (size_t i = 1; i <= w->push_count; i++)
        if (w->pushes[i].id == id)
            return &w->pushes[i];
    return &w->pushes[0];
}

void sim_note_told(world *w, dibs__token token)
{
    push_of(w, token.id)->told++;
}

static dibs_status give_lane(const dibs__lane *lane, dibs__lane *out)
{
    if (lane)
        *out = *lane;
    return lane ? DIBS_OK : DIBS_NOTFOUND;
}

static dibs_status give_item(const dibs__item *item, dibs__item *out)
{
    if (item)
        *out = *item;
    return item ? DIBS_OK : DIBS_NOTFOUND;
}

static dibs_status lane_find(dibs__shelf *sh, uint64_t lane, dibs__lane *out)
{
    return give_lane(sim_lane(of(sh), lane), out);
}

static dibs_status lane_put(dibs__shelf *sh, const dibs__lane *lane)
{
    world *w = of(sh);
    dibs__lane *at = sim_lane(w, lane->lane);

    if (!at && w->store.lane_count == LANES)
        w->wrong = "the simulation has no room for a lane";
    else if (!at)
        at = &w->store.lanes[w->store.lane_count++];
    if (at)
        *at = *lane;
    return DIBS_OK;
}

static dibs_status lane_drop(dibs__shelf *sh, uint64_t lane)
{
    world *w = of(sh);
    dibs__lane *at = sim_lane(w, lane);

    if (at)
        *at = w->store.lanes[--w->store.lane_count];
    return DIBS_OK;
}

/* No lane has a worker, so that none is kept when it is over. */
static dibs_status lane_ended(dibs__shelf *sh, uint64_t after, dibs__lane *out)
{
    world *w = of(sh);

    (void)after;
    for (size_t i = 0; i < w->store.lane_count; i++)
        if (w->store.lanes[i].until_us <= sh->now_us)
            return give_lane(&w->store.lanes[i], out);
    return DIBS_NOTFOUND;
}

static dibs_status
lane_waiting(dibs__shelf *sh, const char *as, dibs__lane *out)
{
    world *w = of(sh);
    const dibs__lane *last = NULL;

    for (size_t i = 0; i < w->store.lane_count; i++) {
        const dibs__lane *lane = &w->store.lanes[i];

        if (lane->waits_us && lane->until_us > sh->now_us &&
            (!as || strcmp(as, lane->as) == 0) &&
            (!last || last->waits_us < lane->waits_us))
            last = lane;
    }
    return w->mutant == NO_HAND ? DIBS_NOTFOUND : give_lane(last, out);
}

static dibs_status lanes_waiting(dibs__shelf *sh, uint64_t *count)
{
    world *w = of(sh);

    *count = 0;
    for (size_t i = 0; i < w->store.lane_count; i++)
        *count += w->store.lanes[i].waits_us != 0;
    return DIBS_OK;
}

static dibs_status worker_lives(dibs__shelf *sh, const char *worker, bool *out)
{
    (void)sh;
    (void)worker;
    *out = false;
    return DIBS_OK;
}

static dibs_status
worker_richest(dibs__shelf *sh, char out[DIBS__WORKER_MAX], uint64_t *count)
{
    (void)sh;
    out[0] = '\0';
    *count = 0;
    return DIBS_NOTFOUND;
}

static dibs_status item_find(dibs__shelf *sh, uint64_t id, dibs__item *out)
{
    return give_item(sim_item(of(sh), id), out);
}

static dibs_status
item_make(dibs__shelf *sh, const dibs__item *item, const void *data)
{
    world *w = of(sh);
    uint64_t push;

    memcpy(&push, data, sizeof(push));
    w->pushes[push].id = item->id;
    w->pushes[push].made++;
    w->pushes[push].fence = 0;
    if (w->store.item_count == ITEMS)
        w->wrong = "the simulation has no room for an item";
    else
        w->store.items[w->store.item_count++] = *item;
    return DIBS_OK;
}

static dibs_status item_put(dibs__shelf *sh, const dibs__item *item)
{
    world *w = of(sh);
    dibs__item *at = sim_item(w, item->id);
    pushed *p = push_of(w, item->id);

    if (item->lane && item->fence != at->fence) {
        if (item->fence <= p->fence)
            w->wrong = "I7: the fences of an item do not rise";
        p->fence = item->fence;
    }
    if (at->due_wall_us > sh->now_wall_us && !item->due_wall_us)
        w->wrong = "I10: an item is ready before it is due";
    *at = *item;
    return DIBS_OK;
}

static void remove_item(world *w, uint64_t id)
{
    dibs__item *at = sim_item(w, id);

    *at = w->store.items[--w->store.item_count];
}

/* There is no purge here: it was acked. */
static dibs_status item_drop(dibs__shelf *sh, uint64_t id)
{
    world *w = of(sh);

    push_of(w, id)->acked++;
    w->acked_total++;
    remove_item(w, id);
    return DIBS_OK;
}

static bool goes_before(const dibs__item *a, const dibs__item *b)
{
    if (a->priority != b->priority)
        return a->priority > b->priority;
    return a->place != b->place ? a->place < b->place : a->id < b->id;
}

static dibs_status item_ready(dibs__shelf *sh, const char *own, dibs__item *out)
{
    world *w = of(sh);
    const dibs__item *first = NULL;

    (void)own;
    for (size_t i = 0; i < w->store.item_count; i++) {
        const dibs__item *item = &w->store.items[i];

        if (!item->lane && !item->due_wall_us &&
            (!first || goes_before(item, first)))
            first = item;
    }
    return give_item(first, out);
}

/* told UINT64_MAX: any. */
static dibs_status item_told(dibs__shelf *sh, uint64_t lane, uint64_t told,
                             uint64_t after, dibs__item *out)
{
    world *w = of(sh);
    const dibs__item *first = NULL;

    for (size_t i = 0; i < w->store.item_count; i++) {
        const dibs__item *item = &w->store.items[i];

        if (item->lane == lane && item->fence > after &&
            (told == UINT64_MAX || item->told == told) &&
            (!first || item->fence < first->fence))
            first = item;
    }
    return give_item(first, out);
}

static dibs_status
item_had(dibs__shelf *sh, uint64_t lane, uint64_t after, dibs__item *out)
{
    return item_told(sh, lane, UINT64_MAX, after, out);
}

/* Only the first is ever looked at with care. */
static dibs_status item_later(dibs__shelf *sh, uint64_t skip, dibs__item *out)
{
    world *w = of(sh);
    const dibs__item *first = NULL;

    for (size_t i = 0; i < w->store.item_count; i++) {
        const dibs__item *item = &w->store.items[i];

        if (item->due_wall_us &&
            (!first || item->due_wall_us < first->due_wall_us))
            first = item;
    }
    return skip > 0 ? DIBS_NOTFOUND : give_item(first, out);
}

static dibs_status item_late(dibs__shelf *sh, dibs__item *out)
{
    (void)sh;
    (void)out;
    return DIBS_NOTFOUND;
}

static dibs_status
item_any(dibs__shelf *sh, dibs__item_place place, dibs__item *out)
{
    (void)place;
    return item_late(sh, out);
}

static dibs_status is_held_up(dibs__shelf *sh, bool *out)
{
    (void)sh;
    *out = false;
    return DIBS_OK;
}

static dibs_status dedup_find(dibs__shelf *sh, const char *id, dibs__dedup *out)
{
    (void)sh;
    (void)id;
    (void)out;
    return DIBS_NOTFOUND;
}

static dibs_status
dedup_put(dibs__shelf *sh, const char *id, const dibs__dedup *at)
{
    (void)sh;
    (void)id;
    (void)at;
    return DIBS_OK;
}

static dibs_status dedup_drop(dibs__shelf *sh, const char *id)
{
    (void)sh;
    (void)id;
    return DIBS_OK;
}

static dibs_status
dead_put(dibs__shelf *sh, const dibs__item *item, const char *reason)
{
    world *w = of(sh);

    (void)reason;
    push_of(w, item->id)->died = true;
    remove_item(w, item->id);
    return DIBS_OK;
}

static dibs_status done_put(dibs__shelf *sh, const dibs__item *item,
                            const char *result, size_t len)
{
    (void)sh;
    (void)item;
    (void)result;
    (void)len;
    return DIBS_OK;
}

static dibs_status done_drop(dibs__shelf *sh)
{
    (void)sh;
    return DIBS_OK;
}

static dibs_status dead_drop(dibs__shelf *sh)
{
    (void)sh;
    return DIBS_OK;
}

static dibs_status
dead_redrive(dibs__shelf *sh, uint64_t id, uint64_t as_id, dibs__item *out)
{
    (void)id;
    (void)as_id;
    return item_late(sh, out);
}

static dibs__pusher *find_pusher(world *w, uint64_t lane)
{
    for (size_t i = 0; i < w->store.pusher_count; i++)
        if (w->store.pushers[i].lane == lane)
            return &w->store.pushers[i];
    return NULL;
}

static dibs_status
pusher_find(dibs__shelf *sh, uint64_t lane, dibs__pusher *out)
{
    const dibs__pusher *at = find_pusher(of(sh), lane);

    if (at)
        *out = *at;
    return at ? DIBS_OK : DIBS_NOTFOUND;
}

static dibs_status pusher_put(dibs__shelf *sh, const dibs__pusher *pusher)
{
    world *w = of(sh);
    dibs__pusher *at = find_pusher(w, pusher->lane);

    if (!at && w->store.pusher_count == PUSHERS)
        w->wrong = "the simulation has no room for a producer";
    else if (!at)
        at = &w->store.pushers[w->store.pusher_count++];
    if (at)
        *at = *pusher;
    return DIBS_OK;
}

static dibs__token token_of(const dibs__item *item)
{
    return (dibs__token){.id = item->id,
                         .fence = item->fence,
                         .attempt = item->attempts};
}

static void
ring(dibs__shelf *sh, const dibs__lane *lane, const dibs__item *item)
{
    world *w = of(sh);

    if (!item)
        return;
    if (w->mutant == NO_UNHEARD)
        sim_item(w, item->id)->told = 1;
    sim_ring(w, lane->lane, token_of(item));
}

static dibs_status answer(dibs__shelf *sh, const dibs__item *item)
{
    request *rq = &((sim_shelf *)sh)->ev->rq;

    if (rq->told_count == sizeof(rq->told) / sizeof(rq->told[0]))
        of(sh)->wrong = "the simulation has no room for an answer";
    else
        rq->told[rq->told_count++] = token_of(item);
    return DIBS_OK;
}

static const dibs__shelf_ops shelf_ops = {
    .lane_find = lane_find,
    .lane_put = lane_put,
    .lane_drop = lane_drop,
    .lane_ended = lane_ended,
    .lane_waiting = lane_waiting,
    .lanes_waiting = lanes_waiting,
    .worker_lives = worker_lives,
    .worker_richest = worker_richest,
    .item_find = item_find,
    .item_make = item_make,
    .item_put = item_put,
    .item_drop = item_drop,
    .item_ready = item_ready,
    .item_had = item_had,
    .item_told = item_told,
    .item_later = item_later,
    .item_late = item_late,
    .item_any = item_any,
    .is_held_up = is_held_up,
    .dedup_find = dedup_find,
    .dedup_put = dedup_put,
    .dedup_drop = dedup_drop,
    .dead_put = dead_put,
    .dead_drop = dead_drop,
    .done_put = done_put,
    .done_drop = done_drop,
    .dead_redrive = dead_redrive,
    .pusher_find = pusher_find,
    .pusher_put = pusher_put,
    .ring = ring,
    .answer = answer,
};

/* ---- steps */

/* Leaves a rule of the store out before the step. */
static void mislead(sim_shelf *sh, request *rq)
{
    world *w = sh->w;
    const dibs__lane *lane = sim_lane(w, rq->lane);

    if (lane && rq->number > 1 &&
        (w->mutant == NO_NUMBER ||
         (w->mutant == NO_GAP && rq->number > lane->number))) {
        rq->number = lane->number + 1;
        rq->seen = lane->stamp;
    }
    if (lane && w->mutant == NO_STAMP && rq->number == lane->number + 1)
        rq->seen = lane->stamp;
    for (size_t i = 0; i < rq->heard_count && w->mutant == HEARD_BY_ITEM; i++) {
        const dibs__item *item = sim_item(w, rq->heard[i].id);

        if (item && item->lane == rq->lane)
            rq->heard[i] = token_of(item);
    }
    for (size_t i = 0; i < rq->settle_count && w->mutant == NO_TOKEN_LANE;
         i++) {
        dibs__item *item = sim_item(w, rq->settle[i].token.id);

        if (!lane && item && item->lane) {
            sh->base.head.items--;
            remove_item(w, item->id);
            push_of(w, rq->settle[i].token.id)->acked++;
        }
    }
}

static void serve_reserve(sim_shelf *sh, event *ev)
{
    world *w = sh->w;
    request *rq = &ev->rq;
    uint64_t number = rq->number;
    const dibs__lane *lane = sim_lane(w, rq->lane);
    bool repeat = lane && lane->number == rq->number;
    dibs__reserve ask;

    mislead(sh, rq);
    ask = (dibs__reserve){.queue = "q",
                          .lane = rq->lane,
                          .number = rq->number,
                          .seen = rq->seen,
                          .span_ms = rq->span_ms,
                          .want = rq->want,
                          .wait = rq->places,
                          .as = "",
                          .hands = 1,
                          .heard = rq->heard,
                          .heard_count = rq->heard_count,
                          .settle = rq->settle,
                          .settle_count = rq->settle_count};
    rq->told_count = 0;
    rq->rc = dibs__deliver_reserve(&sh->base, &ask);
    rq->stamp = ask.stamp;
    rq->number = number;
    for (size_t i = 0; i < w->store.item_count; i++) {
        dibs__item *item = &w->store.items[i];

        if (w->mutant == REPEAT_EATS && repeat && item->lane == rq->lane &&
            item->told == 0)
            item->told = 1;
    }
}

/* The place of a lane that found nothing comes in a step of its own. */
static void split_place(world *w, uint64_t id)
{
    dibs__lane *lane = sim_lane(w, id);

    if (w->mutant != SPLIT_PLACE || !lane || !lane->waits_us)
        return;
    lane->waits_us = 0;
    sim_add(w, (event){.kind = GIVE_PLACE,
                       .at_us = w->now_us + 20000,
                       .loses = true,
                       .rq = {.lane = id}});
}

static void serve_push(sim_shelf *sh, event *ev)
{
    world *w = sh->w;
    uint64_t push = ev->push;
    dibs__push_item item = {.data = &push,
                            .len = sizeof(push),
                            .delay_ms = ev->delayed ? 700 : 0,
                            .priority = ev->priority,
                            .to = "",
                            .dedup = ""};
    dibs__push ask = {.queue = "q",
                      .lane = ev->rq.lane,
                      .number = ev->rq.number,
                      .items = &item,
                      .count = 1};
    dibs__pusher *last = find_pusher(w, ev->rq.lane);

    if (last && (w->mutant == NO_NUMBER_PUSH ||
                 (w->mutant == PUSH_BY_ITEM && w->pushes[push].id &&
                  !sim_item(w, w->pushes[push].id))))
        ask.number = last->number + 1;
    ev->rq.rc = dibs__deliver_push(&sh->base, &ask);
}

void sim_store_serve(world *w, event *ev)
{
    dibs_error err = {0};
    dibs__tend tend = {.queue = "q", .lane = ev->rq.lane, .span_ms = TTL_MS};
    sim_shelf sh = {.base = {.ops = &shelf_ops,
                             .head = w->store.head,
                             .now_us = w->now_us,
                             .now_wall_us =
                                 w->mutant == COUNTER ? 1 : w->now_us,
                             .bell = "",
                             .err = &err},
                    .w = w,
                    .ev = ev};
    dibs__lane *lane = sim_lane(w, ev->rq.lane);

    sh.base.watermark = w->store.watermark;
    if (ev->kind == SERVE) {
        serve_reserve(&sh, ev);
    } else if (ev->kind == PUSH_ITEM) {
        serve_push(&sh, ev);
    } else if (ev->kind == LEAVE_LANE) {
        (void)dibs__deliver_leave(&sh.base, ev->rq.lane);
    } else if (ev->kind == TEND_LANE) {
        (void)dibs__deliver_tend(&sh.base, &tend);
        ev->rq.rc = tend.rc;
    } else if (lane) {
        lane->waits_us = w->now_us;
    }
    w->store.head = sh.base.head;
    w->store.watermark = sh.base.watermark;
    if (ev->kind == SERVE)
        split_place(w, ev->rq.lane);
}

void sim_store_save(world *w)
{
    w->saved = w->store;
}

void sim_store_restore(world *w)
{
    w->store = w->saved;
    w->rolled = true;
}
