/* deliver_admin.c - the rule of queues: the steps of an operator, what a step may ask for, and
 * the check of the invariants. Pure, but for the shelf. */
/* SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "store/deliver.h"
#include <stdio.h>
#include <string.h>

/* A record beyond the old bound is not shown again, so it goes before the bound rises. */
static dibs_status
set_keep_done(dibs__shelf *sh, uint32_t keep_done, bool *more)
{
    dibs__queue_conf *to = &sh->head.conf;
    dibs_status rc;

    if (keep_done < to->keep_done)
        to->keep_done = keep_done;
    rc = dibs__item_trim_done(sh, DIBS__PURGE_MAX);
    *more = sh->head.done > to->keep_done;
    if (!*more)
        to->keep_done = keep_done;
    return rc;
}

dibs_status dibs__deliver_set(dibs__shelf *sh, uint32_t fields,
                              const dibs__queue_conf *conf, bool *more)
{
    dibs__queue_conf *to = &sh->head.conf;
    dibs_status rc = DIBS_OK;

    if (fields & DIBS__SET_PAUSED)
        to->paused = conf->paused;
    if (fields & DIBS__SET_SERIAL)
        to->serial = conf->serial;
    if (fields & DIBS__SET_CAP)
        to->cap = conf->cap;
    if (fields & DIBS__SET_TRIES)
        to->tries = conf->tries;
    if (fields & DIBS__SET_DEADS)
        to->deads = conf->deads;
    if (fields & DIBS__SET_LOST_MAX)
        to->lost_max = conf->lost_max;
    sh->head.changed = true;
    *more = false;
    if (fields & DIBS__SET_KEEP_DONE)
        rc = set_keep_done(sh, conf->keep_done, more);
    return rc == DIBS_OK ? dibs__deliver_tidy(sh) : rc;
}

static dibs_status purge_dead(dibs__shelf *sh, size_t max, size_t *purged)
{
    dibs_status rc = DIBS_OK;

    while (rc == DIBS_OK && *purged < max && sh->head.dead > 0) {
        rc = sh->ops->dead_drop(sh);
        if (rc == DIBS_OK) {
            sh->head.dead--;
            sh->head.purged++;
            sh->head.changed = true;
            ++*purged;
        }
    }
    return rc;
}

static dibs_status purge_done(dibs__shelf *sh, size_t max, size_t *purged)
{
    dibs_status rc = DIBS_OK;

    while (rc == DIBS_OK && *purged < max && sh->head.done > 0) {
        rc = sh->ops->done_drop(sh);
        sh->head.done--;
        sh->head.changed = true;
        ++*purged;
    }
    return rc;
}

dibs_status dibs__deliver_purge(dibs__shelf *sh, uint32_t places, size_t max,
                                size_t *purged)
{
    static const dibs__item_place all[] = {DIBS__PLACE_READY, DIBS__PLACE_LATER,
                                           DIBS__PLACE_OUT};
    dibs_status rc = DIBS_OK;

    *purged = 0;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        rc = DIBS_OK;
        while ((places & all[i]) && rc == DIBS_OK && *purged < max) {
            dibs__item item;

            rc = sh->ops->item_any(sh, all[i], &item);
            if (rc == DIBS_OK)
                rc = dibs__item_forget(sh, &item);
            if (rc == DIBS_OK) {
                sh->head.purged++;
                ++*purged;
            }
        }
        if (rc != DIBS_OK && rc != DIBS_NOTFOUND)
            return rc;
    }
    rc = places & DIBS__PLACE_DEAD ? purge_dead(sh, max, purged) : DIBS_OK;
    if (rc == DIBS_OK && (places & DIBS__PLACE_DONE))
        rc = purge_done(sh, max, purged);
    return rc == DIBS_OK ? dibs__deliver_tidy(sh) : rc;
}

dibs_status dibs__deliver_redrive(dibs__shelf *sh, uint64_t id, size_t max,
                                  size_t *redriven)
{
    dibs_status rc = DIBS_OK;

    *redriven = 0;
    if (id != 0)
        max = max > 0 ? 1 : 0;
    while (rc == DIBS_OK && *redriven < max && sh->head.dead > 0) {
        dibs__item item;

        if (sh->head.items >= dibs__deliver_conf(&sh->head).cap)
            break;
        rc = sh->ops->dead_redrive(sh, id, dibs__item_draw(sh), &item);
        if (rc == DIBS_OK)
            rc = dibs__item_shelve(sh, &item);
        if (rc == DIBS_OK) {
            sh->head.items++;
            sh->head.dead--;
            sh->head.changed = true;
            ++*redriven;
        }
    }
    if (rc != DIBS_OK && rc != DIBS_NOTFOUND)
        return rc;
    if (*redriven == 0 && max > 0 && sh->head.dead > 0 && rc == DIBS_OK)
        return dibs__item_fail_full(sh);
    return dibs__deliver_tidy(sh);
}

void dibs__lane_address(uint64_t lane, char out[DIBS_OWNER_SIZE])
{
    snprintf(out, DIBS_OWNER_SIZE, "%032llx", (unsigned long long)lane);
}

static dibs_status fail_many(const char *what, dibs_error *err)
{
    return dibsx_fail(err, DIBS_INVALID, "a step has at most %d %s",
                      DIBS__QUEUE_BATCH, what);
}

static dibs_status check_item(const dibs__push_item *item, dibs_error *err)
{
    if (item->len > DIBS__ITEM_MAX)
        return dibsx_fail(err, DIBS_INVALID, "an item has at most %d bytes",
                          DIBS__ITEM_MAX);
    if (strnlen(item->to, DIBS__WORKER_MAX) >= DIBS__WORKER_MAX)
        return dibsx_fail(err, DIBS_INVALID,
                          "the name of a worker has at most %d bytes",
                          DIBS__WORKER_MAX - 1);
    if (strnlen(item->dedup, DIBS__DEDUP_MAX + 1) > DIBS__DEDUP_MAX)
        return dibsx_fail(err, DIBS_INVALID, "a dedup id has at most %d bytes",
                          DIBS__DEDUP_MAX);
    if (item->delay_ms < 0 || item->dedup_ms < 0)
        return dibsx_fail(err, DIBS_INVALID, "a span of time is not negative");
    return DIBS_OK;
}

dibs_status dibs__deliver_check_push(const dibs__push *push, dibs_error *err)
{
    size_t bytes = 0;

    if (push->count == 0 || push->count > DIBS__QUEUE_BATCH)
        return fail_many("items", err);
    for (size_t i = 0; i < push->count; i++) {
        dibs_status rc = check_item(&push->items[i], err);

        if (rc != DIBS_OK)
            return rc;
        bytes += push->items[i].len;
    }
    if (bytes > DIBS__QUEUE_BYTES)
        return dibsx_fail(err, DIBS_INVALID, "a push has at most %d bytes",
                          DIBS__QUEUE_BYTES);
    return DIBS_OK;
}

dibs_status
dibs__deliver_check_reserve(const dibs__reserve *ask, dibs_error *err)
{
    if (ask->want > DIBS__QUEUE_BATCH)
        return fail_many("items", err);
    if (ask->settle_count > DIBS__QUEUE_BATCH)
        return fail_many("settlements", err);
    if (ask->heard_count > DIBS__QUEUE_BATCH)
        return fail_many("tokens", err);
    if (ask->lane == 0 || ask->number == 0 || ask->span_ms <= 0)
        return dibsx_fail(err, DIBS_INVALID,
                          "a lane, a number and a span are above 0");
    if (ask->number == 1 && ask->settle_count > 0)
        return dibsx_fail(
            err, DIBS_INVALID,
            "the request settles items before its lane is open: number 1 "
            "opens it");
    if (strnlen(ask->as, DIBS__WORKER_MAX) >= DIBS__WORKER_MAX)
        return dibsx_fail(err, DIBS_INVALID,
                          "the name of a worker has at most %d bytes",
                          DIBS__WORKER_MAX - 1);
    return DIBS_OK;
}

/* ---- the invariants */

static const dibs__lane *
find_lane(const dibs__lane *lanes, size_t count, uint64_t lane)
{
    for (size_t i = 0; i < count; i++)
        if (lanes[i].lane == lane)
            return &lanes[i];
    return NULL;
}

/* Whether something keeps ready items back. */
static bool
is_held(const dibs__queue_head *head, const dibs__item *items, size_t count)
{
    if (head->conf.paused)
        return true;
    for (size_t i = 0; i < count && head->conf.serial; i++)
        if (items[i].lane || (items[i].due_wall_us && items[i].attempts > 0))
            return true;
    return false;
}

static const char *
check_one(const dibs__queue_head *head, const dibs__lane *lanes,
          size_t lane_count, const dibs__item *item, uint64_t watermark)
{
    dibs__queue_conf conf = dibs__deliver_conf(head);
    uint32_t tries = item->tries ? item->tries : conf.tries;

    if (item->lane && item->due_wall_us)
        return "I4: an item is in two places";
    if (item->lane && !find_lane(lanes, lane_count, item->lane))
        return "I4: an item is out without a lane";
    if (item->lane && (item->fence == 0 || item->fence > watermark))
        return "I7: a fence that was not drawn";
    if (item->attempts > tries || (!item->lane && item->attempts >= tries) ||
        item->lost >= conf.lost_max)
        return "I8: an item lives that should be dead";
    return NULL;
}

const char *
dibs__deliver_check(const dibs__queue_head *head, const dibs__lane *lanes,
                    size_t lane_count, const dibs__item *items,
                    size_t item_count, int64_t now_us, uint64_t watermark)
{
    bool held = is_held(head, items, item_count);
    bool waits = false;

    for (size_t i = 0; i < lane_count; i++)
        waits = waits || (lanes[i].waits_us && lanes[i].until_us > now_us);
    for (size_t i = 0; i < item_count; i++) {
        const dibs__item *item = &items[i];
        const char *wrong = check_one(head, lanes, lane_count, item, watermark);

        if (wrong)
            return wrong;
        if (!item->lane && !item->due_wall_us && waits && !held)
            return "I6: an item is ready while a lane waits";
        for (size_t j = 0; j < i; j++)
            if (items[j].id == item->id)
                return "I4: an item is there twice";
            else if (item->lane && items[j].fence == item->fence)
                return "I7: a fence was used twice";
    }
    return head->items == item_count ? NULL
                                     : "I12: the items are counted wrong";
}
