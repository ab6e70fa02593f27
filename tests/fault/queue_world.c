/* queue_world.c - see queue_world.h. */
/* SPDX-License-Identifier: MIT */
#include "queue_world.h"

#include <unistd.h>

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

void set_cap(world *w, uint32_t cap)
{
    dibs__queue_conf conf = {.cap = cap};

    CHECK(DIBS_OK, w->keep->st->ops->queue_admin->set(
                       w->keep->st, "q", DIBS__SET_CAP, &conf,
                       dibsx_after_ms(dibsx_now(), 5000), err));
}

void *do_reserve(void *arg)
{
    call *c = arg;

    c->rc = dibs_queue_reserve(c->q, WORLD_BOUND_MS, &c->item, NULL);
    return NULL;
}

void await_waiting(world *w)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), WORLD_BOUND_MS);

    while (stats(w).waiting == 0) {
        IN_TIME(dibsx_now() < end);
        usleep(1000);
    }
}
