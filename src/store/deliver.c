/* deliver.c - the rule of queues: the requests of lanes. deliver_item.c has the ways of an
 * item. Pure, but for the shelf. */
/* SPDX-License-Identifier: MIT */
#include "store/deliver.h"
#include "base/fail.h"
#include "store/deliver_item.h"
#include <string.h>

/* A step ends so many lanes and moves so many items that are due or late, or that were
 * for a worker that is gone. */
enum { LANES_MOST = 64, ITEMS_MOST = 256, FREED_BYTES = 1 << 20 };

static dibs_status none_is_fine(dibs_status rc)
{
    return rc == DIBS_NOTFOUND ? DIBS_OK : rc;
}

static dibs_status fail_lost(dibs__shelf *sh)
{
    return dibsx_fail(sh->err, DIBS_LOST,
                      "the lane has ended, or the number is over");
}

static int64_t after_ms(int64_t now_us, int64_t span_ms)
{
    int64_t span_us, until_us;

    if (__builtin_mul_overflow(span_ms, (int64_t)1000, &span_us) ||
        __builtin_add_overflow(now_us, span_us, &until_us))
        return INT64_MAX;
    return until_us;
}

static void copy_text(char *out, size_t size, const char *text)
{
    size_t len = strnlen(text, size - 1);

    memcpy(out, text, len);
    out[len] = '\0';
}

static bool is_over(const dibs__lane *lane)
{
    return lane->number == DIBS__LANE_OVER;
}

/* Takes up to `want` for a lane, into the answer to its request, or handed over. */
static dibs_status take_items(dibs__shelf *sh, const dibs__lane *lane,
                              uint32_t want, bool handed, uint32_t *taken)
{
    dibs_status rc = DIBS_OK;

    *taken = 0;
    sh->robbing = false;
    if (handed)
        sh->answered_bytes = 0;
    while (*taken < want && sh->answered_bytes < DIBS__QUEUE_BYTES) {
        dibs__item item;

        rc = dibs__item_next(sh, lane->as, &item);
        if (rc != DIBS_OK)
            break;
        rc = dibs__item_give(sh, &item, lane, handed ? 0 : lane->number);
        if (rc != DIBS_OK)
            return rc;
        if (handed)
            sh->ops->ring(sh, lane, &item);
        else
            rc = sh->ops->answer(sh, &item);
        if (rc != DIBS_OK)
            return rc;
        sh->answered_bytes += item.len;
        ++*taken;
    }
    return none_is_fine(rc);
}

/* Hands over to a lane that waits, and ends its place. */
static dibs_status hand_over(dibs__shelf *sh, dibs__lane *lane, uint32_t *taken)
{
    dibs_status rc = take_items(sh, lane, lane->want, true, taken);

    if (rc != DIBS_OK || *taken == 0)
        return rc;
    lane->waits_us = 0;
    return sh->ops->lane_put(sh, lane);
}

/* (9) for a worker, or for all that wait. */
static dibs_status serve_lanes(dibs__shelf *sh, const char *as)
{
    uint32_t taken = 1;
    dibs_status rc = DIBS_OK;

    while (rc == DIBS_OK && taken > 0) {
        dibs__lane lane;

        rc = sh->ops->lane_waiting(sh, as, &lane);
        if (rc == DIBS_OK)
            rc = hand_over(sh, &lane, &taken);
    }
    return none_is_fine(rc);
}

/* Makes everybody's what is ready for a worker that is gone, in its order, as much as the
 * step may. */
static dibs_status free_items(dibs__shelf *sh, const char *worker, bool *left)
{
    dibs_status rc = DIBS_OK;

    while (rc == DIBS_OK && sh->freed < ITEMS_MOST &&
           sh->freed_bytes < FREED_BYTES) {
        dibs__item item;

        rc = sh->ops->item_ready(sh, worker, &item);
        if (rc == DIBS_OK) {
            item.own[0] = '\0';
            rc = sh->ops->item_put(sh, &item);
            sh->freed++;
            sh->freed_bytes += item.len;
        }
    }
    *left = rc != DIBS_NOTFOUND;
    return none_is_fine(rc);
}

static void note_gone(dibs__shelf *sh, const char *worker)
{
    for (size_t i = 0; i < sh->gone_count; i++)
        if (strcmp(sh->gone[i], worker) == 0)
            return;
    if (sh->gone_count < DIBS__SHELF_GONE_MAX)
        copy_text(sh->gone[sh->gone_count++], DIBS__WORKER_MAX, worker);
}

/* The worker of a lane that is over. The lane goes when nothing is left, or if the worker is
 * there again: then it keeps the rest. */
static dibs_status free_worker(dibs__shelf *sh, const dibs__lane *lane)
{
    bool lives = false, left = false;
    dibs_status rc = sh->ops->worker_lives(sh, lane->as, &lives);

    if (rc == DIBS_OK && !lives)
        rc = free_items(sh, lane->as, &left);
    if (rc != DIBS_OK)
        return rc;
    if (!left)
        return sh->ops->lane_drop(sh, lane->lane);
    note_gone(sh, lane->as);
    return DIBS_OK;
}

/* It does not live from here on. */
static dibs_status close_lane(dibs__shelf *sh, const dibs__lane *lane)
{
    dibs__lane over = {.lane = lane->lane, .number = DIBS__LANE_OVER};

    if (!lane->as[0])
        return sh->ops->lane_drop(sh, lane->lane);
    copy_text(over.as, sizeof(over.as), lane->as);
    return sh->ops->lane_put(sh, &over);
}

/* The lane ends. All that it had comes back. */
static dibs_status
end_lane(dibs__shelf *sh, const dibs__lane *lane, dibs__return_kind how)
{
    dibs_status rc = close_lane(sh, lane);
    uint64_t after = 0;
    uint32_t charged = 0;

    while (rc == DIBS_OK) {
        dibs__return_kind kind = DIBS__RETURN_UNBEGUN;
        dibs__item item;

        rc = sh->ops->item_had(sh, lane->lane, after, &item);
        if (rc != DIBS_OK)
            break;
        after = item.fence;
        if (item.told != 0 && how == DIBS__RETURN_LOST &&
            (lane->hands == 0 || charged < lane->hands)) {
            kind = DIBS__RETURN_LOST;
            charged++;
        }
        rc = dibs__item_return(sh, &item, kind, 0, "its client was lost");
    }
    rc = none_is_fine(rc);
    return rc == DIBS_OK && lane->as[0] ? free_worker(sh, lane) : rc;
}

/* One whose time is up ends; of one that is over, more is freed. *after: the last of
 * these. If as many workers are gone as a step can know, it looks at no other. */
static dibs_status
end_late_lane(dibs__shelf *sh, const dibs__lane *lane, uint64_t *after)
{
    dibs_status rc;

    if (!is_over(lane))
        return end_lane(sh, lane, DIBS__RETURN_LOST);
    rc = free_worker(sh, lane);
    *after =
        sh->gone_count < DIBS__SHELF_GONE_MAX ? lane->lane : DIBS__LANE_OVER;
    return rc;
}

static dibs_status end_late(dibs__shelf *sh)
{
    uint64_t after = 0;
    dibs_status rc = DIBS_OK;

    for (int i = 0; i < LANES_MOST && rc == DIBS_OK; i++) {
        dibs__lane lane;

        rc = sh->ops->lane_ended(sh, after, &lane);
        if (rc == DIBS_OK)
            rc = end_late_lane(sh, &lane, &after);
    }
    rc = none_is_fine(rc);
    for (int i = 0; i < ITEMS_MOST && rc == DIBS_OK; i++) {
        dibs__item item;

        rc = sh->ops->item_late(sh, &item);
        if (rc == DIBS_OK)
            rc = dibs__item_return(sh, &item,
                                   item.told ? DIBS__RETURN_LOST
                                             : DIBS__RETURN_UNBEGUN,
                                   0, "it was not settled within its limit");
    }
    return none_is_fine(rc);
}

/* Makes ready the items that have become due, in the place of that moment; one that
 * held up a serial queue meanwhile has its old place. */
static dibs_status promote_due(dibs__shelf *sh)
{
    dibs_status rc = DIBS_OK;

    for (int i = 0; i < ITEMS_MOST && rc == DIBS_OK; i++) {
        dibs__item item;

        rc = sh->ops->item_later(sh, 0, &item);
        if (rc == DIBS_OK && item.due_wall_us > sh->now_wall_us)
            break;
        if (rc == DIBS_OK) {
            if (!sh->head.conf.serial || item.attempts == 0)
                item.place = (uint64_t)item.due_wall_us;
            item.due_wall_us = 0;
            rc = dibs__item_shelve(sh, &item);
        }
    }
    return none_is_fine(rc);
}

static dibs_status begin_step(dibs__shelf *sh)
{
    dibs_status rc;

    sh->freed = sh->freed_bytes = sh->gone_count = 0;
    sh->answered_bytes = 0;
    rc = end_late(sh);
    return rc == DIBS_OK ? promote_due(sh) : rc;
}

dibs_status dibs__deliver_tidy(dibs__shelf *sh)
{
    dibs_status rc = begin_step(sh);

    return rc == DIBS_OK ? serve_lanes(sh, NULL) : rc;
}

/* Ends a step with an outcome, once the others have been served. */
static dibs_status serve_and(dibs__shelf *sh, dibs_status outcome)
{
    dibs_status rc = serve_lanes(sh, NULL);

    return rc == DIBS_OK ? outcome : rc;
}

/* ---- push */

/* The kept answer. */
static dibs_status
repeat_push(dibs__shelf *sh, const dibs__push *push, const dibs__pusher *kept)
{
    if (kept->count != push->count)
        return dibsx_fail(sh->err, DIBS_INVALID,
                          "another push had this number of the lane");
    for (size_t i = 0; i < push->count; i++) {
        push->items[i].id = kept->ids[i];
        push->items[i].duplicate = kept->duplicate[i];
    }
    return kept->rc == DIBS_FULL ? dibs__item_fail_full(sh) : kept->rc;
}

/* How many items a push would make. */
static dibs_status
count_fresh(dibs__shelf *sh, const dibs__push *push, uint64_t *fresh)
{
    *fresh = 0;
    for (size_t i = 0; i < push->count; i++) {
        const char *id = push->items[i].dedup;
        bool taken = false;
        uint64_t by;
        dibs_status rc = dibs__item_dedup(sh, id, &taken, &by);

        if (rc != DIBS_OK)
            return rc;
        for (size_t j = 0; j < i && id[0] && !taken; j++)
            taken = strcmp(push->items[j].dedup, id) == 0;
        *fresh += !taken;
    }
    return DIBS_OK;
}

static dibs_status
make_items(dibs__shelf *sh, const dibs__push *push, dibs__pusher *answer)
{
    dibs_status rc = DIBS_OK;

    for (size_t i = 0; i < push->count && rc == DIBS_OK; i++) {
        dibs__push_item *item = &push->items[i];

        rc = dibs__item_dedup(sh, item->dedup, &item->duplicate, &item->id);
        if (rc == DIBS_OK && !item->duplicate)
            rc = dibs__item_push(sh, item);
        answer->ids[i] = item->id;
        answer->duplicate[i] = item->duplicate;
    }
    return rc;
}

/* Hands over to the workers that items are for, then to all. If a delayed item is
 * the next one now, a lane that waits must know. */
static dibs_status serve_push(dibs__shelf *sh, const dibs__push *push)
{
    dibs__item first;
    dibs__lane lane;
    dibs_status rc = DIBS_OK;

    for (size_t i = 0; i < push->count && rc == DIBS_OK; i++)
        if (push->items[i].to[0] && !push->items[i].duplicate)
            rc = serve_lanes(sh, push->items[i].to);
    if (rc == DIBS_OK)
        rc = serve_lanes(sh, NULL);
    if (rc != DIBS_OK)
        return rc;
    rc = sh->ops->item_later(sh, 0, &first);
    for (size_t i = 0; i < push->count && rc == DIBS_OK; i++)
        if (push->items[i].id == first.id && !push->items[i].duplicate) {
            rc = sh->ops->lane_waiting(sh, NULL, &lane);
            if (rc == DIBS_OK)
                sh->ops->ring(sh, &lane, NULL);
        }
    return none_is_fine(rc);
}

dibs_status dibs__deliver_push(dibs__shelf *sh, const dibs__push *push)
{
    dibs__pusher last = {.number = 0};
    uint64_t fresh = 0;
    dibs_status rc = begin_step(sh);

    for (size_t i = 0; i < push->count; i++) {
        push->items[i].id = 0;
        push->items[i].duplicate = false;
    }
    if (rc == DIBS_OK)
        rc = none_is_fine(sh->ops->pusher_find(sh, push->lane, &last));
    if (rc != DIBS_OK)
        return rc;
    if (last.number > 0 && push->number == last.number) /* (1) */
        return serve_and(sh, repeat_push(sh, push, &last));
    if (push->number != last.number + 1)
        return serve_and(sh, fail_lost(sh));
    rc = count_fresh(sh, push, &fresh);
    if (rc != DIBS_OK)
        return rc;
    last = (dibs__pusher){.lane = push->lane,
                          .number = push->number,
                          .count = push->count};
    if (fresh > 0 && sh->head.items + fresh > dibs__deliver_conf(&sh->head).cap)
        last.rc = dibs__item_fail_full(sh);
    else
        rc = make_items(sh, push, &last);
    if (rc == DIBS_OK)
        rc = sh->ops->pusher_put(sh, &last);
    if (rc == DIBS_OK)
        rc = serve_push(sh, push);
    return rc == DIBS_OK ? last.rc : rc;
}

/* ---- reserve */

static bool is_heard(const dibs__reserve *ask, const dibs__item *item)
{
    for (size_t i = 0; i < ask->heard_count; i++)
        if (ask->heard[i].id == item->id &&
            ask->heard[i].fence == item->fence &&
            ask->heard[i].attempt == item->attempts)
            return true;
    return false;
}

/* Puts into the answer what the answer to `told` has, or what is unheard (0). Unless it
 * is a repeat, the answer to this number has it from now on (7). */
static dibs_status tell_items(dibs__shelf *sh, const dibs__reserve *ask,
                              uint64_t told, bool repeat, uint32_t *count)
{
    uint64_t after = 0;
    dibs_status rc = DIBS_OK;

    while (rc == DIBS_OK) {
        dibs__item item;
        bool heard;

        rc = sh->ops->item_told(sh, ask->lane, told, after, &item);
        if (rc != DIBS_OK)
            break;
        after = item.fence;
        heard = told == 0 && is_heard(ask, &item);
        if (!repeat) {
            item.told = ask->number;
            rc = sh->ops->item_put(sh, &item);
        }
        if (rc == DIBS_OK && !heard) {
            rc = sh->ops->answer(sh, &item);
            sh->answered_bytes += item.len;
            ++*count;
        }
    }
    return none_is_fine(rc);
}

/* Keeps what every request tells of its lane. */
static void
renew_lane(dibs__shelf *sh, dibs__lane *lane, const dibs__reserve *ask)
{
    copy_text(lane->bell, sizeof(lane->bell), sh->bell);
    lane->hands = ask->hands;
}

static dibs_status repeat_reserve(dibs__shelf *sh, dibs__lane *lane,
                                  dibs__reserve *ask, uint32_t *count)
{
    int64_t until_us = after_ms(sh->now_us, ask->span_ms);
    dibs_status rc = DIBS_OK;

    if (ask->number > 1 &&
        !dibs__settle_read(ask->settle, ask->settle_count, lane->results))
        return dibsx_fail(sh->err, DIBS_INVALID,
                          "another request had this number of the lane");
    rc = tell_items(sh, ask, ask->number, true, count);
    if (rc == DIBS_OK)
        rc = tell_items(sh, ask, 0, true, count);
    renew_lane(sh, lane, ask);
    if (lane->until_us < until_us)
        lane->until_us = until_us;
    if (lane->waits_us)
        lane->waits_us = sh->now_us;
    return rc;
}

/* A lane is shortened only while it has nothing. */
static dibs_status set_span(dibs__shelf *sh, dibs__lane *lane, int64_t span_ms)
{
    int64_t until_us = after_ms(sh->now_us, span_ms);
    dibs__item item;
    dibs_status rc = DIBS_NOTFOUND;

    if (until_us < lane->until_us)
        rc = sh->ops->item_had(sh, lane->lane, 0, &item);
    if (rc == DIBS_NOTFOUND)
        lane->until_us = until_us;
    return none_is_fine(rc);
}

static dibs_status
settle_items(dibs__shelf *sh, dibs__lane *lane, dibs__reserve *ask)
{
    dibs_status rc = DIBS_OK;

    memset(lane->results, 0, sizeof(lane->results));
    for (size_t i = 0; i < ask->settle_count && rc == DIBS_OK; i++) {
        rc = dibs__item_settle(sh, lane->lane, &ask->settle[i]);
        lane->results[i] = dibs__settle_mark(&ask->settle[i]);
    }
    return rc;
}

/* A request of the next number. */
static dibs_status do_reserve(dibs__shelf *sh, dibs__lane *lane,
                              dibs__reserve *ask, uint32_t *count)
{
    uint32_t taken = 0;
    dibs_status rc = settle_items(sh, lane, ask);

    if (rc == DIBS_OK)
        rc = set_span(sh, lane, ask->span_ms);
    renew_lane(sh, lane, ask);
    lane->number = ask->number;
    lane->stamp = dibs__item_draw(sh);
    lane->want = ask->want;
    lane->limit_ms = ask->limit_ms;
    lane->waits_us = 0;
    if (rc == DIBS_OK)
        rc = tell_items(sh, ask, 0, false, count);
    if (rc == DIBS_OK && *count < ask->want)
        rc = take_items(sh, lane, ask->want - *count, false, &taken);
    *count += taken;
    if (*count == 0 && ask->want > 0 && ask->wait)
        lane->waits_us = sh->now_us;
    return rc;
}

/* (10). A worker that comes does not get back what was made everybody's. */
static void
open_lane(dibs__shelf *sh, dibs__lane *lane, const dibs__reserve *ask)
{
    *lane = (dibs__lane){.lane = ask->lane, .number = 1};
    copy_text(lane->as, sizeof(lane->as), ask->as);
    renew_lane(sh, lane, ask);
    lane->stamp = dibs__item_draw(sh);
    lane->until_us = after_ms(sh->now_us, ask->span_ms);
    for (size_t i = 0; i < ask->settle_count; i++)
        ask->settle[i].rc = DIBS_LOST;
}

/* Each lane that waits looks after one of the delayed items. */
static dibs_status
find_due(dibs__shelf *sh, const dibs__lane *lane, dibs__reserve *ask)
{
    uint64_t rank = 1;
    dibs__item item;
    dibs_status rc = DIBS_OK;

    ask->due_ms = -1;
    rc = sh->ops->item_later(sh, 0, &item);
    if (rc == DIBS_OK && lane->waits_us)
        rc = sh->ops->lanes_waiting(sh, &rank);
    if (rc == DIBS_OK && rank > 1)
        rc = sh->ops->item_later(sh, rank - 1, &item);
    if (rc != DIBS_OK)
        return none_is_fine(rc);
    ask->due_ms = item.due_wall_us <= sh->now_wall_us
                      ? 0
                      : (item.due_wall_us - sh->now_wall_us + 999) / 1000;
    return DIBS_OK;
}

dibs_status dibs__deliver_reserve(dibs__shelf *sh, dibs__reserve *ask)
{
    dibs__lane lane;
    uint32_t count = 0;
    dibs_status rc = begin_step(sh);
    bool known;

    if (rc == DIBS_OK)
        rc = sh->ops->lane_find(sh, ask->lane, &lane);
    known = rc == DIBS_OK;
    if (rc != DIBS_OK && rc != DIBS_NOTFOUND)
        return rc;
    if (known ? is_over(&lane) || ask->number < lane.number
              : ask->number != 1) /* (1) */
        return serve_and(sh, fail_lost(sh));
    if (known && ask->number > lane.number && /* (6) */
        (ask->number != lane.number + 1 || ask->seen != lane.stamp)) {
        rc = end_lane(sh, &lane, DIBS__RETURN_LOST);
        return rc == DIBS_OK ? serve_and(sh, fail_lost(sh)) : rc;
    }
    rc = DIBS_OK;
    if (!known)
        open_lane(sh, &lane, ask);
    else if (ask->number == lane.number)
        rc = repeat_reserve(sh, &lane, ask, &count);
    else
        rc = do_reserve(sh, &lane, ask, &count);
    if (rc == DIBS_OK)
        rc = sh->ops->lane_put(sh, &lane);
    if (rc == DIBS_OK)
        rc = serve_lanes(sh, NULL);
    if (rc == DIBS_OK)
        rc = find_due(sh, &lane, ask);
    ask->stamp = lane.stamp;
    return rc;
}

/* ---- the others */

dibs_status dibs__deliver_tend(dibs__shelf *sh, dibs__tend *item)
{
    int64_t until_us = after_ms(sh->now_us, item->span_ms);
    dibs__item first;
    dibs__lane lane;
    dibs_status rc = sh->ops->lane_find(sh, item->lane, &lane);

    item->rc = DIBS_LOST;
    item->left_ms = 0;
    item->ready = false;
    if (rc == DIBS_NOTFOUND || (rc == DIBS_OK && lane.until_us <= sh->now_us))
        return DIBS_OK;
    if (rc == DIBS_OK && lane.until_us < until_us) {
        lane.until_us = until_us;
        rc = sh->ops->lane_put(sh, &lane);
    }
    if (rc == DIBS_OK) {
        sh->robbing = false;
        rc = dibs__item_next(sh, lane.as, &first);
        item->ready = rc == DIBS_OK;
    }
    item->rc = DIBS_OK;
    item->left_ms = (lane.until_us - sh->now_us) / 1000;
    return none_is_fine(rc);
}

dibs_status dibs__deliver_leave(dibs__shelf *sh, uint64_t id)
{
    dibs__lane lane;
    dibs_status rc = begin_step(sh);

    if (rc == DIBS_OK)
        rc = sh->ops->lane_find(sh, id, &lane);
    if (rc == DIBS_OK && !is_over(&lane))
        rc = end_lane(sh, &lane, DIBS__RETURN_UNBEGUN);
    rc = none_is_fine(rc);
    return rc == DIBS_OK ? serve_lanes(sh, NULL) : rc;
}
