/* test_client_token.c - deliveries that change hands, and more than one who has the token. */
/* SPDX-License-Identifier: MIT */
#include "queue_world.h"

/* Two that have adopted one token, each at a client of its own. */
typedef struct rivals {
    world *w;
    dibs_queue *q[2];
    dibs_item *item[2];
    dibs_status rc; /* of the second */
} rivals;

static void adopt_twice(world *w, rivals *rv)
{
    dibs_client *cl[2] = {w->one, w->other};
    char token[DIBS_ITEM_TOKEN_SIZE];
    dibs_queue *q = open_queue(w->one, NULL);
    dibs_item *item;

    *rv = (rivals){.w = w, .rc = DIBS_INTERNAL};
    push(q);
    item = reserve(q);
    CHECK(DIBS_OK, dibs_item_detach(item, token, err));
    dibs_item_free(item);
    dibs_queue_free(q);
    for (int i = 0; i < 2; i++) {
        rv->q[i] = open_queue(cl[i], NULL);
        CHECK(DIBS_OK, dibs_queue_adopt(rv->q[i], token, &rv->item[i], err));
    }
}

static void free_rivals(rivals *rv)
{
    for (int i = 0; i < 2; i++) {
        dibs_item_free(rv->item[i]);
        dibs_queue_free(rv->q[i]);
    }
}

static void nack_meanwhile(void *arg)
{
    rivals *rv = arg;

    rv->rc = dibs_item_nack(rv->item[1], 0, "not me", NULL);
}

static void nack_next_time(void *arg)
{
    rivals *rv = arg;

    world_during(rv->w, DIBS__STEP_RESERVE, nack_meanwhile, rv);
}

/* The second comes when the first has settled, and its lane has not ended yet. */
static void one_token_is_settled_in_one_way(void **state)
{
    world *w = *state;
    dibs__queue_stats st;
    rivals rv;

    adopt_twice(w, &rv);
    world_during(w, DIBS__STEP_LEAVE, nack_meanwhile, &rv);
    CHECK(DIBS_OK, dibs_item_ack(rv.item[0], err));
    assert_status(rv.rc, DIBS_LOST);
    assert_status(dibs_item_check(rv.item[1]), DIBS_LOST);
    st = stats(w);
    assert_int_equal(st.acked, 1);
    assert_int_equal(st.ready + st.later + st.out, 0);
    free_rivals(&rv);
}

/* The request of the first is lost, and the second settles before it is sent again: while
 * the lane lives, it is known that it was not done. */
static void a_rival_that_was_in_doubt_has_lost(void **state)
{
    world *w = *state;
    dibs__queue_stats st;
    rivals rv;

    adopt_twice(w, &rv);
    world_fault(w, DIBS__STEP_RESERVE, DIBS__FAULT_DROP_BEFORE, 1);
    world_fault(w, DIBS__STEP_LEAVE, DIBS__FAULT_FAIL, -1);
    world_during(w, DIBS__STEP_RESERVE, nack_next_time, &rv);
    CHECK(DIBS_LOST, dibs_item_ack(rv.item[0], err));
    assert_status(rv.rc, DIBS_OK);
    st = stats(w);
    assert_int_equal(st.acked, 0);
    assert_int_equal(st.ready, 1);
    free_rivals(&rv);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(one_token_is_settled_in_one_way),
        WORLD_TEST(a_rival_that_was_in_doubt_has_lost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
