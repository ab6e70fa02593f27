/* test_client_pool.c - acks without blocking of items that are freed. */
/* SPDX-License-Identifier: MIT */
#include "coord/queue.h"
#include "queue_world.h"

#include <dibs/queue_async.h>
#include <pthread.h>
#include <unistd.h>

/* An ack that ends with a callback. */
typedef struct open_ack {
    atomic_int calls;
    dibs_status rc;
} open_ack;

static void
note_ack(dibs_item *item, dibs_status rc, const dibs_error *err, void *arg)
{
    open_ack *ack = arg;

    (void)item;
    (void)err;
    ack->rc = rc;
    atomic_fetch_add(&ack->calls, 1);
}

/* The store fails, and the item goes back to it then. */
static void an_item_may_be_freed_before_its_callback(void **state)
{
    world *w = *state;
    dibs_queue *q = open_queue(w->one, NULL),
               *other = open_queue(w->other, NULL);
    gate g = {.w = w, .step = DIBS__STEP_RESERVE};
    open_ack a = {.rc = DIBS_OK};
    dibs_item *item;

    push(q);
    item = reserve(q);
    world_fault(w, DIBS__STEP_RESERVE, DIBS__FAULT_FAIL, 1);
    world_during(w, DIBS__STEP_RESERVE, hang_in_gate, &g);
    CHECK(DIBS_OK, dibs_item_ack_async(item, note_ack, &a, err));
    await_at_least(&g.inside, 1);
    dibs_item_free(item);
    world_during(w, DIBS__STEP_RESERVE, NULL, NULL);
    atomic_store(&g.open, true);
    await_at_least(&a.calls, 1);
    assert_status(a.rc, DIBS_UNAVAIL);
    item = reserve(other);
    assert_int_equal(dibs_item_attempt(item), 1);
    ack(item);
    dibs_queue_free(q);
    dibs_queue_free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(an_item_may_be_freed_before_its_callback),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
