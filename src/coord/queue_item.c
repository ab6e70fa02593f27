/* queue_item.c - reading an item. Any thread; the checks take no lock. */
/* SPDX-License-Identifier: MIT */
#include "coord/queue.h"

const void *dibs_item_data(const dibs_item *item, size_t *len)
{
    if (len)
        *len = item->parts.len;
    return item->parts.data;
}

const char *dibs_item_header(const dibs_item *item, const char *key)
{
    return dibs__item_header_of(&item->parts, key);
}

const char *dibs_item_header_at(const dibs_item *item, size_t index)
{
    return dibs__item_header_at(&item->parts, index);
}

uint64_t dibs_item_id(const dibs_item *item)
{
    return item->lane.token.id;
}

uint64_t dibs_item_fence(const dibs_item *item)
{
    return item->lane.token.fence;
}

uint32_t dibs_item_attempt(const dibs_item *item)
{
    return item->lane.token.attempt;
}

uint32_t dibs_item_losses(const dibs_item *item)
{
    return item->lost;
}

int32_t dibs_item_priority(const dibs_item *item)
{
    return item->priority;
}

/* 0: it is lost or settled; DIBSX_NEVER: adopted, so that the store alone knows. */
static dibsx_nsec valid_until(const dibs_item *item)
{
    dibsx_nsec until = DIBSX_NEVER, limit = atomic_load(&item->limit_until);

    if (atomic_load(&item->over) || dibs__forked(item->q->cl->fork_number))
        return 0;
    if (item->life)
        until = atomic_load(&item->life->valid_until);
    return until < limit ? until : limit;
}

dibs_status dibs_item_check(const dibs_item *item)
{
    return valid_until(item) > dibsx_now() ? DIBS_OK : DIBS_LOST;
}

int64_t dibs_item_valid_ms(const dibs_item *item)
{
    dibsx_nsec until = valid_until(item);

    return until == DIBSX_NEVER ? 0 : dibsx_valid_ms(until, dibsx_now());
}
