/* deliver_item.c - the ways of an item in the rule of queues. Pure, but for the shelf. */
/* SPDX-License-Identifier: MIT */
#include "store/deliver_item.h"
#include "base/fail.h"
#include <string.h>

/* Records that an ack drops, and dead letters that a death drops: more than it makes, so that
 * what a change of the bound has left goes too. */
enum { TRIM_EACH = 4, DROP_EACH = 64 };

static void copy_text(char *out, size_t size, const char *text)
{
    size_t len = text ? strnlen(text, size - 1) : 0;

    /* No part of a character is left at the end. */
    while (len > 0 && text[len] && ((unsigned char)text[len] & 0xc0) == 0x80)
        len--;
    memcpy(out, text ? text : "", len);
    out[len] = '\0';
}

static int64_t after_ms(int64_t now_us, int64_t span_ms)
{
    int64_t span_us, until_us;

    if (__builtin_mul_overflow(span_ms, (int64_t)1000, &span_us) ||
        __builtin_add_overflow(now_us, span_us, &until_us))
        return INT64_MAX;
    return until_us;
}

dibs__queue_conf dibs__deliver_conf(const dibs__queue_head *head)
{
    dibs__queue_conf conf = head->conf;

    if (conf.cap == 0)
        conf.cap = DIBS__QUEUE_CAP;
    if (conf.tries == 0)
        conf.tries = DIBS__QUEUE_TRIES;
    if (conf.deads == 0)
        conf.deads = DIBS__QUEUE_DEADS;
    if (conf.lost_max == 0)
        conf.lost_max = DIBS__QUEUE_LOST_MAX;
    return conf;
}

uint64_t dibs__item_draw(dibs__shelf *sh)
{
    uint64_t wall_us = (uint64_t)sh->now_wall_us;

    sh->watermark = sh->watermark + 1 > wall_us ? sh->watermark + 1 : wall_us;
    return sh->watermark;
}

dibs_status dibs__item_fail_full(dibs__shelf *sh)
{
    return dibsx_fail(sh->err, DIBS_FULL,
                      "the queue is full: it has %llu of %lu items; wait, or "
                      "set a higher cap",
                      (unsigned long long)sh->head.items,
                      (unsigned long)dibs__deliver_conf(&sh->head).cap);
}

dibs_status
dibs__item_dedup(dibs__shelf *sh, const char *dedup, bool *taken, uint64_t *by)
{
    dibs__dedup at;
    dibs_status rc;

    *taken = false;
    *by = 0;
    if (!dedup[0])
        return DIBS_OK;
    rc = sh->ops->dedup_find(sh, dedup, &at);
    if (rc != DIBS_OK)
        return rc == DIBS_NOTFOUND ? DIBS_OK : rc;
    *taken = at.alive || at.until_wall_us > sh->now_wall_us;
    *by = *taken ? at.id : 0;
    return DIBS_OK;
}

/* The item lives no longer: its dedup id is free, at once or after its window. */
static dibs_status free_dedup(dibs__shelf *sh, const dibs__item *item)
{
    dibs__dedup at;
    dibs_status rc;

    if (!item->dedup[0])
        return DIBS_OK;
    rc = sh->ops->dedup_find(sh, item->dedup, &at);
    if (rc != DIBS_OK)
        return rc == DIBS_NOTFOUND ? DIBS_OK : rc;
    if (at.id != item->id)
        return DIBS_OK;
    if (at.until_wall_us <= sh->now_wall_us)
        return sh->ops->dedup_drop(sh, item->dedup);
    at.alive = false;
    return sh->ops->dedup_put(sh, item->dedup, &at);
}

/* Sets for whom it is ready. */
static dibs_status address_item(dibs__shelf *sh, dibs__item *item)
{
    bool lives = false;
    dibs_status rc = DIBS_OK;

    if (item->to[0])
        rc = sh->ops->worker_lives(sh, item->to, &lives);
    copy_text(item->own, sizeof(item->own), lives ? item->to : "");
    return rc;
}

dibs_status dibs__item_shelve(dibs__shelf *sh, dibs__item *item)
{
    dibs_status rc = address_item(sh, item);

    return rc == DIBS_OK ? sh->ops->item_put(sh, item) : rc;
}

dibs_status dibs__item_push(dibs__shelf *sh, dibs__push_item *push)
{
    dibs__item item = {.id = dibs__item_draw(sh),
                       .priority = push->priority,
                       .tries = push->tries,
                       .len = push->len};
    dibs__dedup at = {.id = item.id, .alive = true};
    dibs_status rc = DIBS_OK;

    push->id = item.place = item.id;
    copy_text(item.to, sizeof(item.to), push->to);
    copy_text(item.dedup, sizeof(item.dedup), push->dedup);
    if (push->delay_ms > 0)
        item.due_wall_us = after_ms(sh->now_wall_us, push->delay_ms);
    else
        rc = address_item(sh, &item);
    if (rc == DIBS_OK)
        rc = sh->ops->item_make(sh, &item, push->data);
    if (rc == DIBS_OK && item.dedup[0]) {
        at.until_wall_us = after_ms(sh->now_wall_us, push->dedup_ms);
        rc = sh->ops->dedup_put(sh, item.dedup, &at);
    }
    sh->head.items++;
    sh->head.pushed++;
    sh->head.changed = true;
    return rc;
}

static bool goes_before(const dibs__item *a, const dibs__item *b)
{
    if (a->priority != b->priority)
        return a->priority > b->priority;
    return a->place != b->place ? a->place < b->place : a->id < b->id;
}

/* The first that is ready for everybody, or for a worker that is gone: no step has got
 * round to that one. */
static dibs_status find_common(dibs__shelf *sh, dibs__item *item)
{
    dibs_status rc = sh->ops->item_ready(sh, "", item);

    for (size_t i = 0; i < sh->gone_count; i++) {
        dibs__item other;
        dibs_status found;

        if (rc != DIBS_OK && rc != DIBS_NOTFOUND)
            return rc;
        found = sh->ops->item_ready(sh, sh->gone[i], &other);
        if (found == DIBS_OK &&
            (rc == DIBS_NOTFOUND || goes_before(&other, item)))
            *item = other;
        if (found != DIBS_NOTFOUND)
            rc = found;
    }
    return rc;
}

/* Half of what the worker with most has, rounded up, can be taken at once. */
static dibs_status steal_next(dibs__shelf *sh, dibs__item *item)
{
    uint64_t count = 0;
    dibs_status rc = DIBS_OK;

    if (!sh->robbing) {
        rc = sh->ops->worker_richest(sh, sh->robbed, &count);
        if (rc != DIBS_OK)
            return rc;
        sh->robbing = true;
        sh->steals_left = (count + 1) / 2;
    }
    if (sh->steals_left == 0)
        return DIBS_NOTFOUND;
    sh->steals_left--;
    return sh->ops->item_ready(sh, sh->robbed, item);
}

dibs_status dibs__item_next(dibs__shelf *sh, const char *as, dibs__item *item)
{
    dibs__item own;
    bool held = sh->head.conf.paused;
    dibs_status rc = DIBS_OK, mine = DIBS_NOTFOUND;

    if (!held && sh->head.conf.serial)
        rc = sh->ops->is_held_up(sh, &held);
    if (rc != DIBS_OK || held)
        return rc == DIBS_OK ? DIBS_NOTFOUND : rc;
    rc = find_common(sh, item);
    if (as[0] && (rc == DIBS_OK || rc == DIBS_NOTFOUND))
        mine = sh->ops->item_ready(sh, as, &own);
    if (mine == DIBS_OK && (rc == DIBS_NOTFOUND || goes_before(&own, item))) {
        *item = own;
        return DIBS_OK;
    }
    if (mine != DIBS_OK && mine != DIBS_NOTFOUND)
        return mine;
    return rc == DIBS_NOTFOUND ? steal_next(sh, item) : rc;
}

dibs_status dibs__item_give(dibs__shelf *sh, dibs__item *item,
                            const dibs__lane *lane, uint64_t told)
{
    item->lane = lane->lane;
    item->fence = dibs__item_draw(sh);
    item->told = told;
    item->attempts++;
    item->own[0] = '\0';
    item->limit_us =
        lane->limit_ms > 0 ? after_ms(sh->now_us, lane->limit_ms) : 0;
    sh->head.delivered++;
    sh->head.changed = true;
    return sh->ops->item_put(sh, item);
}

static dibs_status drop_dead(dibs__shelf *sh)
{
    uint32_t deads = dibs__deliver_conf(&sh->head).deads;
    dibs_status rc = DIBS_OK;

    for (int i = 0; i < DROP_EACH && rc == DIBS_OK && sh->head.dead > deads;
         i++) {
        rc = sh->ops->dead_drop(sh);
        sh->head.dead--;
        sh->head.dropped++;
    }
    return rc;
}

static dibs_status
bury_item(dibs__shelf *sh, const dibs__item *item, const char *reason)
{
    dibs_status rc = free_dedup(sh, item);

    if (rc == DIBS_OK)
        rc = sh->ops->dead_put(sh, item, reason);
    sh->head.items--;
    sh->head.dead++;
    sh->head.died++;
    sh->head.changed = true;
    return rc == DIBS_OK ? drop_dead(sh) : rc;
}

static int64_t lost_delay_ms(uint32_t lost)
{
    if (lost < 2)
        return 0;
    return lost > 6 ? DIBS__LOST_DELAY_MAX_MS : INT64_C(1000) << (lost - 1);
}

dibs_status
dibs__item_return(dibs__shelf *sh, dibs__item *item, dibs__return_kind how,
                  int64_t delay_ms, const char *reason)
{
    dibs__queue_conf conf = dibs__deliver_conf(&sh->head);
    uint32_t tries = item->tries ? item->tries : conf.tries;
    bool dead = how == DIBS__RETURN_DEAD;

    item->lane = item->told = 0;
    item->fence = 0;
    item->limit_us = 0;
    sh->head.changed = true;
    if (how == DIBS__RETURN_UNBEGUN)
        item->attempts--;
    else
        dead = dead || item->attempts >= tries;
    if (how == DIBS__RETURN_LOST) {
        sh->head.lost++;
        item->lost++;
        dead = dead || item->lost >= conf.lost_max;
        delay_ms = lost_delay_ms(item->lost);
    }
    sh->head.nacked += how == DIBS__RETURN_NACK;
    if (how != DIBS__RETURN_UNBEGUN)
        copy_text(item->reason, sizeof(item->reason), reason);
    if (dead)
        return bury_item(sh, item, item->reason);
    if (delay_ms <= 0)
        return dibs__item_shelve(sh, item);
    item->due_wall_us = after_ms(sh->now_wall_us, delay_ms);
    return sh->ops->item_put(sh, item);
}

dibs_status dibs__item_forget(dibs__shelf *sh, const dibs__item *item)
{
    dibs_status rc = free_dedup(sh, item);

    sh->head.items--;
    sh->head.changed = true;
    return rc == DIBS_OK ? sh->ops->item_drop(sh, item->id) : rc;
}

dibs_status dibs__item_trim_done(dibs__shelf *sh, size_t max)
{
    dibs_status rc = DIBS_OK;

    for (; max > 0 && rc == DIBS_OK && sh->head.done > sh->head.conf.keep_done;
         max--) {
        rc = sh->ops->done_drop(sh);
        sh->head.done--;
        sh->head.changed = true;
    }
    return rc;
}

static dibs_status keep_done(dibs__shelf *sh, const dibs__item *item,
                             const dibs__settlement *settle)
{
    dibs_status rc = DIBS_OK;

    if (sh->head.conf.keep_done > 0) {
        rc = sh->ops->done_put(sh, item, settle->reason,
                               dibs__settle_text(settle));
        sh->head.done++;
    }
    return rc == DIBS_OK ? dibs__item_trim_done(sh, TRIM_EACH) : rc;
}

static dibs_status extend_limit(dibs__shelf *sh, dibs__item *item, int64_t ms)
{
    item->limit_us = ms > 0 ? after_ms(sh->now_us, ms) : 0;
    return sh->ops->item_put(sh, item);
}

dibs_status
dibs__item_settle(dibs__shelf *sh, uint64_t lane, dibs__settlement *settle)
{
    dibs__item item;
    dibs_status rc = sh->ops->item_find(sh, settle->token.id, &item);

    settle->rc = DIBS_LOST;
    if (rc == DIBS_NOTFOUND)
        return DIBS_OK;
    if (rc != DIBS_OK)
        return rc;
    if (item.lane != lane || item.fence != settle->token.fence || /* (3) */
        item.attempts != settle->token.attempt)
        return DIBS_OK;
    settle->rc = DIBS_OK;
    switch (settle->verb) {
    case DIBS__ITEM_ACK:
        sh->head.acked++;
        rc = keep_done(sh, &item, settle);
        return rc == DIBS_OK ? dibs__item_forget(sh, &item) : rc;
    case DIBS__ITEM_NACK:
        return dibs__item_return(sh, &item, DIBS__RETURN_NACK, settle->ms,
                                 settle->reason);
    case DIBS__ITEM_DEAD:
        return dibs__item_return(sh, &item, DIBS__RETURN_DEAD, 0,
                                 settle->reason);
    case DIBS__ITEM_UNBEGUN:
        return dibs__item_return(sh, &item, DIBS__RETURN_UNBEGUN, 0, NULL);
    case DIBS__ITEM_EXTEND:
        break;
    }
    return extend_limit(sh, &item, settle->ms);
}
