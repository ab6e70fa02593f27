/* queue_world.c - see queue_world.h. */
/* SPDX-License-Identifier: MIT */
#include "queue_world.h"

dibs_queue *open_queue(dibs_client *cl, const dibs_queue_opts *opts)
{
    dibs_queue *q = NULL;

    CHECK(DIBS_OK, dibs_queue_new(cl, "q", opts, &q, err));
    return q;
}

void push(dibs_queue *q)
{
    CHECK(DIBS_OK, dibs_queue_push(q, "x", 1, NULL, NULL, err));
}

dibs_item *reserve(dibs_queue *q)
{
    dibs_item *item = NULL;

    CHECK(DIBS_OK, dibs_queue_reserve(q, WORLD_BOUND_MS, &item, err));
    return item;
}

void ack(dibs_item *item)
{
    CHECK(DIBS_OK, dibs_item_ack(item, err));
    dibs_item_free(item);
}

void assert_empty(dibs_queue *q)
{
    dibs_item *item = NULL;

    CHECK(DIBS_BUSY, dibs_queue_reserve(q, 0, &item, err));
}

dibs__queue_stats stats(world *w)
{
    dibs__queue_stats out = {0};

    CHECK(DIBS_OK,
          w->keep->st->ops->queue_admin->stats(
              w->keep->st, "q", dibsx_after_ms(dibsx_now(), 5000), &out, err));
    return out;
}
